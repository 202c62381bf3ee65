"""Counts the coverage points that a world reaches, seen from outside (`coverage_points`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.messages import AddVoterResponse, RemoveVoterResponse, UpdateVoterResponse
from quorate.raft.ready import Refused
from quorate.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
)
from quorate.replica.disk_jobs import AppendBatches, ReadLog, Write
from quorate.sim.checks.leader_duties import NOBODY_FETCHES
from quorate.sim.coverage.coverage_of_long_runs import HOUR_MS, LongRunCoverage
from quorate.sim.coverage.coverage_of_voter_updates import count_voter_updates
from quorate.sim.coverage.coverage_points import (
    CHANGE_NOT_COMMITTED,
    LACKS_SUPPORT,
    RECOVERY_NOTES,
    REFUSALS,
    ROLE_ENTERED,
    ROLES,
    STEP_NOTE,
    STEP_NOTE_POINTS,
)
from quorate.sim.plan.plan import INVALID_REQUESTS
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Answer, Effects, Input
    from quorate.storage.api import Recovered


class Coverage(Observer):
    """Counts for one world; add the counters of many."""

    def __init__(self) -> None:
        self.coverage: Counter[str] = Counter()
        self._states: dict[int, RaftState] = {}
        self._roles: dict[int, Role] = {}
        self._ends: dict[int, tuple[int, int]] = {}
        """By node, when it crashed: log end durable and in memory."""
        self._began: dict[int, int] = {}
        """By node, the offset from which on its tail has held the log in this incarnation."""
        self._committed = 0
        """The highest high watermark of all."""
        self._long_runs: LongRunCoverage | None = None
        self._is_long_run = False
        self._pending: set[int] = set()
        """Clients with an operation under way."""

    # -- incarnations of a node ---------------------------------------------------------------
    def began(self, world: ObservableWorld) -> None:
        self._is_long_run = world.plan.duration_ms >= HOUR_MS
        self._long_runs = LongRunCoverage(world)

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        coverage = self.coverage
        if self._long_runs is not None:
            coverage.update(self._long_runs.started(process))
        state = process.core.state
        self._states[process.id] = state
        self._roles[process.id] = state.role
        for note in recovered.notes:
            for words, name in RECOVERY_NOTES.items():
                if words in note:
                    coverage[name] += 1
        log = recovered.log
        self._began[process.id] = log.end_offset
        if log.snapshots and log.snapshots[-1].offset > 0:
            coverage["a replica began with a snapshot"] += 1
        durable, end = self._ends.pop(process.id, (0, 0))
        if end > durable:
            survived = log.end_offset > durable
            coverage[
                f"an unsynced tail {'survived a crash' if survived else 'was lost in a crash'}"
            ] += 1
        election = recovered.election
        if election is not None:
            if election.leader_id == process.id:
                coverage["a leader began anew and resigned"] += 1
            elif election.voted is not None and election.voted.id == process.id:
                coverage["a voter that had voted for itself began anew as candidate"] += 1

    def crashed(self, process: SimulatedNode) -> None:
        """The core's memory is still here to be looked at."""
        if self._long_runs is not None:
            self._long_runs.crashed(process)
        state = self._states[process.id]
        self._roles.pop(process.id, None)
        coverage, durable, role = self.coverage, process.durable, state.role
        self._ends[process.id] = (durable.end_offset, state.log.end_offset)
        kept = durable.election
        if kept != state.election:
            if kept is None or kept.epoch < state.election.epoch:
                coverage["a new epoch was lost by a crash before its sync"] += 1
            vote = state.election.voted
            if vote is not None and (
                kept is None or (kept.epoch, kept.voted) != (state.election.epoch, vote)
            ):
                coverage["a vote was lost by a crash before its sync"] += 1
        if isinstance(role, Leader):
            if state.log.end_offset > state.high_watermark:
                coverage["a leader crashed with records that were not committed"] += 1
            if role.change is not None:
                coverage["a leader crashed with a voter change under way"] += 1
        if state.installing is not None:
            coverage["a crash interrupted the install of a snapshot"] += 1
        if isinstance(role, Follower) and role.download is not None:
            coverage["a crash interrupted the download of a snapshot"] += 1

    def durable(self, process: SimulatedNode, seq: int) -> None:
        """An install is done, and the replica has not heard of it: what does it interrupt?"""
        if self._states[process.id].installing is None or process.replica is None:
            return
        applier = process.replica.applier
        if applier.loading is not None:
            self.coverage["a snapshot was installed while another one was loaded"] += 1
        elif applier.is_reading:
            self.coverage["a snapshot was installed while the log was read to be applied"] += 1
        elif applier.has_unapplied_data:
            self.coverage["a snapshot was installed while the log was applied"] += 1

    def refused(self, process: SimulatedNode, reason: str) -> None:
        self.coverage["recovery refused a damaged disk"] += 1

    def wiped(self, process: SimulatedNode) -> None:
        self._ends.pop(process.id, None)
        self.coverage["a disk was replaced by an empty one"] += 1

    def restored(self, process: SimulatedNode) -> None:
        self._ends.pop(process.id, None)
        self.coverage["an old copy of a disk was put back"] += 1

    # -- steps --------------------------------------------------------------------------------
    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        node_id = process.id
        state = self._states[node_id]
        role = state.role
        if effects.notes:
            self._notes(node_id, effects.notes, state)
        if role is not self._roles[node_id]:
            self._role(node_id, role, effects.notes)
        if role.__class__ is Leader:
            self._leads(role, state.high_watermark)
        count_voter_updates(self.coverage, effects.sends, state)
        for answer in effects.answers:
            if answer.response.error:
                self._refused(answer, state)
        if effects.outcomes:
            for outcome in effects.outcomes:
                if isinstance(outcome, Refused):
                    self._proposal_refused(outcome)
        if effects.jobs:
            self._jobs(process, role, effects)
        if self._is_long_run and self._long_runs is not None:
            self.coverage.update(self._long_runs.stepped(process, role, happened, effects))
        if effects.is_over:
            del self._roles[node_id]

    def _proposal_refused(self, outcome: Refused) -> None:
        if outcome.in_doubt:
            self.coverage["a proposal was left in doubt"] += 1
        elif outcome.error == ErrorCode.RECORD_LIST_TOO_LARGE:
            self.coverage["a submission fitted no batch"] += 1
        elif LACKS_SUPPORT in outcome.message:
            self.coverage["an upgrade was refused that a voter cannot run"] += 1

    def _notes(self, node_id: int, notes: Sequence[str], state: RaftState) -> None:
        coverage = self.coverage
        old = self._roles[node_id]
        at: type[Role] = type(old)
        for note in notes:
            entered = ROLE_ENTERED.match(note)
            if entered is not None:
                taken = ROLES[entered[2]]
                if entered[1] is None:
                    coverage[f"role: {at.__name__} to {taken.__name__}"] += 1
                    if taken is Leader:
                        self._elected(node_id)
                at = taken
            found = STEP_NOTE.match(note)
            if found is not None:
                name = STEP_NOTE_POINTS[found.lastindex - 1 if found.lastindex else 0]
                coverage[name] += 1
                if name == "a snapshot was written" and not _is_known_snapshot(note, state):
                    coverage["a snapshot came too late to count"] += 1
                if name == "a snapshot took the place of a log":
                    self._began[node_id] = state.log.start_offset
                if name == "an uncommitted voter set was truncated" and _is_static(state):
                    coverage["an upgrade of a static quorum was truncated"] += 1
                if name == "a static quorum was upgraded" and self._pending:
                    coverage["a static quorum was upgraded under load"] += 1
            elif "offset" in note and at is Leader and not state.is_voter:
                coverage["a leader led outside its own voter set"] += 1
        if isinstance(old, Leader) and at is not Leader:
            self._deposed(old, state, notes)

    def _deposed(self, old: Leader, state: RaftState, notes: Sequence[str]) -> None:
        uncommitted = (state.controls.voters_offset or 0) >= state.high_watermark
        if isinstance(state.role, Resigned) and uncommitted:
            self.coverage["a leader resigned with an uncommitted voter set"] += 1
        if old.change is not None and any(NOBODY_FETCHES in note for note in notes):
            self.coverage["a leader resigned by check quorum with a change pending"] += 1

    def _elected(self, node_id: int) -> None:
        for other, role in self._roles.items():
            if other != node_id and isinstance(role, Leader):
                self.coverage["two replicas led at once, in two epochs"] += 1

    def _role(self, node_id: int, role: Role, notes: Sequence[str]) -> None:
        """The role is another object; what led to it is in the notes, but for a vote given."""
        old = self._roles[node_id]
        self._roles[node_id] = role
        if (
            isinstance(role, Prospective)
            and isinstance(old, Prospective)
            and not any(ROLE_ENTERED.match(note) for note in notes)
        ):
            self.coverage["role: Prospective to Prospective"] += 1
        if isinstance(role, Candidate) and not self._states[node_id].is_voter:
            self.coverage["a replica ran that is not in its newest voter set"] += 1

    def _leads(self, role: Leader, high_watermark: int) -> None:
        """Only leaders move what is committed; Raft's figure 8 is where they must not."""
        if high_watermark > self._committed:
            self._committed = high_watermark
        if role.high_watermark < 0 and role.progress.majority_end() > self._committed:
            self.coverage["an entry of an older epoch on a majority was not counted"] += 1

    def _refused(self, answer: Answer, state: RaftState) -> None:
        response = answer.response
        name = REFUSALS.get(response.error)
        if name is not None:
            self.coverage[name] += 1
        role = state.role
        if response.error != ErrorCode.REQUEST_TIMED_OUT or not isinstance(role, Leader):
            return
        if isinstance(response, AddVoterResponse | RemoveVoterResponse):
            if CHANGE_NOT_COMMITTED in (response.message or ""):
                self.coverage["a voter change was refused while another one was not committed"] += 1
        elif isinstance(response, UpdateVoterResponse) and role.change is None:
            offset = state.controls.voters_offset
            if offset is not None and offset >= role.high_watermark >= 0:
                self.coverage[
                    "an update of a voter was refused while a change was not committed"
                ] += 1

    def _jobs(self, process: SimulatedNode, role: Role, effects: Effects) -> None:
        coverage, replica = self.coverage, process.replica
        assert replica is not None
        began, begins = self._began[process.id], replica.tail.start_offset
        for job in effects.jobs:
            if isinstance(job, Write):
                for write in job.writes:
                    if isinstance(write, AppendBatches):
                        if len(write.batches) > 1:
                            coverage["several batches were written under one sync"] += 1
                        if begins > began:
                            coverage["the tail in a node's memory was trimmed"] += 1
            elif (
                isinstance(job, ReadLog)
                and isinstance(role, Leader)
                and job.token in replica.reads.given
                and began <= job.offset < begins
            ):
                coverage["a leader read from its disk what its tail had dropped"] += 1

    # -- the world ----------------------------------------------------------------------------
    def invoked(self, op: ClientOp) -> None:
        self._pending.add(op.client)

    def answered(self, op: ClientOp) -> None:
        self._pending.discard(op.client)
        if op.outcome == "unknown":
            self.coverage["a client never learned what became of its operation"] += 1
        elif op.outcome == "refused":
            self.coverage["a client was refused for good and went on"] += 1
        elif op.attempts > 1:
            self.coverage["an operation was sent again and done once"] += 1

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        if kind == "interrupted":
            self.coverage[f"interrupted: {details[1]}"] += 1
            return
        self.coverage[f"fault: {kind}"] += 1
        if kind == "err":
            self.coverage[f"mistake: {INVALID_REQUESTS[details[1]]}"] += 1  # type: ignore[call-overload]

    def finished(self, world: ObservableWorld) -> None:
        self.coverage["everything healed"] += 1
        if self._long_runs is not None:
            self.coverage.update(self._long_runs.finished())


def _is_static(state: RaftState) -> bool:
    """Whether the configured voters are in force: only an upgrade writes a voter set to such a log."""
    return state.controls.state.kraft_version == 0 and len(state.config.static_voters) > 0


def _is_known_snapshot(note: str, state: RaftState) -> bool:
    """Does the core know the snapshot of the note `Wrote snapshot OFFSET-EPOCH`?"""
    offset, _, epoch = note.split()[2].partition("-")
    return OffsetAndEpoch(int(offset), int(epoch)) in state.log.snapshots
