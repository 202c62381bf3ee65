"""A cluster in memory, for tests: real members, real frames, real recovery; no socket, no disk.

async with local_cluster(3, Counter) as cluster:
    assert await cluster.propose(b"+1") == 1
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, ReplicaKey, Uuid
from quorate.embed.arguments import member_id, whole_number
from quorate.embed.errors import MemberStopped, NotLeader
from quorate.embed.founding import LISTENER
from quorate.embed.machine import OpaqueMachine, StateMachine
from quorate.embed.member import Member
from quorate.embed.node import EmbeddedNode
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.node.calls import Call
from quorate.node.config import fetch_max_wait_ms
from quorate.node.controller import NodeEffects, NodeInput
from quorate.node.disk import Disk
from quorate.node.jobs import Job, Result, WriteSnapshot
from quorate.node.replica import Replica
from quorate.node.snapshots import SnapshotPolicy
from quorate.node.translate_peer import api_key_of, request_to_wire, response_from_wire
from quorate.raft import inputs
from quorate.raft.ready import Send
from quorate.raft.values import ControlState, RaftConfig, Voter
from quorate.server.disk import attempt_snapshot
from quorate.server.driver import fault_of, leave, present
from quorate.server.logs import LOG, level_of
from quorate.storage.memory import MemoryStorage
from quorate.wire.header import decode_request, decode_response, encode_request
from quorate.wire.registry import APIS

_HOST: Final = "memory"
_LENGTH: Final = 4
_CLUSTER_ID: Final = "local-cluster-in-memory"


@dataclass(frozen=True, slots=True)
class _Asker:
    """Who waits for the answer to a request: takes its frame, or hears that there will be none."""

    answered: Callable[[bytes], None]
    lost: Callable[[], None]


class MemoryDriver:
    """What `server.driver.Driver` is over sockets and files, over a LocalCluster."""

    def __init__(
        self,
        cluster: LocalCluster,
        node: EmbeddedNode,
        storage: MemoryStorage,
        ended: Callable[[str | None], None],
    ) -> None:
        self.node = node
        self.storage = storage
        self._cluster = cluster
        self._disk = Disk(storage)
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._inbox: list[NodeInput] = []
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._callers: dict[int, _Asker] = {}
        self._next = 0
        self.over = False

    def start(self) -> None:
        self._schedule()

    def post(self, item: NodeInput) -> None:
        self._inbox.append(item)
        self._schedule()

    def shutdown(self, timeout_ms: int) -> None:
        self.post(inputs.Shutdown(timeout_ms))

    async def close(self) -> bool:
        self.halt()
        return True

    def halt(self) -> None:
        """End in good order; the storage can be opened again."""
        if not self.over:
            self._hang_up()
            self.storage.close()

    def crash(self) -> MemoryStorage:
        """End at once; what the disk keeps of it."""
        self._hang_up()
        return self.storage.crash()

    def _hang_up(self) -> None:
        """Step no more, and tell those who wait for answers, as closed connections do."""
        self.over = True
        if self._timer is not None:
            self._timer.cancel()
        askers, self._callers = self._callers, {}
        for asker in askers.values():
            asker.lost()

    def receive(self, frame: bytes, asker: _Asker) -> None:
        """A request frame of a peer."""
        self._next += 1
        self._callers[self._next] = asker
        self.post(Call(self._next, decode_request(frame), LISTENER))

    def _schedule(self) -> None:
        if not self._scheduled and not self.over:
            self._scheduled = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        self._scheduled = False
        if self.over:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        happened, self._inbox = self._inbox, []
        now = present()
        try:
            effects = self.node.step(happened, now)
            if self.over:  # the machine, or whoever took an outcome, ended this member
                return
            self._carry_out(effects)
        except BaseException as error:
            self._end(fault_of(error, self.node.node_id))
            leave(error)
            return
        if effects.stopped or effects.faulted is not None:
            self._end(effects.faulted)
            return
        if self._inbox:
            self._schedule()
        if effects.wake_at_ms is not None:
            delay = max(effects.wake_at_ms - now.monotonic_ms, 0) / 1000
            self._timer = self._loop.call_later(delay, self._schedule)

    def _carry_out(self, effects: NodeEffects) -> None:
        for note in effects.notes:
            LOG.log(level_of(note), "Member %d: %s", self.node.node_id, note)
        self._inbox.extend(self._perform(effects.jobs))
        for send in effects.sends:
            self._cluster.carry(self, send)
        for token, frame in effects.answers:
            self._callers.pop(token).answered(frame[_LENGTH:])

    def _perform(self, jobs: Sequence[Job]) -> list[Result]:
        results = self._disk.perform([j for j in jobs if not isinstance(j, WriteSnapshot)])
        for job in jobs:
            if isinstance(job, WriteSnapshot):
                results.append(attempt_snapshot(self.storage, job))
        return results

    def _end(self, fault: str | None) -> None:
        self.halt()
        self._ended(fault)


class LocalCluster:
    """Members by id. Not made by hand: see `local_cluster`."""

    def __init__(self, machine: Callable[[], StateMachine], config: RaftConfig) -> None:
        self.members: dict[int, Member] = {}
        self._machine = machine
        self._config = config
        self._drivers: dict[int, MemoryDriver] = {}
        self._disks: dict[int, MemoryStorage] = {}
        self._cut: set[frozenset[int]] = set()
        self._stopped = False

    # -- what a test does ---------------------------------------------------------------------
    async def leader(self) -> Member:
        """The member that takes proposals, as soon as there is one.

        Waits for ever where too few run. Raises MemberStopped once the cluster was stopped.
        """
        while not self._stopped:
            for member in self.members.values():
                if member.leads and not self._drivers[member.node_id].over:
                    return member
            await asyncio.sleep(0.005)
        raise MemberStopped("The cluster was stopped")

    async def propose(self, entry: bytes) -> object:
        """Propose to whoever leads; NotLeader is tried again, for nothing was appended.

        Raises InDoubt when the leader was lost with the entry on its way, and as `leader`.
        """
        while True:
            try:
                return await (await self.leader()).propose(entry)
            except NotLeader:
                continue

    async def join(self, node_id: int) -> Member:
        """Start one more member; `add_member` on the leader makes it a voter.

        Raises QuorateError when there is such a member, running or not; TypeError.
        """
        if member_id(node_id) in self.members:
            raise QuorateError(f"there is a member {node_id} already")
        self._start(node_id, MemoryStorage())
        return self.members[node_id]

    def address(self, node_id: int) -> str:
        return f"{_HOST}:{node_id}"

    def crash(self, node_id: int) -> None:
        """As kill -9 with a power cut: what was not synced is lost.

        Raises QuorateError when there is no such member, or it does not run.
        """
        driver = self._driver(node_id)
        if driver.over:
            raise QuorateError(f"member {node_id} does not run")
        self._disks[node_id] = driver.crash()
        self.members[node_id]._end("The member crashed")

    def restart(self, node_id: int) -> Member:
        """Start a member that was stopped or crashed, or ended by itself, on what its disk kept.

        Raises QuorateError when there is no such member, or it runs.
        """
        if not self._driver(node_id).over:
            raise QuorateError(f"member {node_id} runs: stop or crash it first")
        self._start(node_id, self._disks[node_id])
        return self.members[node_id]

    def cut(self, one: int, other: int) -> None:
        """No message passes between these two, until `heal`."""
        self._cut.add(frozenset(self._driver(i).node.node_id for i in (one, other)))

    def heal(self) -> None:
        self._cut.clear()

    def _driver(self, node_id: int) -> MemoryDriver:
        driver = self._drivers.get(node_id)
        if driver is None:
            there = ", ".join(map(str, self._drivers))
            raise QuorateError(f"there is no member {node_id}; there are: {there}")
        return driver

    # -- the network --------------------------------------------------------------------------
    def carry(self, sender: MemoryDriver, send: Send) -> None:
        """A request to a member, its answer back; nobody there: as a refused connection."""
        correlation, key = send.correlation, api_key_of(send.request)
        port = send.address.port
        receiver = self._drivers.get(port)

        def lost() -> None:
            sender.post(inputs.SendFailed(correlation, inputs.Failure.DISCONNECTED))
            sender.post(inputs.ConnectionLost(port))

        if receiver is None or receiver.over:
            lost()
            return
        ends = frozenset((sender.node.node_id, receiver.node.node_id))
        version = APIS[key].max_version
        message = request_to_wire(send.request, version)
        frame = encode_request(message, version, correlation, "local")[_LENGTH:]

        def answered(answer: bytes) -> None:
            if ends not in self._cut and not sender.over:
                _, response = decode_response(answer, key, version)
                sender.post(inputs.Answered(correlation, response_from_wire(response, LISTENER)))

        def hung_up() -> None:
            if ends not in self._cut:
                lost()

        if ends not in self._cut:
            receiver.receive(frame, _Asker(answered, hung_up))

    # -- members ------------------------------------------------------------------------------
    def found(self, count: int) -> None:
        voters = tuple(
            Voter(_key(i), (Listener(LISTENER, _HOST, i),), 0, 1) for i in range(1, count + 1)
        )
        for voter in voters:
            storage = MemoryStorage()
            storage.open()
            writer = storage.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
            for data in encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, ControlState(1, voters), 0, (), 0):
                writer.append(data)
            writer.freeze()
            storage.close()
            self._start(voter.key.id, storage)

    def _start(self, node_id: int, storage: MemoryStorage) -> None:
        key = _key(node_id)
        config = RaftConfig(
            cluster_id=_CLUSTER_ID,
            node_id=node_id,
            directory_id=key.directory_id,
            listeners=(Listener(LISTENER, _HOST, node_id),),
            bootstrap_servers=tuple(Address(_HOST, i) for i in self.members or (node_id,)),
            election_timeout_ms=self._config.election_timeout_ms,
            fetch_timeout_ms=self._config.fetch_timeout_ms,
            fetch_max_wait_ms=fetch_max_wait_ms(self._config.fetch_timeout_ms),
        )
        machine = OpaqueMachine(self._machine())
        policy = SnapshotPolicy(in_proportion=True)
        replica = Replica(config, storage.open(), machine, random.Random().random, policy)
        member = Member.around(key, replica, machine)
        driver = MemoryDriver(self, member.node, storage, member._end)
        member.drive(driver)
        self.members[node_id] = member
        self._drivers[node_id] = driver
        self._disks[node_id] = storage
        driver.start()

    async def stop(self) -> None:
        self._stopped = True
        for driver in self._drivers.values():
            driver.halt()
        for member in self.members.values():
            member._end(None)


def _key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(b"local-member" + node_id.to_bytes(4, "big")))


@asynccontextmanager
async def local_cluster(
    count: int,
    machine: Callable[[], StateMachine],
    *,
    election_timeout_ms: int = 200,
    fetch_timeout_ms: int = 400,
) -> AsyncIterator[LocalCluster]:
    """`count` members with a state machine each, founded and started; times in ms.

    `machine` makes one: the class, or a function. Raises QuorateError without a member, TypeError.
    """
    if whole_number("the number of members", count) < 1:
        raise QuorateError(f"A cluster has at least one member, not {count}")
    if not callable(machine):
        raise TypeError(f"a cluster is given what makes state machines, not one: {machine!r}")
    config = RaftConfig(
        _CLUSTER_ID,
        0,
        election_timeout_ms=whole_number("election_timeout_ms", election_timeout_ms),
        fetch_timeout_ms=whole_number("fetch_timeout_ms", fetch_timeout_ms),
    )
    cluster = LocalCluster(machine, config)
    try:
        cluster.found(count)
        yield cluster
    finally:
        await cluster.stop()
