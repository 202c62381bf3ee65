"""Requests that are longer than the node takes, over connections: read, dropped and answered."""

import asyncio
import socket
import struct
import time
from contextlib import asynccontextmanager

import pytest

from quorate.base.errors import ErrorCode as E
from quorate.base.ids import ReplicaKey, Uuid
from quorate.node.apis import API_TABLE
from quorate.node.long_requests import refusal
from quorate.node.node_io import NodeEffects
from quorate.node.request_limits import REFUSED_BYTES
from quorate.node.requests import ENVELOPE, Call
from quorate.raft.values import RaftConfig
from quorate.replica.replica import Replica
from quorate.server.authentication import OPEN_LISTENER, ListenerSecurity
from quorate.server.driver import Driver
from quorate.server.limits import ConnectionLimits
from quorate.sim.world.state_machine import KeyValueMachine
from quorate.storage.memory import MemoryStorage
from quorate.wire import messages as m
from quorate.wire.header import decode_response, encode_request
from quorate.wire.registry import APIS
from quorate.wire.schema import Message

MIB = 1024 * 1024
HOST = "127.0.0.1"


class Node:
    """Notes the requests that reach it, and refuses the long ones. Nothing wakes it but its inputs."""

    node_id = 1

    def __init__(self):
        config = RaftConfig("cluster", 1, ReplicaKey(1, Uuid(bytes(16))).directory_id, True, ())
        self.replica = Replica(config, MemoryStorage().open(), KeyValueMachine(), lambda: 0.5)
        self.calls = []
        self.most = 0
        """Long requests in one step."""

    def step(self, happened, now):
        calls = [item for item in happened if isinstance(item, Call)]
        self.calls += calls
        effects = NodeEffects()
        refused = [call for call in calls if call.too_long is not None]
        self.most = max(self.most, len(refused))
        for call in refused:
            answer = refusal(API_TABLE[call.request.api_key], call, is_denied=False)
            assert isinstance(answer, Message)
            effects.too_long.append((call, str(call.too_long)))
            effects.answer(call, answer)
        return effects


class Served:
    """A driver with one listener, and its node."""

    def __init__(self, driver, node, port):
        self.driver = driver
        self.node = node
        self.port = port

    async def connect(self):
        return await asyncio.open_connection(HOST, self.port)

    async def called(self, count):
        async with asyncio.timeout(20):
            while len(self.node.calls) < count:
                await asyncio.sleep(0)


@asynccontextmanager
async def serving(security=OPEN_LISTENER, **limits):
    storage, node, loop = MemoryStorage(), Node(), asyncio.get_running_loop()
    storage.open()
    driver = Driver(node, storage, loop, ConnectionLimits(**limits), 10, lambda fault: None)
    sock = socket.create_server((HOST, 0))
    await driver.acceptor.listen("CONTROLLER", sock, security)
    driver.start()
    yield Served(driver, node, sock.getsockname()[1])
    await driver.close()


def padded(message, size, version=None):
    """The frame of a request, longer than it says."""
    key = message.schema.key
    version = APIS[key].max_version if version is None else version
    data = encode_request(message, version, 7, "test")[4:].ljust(size, b"\0")
    return struct.pack(">i", size) + data


def topics(count):
    cls = m.CreateTopicsRequest.CreatableTopic
    return m.CreateTopicsRequest(topics=[cls(name=f"t{number}") for number in range(count)])


def names(count):
    cls = m.DeleteTopicsRequest.DeleteTopicState
    return m.DeleteTopicsRequest(topics=[cls(name=f"t{number}") for number in range(count)])


def entries(count):
    one = m.CreateAclsRequest.AclCreation(resource_name="t", principal="User:a", host="*")
    return m.CreateAclsRequest(creations=[one] * count)


def configs(count):
    cls = m.IncrementalAlterConfigsRequest.AlterConfigsResource
    one = cls(resource_type=2, resource_name="t", configs=[cls.AlterableConfig(name="k")])
    return m.IncrementalAlterConfigsRequest(resources=[one] * count)


LONG = [
    (topics(50), 2 * MIB, E.POLICY_VIOLATION),
    (names(50), 2 * MIB, E.POLICY_VIOLATION),
    (entries(50), 10_000_000, E.POLICY_VIOLATION),
    (configs(50), MIB + 1, E.POLICY_VIOLATION),
    (m.VoteRequest(), 65_537, E.INVALID_REQUEST),
    (m.EnvelopeRequest(), MIB + 1, E.INVALID_REQUEST),
    (topics(50), 30 * MIB, E.POLICY_VIOLATION),
]


async def answer(reader, message):
    size = int.from_bytes(await reader.readexactly(4), "big")
    key = message.schema.key
    correlation_id, response = decode_response(
        await reader.readexactly(size), key, APIS[key].max_version
    )
    assert correlation_id == 7
    return response


def codes(item):
    if getattr(item, "error_code", 0):
        yield item.error_code
    for field in item.schema.fields:
        if field.type_name == "array" and field.holds_structs:
            for each in getattr(item, field.name) or ():
                yield from codes(each)


