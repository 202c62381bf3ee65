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
            return await self._in_thread(work, _close_result)
        async with self._locks.setdefault(connection, asyncio.Lock()):
            return await self._in_thread(work, lambda _: None, connection.abort)

    async def _in_thread(
        self,
        work: Callable[[], T],
        on_late: Callable[[Any], None],
        on_cancel: Callable[[], None] = lambda: None,
    ) -> T:
        """`on_late` gets the result of work that was cancelled meanwhile."""
        running = asyncio.get_running_loop().run_in_executor(None, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            on_cancel()
            running.add_done_callback(lambda done: _late(done, on_late))
            raise

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        return list(await asyncio.gather(*jobs))


def _late(done: asyncio.Future[Any], on_late: Callable[[Any], None]) -> None:
    if not done.cancelled() and done.exception() is None:
        on_late(done.result())


def _close_result(result: Any) -> None:
    if isinstance(result, Connection):
        result.close()
