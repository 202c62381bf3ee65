"""Connections to other nodes: handshake, versions, timeouts, loss."""

import asyncio
import contextlib
import logging
import socket
import sys
import threading
import time
from typing import Any

import pytest
import uvloop

from quorate.base.ids import Address
from quorate.raft.inputs import SendFailure
from quorate.server.logs import RateLimitedLog
from quorate.server.peer_connection import PeerRequest
from quorate.server.peers import Peer
from quorate.wire.errors import WireError
from quorate.wire.frame import FrameReader
from quorate.wire.header import decode_request, encode_response
from quorate.wire.messages import (
    AddRaftVoterRequest,
    ApiVersionsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from server.hosts import name_of, silent_host

VERSIONS = {18: (0, 5), 55: (0, 2), 80: (0, 1)}


class Other:
    """A node at the far end; `silent` apis get no answer."""

    def __init__(self, versions=None, silent=(), port=0):
        self.port = port
        self.versions = VERSIONS if versions is None else versions
        self.silent = silent
        self.seen = []
        self.connections = 0
        self._writers = []

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port)
        self.address = Address(*self.server.sockets[0].getsockname()[:2])
        return self

    async def __aexit__(self, *_):
        await self.die()

    async def die(self):
        """Like a killed process: close the port and all connections at once."""
        self.server.close()
        for writer in self._writers:
            writer.transport.abort()

    def hang_up(self):
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def serve(self, reader, writer):
        self.connections += 1
        self._writers.append(writer)
        frames = FrameReader()
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                for frame in frames.feed(data):
                    self.answer(decode_request(frame), writer)

    def answer(self, request, writer):
        self.seen.append((request.api_key, request.version, request.client_id))
        if request.api_key in self.silent:
            return
        if request.api_key == 18:
            writer.write(self.handshake(request))
        else:
            answer = DescribeQuorumResponse(error_code=3)
            writer.write(encode_response(answer, 55, request.version, request.correlation_id))

    def handshake(self, request):
        api = ApiVersionsResponse.ApiVersion
        apis = [
            api(api_key=k, min_version=lo, max_version=hi) for k, (lo, hi) in self.versions.items()
        ]
        newest = self.versions[18][1]
        known = request.version <= newest
        answer = ApiVersionsResponse(error_code=0 if known else 35, api_keys=apis)
        return encode_response(answer, 18, request.version if known else 0, request.correlation_id)


class Asker:
    """A Peer and what became of its requests."""

    def __init__(self, address, unreachable=None, **settings):
        self.outcomes: asyncio.Queue[Any] = asyncio.Queue()
        self.lost = asyncio.Event()
        loop = asyncio.get_running_loop()
        unreachable = set() if unreachable is None else unreachable
        log = RateLimitedLog(loop, 3)
        self.peer = Peer(
            loop, address, "raft-client-7", self.lost.set, log, unreachable, **settings
        )

    def ask(self, message=None, timeout_ms=5000, key=55):
        message = message or DescribeQuorumRequest()
        self.peer.send(
            PeerRequest(
                key,
                lambda version: message,
                self.outcomes.put_nowait,
                self.outcomes.put_nowait,
                timeout_ms,
            )
        )

    async def outcome(self):
        async with asyncio.timeout(5):
            return await self.outcomes.get()


def test_a_handshake_selects_the_newest_common_version():
    async def run():
        async with Other({18: (0, 5), 55: (0, 1)}) as other:
            asker = Asker(other.address)
            asker.ask()
            assert (await asker.outcome()).error_code == 3
            assert other.seen == [(18, 5, "raft-client-7"), (55, 1, "raft-client-7")]
            asker.peer.close()

    asyncio.run(run())


def test_the_handshake_falls_back_to_older_versions():
    async def run():
        async with Other({18: (0, 2), 55: (0, 0)}) as other:
            asker = Asker(other.address)
            asker.ask()
            assert (await asker.outcome()).error_code == 3
            assert [version for key, version, _ in other.seen if key == 18] == [5, 2]
            asker.peer.close()

    asyncio.run(run())