def test_long_requests_are_answered_and_the_connection_goes_on(caplog):
    """More of them than are taken in one step, one after the other. A thread sends, so that the time of
    the loop's thread is that of the node alone."""

    async def scenario():
        async with serving() as served:
            acceptor, longest, most = served.driver.acceptor, 0.0, 0

            async def watch():
                nonlocal longest, most
                while True:
                    began = time.thread_time()
                    await asyncio.sleep(0)
                    longest = max(longest, time.thread_time() - began)
                    most = max(most, acceptor.incoming)

            sock = socket.create_connection((HOST, served.port))
            stream = b"".join(padded(message, size) for message, size, _ in LONG)
            stream += encode_request(m.ApiVersionsRequest(), 0, 8, None)
            sending = asyncio.get_running_loop().run_in_executor(None, sock.sendall, stream)
            watching = asyncio.ensure_future(watch())
            await sending
            await served.called(len(LONG) + 1)
            watching.cancel()
            reader, writer = await asyncio.open_connection(sock=sock)
            async with asyncio.timeout(20):
                for message, _, code in LONG:
                    found = set(codes(await answer(reader, message)))
                    assert found == {code}, message.schema.name
            writer.close()
            calls = served.node.calls
            assert [(call.request.api_key, call.size) for call in calls] == [
                *((message.schema.key, size) for message, size, _ in LONG),
                (18, 10),
            ]
            assert all(call.work_ns > 0 for call in calls)
            assert most <= 4 * 65_536 + REFUSED_BYTES, "more is kept than one read brings"
            assert longest < 0.05
            assert acceptor.incoming == 0

    asyncio.run(scenario())
    assert "CreateAcls has 1048576 bytes at most here, not 10000000" in caplog.text
    assert "(User:ANONYMOUS, client id 'test') on CONTROLLER" in caplog.text


def test_requests_that_are_complete_together_are_refused_in_turns_of_the_loop():
    """Their refusals take a millisecond each, and a leader has others to answer."""
    count = 40

    async def scenario():
        async with serving() as served:
            frame = padded(names(50), MIB + 1)
            streams = [await served.connect() for _ in range(count)]
            acceptor = served.driver.acceptor
            for _, writer in streams:
                writer.write(frame[:-1])
            async with asyncio.timeout(20):
                while acceptor.incoming < count * REFUSED_BYTES or any(
                    writer.transport.get_write_buffer_size() for _, writer in streams
                ):
                    await asyncio.sleep(0)
                for _, writer in streams:
                    writer.write(frame[-1:])
                for reader, _ in streams:
                    assert set(codes(await answer(reader, names(0)))) == {E.POLICY_VIOLATION}
            assert served.node.most == 1
            for _, writer in streams:
                writer.close()

    asyncio.run(scenario())


def test_a_broker_that_forwards_what_is_too_long_is_known_as_one():
    """Its connection is closed when the leader changes."""

    async def scenario():
        async with serving() as served:
            reader, writer = await served.connect()
            writer.write(padded(m.EnvelopeRequest(), MIB + 1, 0))
            async with asyncio.timeout(20):
                assert (await answer(reader, m.EnvelopeRequest())).error_code == E.INVALID_REQUEST
                served.driver.acceptor.close_forwarding()
                assert await reader.read() == b""
            writer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("start", "announced", "why"),
    [
        (
            struct.pack(">hhi", 9999, 0, 7),
            MIB,
            "a request of api 9999 has 65536 bytes at most here",
        ),
        (struct.pack(">hhi", 19, 99, 7), 2 * MIB, "a request of CreateTopics has 1048576 bytes at"),
        (struct.pack(">hhi", ENVELOPE, 1, 7), 2 * MIB, "a request of Envelope has 1048576 bytes"),
        (struct.pack(">hhi", 19, 7, 7), 4 * MIB + 1, "a frame of 4194305 bytes is announced"),
    ],
    ids=["no API", "no version", "no version of Envelope", "more than socket.request.max.bytes"],
)
def test_what_has_no_response_closes_the_connection_before_it_comes(start, announced, why, caplog):
    async def scenario():
        async with serving(max_request_bytes=4 * MIB) as served:
            reader, writer = await served.connect()
            writer.write(struct.pack(">i", announced) + start)
            async with asyncio.timeout(20):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(scenario())
    assert why in caplog.text


class Authenticator:
    """The first frame is the login. It takes frames again when its session has expired."""

    by_token = False
    has_expired = False

    def takes(self, frame):
        return self.has_expired

    def on_frame(self, frame, send, done, fail):
        done("User:alice")
        send(b"\0\0\0\0")


@pytest.mark.parametrize("state", ["not logged in", "expired"])
def test_who_is_not_authenticated_may_send_no_long_request(state, caplog):
    """Nothing is read and dropped for them: the length alone closes the connection."""
    authenticator = Authenticator()
    security = ListenerSecurity(authenticator=lambda connection: authenticator, max_frame_bytes=MIB)

    async def scenario():
        async with serving(security) as served:
            reader, writer = await served.connect()
            async with asyncio.timeout(20):
                if state == "expired":
                    writer.write(struct.pack(">i", 5) + b"login")
                    assert await reader.readexactly(4) == b"\0\0\0\0"
                    writer.write(padded(topics(50), 2 * MIB))
                    await answer(reader, topics(0))
                    authenticator.has_expired = True
                writer.write(struct.pack(">ihhi", 2 * MIB, 19, 7, 7))
                assert await reader.read() == b""
            writer.close()

    asyncio.run(scenario())
    assert f"a frame of {2 * MIB} bytes is announced" in caplog.text
