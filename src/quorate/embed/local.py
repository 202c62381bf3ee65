"""A cluster in memory, for tests: real members, frames and recovery, without sockets or files.

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
from quorate.config.raft_config import fetch_max_wait_ms
from quorate.embed.arguments import member_id, whole_number
from quorate.embed.errors import MemberStoppedError, NotLeaderError
from quorate.embed.founding import LISTENER
from quorate.embed.machine import OpaqueMachine, StateMachine
from quorate.embed.member import Member
from quorate.embed.node import EmbeddedNode
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.node.node_io import NodeEffects, NodeInput
from quorate.node.raft_rpc_outbound import api_key_of, request_to_wire, response_from_wire
from quorate.node.requests import Call
from quorate.raft import inputs
from quorate.raft.ready import Send
from quorate.raft.values import ControlState, RaftConfig, Voter
from quorate.replica.disk_jobs import Job, Result, WriteSnapshot
from quorate.replica.disk_worker import DiskWriter
from quorate.replica.replica import Replica
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.server.disk import attempt_snapshot
from quorate.server.driver import fault_of, present, reraise_exit
from quorate.server.logs import LOG, level_of
from quorate.storage.memory import MemoryStorage
from quorate.wire.header import decode_request, decode_response, encode_request
from quorate.wire.registry import APIS

_HOST: Final = "memory"
_LENGTH: Final = 4
_CLUSTER_ID: Final = "local-cluster-in-memory"


@dataclass(frozen=True, slots=True)
class _PendingReply:
    """The sender of a request: `answered` gets the response frame, `lost` means none will come."""

    answered: Callable[[bytes], None]
    lost: Callable[[], None]


class MemoryDriver:
    """Drives a node like `server.driver.Driver`, with the LocalCluster as network."""

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
        self._disk = DiskWriter(storage)
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._inbox: list[NodeInput] = []
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._callers: dict[int, _PendingReply] = {}
        self._next = 0
        self.over = False

    def start(self) -> None:
        """Start stepping."""
        self._schedule()

    def post(self, item: NodeInput) -> None:
        """Add an input for the next step."""
        self._inbox.append(item)
        self._schedule()

    def shutdown(self, timeout_ms: int) -> None:
        """Shut down gracefully."""
        self.post(inputs.Shutdown(timeout_ms))

    async def close(self) -> bool:
        """Stop; returns True, as the storage is free."""
        self.halt()
        return True

    def halt(self) -> None:
        """Stop and close the storage, which can be opened again."""
        if not self.over:
            self._stop_stepping()
            self.storage.close()

    def crash(self) -> MemoryStorage:
        """Stop at once; returns what the disk holds after a power cut."""
        self._stop_stepping()
        return self.storage.crash()

    def _stop_stepping(self) -> None:
        """Stop stepping and fail the requests without a response, as closed connections would."""
        self.over = True
        if self._timer is not None:
            self._timer.cancel()
        askers, self._callers = self._callers, {}
        for asker in askers.values():
            asker.lost()

    def receive(self, frame: bytes, asker: _PendingReply) -> None:
        """Take a request frame of a peer."""
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
            if self.over:  # the state machine or a callback stopped this member during the step
                return
            self._carry_out(effects)
        except BaseException as error:
            self._end(fault_of(error, self.node.node_id))
            reraise_exit(error)
            return
        if effects.stopped or effects.faulted is not None:
            self._end(effects.faulted)
            return
        if self._inbox:
            self._schedule()
        if effects.wake_at_ms is not None:  # unreached: only an ended node has no time to wake
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
    """Members by id. `local_cluster` creates it."""

    def __init__(self, machine: Callable[[], StateMachine], config: RaftConfig) -> None:
        self.members: dict[int, Member] = {}
        self._machine = machine
        self._config = config
        self._drivers: dict[int, MemoryDriver] = {}
        self._disks: dict[int, MemoryStorage] = {}
        self._cut: set[frozenset[int]] = set()
        self._stopped = False

    # -- for tests ---------------------------------------------------------------------
    async def leader(self) -> Member:
        """Wait for a leader that takes proposals, without a timeout.

        Raises MemberStoppedError when the cluster is stopped.
        """
        while not self._stopped:
            for member in self.members.values():
                if member.leads and not self._drivers[member.node_id].over:
                    return member
            await asyncio.sleep(0.005)
        raise MemberStoppedError("The cluster was stopped")

    async def propose(self, entry: bytes) -> object:
        """Propose to the leader; retries after NotLeaderError, when nothing was appended.

        Raises InDoubtError when the leader was lost before the outcome was known, and as `leader`.
        """
        while True:
            try:
                return await (await self.leader()).propose(entry)
            except NotLeaderError:
                continue

    async def join(self, node_id: int) -> Member:
        """Start another member; `add_member` on the leader makes it a voter.

        Raises QuorateError when the id is in use, TypeError.
        """
        if member_id(node_id) in self.members:
            raise QuorateError(f"member {node_id} exists already")
        self._start(node_id, MemoryStorage())
        return self.members[node_id]

    def address(self, node_id: int) -> str:
        """The address of a member, for `add_member`."""
        return f"{_HOST}:{node_id}"

    def crash(self, node_id: int) -> None:
        """Crash a member with a power cut: writes without a sync are lost.

        Raises QuorateError for an unknown member, or one that does not run.
        """
        driver = self._driver(node_id)
        if driver.over:
            raise QuorateError(f"member {node_id} does not run")
        self._disks[node_id] = driver.crash()
        self.members[node_id].driver_ended("The member crashed")

    def restart(self, node_id: int) -> Member:
        """Start a member again, from what its disk holds.

        Raises QuorateError for an unknown member, or one that runs.
        """
        if not self._driver(node_id).over:
            raise QuorateError(f"member {node_id} is running: stop or crash it first")
        self._start(node_id, self._disks[node_id])
        return self.members[node_id]

    def cut(self, one: int, other: int) -> None:
        """Drop all messages between these two members, until `heal`."""
        self._cut.add(frozenset(self._driver(i).node.node_id for i in (one, other)))

    def heal(self) -> None:
        """Undo every `cut`."""
        self._cut.clear()

    def _driver(self, node_id: int) -> MemoryDriver:
        driver = self._drivers.get(node_id)
        if driver is None:
            there = ", ".join(map(str, self._drivers))
            raise QuorateError(f"there is no member {node_id}; members: {there}")
        return driver

    # -- the network --------------------------------------------------------------------------
    def carry(self, sender: MemoryDriver, send: Send) -> None:
        """Carry a request to a member and its response back.

        A member that does not run refuses the connection. A cut loses messages silently.
        """
        correlation, key = send.correlation, api_key_of(send.request)
        port = send.address.port
        receiver = self._drivers.get(port)

        def lost() -> None:
            sender.post(inputs.SendFailed(correlation, inputs.SendFailure.DISCONNECTED))
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

        def closed() -> None:
            if ends not in self._cut:
                lost()

        if ends not in self._cut:
            receiver.receive(frame, _PendingReply(answered, closed))

    # -- members ------------------------------------------------------------------------------
    def found(self, count: int) -> None:
        """Format and start the initial members 1 to `count`."""
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
        replica = Replica(config, storage.open(), machine, random.Random().random, policy)  # noqa: S311 - jitter
        member = Member.around(key, replica, machine)
        driver = MemoryDriver(self, member.node, storage, member.driver_ended)
        member.drive(driver)
        self.members[node_id] = member
        self._drivers[node_id] = driver
        self._disks[node_id] = storage
        driver.start()

    async def stop(self) -> None:
        """Stop all members."""
        self._stopped = True
        for driver in self._drivers.values():
            driver.halt()
        for member in self.members.values():
            member.driver_ended(None)


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
    """Start a cluster of `count` members, and stop it at the end of the context.

    `machine` creates a state machine for each member. Times are in ms. Raises QuorateError for a count
    below 1, TypeError.
    """
    if whole_number("the number of members", count) < 1:
        raise QuorateError(f"A cluster needs at least one member, not {count}")
    if not callable(machine):
        raise TypeError(
            f"machine must be a class or function that creates a state machine, not {machine!r}"
        )
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