class Flooding(Other):
    """Its handshake names an api a hundred thousand times: each is an object once decoded."""

    def handshake(self, request):
        api = ApiVersionsResponse.ApiVersion(api_key=55, min_version=0, max_version=2)
        answer = ApiVersionsResponse(api_keys=[api] * 100_000)
        return encode_response(answer, 18, request.version, request.correlation_id)


def test_a_handshake_of_megabytes_is_not_decoded(caplog):
    async def run():
        async with Flooding() as other:
            asker = Asker(other.address)
            asker.ask(timeout_ms=500)
            assert await asker.outcome() in (SendFailure.DISCONNECTED, SendFailure.TIMED_OUT)
            assert [key for key, _, _ in other.seen if key != 18] == []
            asker.peer.close()

    asyncio.run(run())
    assert "a response to ApiVersions has 65536 bytes at most" in caplog.text


def test_an_invalid_response_is_a_failure_at_once():
    """Regression: after damaged records, for example, the next Fetch waited for the timeout."""

    def answered(message):
        raise WireError("the fetched records are damaged")

    async def run():
        async with Other() as other:
            asker = Asker(other.address)
            failed = asker.outcomes.put_nowait
            asker.peer.send(
                PeerRequest(55, lambda _: DescribeQuorumRequest(), answered, failed, 60_000)
            )
            assert await asker.outcome() == SendFailure.DISCONNECTED
            asker.peer.close()

    asyncio.run(run())


def test_one_connection_serves_many_requests():
    async def run():
        async with Other() as other:
            asker = Asker(other.address)
            for _ in range(5):
                asker.ask()
            for _ in range(5):
                assert (await asker.outcome()).error_code == 3
            assert other.connections == 1
            asker.peer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("versions", "message", "key"),
    [
        ({18: (0, 5)}, DescribeQuorumRequest(), 55),
        ({18: (0, 5), 55: (7, 9)}, DescribeQuorumRequest(), 55),
        ({18: (0, 5), 80: (0, 0)}, AddRaftVoterRequest(ack_when_committed=False), 80),
    ],
)
def test_an_unsupported_request_is_a_failure(versions, message, key):
    async def run():
        async with Other(versions) as other:
            asker = Asker(other.address)
            asker.ask(message, key=key)
            assert await asker.outcome() is SendFailure.UNSUPPORTED_VERSION
            asker.peer.close()

    asyncio.run(run())


@pytest.mark.parametrize("silent", [18, 55])
def test_a_silent_peer_ends_with_the_request_timeout(silent):
    async def run():
        async with Other(silent={silent}) as other:
            asker = Asker(other.address)
            asker.ask(timeout_ms=50)
            assert await asker.outcome() is SendFailure.TIMED_OUT
            assert not asker.lost.is_set()
            asker.peer.close()

    asyncio.run(run())


def test_a_refused_connection_is_a_failure():
    async def run():
        async with Other() as other:
            pass
        asker = Asker(other.address)
        asker.ask()
        assert await asker.outcome() is SendFailure.DISCONNECTED
        assert not asker.lost.is_set()
        asker.peer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "host",
    ["a..b", "x" * 70, "a\0b", "."],
    ids=["empty label", "long label", "NUL", "root"],
)
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_an_invalid_host_name_fails_each_time_and_is_logged_once(host, loop, caplog):
    async def run():
        asker = Asker(Address(host, 9))
        for _ in range(2):
            asker.ask()
            assert await asker.outcome() is SendFailure.DISCONNECTED
        assert not asker.lost.is_set()
        asker.peer.close()

    with caplog.at_level(logging.WARNING, "quorate"), asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())
    assert len(caplog.records) <= 1


def test_an_invalid_port_is_logged(caplog):
    async def run():
        asker = Asker(Address("127.0.0.1", 70_000))
        asker.ask()
        assert await asker.outcome() is SendFailure.DISCONNECTED
        asker.peer.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    assert "Cannot connect to 127.0.0.1:70000, which is not a valid address" in caplog.text


