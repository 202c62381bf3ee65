"""One replica of a story: a core, its disk, and what is on its way there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
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
from quorate.raft.values import RaftConfig
from quorate.sim.story.errors import CannotDo
from quorate.sim.story.log import Log

if TYPE_CHECKING:
    from quorate.sim.story.cluster import Cluster

SNAPSHOT_SIZE: Final = 2500
"""Bytes of every snapshot in a story."""


@dataclass
class Message:
    """In flight; `correlation` is the asker's, in its `life` of then."""

    source: int
    to: int
    correlation: int
    body: Request | Response
    life: int = 0

    @property
    def response(self) -> bool:
        return isinstance(self.body, Response)

    def __str__(self) -> str:
        kind = type(self.body).__name__
        return f"{self.source}->{self.to} {kind}"


class Node:
    """One replica: a core, what its disk holds for sure, and what is on its way there."""

    def __init__(self, cluster: Cluster, config: RaftConfig, durable: Log) -> None:
        self.cluster = cluster
        self.config = config
        self.durable = durable
        self.live = durable.copy()
        self.core: RaftCore | None = None
        self.pending: list[tuple[int, tuple[Write, ...]]] = []
        self.inbound: dict[int, tuple[int, int, int]] = {}
        """Of each request not answered yet: source, correlation, life."""
        self.life = 0
        """Grows with each start: what was asked before is not answered after."""
        self.wake: int | None = None
        """When it is to be stepped again, on the cluster's clock."""
        self.last = Ready()
        self.told: LeaderAndEpoch | None = None
        """What its state machine was last told of the leader, in this life."""
        self.skew = 0
        """How far its clock is ahead of the cluster's: ms."""
        self.damage_next = False
        """The next snapshot that is installed turns out to be damaged."""

    @property
    def id(self) -> int:
        return self.config.node_id

    @property
    def running(self) -> RaftCore:
        """Its core; raises CannotDo where it is down."""
        if self.core is None:
            raise CannotDo(f"node {self.id} is down")
        return self.core

    def start(self) -> None:
        """Begin, or begin again, with what is on the disk."""
        self.live = self.durable.copy()
        self.pending = []
        self.inbound = {}
        self.told = None
        self.life += 1
        self.core = RaftCore(
            self.config,
            self.durable.election,
            self.durable.recovered(),
            self.cluster.chance(self.id),
        )
        self.step()

    def crash(self, kept: int = 0, torn: int = 0) -> None:
        """Stop dead; of the Readies on their way `kept` reached the disk all the same.

        Of the next one after these, only the first `torn` writes did.
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
    def spoken(self) -> bool:
        """Is its epoch durable, so that it may have told anybody?"""
        writes = [write for _, writes in self.pending for write in writes]
        return not any(isinstance(write, SaveElection) for write in writes)

    def step(self, *events: Event) -> Ready:
        """Tell the core, carry out what it says, tell the cluster's observer."""
        ready = self.running.step(events, self.cluster.now + self.skew)
        self.absorb(ready)
        self.cluster.observe(self, ready)
        return ready

    def absorb(self, ready: Ready) -> None:
        """Queue the writes, put the messages on their way."""
        if ready.seq is not None:
            self.pending.append((ready.seq, ready.writes))
            for write in ready.writes:
                if not isinstance(write, InstallSnapshot):
                    self.live.apply(write, self.cluster.contents)
        for send in ready.sends:
            to = self.cluster.node_at(send.address)
            message = Message(self.id, to, send.correlation, send.request, self.life)
            self.cluster.post(message)
        for reply in ready.replies:
            to, correlation, life = self.inbound.pop(reply.reply_to)
            body = self._fill(reply.response)
            self.cluster.post(Message(self.id, to, correlation, body, life))
        self.wake = None if ready.wake_at_ms is None else ready.wake_at_ms - self.skew
        self.last = ready
        self.told = ready.leader or self.told

    def _fill(self, response: Response) -> Response:
        """What a driver adds: records from the log, bytes from the snapshot."""
        if isinstance(response, FetchResponse) and response.records is not None:
            wanted = response.records
            batches = self.live.read(wanted.offset, wanted.end, wanted.max_bytes)
            return replace(response, records=None, batches=batches)
        if isinstance(response, FetchSnapshotResponse) and isinstance(response.chunk, ReadChunk):
            chunk = response.chunk
            data = bytes(SNAPSHOT_SIZE)[chunk.position : chunk.position + chunk.max_bytes]
            return replace(response, size=SNAPSHOT_SIZE, chunk=data)
        return response

    def receive(self, source: int, correlation: int, request: Request, life: int = 0) -> None:
        """A request arrives, of that life of its source; source 0 is a client."""
        self.cluster.replies += 1
        self.inbound[self.cluster.replies] = (source, correlation, life)
        self.step(Received(self.cluster.replies, request))

    def persist(self, count: int | None = None, *, damaged: bool = False) -> bool:
        """The disk finished `count` writes (all): tell the core. True when there were any."""
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
            raise CannotDo(f"no batch of node {self.id} ends at {offset}")
        snapshot_id = OffsetAndEpoch(offset, before[-1].epoch)
        if problem := self.running.snapshot_problem(snapshot_id):
            raise CannotDo(f"node {self.id} may make no snapshot there: {problem}")
        control = self.running.control_at(offset)
        self.cluster.contents[snapshot_id] = control
        for log in (self.live, self.durable):
            log.snapshots[snapshot_id] = control
        self.step(SnapshotCreated(snapshot_id))

    @property
    def values(self) -> list[str]:
        return [str(b.payload) for b in self.live.batches if b.payload is not None]
