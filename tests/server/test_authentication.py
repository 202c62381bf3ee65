"""The authentication hook of a listener: nothing is served before it is done."""

import asyncio
import socket

from narrow import as_any
from quorate.server.authentication import ListenerSecurity
from quorate.server.connections import MAX_REQUESTS_PER_STEP
from quorate.server.limits import ConnectionLimits
from quorate.server.listener import Acceptor


class Word:
    """Authenticates the client that sends the word `open`."""

    def __init__(self, connection):
        self.host = connection.host

    def takes(self, frame):
        return frame == b"again"

    def on_frame(self, frame, send, done, fail):
        if frame == b"close":
            fail("the wrong word", _frame(b"no"), 0.01)
            return
        if frame == b"open":
            done(f"User:{self.host}")
        asyncio.get_running_loop().call_soon(send, _frame(b"ok " + frame))


def _frame(data):
    return len(data).to_bytes(4, "big") + data


class Listener:
    def __init__(self, **keys):
        self.security = ListenerSecurity(authenticator=as_any(Word), **keys)
        self.served = []

    async def __aenter__(self):
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        loop = asyncio.get_running_loop()
        self.acceptor = Acceptor(loop, ConnectionLimits(), self.on_frame, lambda: True)
        await self.acceptor.listen("SASL", sock, self.security)
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_):
        self.writer.close()
        self.acceptor.close()

    def on_frame(self, slot, frame):
        self.served.append((slot.connection.authentication.principal, frame))
        slot.data = _frame(b"served")
        slot.connection.flush()

    async def exchange(self, *frames):
        self.writer.write(b"".join(map(_frame, frames)))
        async with asyncio.timeout(5):
            return [
                await self.reader.readexactly(
                    int.from_bytes(await self.reader.readexactly(4), "big")
                )
                for _ in frames
            ]


def test_requests_are_served_after_the_authentication_with_its_principal():
    async def run():
        async with Listener() as listener:
            answers = await listener.exchange(b"hello", b"open", b"request", b"again")
            assert answers == [b"ok hello", b"ok open", b"served", b"ok again"]
            assert listener.served == [("User:127.0.0.1", b"request")]

    asyncio.run(run())


def test_a_failed_authentication_is_answered_logged_and_closed(caplog):
    async def run():
        async with Listener() as listener:
            listener.writer.write(_frame(b"close") + _frame(b"open") + _frame(b"request"))
            async with asyncio.timeout(5):
                assert await listener.reader.read() == _frame(b"no")
            assert listener.served == []
            assert listener.acceptor.failed_authentications == {"SASL": 1}

    asyncio.run(run())
    assert "on SASL: the wrong word" in caplog.text


def test_silence_before_the_authentication_is_bounded(caplog):
    async def run():
        async with Listener(timeout_s=0.05) as listener:
            async with asyncio.timeout(5):
                assert await listener.reader.read() == b""

    asyncio.run(run())
    assert "the authentication was not complete within 0.05 s" in caplog.text


def test_a_frame_before_the_authentication_is_bounded():
    async def run():
        async with Listener(max_frame_bytes=100) as listener:
            listener.writer.write((101).to_bytes(4, "big"))
            async with asyncio.timeout(5):
                assert await listener.reader.read() == b""

    asyncio.run(run())


def test_repeated_authentications_count_as_requests():
    """An authenticated client that floods the node with them takes its turns as with requests."""

    async def run():
        async with Listener() as listener:
            await listener.exchange(b"hello", b"open")
            listener.writer.write(_frame(b"again") * 50)
            answers = 0
            async with asyncio.timeout(5):
                while answers < 50:
                    size = int.from_bytes(await listener.reader.readexactly(4), "big")
                    assert await listener.reader.readexactly(size) == b"ok again"
                    answers += 1
                    if answers % MAX_REQUESTS_PER_STEP == 0:
                        assert listener.acceptor.throttled or answers == 48
                        listener.acceptor.resume_throttled()

    asyncio.run(run())
