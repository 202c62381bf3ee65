"""The driver: timers, idle peers, and the order of what a step causes."""

import asyncio
import socket

import pytest

from quorate.base.ids import Address, LeaderAndEpoch, ReplicaKey, Uuid
from quorate.node.node_io import NodeEffects
from quorate.node.requests import Call
from quorate.raft.inputs import Shutdown
from quorate.raft.messages import FetchRequest
from quorate.raft.ready import Send
from quorate.raft.values import RaftConfig
from quorate.replica.disk_jobs import Survey
from quorate.replica.replica import Replica
from quorate.server.connections import InboundConnection
from quorate.server.driver import Driver
from quorate.server.limits import ConnectionLimits
from quorate.sim.world.state_machine import KeyValueMachine
from quorate.storage.memory import MemoryStorage
from quorate.wire.header import encode_request
from quorate.wire.messages import ApiVersionsRequest

FAR_MS, NEAR_MS = 3_600_000, 5
KEY = ReplicaKey(1, Uuid(bytes(16)))


class Sleeper:
    """Asks for a step in an hour; when something happened, for one soon."""

    node_id = 1

    def __init__(self):
        config = RaftConfig("cluster", 1, KEY.directory_id, True, ())
        self.replica = Replica(config, MemoryStorage().open(), KeyValueMachine(), lambda: 0.5)
        self.steps = []
        self.woken = asyncio.Event()

    def step(self, happened, now):
        self.steps.append(len(happened))
        if len(self.steps) == 3:
            self.woken.set()
        delay = NEAR_MS if happened else FAR_MS
        return NodeEffects(wake_at_ms=now.monotonic_ms + delay)


def test_an_earlier_deadline_replaces_a_later_one():
    async def scenario():
        storage = MemoryStorage()
        storage.open()
        node = Sleeper()
        loop = asyncio.get_running_loop()
        driver = Driver(node, storage, loop, ConnectionLimits(), 10, lambda fault: None)
        driver.start()
        while not node.steps:
            await asyncio.sleep(0)
        driver.post(Shutdown(0))
        await asyncio.wait_for(node.woken.wait(), 20)
        await driver.close()
        assert node.steps == [0, 1, 0]

    asyncio.run(scenario())


class Caller(Sleeper):
    """A node that sends a request to a given peer id."""

    def __init__(self, address):
        super().__init__()
        self.address = address

    def step(self, happened, now):
        effects = super().step(happened, now)
        if any(isinstance(item, Shutdown) for item in happened):
            request = FetchRequest(None, KEY, 1, 0, 0, 0, 1, -1)
            effects.sends.append(Send(1, 7, self.address, request, 100))
        return effects


def test_idle_peers_are_closed():
    """An AddRaftVoter request chooses the id of the peer, so peers must not accumulate."""
    closed = asyncio.Event()

    async def serve(reader, writer):
        while await reader.read(1000):
            pass
        closed.set()

    async def scenario():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        storage = MemoryStorage()
        storage.open()
        node = Caller(Address(*server.sockets[0].getsockname()[:2]))
        loop = asyncio.get_running_loop()
        driver = Driver(
            node, storage, loop, ConnectionLimits(max_idle_ms=300), 10, lambda fault: None
        )
        driver.start()
        driver.post(Shutdown(0))
        async with asyncio.timeout(20):
            while not driver._peers:
                await asyncio.sleep(0)
            await closed.wait()
            while driver._peers:
                await asyncio.sleep(0.01)
        await driver.close()
        server.close()

    asyncio.run(scenario())


class Answerer(Sleeper):
    """Answers three requests in one step, the newest first, and gives a job to the disk."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def step(self, happened, now):
        effects = super().step(happened, now)
        self.calls += [item for item in happened if isinstance(item, Call)]
        if len(self.calls) == 3:
            effects.answers = [(call.token, reply(call)) for call in reversed(self.calls)]
            effects.jobs = [Survey()]
            effects.leader = LeaderAndEpoch(2, 1)
            self.calls = []
        return effects


def reply(call):
    body = call.request.correlation_id.to_bytes(4, "big")
    return len(body).to_bytes(4, "big") + body


@pytest.mark.interpreted
def test_answers_leave_in_the_order_of_requests_and_before_the_disk_works(monkeypatch):
    """Kafka's clients expect responses in order. Followers write while this disk does."""
    order = []

    def note(owner, method, word):
        call = getattr(owner, method)

        def noted(*arguments):
            order.append(word)
            call(*arguments)

        monkeypatch.setattr(owner, method, noted)

    async def scenario():
        storage = MemoryStorage()
        storage.open()
        loop = asyncio.get_running_loop()
        node = Answerer()
        driver = Driver(node, storage, loop, ConnectionLimits(), 10, lambda fault: None)
        note(driver._disk, "submit", "disk")
        note(driver.acceptor, "close_forwarding", "forwarding closed")
        sock = socket.create_server(("127.0.0.1", 0))
        await driver.acceptor.listen("CONTROLLER", sock)
        driver.start()
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        for correlation in (5, 6, 7):
            writer.write(encode_request(ApiVersionsRequest(), 0, correlation, "test"))
        async with asyncio.timeout(20):
            found = await reader.readexactly(24)
        order.append("answered")
        writer.close()
        await driver.close()
        return [int.from_bytes(found[at + 4 : at + 8], "big") for at in (0, 8, 16)]

    note(InboundConnection, "flush", "flush")
    assert asyncio.run(scenario()) == [5, 6, 7]
    assert order == ["flush", "forwarding closed", "disk", "answered"]