def test_an_unreachable_peer_is_logged_once_until_it_is_back(caplog):
    async def run():
        async with Other() as other:
            address = other.address
        asker = Asker(address)
        for _ in range(3):
            asker.ask()
            assert await asker.outcome() is SendFailure.DISCONNECTED
        asker.ask()
        async with Other(port=address.port):
            while await asker.outcome() is SendFailure.DISCONNECTED:
                asker.ask()
            asker.peer.close()

    with caplog.at_level(logging.INFO, "quorate"):
        asyncio.run(run())
    logged = [record.getMessage() for record in caplog.records if record.name == "quorate"]
    assert [text.split(" 127.0.0.1:")[0] for text in logged] == [
        "Cannot connect to",
        "Connected to",
    ]
    assert logged[0].endswith(": Connection refused")


@pytest.mark.parametrize("silent", [55, 18], ids=["request", "handshake"])
def test_a_peer_that_times_out_is_logged_once_until_it_is_back(silent, caplog):
    """Also one that was frozen before the connection was made: the system accepts for it."""

    async def run():
        async with Other(silent={silent}) as other:
            asker = Asker(other.address)
            for _ in range(1 if silent == 55 else 3):
                asker.ask(timeout_ms=50)
                assert await asker.outcome() is SendFailure.TIMED_OUT
            other.silent.clear()
            asker.ask()
            assert isinstance(await asker.outcome(), DescribeQuorumResponse)
            asker.peer.close()
            return other.address

    with caplog.at_level(logging.INFO, "quorate"):
        address = asyncio.run(run())
    logged = [record.getMessage() for record in caplog.records if record.name == "quorate"]
    silence = f"No response from {address} in time: closed the connection"
    assert logged == [silence, f"Connected to {address}"]


def test_two_connections_to_one_address_log_it_once(caplog):
    """A node asks another as its leader, as a bootstrap server, and to register."""

    async def run():
        async with Other() as other:
            address = other.address
        unreachable: set[Any] = set()
        askers = [Asker(address, unreachable) for _ in range(3)]
        for asker in askers:
            asker.ask()
        for asker in askers:
            assert await asker.outcome() is SendFailure.DISCONNECTED
            asker.peer.close()  # idle for long: nothing is known anew
        again = Asker(address, unreachable)
        again.ask()
        assert await again.outcome() is SendFailure.DISCONNECTED
        again.peer.close()

    with caplog.at_level(logging.INFO, "quorate"):
        asyncio.run(run())
    (logged,) = (record.getMessage() for record in caplog.records if record.name == "quorate")
    assert logged.startswith("Cannot connect to")


def test_a_peer_without_recent_or_pending_requests_is_idle():
    async def run():
        loop = asyncio.get_running_loop()
        async with Other(silent={55}) as other:
            asker = Asker(other.address)
            assert asker.peer.is_idle(loop.time() + 1)
            began = loop.time()
            asker.ask(timeout_ms=100)
            assert not asker.peer.is_idle(loop.time() + 1)
            assert await asker.outcome() is SendFailure.TIMED_OUT
            assert asker.peer.is_idle(loop.time() + 1)
            assert not asker.peer.is_idle(began)
            asker.peer.close()

    asyncio.run(run())


def test_a_killed_peer_is_reported_as_lost_without_a_new_request():
    async def run():
        async with Other() as other:
            asker = Asker(other.address)
            asker.ask()
            await asker.outcome()
            asker.ask()
            await asker.outcome()
            await other.die()
            async with asyncio.timeout(5):
                await asker.lost.wait()
            asker.peer.close()

    asyncio.run(run())


