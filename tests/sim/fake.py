"""A world made by hand: nodes that do and say what a test wants, watched by the real checks.

The fault events here are those of a quorum without faults; a test does the one wrong thing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from narrow import as_any
from quorate.base.ids import Address, LeaderAndEpoch, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.batch import encode_batch, encode_control_batch
from quorate.raft.describe import describe
from quorate.raft.inputs import Received, Resign
from quorate.raft.log_index import LogIndex
from quorate.raft.messages import (
    AddVoterRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveVoterRequest,
    Request,
    Response,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import InstallSnapshot, SaveElection, Send, Truncate
from quorate.raft.roles import Resigned, Unattached
from quorate.raft.values import (
    ControlRecord,
    ControlState,
    ElectionState,
    KRaftVersion,
    LeaderChange,
    RaftLimits,
    RecoveredLog,
    Voter,
    Voters,
)
from quorate.raft.voters import VoterSet
from quorate.replica.disk_jobs import AppendBatches, Installed, Write
from quorate.replica.replica import Answer, Effects
from quorate.replica.state_machine import Now
from quorate.sim.checks.all_checks import Checks
from quorate.sim.checks.elections import is_electable
from quorate.sim.plan.plan import Plan
from quorate.sim.world.observer import Observer
from quorate.storage.api import AppendedBatch, Recovered

DIRECTORIES = {node_id: Uuid(bytes(15) + bytes([node_id])) for node_id in range(1, 9)}


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, DIRECTORIES[node_id])


def voters(*ids: int) -> tuple[Voter, ...]:
    return tuple(Voter(key(node_id), (), 0, 1) for node_id in ids)


class State(SimpleNamespace):
    """What a core has in memory. It knows whether it is electable, unless a test overrides that."""

    def __init__(self, node: Node, **facts: Any) -> None:
        super().__init__(node=node, said=None, **facts)

    @property
    def electable(self) -> bool:
        return (
            is_electable(self.node.fake.checks.models[self.node.id])
            if self.said is None
            else self.said
        )

    @electable.setter
    def electable(self, said: bool | None) -> None:
        self.said = said


class Node:
    """What the checks look at in a Process, as plain data."""

    def __init__(self, fake: Fake, node_id: int) -> None:
        self.fake = fake
        self.id = node_id
        self.directory_id = DIRECTORIES[node_id]
        self.incarnation = 0
        self.foreign: str | None = None
        self.batches: list[AppendedBatch] = []
        self.files: list[str] = []
        self.start_offset = 0
        self.snapshot = OffsetAndEpoch(0, 0)
        self.seq = 0
        self.persisted = 0
        self.disk_election: ElectionState | None = None
        self.hangs = False
        """Else all that it gave to its disk is durable before its next step."""
        self.replies = 0
        self.world = SimpleNamespace(now_us=0, plan=Plan())

    @property
    def now(self) -> Now:
        return Now(self.state.now, 0)

    @property
    def storage(self) -> Any:
        return SimpleNamespace(
            read=lambda *_: b"".join(batch.data for batch in self.batches),
            disk=SimpleNamespace(names=lambda: self.files),
        )

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.start_offset

    @property
    def index(self) -> LogIndex:
        """Rebuilt from its current contents."""
        starts: dict[int, int] = {}
        for batch in self.batches:
            starts.setdefault(batch.epoch, batch.base_offset)
        snapshots = tuple(self.state.log.snapshots)
        ends = (self.start_offset, *(batch.last_offset + 1 for batch in self.batches))
        log = RecoveredLog(self.start_offset, self.end, tuple(starts.items()), (), None, (), ends)
        index = LogIndex(replace(log, snapshots=snapshots[-1:]))
        index.snapshots[:] = snapshots
        return index

    @property
    def epoch(self) -> int:
        return self.state.election.epoch

    # -- incarnations -------------------------------------------------------------------------
    def start(self) -> None:
        """On everything that `batches` and `disk_election` hold."""
        self.incarnation += 1
        ids = tuple(self.fake.first)
        control = VoterSet(voters(*ids))
        self.state: Any = State(
            self,
            election=self.disk_election or ElectionState(),
            epoch=0,
            now=0,
            random=None,
            config=SimpleNamespace(
                cluster_id="simulated",
                static_voters=(),
                fetch_timeout_ms=2000,
                election_timeout_ms=1000,
                election_backoff_max_ms=1000,
                request_timeout_ms=2000,
                retry_backoff_ms=20,
                retry_backoff_max_ms=0,
                listeners=(),
                high_watermark_linger_ms=0,
                min_kraft_version=0,
                max_kraft_version=1,
                auto_join=False,
                can_be_voter=True,
                limits=RaftLimits(),
            ),
            leader_id=-1,
            log=SimpleNamespace(
                start_offset=self.start_offset,
                snapshots=[self.snapshot],
                validate=lambda offset, epoch: self.index.validate(offset, epoch),
                border_at_or_before=lambda offset: self.index.border_at_or_before(offset),
                known_from=self.start_offset,
            ),
            durable=SimpleNamespace(election_is_durable=False, log_is_durable=True),
            requests=SimpleNamespace(
                by_node={},
                by_correlation={},
                backoff_until={},
                bootstrap=(),
                unreachable=set(),
                resets=0,
            ),
            installing=None,
            shutdown_deadline=None,
            high_watermark=self.snapshot.offset or -1,
            role=Unattached(0),
            controls=SimpleNamespace(
                state=ControlState(1, control.voters), static_voters=VoterSet(())
            ),
        )
        self.core = SimpleNamespace(
            state=self.state, describe=lambda now_ms: describe(as_any(self.state), now_ms)
        )
        self.machine = SimpleNamespace(trail=[], values={}, led=None, newest=None)
        tail = SimpleNamespace(start_offset=0)
        self.replica: Any = SimpleNamespace(
            leading_epoch=None,
            applied=self.snapshot,
            tail=tail,
            reads=SimpleNamespace(replies=[], given={}),
            config=self.state.config,
            policy=SimpleNamespace(
                clean_interval_ms=60_000,
                max_bytes=1000,
                max_interval_ms=0,
                retention_bytes=-1,
                retention_ms=-1,
            ),
            applier=SimpleNamespace(bytes_applied=0, loading=None, is_inside_a_batch=False),
            step=lambda *_: Effects(),
            machine=SimpleNamespace(freeze=lambda: ()),
        )
        log = RecoveredLog(
            self.start_offset,
            self.end,
            (),
            (self.snapshot,),
            ControlState(1, control.voters) if self.snapshot.offset == 0 else None,
            (),
        )
        self.fake.watch("started", self, Recovered(log, self.disk_election))

    def step(self, happened: Sequence[object] = (), **effects: Any) -> None:
        """It has no timer, stops at its deadline, and resigns on request, unless it
        says so."""
        if isinstance(self.state.role, Resigned) and not happened and "notes" not in effects:
            happened = [Resign(self.state.election.epoch)]
        if effects.get("stopped"):
            self.fake.checks.epoch_notifications._until.setdefault(self.id, 0)
        effects.setdefault("wake_at_ms", self.state.now)
        if not self.hangs:
            self.fake.checks.disk_stalls.process_started(self.fake.checks.models[self.id])
        self.fake.watch("stepped", self, happened, Effects(**effects))
        self.machine.trail.clear()

    def write(self, *writes: Any) -> None:
        self.seq += 1
        self.step(jobs=[Write(self.seq, writes)])

    def persist(self) -> None:
        self.disk_election = self.state.election
        self.fake.watch("durable", self, self.seq)

    # -- fault events --------------------------------------------------------------------------------
    def save(self, epoch: int, leader: int = -1, voted: int | None = None) -> None:
        """In the same epoch a vote is kept."""
        old = self.state.election
        kept = old.voted if epoch == old.epoch else None
        vote = kept if voted is None else key(voted)
        self.state.election = ElectionState(epoch, leader, vote)
        self.write(SaveElection(self.state.election, 1))

    def append(self, *batches: AppendedBatch) -> None:
        self.batches.extend(batches)
        self.write(AppendBatches(batches))

    def made(self, *values: bytes, epoch: int | None = None) -> AppendedBatch:
        epoch = self.epoch if epoch is None else epoch
        data = encode_batch(self.end, epoch, 0, values or (b"value",))
        return AppendedBatch(self.end, self.end + len(values or (b"",)) - 1, epoch, data)

    def control(self, *records: ControlRecord) -> AppendedBatch:
        """Voters are added and removed by a request."""
        for record in records:
            if isinstance(record, Voters):
                self._be_asked_for(record.voters)
        data = encode_control_batch(self.end, self.epoch, 0, records)
        return AppendedBatch(self.end, self.end + len(records) - 1, self.epoch, data)

    def _be_asked_for(self, new: tuple[Voter, ...]) -> None:
        checks = self.fake.checks
        model = checks.models[self.id]
        requests: list[Any] = [
            RemoveVoterRequest(None, voter.key)
            for voter in model.voters
            if voter.key.id not in {other.key.id for other in new}
        ]
        for voter in new:
            key, at = voter.key, voter.listeners
            if key.id not in {other.key.id for other in model.voters}:
                requests.append(AddVoterRequest(None, key, at))
            elif voter not in model.voters:
                low, high = voter.min_kraft_version, voter.max_kraft_version
                requests.append(UpdateVoterRequest(None, self.epoch, key, at, low, high))
        for request in requests:
            self.replies += 1
            checks.voter_changes.request_received(model, self.replies, request, self.state)

    def truncate(self, end: int) -> None:
        while self.batches and self.batches[-1].last_offset >= end:
            self.batches.pop()
        self.write(Truncate(end))

    def install(self, snapshot_id: OffsetAndEpoch) -> None:
        self.write(InstallSnapshot(snapshot_id))
        self.batches, self.start_offset, self.snapshot = [], snapshot_id.offset, snapshot_id
        self.state.high_watermark = max(self.state.high_watermark, snapshot_id.offset)
        self.state.log.start_offset, self.state.log.snapshots = self.start_offset, [snapshot_id]
        self.step([Installed(self.seq, snapshot_id, ControlState(1, ()))])

    def commit(self, high_watermark: int) -> None:
        self.state.high_watermark = high_watermark
        self.step()

    def apply(self, end: int, history: int = 0, digest: int = 0) -> None:
        known = self.fake.checks.history.committed_at.get(end)
        self.replica.applier.bytes_applied += 0 if known is None else len(known.data)
        self.replica.applied = OffsetAndEpoch(end, self.epoch)
        self.machine.trail.append((end, history, digest))
        self.step()

    def ask(self, request: Request) -> None:
        self.step(sends=[Send(0, 0, Address("host", 9093), request, 0)])

    def fetch(self, offset: int | None = None) -> None:
        epoch = self.batches[-1].epoch if self.batches else self.snapshot.epoch
        offset = self.end if offset is None else offset
        self.ask(FetchRequest(None, key(self.id), self.epoch, offset, epoch, 0, 0, -1))

    def receive(self, request: Request) -> int:
        """What it is to send, its disk is asked for first: that may take its time."""
        self.replies += 1
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            self.replica.reads.replies.append(SimpleNamespace(reply_to=self.replies))
        self.step([Received(self.replies, request)])
        return self.replies

    def hear(self, *others: int, behind: int = 0) -> None:
        """Fetches of these nodes, so far `behind`, at the time that its clock shows."""
        at = self.end - behind
        for other in others:
            self.receive(FetchRequest(None, key(other), self.epoch, at, 0, 0, 0, -1))

    def answer(self, response: Response, reply_to: int = 0) -> None:
        self.step(answers=[Answer(reply_to, response)])

    def grant(self, candidate: int, epoch: int, *, pre_vote: bool = False) -> None:
        request = VoteRequest(None, key(self.id), epoch, key(candidate), 0, 0, pre_vote)
        reply_to = self.receive(request)
        if not pre_vote:
            self.save(epoch, -1, candidate)
            self.persist()
        leader = LeaderAndEpoch(-1, self.epoch)
        self.answer(VoteResponse(0, leader, True), reply_to)  # type: ignore[arg-type]


class Fake:
    """Nodes 1 to `count`, of which `first` are the voters of the bootstrap snapshot."""

    def __init__(self, count: int = 3, first: Sequence[int] = (), *more: Observer) -> None:
        self.first = tuple(first) or tuple(range(1, count + 1))
        self.checks = Checks()
        self.observers: tuple[Observer, ...] = (self.checks, *more)
        self.nodes = {node_id: Node(self, node_id) for node_id in range(1, count + 1)}
        for node in self.nodes.values():
            node.start()

    def __getitem__(self, node_id: int) -> Node:
        return self.nodes[node_id]

    def watch(self, method: str, *args: object) -> None:
        for observer in self.observers:
            getattr(observer, method)(*args)

    def rule(self, node: Node, *ids: int) -> None:
        """The voter set that the core of this node has in force."""
        node.state.controls.state = ControlState(1, voters(*ids))

    def elect(self, leader: int, epoch: int, *granting: int, bare: bool = False) -> Node:
        """By pre-votes and votes; the LeaderChange, and at first the voters, are durable.

        `bare`: without voters in the log, as at kraft.version 0.
        """
        node = self[leader]
        for other in granting:
            self[other].grant(leader, epoch - 1, pre_vote=True)
        node.save(epoch, -1, leader)
        node.persist()
        for other in granting:
            self[other].grant(leader, epoch)
        node.state.election = ElectionState(epoch, leader)
        records: list[ControlRecord] = [LeaderChange(leader, self.first, (leader, *granting))]
        if not node.batches and not bare:
            records += [KRaftVersion(1), Voters(voters(*self.first))]
        batch = node.control(*records)
        node.batches.append(batch)
        node.write(SaveElection(node.state.election, 1), AppendBatches((batch,)))
        node.persist()
        node.hear(*(other for other in self.nodes if other != leader))
        return node

    def replicate(self, leader: Node, *followers: int) -> None:
        """The followers have the leader's log, durably."""
        for follower in followers:
            node = self[follower]
            if (node.epoch, node.state.election.leader_id) != (leader.epoch, leader.id):
                node.save(leader.epoch, leader.id)
            missing = [batch for batch in leader.batches if batch.base_offset >= node.end]
            if missing:
                node.append(*missing)
            node.persist()

    def write(self, leader: Node, *followers: int, value: bytes = b"value") -> int:
        """One more committed batch; where it ends."""
        leader.append(leader.made(value))
        leader.persist()
        self.replicate(leader, *followers)
        leader.commit(leader.end)
        return leader.end
