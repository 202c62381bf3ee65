"""Requests beside an event loop: each blocks a thread of the loop's executor.

TLS, SASL and the framing have one implementation, the blocking `Connection`. An admin client has few
requests in flight, so a thread for each costs less than a second implementation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from quorate.client.connection import Connection

T = TypeVar("T")


class AsyncioIo:
    """Runs work in threads; a cancelled call breaks its connection, which ends its thread."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[Connection, asyncio.Lock] = WeakKeyDictionary()

    async def run(self, connection: Connection | None, work: Callable[[], T]) -> T:
        if connection is None:
            return await self._in_thread(work, _close_made)
        async with self._locks.setdefault(connection, asyncio.Lock()):
            return await self._in_thread(
                work, lambda done: _release(connection, done), connection.abort
            )

    async def _in_thread(
        self,
        work: Callable[[], T],
        on_late: Callable[[asyncio.Future[T]], None],
        on_cancel: Callable[[], None] = lambda: None,
    ) -> T:
        """`on_late` gets work that was cancelled, when it has ended."""
        running = asyncio.get_running_loop().run_in_executor(None, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            on_cancel()
            running.add_done_callback(on_late)
            raise

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        return list(await asyncio.gather(*jobs))


def _release(connection: Connection, done: asyncio.Future[Any]) -> None:
    connection.release()
    if not done.cancelled():
        done.exception()  # nobody asks for it any more: asyncio would log it


def _close_made(done: asyncio.Future[Any]) -> None:
    """Close a connection that was made for a cancelled call."""
    if not done.cancelled() and done.exception() is None and isinstance(done.result(), Connection):
        done.result().close()
