"""Large requests are decoded in steps: others go on, those of the same connection wait."""

import asyncio
from typing import Any

from quorate.security.principal import ANONYMOUS
from quorate.server.large_requests import LARGE_BYTES, LargeRequests
from quorate.wire.header import encode_request
from quorate.wire.messages import AlterClientQuotasRequest
from server.test_listener import Server, frame

ENTRY = AlterClientQuotasRequest.EntryData()


def large(size=16 * LARGE_BYTES):
    return encode_request(AlterClientQuotasRequest(entries=[ENTRY] * (size // 3)), 1, 7, "t")[4:]


class LargeServer(Server):
    """It decodes what is large; `order` has the sizes of the requests as they are handed on. They come
    from `principal`."""

    def __init__(self):
        super().__init__()
        self.order: list[int] = []
        self.principal = ANONYMOUS
        self.held: list[Any] | None = None
        """Steps that wait for `release`, where it is a list."""
        self.large = LargeRequests(self._soon, lambda one, request: self.order.append(one.size))

    def _soon(self, step):
        if self.held is None:
            asyncio.get_event_loop().call_soon(step)
        else:
            self.held.append(step)

    def release(self):
        held, self.held = self.held or [], None
        for step in held:
            self._soon(step)

    def on_frame(self, slot, frame):
        super().on_frame(slot, frame)
        slot.connection.authentication.principal = self.principal
        if len(frame) > LARGE_BYTES:
            self.large.add(slot, frame, len(frame), is_too_long=False)
        else:
            self.order.append(len(frame))

    async def ordered(self, count):
        while len(self.order) < count:
            self.acceptor.resume_throttled()
            await asyncio.sleep(0)
        return self.order


def test_requests_of_others_go_on_and_those_of_the_same_connection_wait():
    async def run():
        async with LargeServer() as server:
            _, one = await server.connect()
            one.write(frame(large()) + frame(b"after it"))
            _, other = await server.connect()
            await server.wait_for(1)
            other.write(frame(b"small"))
            assert await server.ordered(3) == [5, len(large()), 8]
            one.close()
            other.close()

    asyncio.run(run())


def test_a_large_request_that_is_malformed_closes_its_connection_alone():
    async def run():
        async with LargeServer() as server:
            reader, one = await server.connect()
            one.write(frame(large()[:-1]))
            _, other = await server.connect()
            await server.wait_for(1)
            other.write(frame(large(LARGE_BYTES + 100)))
            assert await asyncio.wait_for(reader.read(), 20) == b""
            assert await server.ordered(1) == [len(large(LARGE_BYTES + 100))]
            one.close()
            other.close()

    asyncio.run(run())


def test_what_is_left_of_a_lost_connection_is_not_decoded():
    async def run():
        async with LargeServer() as server:
            _, one = await server.connect()
            one.write(frame(large()))
            await server.wait_for(1)
            server.slots[0].connection.abort()
            _, other = await server.connect()
            other.write(frame(large(LARGE_BYTES + 100)))
            assert await server.ordered(1) == [len(large(LARGE_BYTES + 100))]
            other.close()

    asyncio.run(run())


def test_requesters_take_turns():
    """One that sends large requests on many connections holds up another for few of its steps."""
    small = large(LARGE_BYTES + 100)

    async def run():
        async with LargeServer() as server:
            clients = []
            server.held = []
            for principal in ("User:eve", "User:eve", "User:admin"):
                server.principal = principal
                clients.append((await server.connect())[1])
                clients[-1].write(frame(small if principal == "User:admin" else large()))
                await server.wait_for(len(clients))
            server.release()
            assert await server.ordered(3) == [len(small), len(large()), len(large())]
            for client in clients:
                client.close()

    asyncio.run(run())
