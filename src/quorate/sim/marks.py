"""Was it hard enough? What the seeds of a campaign have met, seen from outside.

Five kinds of marks, each a counter: `fault: ...` for every kind of fault, `interrupted: ...` for
every operation of a disk that was left in its middle, `mistake: ...` for every kind of request that
an operator gets wrong, `role: ...` for every legal move between roles, and sentences for situations
that are worth meeting. A campaign that leaves one of `ALL_MARKS` cold has not tested what it seems
to.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import OffsetAndEpoch
from quorate.node.jobs import AppendBatches, ReadLog, Write
from quorate.raft.messages import AddVoterResponse, RemoveVoterResponse, UpdateVoterResponse
from quorate.raft.ready import Refused
from quorate.raft.roles import (
    LEGAL_MOVES,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorate.sim.checks.duties import NOBODY_FETCHES
from quorate.sim.hours import HOUR_MS, Hours
from quorate.sim.hours import MARKS as HOURS
from quorate.sim.news import MARKS as NEWS
from quorate.sim.news import count_news
from quorate.sim.observe import ClientOp, Observer
from quorate.sim.operations import INTERRUPTED
from quorate.sim.plan import DEEDS, MISTAKES

if TYPE_CHECKING:
    from quorate.node.replica import Answer, Effects, Input
    from quorate.raft.state import State
    from quorate.sim.process import Process
    from quorate.sim.world import World
    from quorate.storage.api import Recovered

_CHANCE: Final = (
    "lost",
    "duplicated",
    "held",
    "reordered",
    "held by a partition",
    "disk failed by chance",
    "power cut in recovery",
    "spoiled",
    "reset by chance",
    "corrupted",
    "short write",
    "an install outlasts the fetch timeout",
    "cleaned while it installs",
    "stranded observer wiped",
)
_ROLES: Final[Mapping[str, type[Role]]] = {
    "unattached": Unattached,
    "prospective": Prospective,
    "candidate": Candidate,
    "follower": Follower,
    "observer": Follower,
    "leader": Leader,
    "resigned": Resigned,
}
_NOTED: Final[Mapping[str, str]] = {
    r"truncated to": "a follower truncated",
    r"voters .* again$": "an uncommitted voter set was truncated",
    r".*resigned \(no fetch": "a leader resigned by check quorum",
    r".*resigned \(removed": "a leader removed itself",
    r".*resigned \(shutdown": "a leader was shut down",
    r".*resigned \(state machine": "a state machine gave up leading",
    r".*\(no leader followed\)": "nobody followed a leader that resigned",
    r".*\(connection to the leader lost\)": "a voter ran because the leader's connection broke",
    r".*\(the leader ended its epoch\)": "a voter ran because the leader said goodbye",
    r".*\(fetch timeout\)": "a follower ran after a silent leader",
    r".*\(election timeout\)": "a voter ran that knew no leader",
    r".*\(election timed out\)": "an election timed out",
    r".*\(pre-vote lost\)": "a pre-vote was lost",
    r".*\(pre-vote timed out\)": "a pre-vote timed out",
    r".*\(.* knows no pre-vote\)": "a peer knew no pre-votes",
    r".*: election lost": "an election was lost",
    r".*pre-vote of .* refused": "a pre-vote was refused",
    r".*: vote of .* refused": "a vote was refused",
    r".*: vote of .* granted": "a vote was granted",
    r".*\(its disk has not moved": "a leader resigned because its disk hung",
    r"leader .* ends epoch": "a follower heard its leader's goodbye",
    r"voter change timed out": "a voter change timed out",
    r"add voter .* asks": "a voter-to-be was asked for its versions",
    r"auto join: joins": "an observer joined by itself",
    r"auto join: [A-Z]": "an observer was not let in at once",
    r"kraft.version 1 at": "a static quorum was upgraded",
    r"voter .* reported itself": "a static voter told its leader its directory",
    r"the configured static voters are ignored": "static voters were ignored",
    r"the voter set holds node": "a replica found its place taken by its old disk",
    r".* has another directory id": "a message for another directory was refused",
    r"fetches snapshot": "a snapshot was fetched",
    r"leader .* no longer has": "a snapshot was fetched while the source cleaned it",
    r"log starts at snapshot": "a snapshot took the place of a log",
    r"log starts at \d+, older": "a log was cleaned",
    r"nothing to clean": "there was nothing to clean",
    r"Wrote snapshot": "a snapshot was written",
    r".*an older copy of its directory was restored": "a voter acknowledged less than before",
    r".*fetches at \d+, having": "a replica acknowledged less than before",
    r"storage failed": "a replica lost its disk while it ran",
    r"resignation of epoch": "a resignation came too late",
    r"connection to leader": "a follower lost the connection to its leader",
    r"stopped$": "a replica stopped in good order",
}
"""What a note begins with (a pattern) -> the mark."""
_STEP_NOTE: Final = re.compile("|".join(f"({pattern})" for pattern in _NOTED))
_NAMES: Final = tuple(_NOTED.values())
_ENTERS: Final = re.compile(rf"epoch \d+: (starts as )?({'|'.join(_ROLES)})\b")
_RECOVERED: Final[Mapping[str, str]] = {
    "cut a torn tail": "a torn tail was cut at recovery",
    "dropped the log, it goes on behind": "recovery finished the install of a snapshot",
    ": removed, no longer of use": "recovery removed a file that was half made",
    "written anew from the log": "recovery rebuilt a damaged index",
}
LACKS_SUPPORT: Final = "not all of the voters support it"
"""In the refusal of an upgrade."""
_UNCOMMITTED: Final = "waiting for voters to commit the latest voter change"
_REFUSALS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.FENCED_LEADER_EPOCH: "a message of an older epoch came in a later one",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "a message of a later epoch came to an older leader",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "a replica that did not lead was asked for the log",
    ErrorCode.INVALID_VOTER_KEY: "a message was meant for an older disk of its receiver",
    ErrorCode.REQUEST_TIMED_OUT: "a voter change had to wait for another one",
    ErrorCode.DUPLICATE_VOTER: "a voter was added that was one already",
    ErrorCode.VOTER_NOT_FOUND: "a voter was removed that was none",
    ErrorCode.SNAPSHOT_NOT_FOUND: "a snapshot was asked for that was gone",
    ErrorCode.BROKER_NOT_AVAILABLE: "a replica was asked while it was stopping",
    ErrorCode.UNSUPPORTED_VERSION: "a voter change was asked for at kraft.version 0",
    ErrorCode.INVALID_REQUEST: "a voter change was asked for that cannot be",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "another cluster was meant",
}
_SEEN: Final = (
    "a snapshot came too late to count",
    "a leader resigned by check quorum with a change pending",
    "a leader resigned with an uncommitted voter set",
    "an entry of an older epoch on a majority was not counted",
    "two replicas led at once, in two epochs",
    "a leader led outside its own voter set",
    "a replica ran that is not in its newest voter set",
    "a proposal was left in doubt",
    "an upgrade was refused that a voter cannot run",
    "several batches were written under one sync",
    "a snapshot was installed while another one was loaded",
    "a snapshot was installed while the log was read to be applied",
    "a snapshot was installed while the log was applied",
    "a voter change was refused while another one was not committed",
    "an update of a voter was refused while a change was not committed",
    "the tail in a node's memory was trimmed",
    "a leader read from its disk what its tail had dropped",
    "a static quorum was upgraded under load",
    "an upgrade of a static quorum was truncated",
    "a vote was lost by a crash before its sync",
    "a new epoch was lost by a crash before its sync",
    "an unsynced tail was lost in a crash",
    "an unsynced tail survived a crash",
    "a leader crashed with records that were not committed",
    "a leader crashed with a voter change under way",
    "a crash interrupted the install of a snapshot",
    "a crash interrupted the download of a snapshot",
    "a replica began with a snapshot",
    "a leader began anew and resigned",
    "a voter that had voted for itself began anew as candidate",
    "recovery refused a damaged disk",
    "a disk was replaced by an empty one",
    "an old copy of a disk was put back",
    "an operation was sent again and done once",
    "a client never learned what became of its operation",
    "a client was refused for good and went on",
    "a submission fitted no batch",
    "everything healed",
    *HOURS,
    *NEWS,
)

ALL_MARKS: Final[tuple[str, ...]] = (
    *(f"fault: {kind}" for kind in (*DEEDS, *_CHANCE)),
    *(f"interrupted: {operation}" for operation in INTERRUPTED),
    *(f"mistake: {mistake}" for mistake in MISTAKES),
    *(f"role: {a.__name__} to {b.__name__}" for a, b in LEGAL_MOVES),
    *dict.fromkeys(_NAMES),
    *_RECOVERED.values(),
    *_REFUSALS.values(),
    *_SEEN,
)
"""Every mark that a campaign has to leave warm."""


def cold(marks: Mapping[str, int]) -> list[str]:
    """The marks that these counters, summed over all seeds of a campaign, have not met."""
    return [name for name in ALL_MARKS if not marks.get(name)]


class Marks(Observer):
    """Counts for one world; add the counters of many."""

    def __init__(self) -> None:
        self.marks: Counter[str] = Counter()
        self._states: dict[int, State] = {}
        self._roles: dict[int, Role] = {}
        self._ends: dict[int, tuple[int, int]] = {}
        """By node, when it crashed: log end durable and in memory."""
        self._began: dict[int, int] = {}
        """By node, the offset from which on its tail has held the log in this life."""
        self._committed = 0
        """The highest high watermark of all."""
        self._hours = Hours()
        self._is_patient = False
        self._pending: set[int] = set()
        """Clients with an operation under way."""

    # -- lives --------------------------------------------------------------------------------
    def began(self, world: World) -> None:
        self._is_patient = world.plan.duration_ms >= HOUR_MS

    def started(self, process: Process, recovered: Recovered) -> None:
        marks = self.marks
        marks.update(self._hours.started(process))
        state = process.core._state
        self._states[process.id] = state
        self._roles[process.id] = state.role
        for note in recovered.notes:
            for words, name in _RECOVERED.items():
                if words in note:
                    marks[name] += 1
        log = recovered.log
        self._began[process.id] = log.end_offset
        if log.snapshots and log.snapshots[-1].offset > 0:
            marks["a replica began with a snapshot"] += 1
        durable, end = self._ends.pop(process.id, (0, 0))
        if end > durable:
            survived = log.end_offset > durable
            marks[
                f"an unsynced tail {'survived a crash' if survived else 'was lost in a crash'}"
            ] += 1
        election = recovered.election
        if election is not None:
            if election.leader_id == process.id:
                marks["a leader began anew and resigned"] += 1
            elif election.voted is not None and election.voted.id == process.id:
                marks["a voter that had voted for itself began anew as candidate"] += 1

    def crashed(self, process: Process) -> None:
        """The core's memory is still here to be looked at."""
        self._hours.crashed(process)
        state = self._states[process.id]
        self._roles.pop(process.id, None)
        marks, durable, role = self.marks, process.durable, state.role
        self._ends[process.id] = (durable.end_offset, state.log.end_offset)
        kept = durable.election
        if kept != state.election:
            if kept is None or kept.epoch < state.election.epoch:
                marks["a new epoch was lost by a crash before its sync"] += 1
            vote = state.election.voted
            if vote is not None and (
                kept is None or (kept.epoch, kept.voted) != (state.election.epoch, vote)
            ):
                marks["a vote was lost by a crash before its sync"] += 1
        if isinstance(role, Leader):
            if state.log.end_offset > state.high_watermark:
                marks["a leader crashed with records that were not committed"] += 1
            if role.change is not None:
                marks["a leader crashed with a voter change under way"] += 1
        if state.installing is not None:
            marks["a crash interrupted the install of a snapshot"] += 1
        if isinstance(role, Follower) and role.download is not None:
            marks["a crash interrupted the download of a snapshot"] += 1

    def durable(self, process: Process, seq: int) -> None:
        """An install is done, and the replica has not heard of it: what does it interrupt?"""
        if self._states[process.id].installing is None or process.replica is None:
            return
        applier = process.replica._applier
        if applier.loading is not None:
            self.marks["a snapshot was installed while another one was loaded"] += 1
        elif applier._reading:
            self.marks["a snapshot was installed while the log was read to be applied"] += 1
        elif applier._data:
            self.marks["a snapshot was installed while the log was applied"] += 1

    def refused(self, process: Process, reason: str) -> None:
        self.marks["recovery refused a damaged disk"] += 1

    def wiped(self, process: Process) -> None:
        self._ends.pop(process.id, None)
        self.marks["a disk was replaced by an empty one"] += 1

    def restored(self, process: Process) -> None:
        self._ends.pop(process.id, None)
        self.marks["an old copy of a disk was put back"] += 1

    # -- steps --------------------------------------------------------------------------------
    def stepped(self, process: Process, happened: Sequence[Input], effects: Effects) -> None:
        node_id = process.id
        state = self._states[node_id]
        role = state.role
        if effects.notes:
            self._notes(node_id, effects.notes, state)
        if role is not self._roles[node_id]:
            self._role(node_id, role, effects.notes)
        if role.__class__ is Leader:
            self._leads(role, state.high_watermark)
        count_news(self.marks, effects.sends, state)
        for answer in effects.answers:
            if answer.response.error:
                self._refused(answer, state)
        if effects.outcomes:
            for outcome in effects.outcomes:
                if isinstance(outcome, Refused):
                    self._proposal_refused(outcome)
        if effects.jobs:
            self._jobs(process, role, effects)
        if self._is_patient:
            self.marks.update(self._hours.stepped(process, role, happened, effects))
        if effects.is_over:
            del self._roles[node_id]

    def _proposal_refused(self, outcome: Refused) -> None:
        if outcome.in_doubt:
            self.marks["a proposal was left in doubt"] += 1
        elif outcome.error == ErrorCode.RECORD_LIST_TOO_LARGE:
            self.marks["a submission fitted no batch"] += 1
        elif LACKS_SUPPORT in outcome.message:
            self.marks["an upgrade was refused that a voter cannot run"] += 1

    def _notes(self, node_id: int, notes: Sequence[str], state: State) -> None:
        marks = self.marks
        old = self._roles[node_id]
        at: type[Role] = type(old)
        for note in notes:
            entered = _ENTERS.match(note)
            if entered is not None:
                taken = _ROLES[entered[2]]
                if entered[1] is None:
                    marks[f"role: {at.__name__} to {taken.__name__}"] += 1
                    if taken is Leader:
                        self._elected(node_id)
                at = taken
            found = _STEP_NOTE.match(note)
            if found is not None:
                name = _NAMES[found.lastindex - 1 if found.lastindex else 0]
                marks[name] += 1
                if name == "a snapshot was written" and not _is_told(note, state):
                    marks["a snapshot came too late to count"] += 1
                if name == "a snapshot took the place of a log":
                    self._began[node_id] = state.log.start_offset
                if name == "an uncommitted voter set was truncated" and _is_static(state):
                    marks["an upgrade of a static quorum was truncated"] += 1
                if name == "a static quorum was upgraded" and self._pending:
                    marks["a static quorum was upgraded under load"] += 1
            elif "offset" in note and at is Leader and not state.is_voter:
                marks["a leader led outside its own voter set"] += 1
        if isinstance(old, Leader) and at is not Leader:
            self._deposed(old, state, notes)

    def _deposed(self, old: Leader, state: State, notes: Sequence[str]) -> None:
        uncommitted = (state.controls.voters_offset or 0) >= state.high_watermark
        if isinstance(state.role, Resigned) and uncommitted:
            self.marks["a leader resigned with an uncommitted voter set"] += 1
        if old.change is not None and any(NOBODY_FETCHES in note for note in notes):
            self.marks["a leader resigned by check quorum with a change pending"] += 1

    def _elected(self, node_id: int) -> None:
        for other, role in self._roles.items():
            if other != node_id and isinstance(role, Leader):
                self.marks["two replicas led at once, in two epochs"] += 1

    def _role(self, node_id: int, role: Role, notes: Sequence[str]) -> None:
        """The role is another object; what led to it is in the notes, but for a vote given."""
        old = self._roles[node_id]
        self._roles[node_id] = role
        if (
            isinstance(role, Prospective)
            and isinstance(old, Prospective)
            and not any(_ENTERS.match(note) for note in notes)
        ):
            self.marks["role: Prospective to Prospective"] += 1
        if isinstance(role, Candidate) and not self._states[node_id].is_voter:
            self.marks["a replica ran that is not in its newest voter set"] += 1

    def _leads(self, role: Leader, high_watermark: int) -> None:
        """Only leaders move what is committed; Raft's figure 8 is where they must not."""
        if high_watermark > self._committed:
            self._committed = high_watermark
        if role.high_watermark < 0 and role.progress.majority_end() > self._committed:
            self.marks["an entry of an older epoch on a majority was not counted"] += 1

    def _refused(self, answer: Answer, state: State) -> None:
        response = answer.response
        name = _REFUSALS.get(response.error)
        if name is not None:
            self.marks[name] += 1
        role = state.role
        if response.error != ErrorCode.REQUEST_TIMED_OUT or not isinstance(role, Leader):
            return
        if isinstance(response, AddVoterResponse | RemoveVoterResponse):
            if _UNCOMMITTED in (response.message or ""):
                self.marks["a voter change was refused while another one was not committed"] += 1
        elif isinstance(response, UpdateVoterResponse) and role.change is None:
            offset = state.controls.voters_offset
            if offset is not None and offset >= role.high_watermark >= 0:
                self.marks["an update of a voter was refused while a change was not committed"] += 1

    def _jobs(self, process: Process, role: Role, effects: Effects) -> None:
        marks, replica = self.marks, process.replica
        assert replica is not None
        began, begins = self._began[process.id], replica._tail.start_offset
        for job in effects.jobs:
            if isinstance(job, Write):
                for write in job.writes:
                    if isinstance(write, AppendBatches):
                        if len(write.batches) > 1:
                            marks["several batches were written under one sync"] += 1
                        if begins > began:
                            marks["the tail in a node's memory was trimmed"] += 1
            elif (
                isinstance(job, ReadLog)
                and isinstance(role, Leader)
                and job.token in replica._reads.given
                and began <= job.offset < begins
            ):
                marks["a leader read from its disk what its tail had dropped"] += 1

    # -- the world ----------------------------------------------------------------------------
    def invoked(self, op: ClientOp) -> None:
        self._pending.add(op.client)

    def answered(self, op: ClientOp) -> None:
        self._pending.discard(op.client)
        if op.outcome == "unknown":
            self.marks["a client never learned what became of its operation"] += 1
        elif op.outcome == "refused":
            self.marks["a client was refused for good and went on"] += 1
        elif op.attempts > 1:
            self.marks["an operation was sent again and done once"] += 1

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        if kind == "interrupted":
            self.marks[f"interrupted: {details[1]}"] += 1
            return
        self.marks[f"fault: {kind}"] += 1
        if kind == "err":
            self.marks[f"mistake: {MISTAKES[details[1]]}"] += 1  # type: ignore[call-overload]

    def finished(self, world: World) -> None:
        self.marks["everything healed"] += 1
        self.marks.update(self._hours.finished(world))


def _is_static(state: State) -> bool:
    """Do the configured voters rule? Then no log has had a voter set but by an upgrade."""
    return state.controls.state.kraft_version == 0 and len(state.config.static_voters) > 0


def _is_told(note: str, state: State) -> bool:
    """Does the core know the snapshot of the note `Wrote snapshot OFFSET-EPOCH`?"""
    offset, _, epoch = note.split()[2].partition("-")
    return OffsetAndEpoch(int(offset), int(epoch)) in state.log.snapshots