def test_a_dying_peer_that_still_accepts_is_reported_as_lost():
    class Dying(Other):
        dying = False

        async def serve(self, reader, writer):
            if self.dying:
                self.connections += 1
                writer.transport.abort()
                if self.connections >= 3:
                    self.server.close()
                return
            await super().serve(reader, writer)

    async def run():
        async with Dying() as other:
            asker = Asker(other.address)
            asker.ask()
            await asker.outcome()
            other.dying = True
            other.hang_up()
            async with asyncio.timeout(5):
                await asker.lost.wait()
            asker.peer.close()

    asyncio.run(run())


def test_a_live_peer_that_closes_its_connection_is_not_lost():
    async def run():
        async with Other(silent={80}) as other:
            asker = Asker(other.address)
            asker.ask()
            await asker.outcome()
            asker.ask(AddRaftVoterRequest(), key=80)
            async with asyncio.timeout(5):
                while other.seen[-1][0] != 80:
                    await asyncio.sleep(0.001)
            other.hang_up()
            assert await asker.outcome() is SendFailure.DISCONNECTED
            asker.ask()
            assert (await asker.outcome()).error_code == 3
            assert not asker.lost.is_set() and other.connections == 2
            asker.peer.close()

    asyncio.run(run())


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2, and what a full backlog does")
def test_a_silent_address_of_a_name_does_not_block_the_others(monkeypatch):
    async def run():
        async with Other() as other:
            port = other.address.port
            with silent_host(port) as silent:
                monkeypatch.setattr(socket, "getaddrinfo", name_of(silent, "127.0.0.1"))
                asker = Asker(Address("several.test", port), connect_timeout_s=0.4)
                asker.ask()
                assert (await asker.outcome()).error_code == 3
                asker.peer.close()

    asyncio.run(run())


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2, and what a full backlog does")
@pytest.mark.parametrize("live", [True, False])
def test_a_name_is_lost_when_all_addresses_refuse(monkeypatch, live):
    async def run():
        async with Other() as other:
            port = other.address.port
            hosts = ["127.0.0.1", "127.0.0.3"]
            with silent_host(port) as silent:
                if live:
                    hosts.append(silent)
                monkeypatch.setattr(socket, "getaddrinfo", name_of(*hosts))
                asker = Asker(Address("several.test", port), connect_timeout_s=0.3)
                asker.ask()
                await asker.outcome()
                await other.die()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await asker.lost.wait()
                assert asker.lost.is_set() is not live
                asker.peer.close()

    asyncio.run(run())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_an_unresolvable_name_delays_neither_other_names_nor_the_end(monkeypatch, loop):
    answered = threading.Event()
    real = socket.getaddrinfo

    def look_up(host, *args, **more):
        if host == "silent.test":
            answered.wait(20)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real(host, *args, **more)

    async def run():
        async with Other() as other:
            silent = [Asker(Address("silent.test", port)) for port in range(50)]
            for asker in silent:
                asker.ask(timeout_ms=10)
                assert await asker.outcome() is SendFailure.TIMED_OUT
            asker = Asker(Address("localhost", other.address.port))
            asker.ask()
            assert (await asker.outcome()).error_code == 3
            for each in (asker, *silent):
                each.peer.close()

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    began = time.monotonic()
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(run())
        assert time.monotonic() - began < 10
    finally:
        answered.set()


def test_a_name_without_an_address_is_logged_once_each_time(monkeypatch, caplog):
    real = socket.getaddrinfo
    known: set[str] = set()

    def look_up(host, *args, **more):
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real("127.0.0.1", *args, **more)

    async def run():
        async with Other() as other:
            asker = Asker(Address("moved.test", other.address.port))
            for names in ([], [], ["moved.test"], [], []):
                known.clear()
                known.update(names)
                other.hang_up()
                asker.ask()
                await asker.outcome()
            asker.peer.close()

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert "Cannot connect to moved.test:" in lines[0] and "not known" in lines[0]


