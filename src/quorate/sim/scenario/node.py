"""One node of a scenario: a core, its disk, and pending writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from quorate.base.ids import Address, LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.core import RaftCore
from quorate.raft.inputs import (
    Event,
    InstallFailed,
    Persisted,
    Propose,
    Received,
    SnapshotCreated,
    SnapshotInstalled,
)
from quorate.raft.messages import FetchResponse, FetchSnapshotResponse, ReadChunk, Request, Response
from quorate.raft.ready import InstallSnapshot, Ready, SaveElection, Write
from quorate.raft.values import ControlState, RaftConfig
from quorate.sim.scenario.errors import CommandError
from quorate.sim.scenario.log import MemoryLog

SNAPSHOT_SIZE: Final = 2500
"""Size of every snapshot of a scenario in bytes."""


@dataclass
class CoreMessage:
    """A message in flight; `correlation` is that of the sender's request, in its `incarnation` of
    that time."""

    source: int
    to: int
    correlation: int
    body: Request | Response
    incarnation: int = 0

    @property
    def response(self) -> bool:
        return isinstance(self.body, Response)

    def __str__(self) -> str:
        kind = type(self.body).__name__
        return f"{self.source}->{self.to} {kind}"


class NodeEnvironment(Protocol):
    """What a node uses of its cluster: the clock, the network, and the snapshots' contents."""

    now: int
    """The cluster's clock, ms."""
    replies: int
    """The number of requests that all nodes have received: the newest `reply_to`."""
    network: list[CoreMessage]
    """The messages in flight, in the order of their sending."""
    contents: dict[OffsetAndEpoch, ControlState]
    """The control state of every snapshot that was created."""
    observe: Callable[[CoreNode, Ready], None]
    """Called after every step of a node."""

    def random_source(self, node_id: int) -> Callable[[], float]:
        """The random source of one node: floats in [0, 1)."""

    def node_at(self, address: Address) -> int:
        """The node that listens at the address; -1 where the node has moved."""

    def post(self, message: CoreMessage) -> None:
        """Send a message."""


