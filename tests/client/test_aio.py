"""Work beside an event loop: what a cancelled call leaves behind."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from quorate.base.ids import Address
from quorate.client.admin.aio import AsyncioIo
from quorate.client.admin.deadlines import Deadlines
from quorate.client.errors import ConnectError, RequestNotSentError


class Logged:
    """In place of a connection: what happens to it, in order."""

    address = Address("h", 1)
    is_usable = True

    def __init__(self) -> None:
        self.log: list[str] = []
        self.is_aborted = threading.Event()

    def abort(self) -> None:
        self.is_usable = False
        self.log.append("abort")
        self.is_aborted.set()

    def release(self) -> None:
        self.log.append("release")


def test_the_connection_of_a_cancelled_call_is_closed_when_its_thread_has_left_it() -> None:
    """Closed before, its number would be that of the next connection, for which the thread waits."""
    connection: Any = Logged()
    may_end = threading.Event()

    def work() -> None:
        connection.is_aborted.wait()
        may_end.wait()
        connection.log.append("the thread has left")

    async def main() -> None:
        call = asyncio.create_task(AsyncioIo().run(connection, work))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert connection.log == ["abort"]
        may_end.set()
        while "release" not in connection.log:
            await asyncio.sleep(0)

    asyncio.run(main())
    assert connection.log == ["abort", "the thread has left", "release"]


def test_a_call_that_waits_for_a_connection_which_is_broken_meanwhile_sends_nothing() -> None:
    connection: Any = Logged()

    async def main() -> None:
        io = AsyncioIo()
        first = asyncio.create_task(io.run(connection, connection.is_aborted.wait))
        second = asyncio.create_task(io.run(connection, lambda: connection.log.append("sent")))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(ConnectError, match="The connection to h:1 was closed"):
            await second

    asyncio.run(main())
    assert "sent" not in connection.log


def test_a_call_that_is_cancelled_while_it_waits_leaves_the_connection_alone() -> None:
    connection: Any = Logged()
    may_end = threading.Event()

    async def main() -> None:
        io = AsyncioIo()
        first = asyncio.create_task(io.run(connection, may_end.wait))
        second = asyncio.create_task(io.run(connection, lambda: connection.log.append("sent")))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        may_end.set()
        assert await first

    asyncio.run(main())
    assert connection.log == []


def test_a_call_waits_for_a_connection_only_as_long_as_it_may() -> None:
    connection: Any = Logged()
    may_end = threading.Event()

    async def main() -> None:
        io = AsyncioIo()
        first = asyncio.create_task(io.run(connection, may_end.wait))
        await asyncio.sleep(0)
        with pytest.raises(RequestNotSentError, match="h:1 has not answered an earlier call"):
            await io.run(connection, lambda: connection.log.append("sent"), wait_s=0.01)
        may_end.set()
        assert await first

    asyncio.run(main())
    assert connection.log == []


def test_the_time_of_a_request_is_what_is_left_when_it_is_sent() -> None:
    """In the thread of the request, too: the time of a call is known to its task alone."""
    now = 10.0
    deadlines = Deadlines(lambda: now, 60_000, None)
    with deadlines.one_call():
        request, whole = deadlines.countdown(30_000), deadlines.countdown(90_000)
    now += 10
    assert (request(), whole()) == (20_000, 50_000)
    now += 100
    assert request() == 1
