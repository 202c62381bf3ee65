"""How requests are sent: in the caller's thread, or beside an event loop.

The calls of the admin client are coroutines that wait only for an `Io`. `BlockingIo` never suspends,
so `finish` runs such a coroutine to its end without an event loop: a tool loads no asyncio.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from quorate.client.connection import Connection

T = TypeVar("T")


class Io(Protocol):
    """Runs what blocks."""

    async def run(
        self,
        connection: Connection | None,
        work: Callable[[], T],
        abort: Callable[[], None] = lambda: None,
        wait_s: float | None = None,
    ) -> T:
        """Run `work` and return its result.

        One piece of work at a time uses a connection. Another one waits for it, for `wait_s` seconds
        at most, and fails with RequestNotSentError then, or when the first one broke the connection.
        Cancelled work leaves its connection broken; without one, `abort` ends the work.
        """

    async def pause(self, seconds: float) -> None: ...

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """The results of all jobs, in order; raises the first exception."""


class BlockingIo:
    """Runs everything at once in the caller's thread."""

    async def run(
        self,
        connection: Connection | None,
        work: Callable[[], T],
        abort: Callable[[], None] = lambda: None,
        wait_s: float | None = None,
    ) -> T:
        return work()

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        return [await job for job in jobs]


def finish(call: Coroutine[Any, Any, T]) -> T:
    """The result of a call on a BlockingIo."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise RuntimeError("a blocking call waited for an event loop")