class CoreNode:
    """One node: a core, its durable state, and its pending writes."""

    def __init__(self, cluster: NodeEnvironment, config: RaftConfig, durable: MemoryLog) -> None:
        self.cluster = cluster
        self.config = config
        self.durable = durable
        self.live = durable.copy()
        self.core: RaftCore | None = None
        self.pending: list[tuple[int, tuple[Write, ...]]] = []
        self.inbound: dict[int, tuple[int, int, int]] = {}
        """By reply_to, each open request: (source, correlation id, incarnation)."""
        self.incarnation = 0
        """Grows with each start: a response to an earlier incarnation is dropped."""
        self.wake: int | None = None
        """When it is to be stepped again, on the cluster's clock (ms)."""
        self.last = Ready()
        self.reported_leader: LeaderAndEpoch | None = None
        """The leader that was last reported to its state machine, in this incarnation."""
        self.skew = 0
        """Offset of its clock from the cluster's, ms."""
        self.damage_next = False
        """The next snapshot that is installed is corrupt."""

    @property
    def id(self) -> int:
        return self.config.node_id

    @property
    def running(self) -> RaftCore:
        """Its core; raises CommandError where the process is down."""
        if self.core is None:
            raise CommandError(f"node {self.id} is down")
        return self.core

    def start(self) -> None:
        """Start or restart with the state of the disk."""
        self.live = self.durable.copy()
        self.pending = []
        self.inbound = {}
        self.reported_leader = None
        self.incarnation += 1
        self.core = RaftCore(
            self.config,
            self.durable.election,
            self.durable.recovered(),
            self.cluster.random_source(self.id),
        )
        self.step()

    def crash(self, kept: int = 0, torn: int = 0) -> None:
        """Kill the process. The first `kept` pending write steps have reached the disk.

        Of the next one after these, only the first `torn` writes have.
        """
        reached = [write for _, writes in self.pending[:kept] for write in writes]
        for _, writes in self.pending[kept : kept + 1]:
            reached += writes[:torn]
        for write in reached:
            self.durable.apply(write, self.cluster.contents)
        self.core = None
        self.pending = []
        self.wake = None
        network = self.cluster.network
        network[:] = [m for m in network if not (m.response and m.to == self.id)]

    @property
    def election_is_durable(self) -> bool:
        """Whether its epoch is durable, so that other nodes may know it."""
        writes = [write for _, writes in self.pending for write in writes]
        return not any(isinstance(write, SaveElection) for write in writes)

    def step(self, *events: Event) -> Ready:
        """Step the core, carry out its Ready, and notify the cluster's observer."""
        ready = self.running.step(events, self.cluster.now + self.skew)
        self.absorb(ready)
        self.cluster.observe(self, ready)
        return ready

    def absorb(self, ready: Ready) -> None:
        """Queue the writes and send the messages."""
        if ready.seq is not None:
            self.pending.append((ready.seq, ready.writes))
            for write in ready.writes:
                if not isinstance(write, InstallSnapshot):
                    self.live.apply(write, self.cluster.contents)
        for send in ready.sends:
            to = self.cluster.node_at(send.address)
            message = CoreMessage(self.id, to, send.correlation, send.request, self.incarnation)
            self.cluster.post(message)
        for reply in ready.replies:
            to, correlation, incarnation = self.inbound.pop(reply.reply_to)
            body = self._fill(reply.response)
            self.cluster.post(CoreMessage(self.id, to, correlation, body, incarnation))
        self.wake = None if ready.wake_at_ms is None else ready.wake_at_ms - self.skew
        self.last = ready
        self.reported_leader = ready.leader or self.reported_leader

    def _fill(self, response: Response) -> Response:
        """What a driver adds: records of the log, bytes of the snapshot."""
        if isinstance(response, FetchResponse) and response.records is not None:
            wanted = response.records
            batches = self.live.read(wanted.offset, wanted.end, wanted.max_bytes)
            return replace(response, records=None, batches=batches)
        if isinstance(response, FetchSnapshotResponse) and isinstance(response.chunk, ReadChunk):
            chunk = response.chunk
            data = bytes(SNAPSHOT_SIZE)[chunk.position : chunk.position + chunk.max_bytes]
            return replace(response, size=SNAPSHOT_SIZE, chunk=data)
        return response

    def receive(
        self, source: int, correlation: int, request: Request, incarnation: int = 0
    ) -> None:
        """A request arrives, of that incarnation of its source; source 0 is a client."""
        self.cluster.replies += 1
        self.inbound[self.cluster.replies] = (source, correlation, incarnation)
        self.step(Received(self.cluster.replies, request))

    def persist(self, count: int | None = None, *, damaged: bool = False) -> bool:
        """The disk completes `count` write steps (None: all). True when there were any."""
        installs = any(isinstance(w, InstallSnapshot) for _, ws in self.pending for w in ws)
        if installs and self.damage_next:
            damaged, self.damage_next = True, False
        done, self.pending = self.pending[:count], self.pending[len(self.pending[:count]) :]
        events: list[Event] = []
        for seq, writes in done:
            install = None
            for write in writes:
                if isinstance(write, InstallSnapshot):
                    install = write.snapshot_id
                if not (damaged and isinstance(write, InstallSnapshot)):
                    self.durable.apply(write, self.cluster.contents)
            if install is None:
                events.append(Persisted(seq))
            elif damaged:
                events.append(InstallFailed(seq, install, "bad checksum"))
            else:
                control = self.cluster.contents[install]
                self.live = self.durable.copy()
                events.append(SnapshotInstalled(seq, install, control))
        if events:
            self.step(*events)
        return bool(events)

    def propose(self, *values: str, size: int | None = None) -> Ready:
        """Propose one batch of one record for each value, all in one step; `size` in bytes."""
        epoch = self.running.epoch
        events = [Propose(i, epoch, 1, size or len(v), v) for i, v in enumerate(values)]
        return self.step(*events)

    def snapshot(self, offset: int) -> None:
        """Write a snapshot of everything before `offset`."""
        before = [b for b in self.live.batches if b.end_offset <= offset]
        if not before or before[-1].end_offset != offset:
            raise CommandError(f"no batch of node {self.id} ends at {offset}")
        snapshot_id = OffsetAndEpoch(offset, before[-1].epoch)
        if problem := self.running.snapshot_problem(snapshot_id):
            raise CommandError(f"node {self.id} cannot create a snapshot there: {problem}")
        control = self.running.control_at(offset)
        self.cluster.contents[snapshot_id] = control
        for log in (self.live, self.durable):
            log.snapshots[snapshot_id] = control
        self.step(SnapshotCreated(snapshot_id))

    @property
    def values(self) -> list[str]:
        return [str(b.payload) for b in self.live.batches if b.payload is not None]