def test_a_name_has_one_lookup_at_a_time(monkeypatch):
    answered = threading.Event()
    asked = []

    def look_up(host, *args, **more):
        asked.append(host)
        answered.wait(20)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    async def run():
        asker = Asker(Address("silent.test", 9), connect_timeout_s=0.05)
        for _ in range(5):
            asker.ask(timeout_ms=50)
            assert await asker.outcome() is SendFailure.TIMED_OUT
        assert asked == ["silent.test"]
        answered.set()
        asker.ask()
        assert await asker.outcome() is SendFailure.DISCONNECTED
        asker.peer.close()

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        asyncio.run(run())
    finally:
        answered.set()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_ends_at_once_is_reopened(loop, monkeypatch):
    """The other side may hang up between the loop's turn that connects and the one that asks."""

    async def scenario():
        async with Other() as other:
            asker = Asker(other.address)
            connect = asyncio.get_running_loop().create_connection
            with monkeypatch.context() as patch:

                async def connect_and_lose(_, *to):
                    transport, link = await connect(*to)
                    transport.abort()
                    while not link.is_closed:
                        await asyncio.sleep(0)
                    return transport, link

                patch.setattr(type(asker.peer._loop), "create_connection", connect_and_lose)
                asker.ask()
                assert await asker.outcome() == SendFailure.DISCONNECTED
            asker.ask()
            assert isinstance(await asker.outcome(), DescribeQuorumResponse)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(scenario())


def test_a_garbage_response_closes_the_connection():
    class Garbler(Other):
        def answer(self, request, writer):
            if request.api_key == 18:
                super().answer(request, writer)
            else:
                writer.write(b"\0\0\0\x06" + b"\xff" * 6)

    async def run():
        async with Garbler() as other:
            asker = Asker(other.address)
            asker.ask()
            assert await asker.outcome() is SendFailure.DISCONNECTED
            asker.peer.close()

    asyncio.run(run())


class NoNode(Other):
    """A port that accepts and closes; `served` connections at first, then it refuses."""

    def __init__(self, answer=b"", served=1000):
        super().__init__()
        self.greeting, self.served = answer, served

    async def serve(self, reader, writer):
        self.connections += 1
        if self.connections >= self.served:
            self.server.close()
        writer.write(self.greeting)
        writer.close()


async def ask_for_a_second(asker):
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            while True:
                asker.ask()
                assert await asker.outcome() is SendFailure.DISCONNECTED


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_an_address_without_a_node_is_retried_with_backoff_and_rarely_logged(answer, caplog):
    async def run():
        async with NoNode(answer) as other:
            asker = Asker(other.address)
            await ask_for_a_second(asker)
            assert 3 <= other.connections <= 7
            asker.peer.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    assert len(caplog.records) == (3 if answer else 1)
    assert ("compare the security protocols" in caplog.text.lower()) is (not answer)


@pytest.mark.parametrize("served", [1, 3])
def test_a_node_that_stops_is_no_reason_to_compare_the_security_protocols(served, caplog):
    """It accepts some connections more, and closes them unanswered."""

    async def run():
        async with NoNode(served=served) as other:
            asker = Asker(other.address)
            async with asyncio.timeout(5):
                while "Connection refused" not in caplog.text:
                    asker.ask()
                    assert await asker.outcome() is SendFailure.DISCONNECTED
            asker.peer.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    [record] = caplog.records
    assert record.getMessage().endswith(": Connection refused")


def test_a_node_that_is_back_with_another_protocol_is_logged_though_it_was_down(caplog):
    async def run():
        unreachable: set[Any] = set()
        async with Other() as other:
            address = other.address
        asker = Asker(address, unreachable)
        asker.ask()
        assert await asker.outcome() is SendFailure.DISCONNECTED
        other = NoNode()
        other.port = address.port
        async with other:
            async with asyncio.timeout(5):
                while "security protocols" not in caplog.text:
                    asker.ask()
                    assert await asker.outcome() is SendFailure.DISCONNECTED
            asker.peer.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    assert len(caplog.records) == 2


def test_closing_fails_pending_requests():
    async def run():
        async with Other(silent={55}) as other:
            asker = Asker(other.address)
            asker.ask()
            asker.peer.close()
            assert await asker.outcome() is SendFailure.DISCONNECTED

    asyncio.run(run())
