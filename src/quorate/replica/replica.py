"""One replica without sockets, threads or clocks: the raft core, the log and a state machine.

`step` takes everything that happened and returns everything that is to be done. The server and the
simulator drive the same class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.base.notes import Fault
from quorate.formats.batch import (
    encode_control_batch,
    with_base_offset_and_epoch,
)
from quorate.raft import inputs
from quorate.raft.core import RaftCore
from quorate.raft.ready import (
    Append,
    Clean,
    InstallSnapshot,
    Ready,
    Refused,
    Send,
    Truncate,
)
from quorate.raft.values import Batch, ControlState, RaftConfig
from quorate.replica.applier import BOOTSTRAP, SLICE_BYTES, Applier
from quorate.replica.disk_jobs import (
    AppendBatches,
    DiskFailed,
    DiskWrite,
    Installed,
    InstallRefused,
    Job,
    LogRead,
    Result,
    SnapshotFailed,
    SnapshotRead,
    SnapshotWritten,
    Survey,
    Surveyed,
    Write,
    WriteSnapshot,
    Written,
)
from quorate.replica.log_reads import READ_BYTES, Answer, LogReads
from quorate.replica.proposals import NOT_ACTIVE, Committed, Outcome, Proposals, Submit
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.replica.state_machine import Now, ReplicatedStateMachine
from quorate.replica.tail import TAIL_BYTES, Tail
from quorate.storage.api import AppendedBatch, Recovered, StorageError

__all__ = ["Answer", "Committed", "Effects", "Input", "MemoryLimits", "Replica", "Submit"]

Input = inputs.Event | Result | Submit


@dataclass(slots=True)
class Effects:
    """What to do now; `jobs` in order, everything else in any order."""

    answers: list[Answer] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    leader: LeaderAndEpoch | None = None
    notes: list[str] = field(default_factory=list)
    wake_at_ms: int | None = None
    """Call `step` again at this monotonic time at the latest."""
    stopped: bool = False
    faulted: str | None = None

    @property
    def is_over(self) -> bool:
        """The replica ends with this step: after a shutdown, or by a fault."""
        return self.stopped or self.faulted is not None


@frozen
class MemoryLimits:
    """How many bytes of the log a replica has in memory, about."""

    tail: int = TAIL_BYTES
    """The newest batches."""
    slice: int = SLICE_BYTES
    """What the state machine is fed in one step."""
    reads: int = READ_BYTES
    """What the disk reads for peers at a time: a write waits for no more."""


class Replica:
    """Owner of a RaftCore. `random` gives floats in [0, 1)."""

    def __init__(
        self,
        config: RaftConfig,
        recovered: Recovered,
        machine: ReplicatedStateMachine,
        random: Callable[[], float],
        policy: SnapshotPolicy | None = None,
        memory: MemoryLimits | None = None,
        admit: Callable[[Batch], None] | None = None,
    ) -> None:
        """admit: looks at each batch before it is appended; what it raises ends the node."""
        memory = memory or MemoryLimits()
        self.config = config
        self.machine = machine
        self.core = RaftCore(config, recovered.election, recovered.log, random)
        self.leading_epoch: int | None = None
        """The epoch in which the state machine leads: everything before it is applied."""
        self._policy = policy or SnapshotPolicy()
        self._admit = admit
        self._tail = Tail(recovered.log.end_offset, memory.tail)
        self._high_watermark = 0
        self._token = 0
        self._elected: tuple[int, int] | None = None
        self._proposals = Proposals(config.limits.batch_bytes)
        self._wall_ms = 0
        self._reads = LogReads(memory.reads, config.limits.batch_bytes)
        self._applier = Applier(machine, memory.slice)
        self._writing_snapshot = False
        self._snapshot_at: int | None = None
        self._clean_at: int | None = None
        snapshots = recovered.log.snapshots
        if snapshots and snapshots[-1] != BOOTSTRAP:
            self._applier.load(snapshots[-1])

    @property
    def applied(self) -> OffsetAndEpoch:
        """End offset (exclusive) and epoch up to where the machine has applied the log."""
        return self._applier.applied

    @property
    def applier(self) -> Applier:
        """The part that feeds the state machine. Checks read the parts and never change them."""
        return self._applier

    @property
    def policy(self) -> SnapshotPolicy:
        """When it writes a snapshot and what it deletes."""
        return self._policy

    @property
    def reads(self) -> LogReads:
        """The reads of the log for peers that are in progress."""
        return self._reads

    @property
    def tail(self) -> Tail:
        """The newest batches, in memory."""
        return self._tail

    @property
    def pending_offset(self) -> int:
        """End (exclusive) of the newest proposal that is not committed, or that of `applied`."""
        end = self._proposals.pending_end
        return self._applier.applied.offset if end is None else end

    @property
    def next_offset(self) -> int:
        """The offset of the next record that is submitted, unless the core writes one of its own first."""
        return self.core.log_end.offset + self._proposals.submitted_records

    @property
    def applied_timestamp_ms(self) -> int:
        """When the leader appended the newest batch that was applied, ms since 1970; 0: none."""
        return self._applier.timestamp_ms

    @property
    def applied_control(self) -> ControlState:
        """kraft.version and voters as of `applied`."""
        return self.core.control_at(self._applier.applied.offset)

    @property
    def is_loading(self) -> bool:
        """A snapshot is being loaded: the state is incomplete."""
        return self._applier.loading is not None

    def step(self, happened: Iterable[Input], now: Now) -> Effects:
        """Take everything that happened. Raises QuorateError where the state machine does.

        1. Inputs become events of the core; submissions are gathered, reads answered.
        2. What is due is proposed. The core steps on all events at once.
        3. Its Ready becomes effects: jobs, sends, answers, a change of leader.
        4. One slice of what is committed is applied. A new leader that has applied everything before
           its epoch takes office. What is committed now is released, which may make more due: back
           to 2 until nothing is.
        5. Reads, a snapshot and retention are given to the disk, after the writes.
        """
        effects = Effects()
        events: list[inputs.Event] = []
        self._wall_ms = now.wall_ms
        self._reads.begin()
        for item in happened:
            if isinstance(item, inputs.Received | inputs.Answered):
                events.append(item)
            else:
                self._take(item, effects, events, now)
        self._propose(events, effects, now)
        more = False
        while True:
            ready = self.core.step(events, now.monotonic_ms)
            events = []
            self._absorb(ready, effects, events)
            if effects.is_over:
                return effects
            if not more and not self._applier.is_at(self._high_watermark):
                more = self._apply(effects.jobs)
            if self._elected is not None:
                self._lead(effects, now)
            self._proposals.release(self._applier.applied.offset, effects.outcomes)
            self._propose(events, effects, now)
            if not events:
                break
        # What is proposed last may only have waited for all that is applied by now.
        self._proposals.release(self._applier.applied.offset, effects.outcomes)
        if self.machine.notes:
            effects.notes.extend(self.machine.notes)
            self.machine.notes.clear()
        self._reads.schedule(effects.jobs)
        self._snapshot(effects.jobs, now)
        self._clean(effects.jobs, now)
        effects.wake_at_ms = self._wake_at(ready.wake_at_ms, more, now)
        return effects

    # -- what happened ------------------------------------------------------------------------
    def _take(self, item: Input, effects: Effects, events: list[inputs.Event], now: Now) -> None:
        match item:
            case Submit():
                if self.leading_epoch is None:
                    refusal = Refused(item.token, ErrorCode.NOT_CONTROLLER, NOT_ACTIVE)
                    effects.outcomes.append(refusal)
                else:
                    self._proposals.submit(item)
            case Written():
                events.append(inputs.Persisted(item.seq))
            case LogRead() | SnapshotRead():
                self._take_read(item, effects, events)
            case Surveyed():
                self._take_survey(item, events)
            case DiskFailed():
                events.append(inputs.StorageFailed(item.reason))
            case Installed() | InstallRefused() | SnapshotWritten() | SnapshotFailed():
                self._take_snapshot(item, effects, events)
            case inputs.UpgradeKRaftVersion():
                events.append(self._proposals.upgrade(item))
            case _:
                events.append(item)

    def _take_snapshot(
        self,
        item: Installed | InstallRefused | SnapshotWritten | SnapshotFailed,
        effects: Effects,
        events: list[inputs.Event],
    ) -> None:
        snapshot_id = item.snapshot_id
        match item:
            case Installed():
                self._tail.restart(snapshot_id.offset)
                self._applier.load(snapshot_id)
                events.append(inputs.SnapshotInstalled(item.seq, snapshot_id, item.control))
            case InstallRefused():
                events.append(inputs.InstallFailed(item.seq, snapshot_id, item.reason))
            case SnapshotWritten():
                self._writing_snapshot = False
                self._applier.snapshot_size = item.size
                effects.notes.append(f"Wrote snapshot {_name(snapshot_id)}")
                events.append(inputs.SnapshotCreated(snapshot_id))
            case SnapshotFailed():
                self._writing_snapshot = False
                text = f"Could not write snapshot {_name(snapshot_id)}: {item.reason}"
                effects.notes.append(Fault(text))

    def _take_read(
        self, result: LogRead | SnapshotRead, effects: Effects, events: list[inputs.Event]
    ) -> None:
        try:
            if self._applier.took(result):
                return
        except StorageError as error:
            events.append(inputs.StorageFailed(str(error)))
            return
        answer = self._reads.complete(result)
        if answer is not None:
            effects.answers.append(answer)

    def _take_survey(self, survey: Surveyed, events: list[inputs.Event]) -> None:
        """Retention. What is deleted was applied, or is covered by the snapshot that is loaded."""
        snapshot_id = self._policy.clean_to(survey.log_size, survey.snapshots, self._wall_ms)
        if snapshot_id is not None:
            events.append(inputs.CleanTo(snapshot_id))

    # -- what the core says -------------------------------------------------------------------
    def _absorb(self, ready: Ready, effects: Effects, events: list[inputs.Event]) -> None:
        if ready.high_watermark is not None:
            self._high_watermark = ready.high_watermark
        # Before the change of leader: what this step appended may still be committed, so `lose` must
        # report it as in doubt, not as refused.
        for outcome in ready.proposals:
            self._proposals.settle(outcome, effects.outcomes)
        if ready.leader is not None:
            self._leader_changed(ready, effects)
        if ready.writes:
            writes = tuple(self._disk_write(write) for write in ready.writes)
            assert ready.seq is not None
            effects.jobs.append(Write(ready.seq, writes))
            # Other records may take the same offsets before the disk comes to these reads.
            if any(isinstance(write, Truncate | InstallSnapshot) for write in ready.writes):
                effects.answers.extend(self._reads.cancel_log_reads())
        for reply in ready.replies:
            answer = self._reads.answer(reply, self._tail, self._next_token())
            if answer is not None:
                effects.answers.append(answer)
        effects.sends.extend(ready.sends)
        effects.notes.extend(ready.notes)
        effects.stopped = effects.stopped or ready.stopped
        effects.faulted = effects.faulted or ready.faulted

    def _leader_changed(self, ready: Ready, effects: Effects) -> None:
        assert ready.leader is not None
        leader_id, epoch = ready.leader
        effects.leader = ready.leader
        self._elected = self.leading_epoch = None
        self._proposals.lose(effects.outcomes)
        if leader_id == self.config.node_id:
            self._elected = (epoch, ready.epoch_start_offset)
        else:
            self.machine.follow(leader_id, epoch)

    def _disk_write(self, write: object) -> DiskWrite:
        if isinstance(write, Append):
            if self._admit is not None:
                for batch in write.batches:
                    self._admit(batch)
            batches = tuple(map(self._encode, write.batches))
            self._tail.append(batches)
            return AppendBatches(batches)
        if isinstance(write, Truncate):
            self._tail.truncate(write.end_offset)
        if isinstance(write, Clean):
            self._clean_at = 0  # there may be more to delete: check again once this is done
        return write  # type: ignore[return-value]

    def _encode(self, batch: Batch) -> AppendedBatch:
        payload = batch.payload
        if isinstance(payload, bytes):
            data = payload
            # A proposal is encoded before the core gives it an offset. No checksum covers base offset
            # and epoch, so both are set in place (KIP-98's batch format).
            if (
                not data.startswith(batch.base_offset.to_bytes(8, "big"))
                or int.from_bytes(data[12:16], "big") != batch.epoch
            ):
                data = with_base_offset_and_epoch(data, batch.base_offset, batch.epoch)
        else:
            data = encode_control_batch(
                batch.base_offset, batch.epoch, self._wall_ms, batch.control
            )
        return AppendedBatch(batch.base_offset, batch.last_offset, batch.epoch, data)

    def _propose(self, events: list[inputs.Event], effects: Effects, now: Now) -> None:
        """Add the proposals that are due."""
        epoch = self.leading_epoch
        if epoch is None:
            return
        proposals, wall_ms = self._proposals, now.wall_ms
        if own := self.machine.poll(now, self.core.voters):
            events.extend(proposals.of_machine(own, epoch, wall_ms))
        if proposals.is_due(now.monotonic_ms):
            end = self.core.log_end.offset
            events.extend(proposals.propose(epoch, wall_ms, end, effects.outcomes))

    # -- the machine --------------------------------------------------------------------------
    def _apply(self, jobs: list[Job]) -> bool:
        token = self._next_token()
        return self._applier.advance(self._high_watermark, self._tail, token, jobs)

    def _lead(self, effects: Effects, now: Now) -> None:
        # Not at the election: a decision needs every record of earlier leaders. `KafkaRaftClient`
        # reports the leader to its own listener only when that has read to the start of the epoch.
        if self._elected is not None and self._applier.applied.offset > self._elected[1]:
            self.leading_epoch = self._elected[0]
            self._elected = None
            self.machine.lead(self.leading_epoch, now)

    # -- snapshots ----------------------------------------------------------------------------
    def _snapshot(self, jobs: list[Job], now: Now) -> None:
        """Begin a snapshot.

        1. Not before the first step, nor while one is loaded: the interval begins then.
        2. Not inside a batch that is applied in part.
        3. One at a time, and when the policy says so.
        4. The state machine may refuse (inside a transaction): the next step asks again.
        """
        applier = self._applier
        if self._snapshot_at is None or applier.loading is not None:
            self._snapshot_at = now.monotonic_ms
            return
        if applier.is_inside_a_batch:
            return
        age = now.monotonic_ms - self._snapshot_at
        if self._writing_snapshot or not self._policy.is_due(
            applier.bytes_applied, age, applier.snapshot_size
        ):
            return
        values = self.machine.freeze()
        if values is None:
            return
        self._writing_snapshot = True
        self._snapshot_at = now.monotonic_ms
        applier.bytes_applied = 0
        jobs.append(
            WriteSnapshot(
                applier.applied, applier.timestamp_ms, self.applied_control, values, now.wall_ms
            )
        )

    def _clean(self, jobs: list[Job], now: Now) -> None:
        if self._clean_at is None:
            self._clean_at = now.monotonic_ms + self._policy.clean_interval_ms
        elif now.monotonic_ms >= self._clean_at:
            self._clean_at = now.monotonic_ms + self._policy.clean_interval_ms
            jobs.append(Survey())

    # -- small things -------------------------------------------------------------------------
    def _next_token(self) -> int:
        self._token += 1
        return self._token

    def _wake_at(self, core_at: int | None, more: bool, now: Now) -> int | None:
        if more:
            return now.monotonic_ms
        wake = core_at
        if self._clean_at is not None and (wake is None or self._clean_at < wake):
            wake = self._clean_at
        if self.leading_epoch is not None:
            for at in (self.machine.wake_at_ms(), self._proposals.wake_at_ms):
                if at is not None and (wake is None or at < wake):
                    wake = at
        return wake


def _name(snapshot_id: OffsetAndEpoch) -> str:
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}"
