"""Requests beside an event loop: each blocks a thread of its own.

TLS, SASL and the framing have one implementation, the blocking `Connection`. An admin client has few
requests in flight, so a thread for each costs less than a second implementation. The loop's executor
is left to the program: silent nodes would fill it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from quorate.client.connection import Connection
from quorate.client.errors import RequestNotSentError

T = TypeVar("T")


class AsyncioIo:
    """Runs work in threads; a cancelled call breaks its connection, which ends its thread."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[Connection, asyncio.Lock] = WeakKeyDictionary()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop of the locks. A program may call `asyncio.run` again with the same client."""

    async def run(
        self,
        connection: Connection | None,
        work: Callable[[], T],
        abort: Callable[[], None] = lambda: None,
        wait_s: float | None = None,
    ) -> T:
        if connection is None:
            return await _in_thread(work, _close_made, abort)
        if self._loop is not asyncio.get_running_loop():
            self._loop = asyncio.get_running_loop()
            self._locks.clear()
        lock = self._locks.setdefault(connection, asyncio.Lock())
        try:
            async with asyncio.timeout(wait_s):
                await lock.acquire()
        except TimeoutError:
            why = f"{connection.address} has not answered an earlier call of this client in time"
            raise RequestNotSentError(why) from None
        try:
            if not connection.is_usable:  # by the call that this one waited for
                raise RequestNotSentError(f"The connection to {connection.address} was closed")
            return await _in_thread(work, lambda result: connection.release(), connection.abort)
        finally:
            lock.release()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        return list(await asyncio.gather(*jobs))


async def _in_thread(
    work: Callable[[], T], on_late: Callable[[T | None], None], on_cancel: Callable[[], None]
) -> T:
    """The result of `work`; where the call is cancelled, `on_late` gets it, None for an error.

    The thread is a daemon: a program that ends does not wait for a silent node.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    guard = threading.Lock()
    is_cancelled = is_over = False

    def run() -> None:
        nonlocal is_over
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = work()
        except BaseException as error:
            failure = error
        with guard:
            is_over = True
            late = is_cancelled
        if not late:
            try:
                loop.call_soon_threadsafe(_settle, done, result, failure, on_late)
            except RuntimeError:  # the loop was closed meanwhile
                late = True
        if late:
            on_late(result)

    threading.Thread(target=run, name="quorate-admin", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        with guard:
            is_cancelled = True
            over = is_over
        if not over:
            on_cancel()
        elif done.done() and not done.cancelled() and done.exception() is None:
            on_late(done.result())
        raise


def _settle(
    done: asyncio.Future[T],
    result: Any,
    failure: BaseException | None,
    on_late: Callable[[T | None], None],
) -> None:
    if done.cancelled():
        on_late(result)
    elif failure is not None:
        done.set_exception(failure)
    else:
        done.set_result(result)


def _close_made(made: Any) -> None:
    """Close a connection that was made for a cancelled call."""
    if isinstance(made, Connection):
        made.close()
