"""The observer that holds all checks; a step in which little happened costs it little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.node.jobs import (
    Installed,
    InstallRefused,
    SnapshotFailed,
    SnapshotWritten,
    Surveyed,
    WriteSnapshot,
)
from quorate.node.replica import Submit
from quorate.raft.inputs import Received, UpgradeKRaftVersion
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.roles import NEVER, Follower, Leader, Resigned
from quorate.sim.checks.changes import Changes
from quorate.sim.checks.clients import Clients
from quorate.sim.checks.commits import Commits
from quorate.sim.checks.described import Described
from quorate.sim.checks.duties import Duties
from quorate.sim.checks.elections import (
    Elections,
    check_installed,
    check_may_run,
    check_rests,
    check_runs,
)
from quorate.sim.checks.endpoints import Endpoints
from quorate.sim.checks.falls import Falls
from quorate.sim.checks.fetches import Fetches
from quorate.sim.checks.goodbyes import Goodbyes, check_taught
from quorate.sim.checks.history import History
from quorate.sim.checks.joins import Joins
from quorate.sim.checks.leftovers import Leftovers
from quorate.sim.checks.machines import Machines, check_led, check_times
from quorate.sim.checks.majorities import Majorities
from quorate.sim.checks.places import check_borders, check_places
from quorate.sim.checks.promises import ANSWERS, CHECK, REQUESTS, check_fetch_answer
from quorate.sim.checks.rests import Rests
from quorate.sim.checks.retention import Retention, check_age
from quorate.sim.checks.stalls import Stalls
from quorate.sim.checks.strangers import Strangers, is_stranger
from quorate.sim.checks.submits import Submits
from quorate.sim.checks.timers import check_done, check_patience, check_wakes
from quorate.sim.checks.twin import UNKNOWN, Twin
from quorate.sim.checks.upgrades import Upgrades
from quorate.sim.checks.voters import check_changes, names
from quorate.sim.checks.words import control_words, message_words, vote_words, voter_changes
from quorate.sim.observe import ClientOp, Observer, Violation

if TYPE_CHECKING:
    from quorate.node.replica import Answer, Effects, Input
    from quorate.raft.messages import Request
    from quorate.raft.state import State
    from quorate.raft.values import Voter
    from quorate.sim.process import Process
    from quorate.sim.world import World
    from quorate.storage.api import Recovered

_ANY_EPOCH: Final = 1 << 31
AGAIN: Final = 32
"""One step in so many is looked at twice: it is the dearest check of all."""
_Asked = VoteRequest | BeginQuorumEpochRequest | AddVoterRequest | RemoveVoterRequest
_ASKED: Final = frozenset(
    (VoteRequest, BeginQuorumEpochRequest, AddVoterRequest, RemoveVoterRequest)
)
_HEARD: Final = frozenset((FetchRequest, FetchSnapshotRequest, UpdateVoterRequest))
_CHANGES: Final = frozenset((AddVoterRequest, RemoveVoterRequest, UpdateVoterRequest))


class Checks(Observer):
    """All checks of a world; raises Violation at the event at which a promise is broken."""

    def __init__(self) -> None:
        self.history = History()
        self.twins: dict[int, Twin] = {}
        self.commits = Commits(self.history, self.twins)
        self.elections = Elections(self.history)
        self.duties = Duties()
        self.described = Described()
        self.machines = Machines(self.history)
        self.clients = Clients(self.history)
        self.submits = Submits(self.history)
        self.changes = Changes()
        self.upgrades = Upgrades(self.changes)
        self.goodbyes = Goodbyes()
        self.endpoints = Endpoints()
        self.majorities = Majorities()
        self.rests = Rests()
        self.falls = Falls()
        self.fetches = Fetches()
        self.joins = Joins()
        self.leftovers = Leftovers()
        self.retention = Retention()
        self.strangers = Strangers()
        self._steps = 0
        self.stalls = Stalls()
        self._states: dict[int, State] = {}
        """What each running core has in memory: read, never written."""
        self._asked: dict[tuple[int, int], _Asked] = {}
        """By node and reply_to: requests whose answer is checked against them."""
        self._sheltered: set[tuple[int, int]] = set()
        """Of these, pre-votes asked of a replica that led or heard a leader before it was asked."""
        self._fenced: set[tuple[int, int]] = set()
        """By node and reply_to: requests of an epoch that was over when they came, or, of what only
        a leader is asked, of one that the asked has not heard of."""
        self._disks = 0

    # -- lives --------------------------------------------------------------------------------
    def started(self, process: Process, recovered: Recovered) -> None:
        twin = self.twins.get(process.id)
        if twin is None or twin.key.directory_id != process.directory_id:
            if twin is not None:
                self.commits.lost.append(twin)
            twin = self.twins[process.id] = Twin(process, self.history, 1 << self._disks)
            self._disks += 1
        self.commits.forget_masks()
        core = process.core
        self._states[process.id] = core._state
        log = recovered.log
        first = log.snapshot_control if log.snapshots and log.snapshots[-1].offset == 0 else None
        before = twin.own_voters
        twin.own_voters = (first and first.voters) or core._state.controls.static_voters.voters
        twin.own_version = 0 if first is None else first.kraft_version
        twin.start(process, recovered)
        self.elections.recovered(twin, twin.own_voters or before)
        self.submits.began(twin)
        self.upgrades.began(twin)
        self.changes.began(twin, core._state.config)
        self.goodbyes.began(twin)
        self.endpoints.began(twin)
        self.rests.began(twin)
        self.falls.began(twin)
        self.strangers.began(twin)
        self.stalls.began(twin)
        self.retention.began(twin, process.replica)
        self.fetches.began(twin, core._state)
        self.leftovers.began(twin, process.storage.disk)

    def restored(self, process: Process) -> None:
        """An old copy may have less, and the world sees to it that nobody misses it."""
        twin = self.twins[process.id]
        twin.restored = True
        twin.forgotten = max(twin.forgotten, twin.vote.epoch)

    def durable(self, process: Process, seq: int) -> None:
        twin = self.twins[process.id]
        saved = twin.persisted(seq)
        if saved:
            self.elections.saved(twin, saved)

    # -- steps --------------------------------------------------------------------------------
    def stepped(self, process: Process, happened: Sequence[Input], effects: Effects) -> None:
        node_id = process.id
        twin = self.twins[node_id]
        state = self._states[node_id]
        alone = len(happened) == 1
        for item in happened:
            if isinstance(
                item, Received | Installed | InstallRefused | Submit | UpgradeKRaftVersion
            ):
                self._look_at(twin, item, effects, state, alone)
            if isinstance(
                item, Surveyed | Installed | InstallRefused | SnapshotWritten | SnapshotFailed
            ):
                self._told_by_its_disk(twin, process, item, effects if alone else None)
        before = twin.tip
        if effects.jobs:
            twin.submit(effects.jobs)
        if state.election is not twin.election:
            if alone:  # after several it may have followed, and lost, a leader since
                self.duties.voted(twin, state)
            self.elections.changed(twin, state.election, happened)
        if state.high_watermark != twin.high_watermark:
            self.commits.moved(twin, state.high_watermark, before.voters or twin.own_voters)
        if twin.tip is not before and (
            twin.tip.voters is not before.voters or twin.tip.kraft_version != before.kraft_version
        ):
            self._voters_changed(twin, state)
        check_may_run(twin, effects, state)
        if effects.sends or effects.answers:
            self._messages(twin, effects, state)
        if process.machine.trail or effects.jobs or effects.outcomes:
            self._results(twin, process, effects, state)
        self.stalls.look(twin, happened, effects, state)
        check_installed(twin, happened, effects, state)
        self._role(twin, happened, effects, state)
        self.strangers.look(twin, effects, state)
        self.goodbyes.look(twin, happened, effects, state)
        self.endpoints.look(twin, happened, effects, state)
        self.rests.look(twin, happened, effects, state)
        self.joins.look(twin, happened, effects, state)
        self.leftovers.look(twin, effects, state)
        self.changes.look(twin, effects, state)
        self._replica(twin, process, effects, state)
        check_wakes(twin, effects, state)
        self._steps += 1
        if self._steps % AGAIN == 0:
            check_done(twin, process, effects, state)
            check_patience(twin, state)

    def _told_by_its_disk(
        self,
        twin: Twin,
        process: Process,
        item: Surveyed | Installed | InstallRefused | SnapshotWritten | SnapshotFailed,
        effects: Effects | None,
    ) -> None:
        """`effects`: of a step in which nothing else happened."""
        if not isinstance(item, Surveyed):
            self.leftovers.count(twin, process.storage.disk)
            twin.log_start = UNKNOWN
        if not isinstance(item, InstallRefused):
            self.retention.happened(twin, item)
        if isinstance(item, Surveyed) and effects is not None and not effects.is_over:
            self.retention.judge(twin, item, effects, process)

    def _role(self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
        role = state.role
        if isinstance(role, Leader):
            if not effects.stopped:
                self.falls.look(twin, happened, effects, state)
                self.duties.leads(twin, state)
                self.majorities.look(twin, role)
                self.described.look(twin, role, state)
            twin.hears_until, twin.led = NEVER, True
            return
        if twin.led and isinstance(role, Resigned):
            self.duties.resigned(twin, happened, effects, state)
        self.falls.ended(twin, effects, state)
        self.duties.follows(twin, state)
        check_rests(twin, role)
        check_runs(twin, state)
        twin.hears_until = 0
        if isinstance(role, Follower) and role.has_fetched:
            twin.hears_until = role.fetch_deadline
        twin.led = False

    def _replica(self, twin: Twin, process: Process, effects: Effects, state: State) -> None:
        replica = process.replica
        if replica is None:
            return
        if state.log.start_offset != twin.log_start and not effects.is_over:
            is_empty = twin.tip.end == state.log.start_offset
            twin.log_start = UNKNOWN if is_empty else state.log.start_offset
            check_places(twin, state.log)
        if twin.appended and not effects.is_over:
            check_borders(twin, state.log)
        trail = process.machine.trail
        self.retention.look(twin, effects, replica, state.now)
        self.retention.counts(twin, effects, replica._applier, trail, self.history)
        self.fetches.look(twin, effects, replica, state)
        self.submits.look(twin, effects, replica, state.now)
        leading = replica.leading_epoch
        if leading is None and not effects.is_over:
            check_led(twin, process.machine.led)
        if leading != twin.leading or (leading is not None and not isinstance(state.role, Leader)):
            self.machines.leads(twin, leading, replica.applied.offset, state.role)

    def _look_at(
        self, twin: Twin, item: Input, effects: Effects, state: State, alone: bool
    ) -> None:
        """What must be known of the messages that the step took."""
        if isinstance(item, Received):
            self._received(twin, item, effects, state, alone)
        elif isinstance(item, Installed):
            twin.installed(item.snapshot_id)
        elif isinstance(item, Submit):
            self.submits.asked(twin, item, state.now)
        elif isinstance(item, UpgradeKRaftVersion):
            self.upgrades.asked(twin, item, state)
        else:
            twin.installing = None

    def _received(
        self, twin: Twin, item: Received, effects: Effects, state: State, alone: bool
    ) -> None:
        request = item.request
        if is_stranger(request, state.config.cluster_id):
            self.strangers.asked(twin, item.reply_to, request)
            return
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            self.fetches.asked(twin, item.reply_to, request, state.now)
        epoch, is_heard = _epoch_of(request), type(request) in _HEARD
        if epoch < twin.election.epoch or (is_heard and epoch > state.election.epoch):
            self._fenced.add((twin.id, item.reply_to))
            if is_heard:
                return
        if type(request) in _CHANGES:
            self.changes.asked(twin, item.reply_to, request, state)  # type: ignore[arg-type]
        if type(request) in _ASKED:
            self._asked[twin.id, item.reply_to] = request  # type: ignore[assignment]
            pre_vote = isinstance(request, VoteRequest) and request.pre_vote
            if pre_vote and state.now < twin.hears_until:
                self._sheltered.add((twin.id, item.reply_to))
        elif type(request) in _HEARD:
            self.duties.heard(twin, item.reply_to, request, state.now)
        elif (
            isinstance(request, EndQuorumEpochRequest)
            and not effects.is_over
            and (alone or twin.hears_until)  # else it may follow only since
        ):
            self.duties.told_goodbye(twin, request, state)

    def _results(self, twin: Twin, process: Process, effects: Effects, state: State) -> None:
        """What was applied, what of it is told to clients, and what goes into a snapshot."""
        trail = process.machine.trail
        if trail:
            self.machines.applied(twin, trail)
            self.machines.check_time(twin, process.machine.newest)
        if isinstance(state.role, Leader) and effects.jobs:
            check_times(twin, effects, process.now.wall_ms)
        if effects.outcomes:
            self.clients.told(twin, effects.outcomes)
            replica = process.replica
            assert replica is not None
            others = self.upgrades.told(twin, effects, replica.applied.offset, state)
            self.submits.told(twin, others, replica, is_over=effects.is_over)
        for job in effects.jobs:
            if isinstance(job, WriteSnapshot):
                self._snapshot(twin, job)

    def _snapshot(self, twin: Twin, job: WriteSnapshot) -> None:
        """A snapshot is of committed state, with the voters that ruled there."""
        entry = twin.committed_snapshot(job.snapshot_id)
        check_age(twin, entry, job)
        version, voters = job.control.kraft_version, job.control.voters
        expected = entry.voters
        if tuple(voters or ()) != tuple(expected or ()) or version != entry.kraft_version:
            raise Violation(
                "snapshot of what is committed",
                f"{twin}: snapshot {tuple(job.snapshot_id)} has {control_words(job.control)}; the "
                f"log has kraft.version {entry.kraft_version} and the voters "
                f"{names(expected or ())}{_difference(expected, voters)}",
            )

    def _voters_changed(self, twin: Twin, state: State) -> None:
        """The newest Voters record of the log rules, and none that was cut off."""
        newest = twin.tip.voters_entry
        if newest is not None and newest in twin.written:
            self.changes.made(twin, newest)
        twin.written.clear()
        check_changes(twin, state.now, state.config.limits.caught_up_within_ms)
        control = state.controls.state
        wanted = twin.voters
        version = twin.kraft_version
        if tuple(control.voters or ()) != wanted or control.kraft_version != version:
            raise Violation(
                "voter set",
                f"{twin}: its log up to {twin.tip} has kraft.version {version} and the voters "
                f"{names(wanted)}; in force are {control_words(control)}"
                f"{_difference(wanted, control.voters)}",
            )

    def _messages(self, twin: Twin, effects: Effects, state: State) -> None:
        for send in effects.sends:
            check = REQUESTS.get(type(send.request))
            if check is not None:
                check(twin, send.request)
        for answer in effects.answers:
            response = answer.response
            if self._fenced and (twin.id, answer.reply_to) in self._fenced:
                self._check_fence(twin, answer)
            self.duties.answered(twin, answer.reply_to, response, state)
            self.fetches.answered(twin, answer, state)
            if isinstance(response, FetchResponse):
                check_fetch_answer(twin, response)
                continue
            check = ANSWERS.get(type(response))
            if check is not None:
                check(twin, response)
            name = (twin.id, answer.reply_to)
            asked = self._asked.pop(name, None)
            if isinstance(response, VoteResponse):
                sheltered = name in self._sheltered
                self._sheltered.discard(name)
                if response.granted and isinstance(asked, VoteRequest):
                    self._granted(twin, asked, state, sheltered)
            elif isinstance(asked, BeginQuorumEpochRequest):
                check_taught(twin, asked, response, state)
            elif isinstance(response, AddVoterResponse | RemoveVoterResponse):
                assert isinstance(asked, AddVoterRequest | RemoveVoterRequest)
                self.clients.told_operator(twin, asked, response)
                self.changes.told(twin, answer.reply_to, response, state, is_over=effects.is_over)
            elif isinstance(response, UpdateVoterResponse):
                self.changes.told(twin, answer.reply_to, response, state, is_over=effects.is_over)

    def _check_fence(self, twin: Twin, answer: Answer) -> None:
        """What is asked in the name of an epoch that is over is not served (KIP-595)."""
        self._fenced.discard((twin.id, answer.reply_to))
        if answer.response.error == ErrorCode.NONE:
            raise Violation(
                "fencing",
                f"{twin} is in epoch {twin.election.epoch} and answers a request of another one: "
                f"{message_words(answer.response)}",
            )

    def _granted(self, twin: Twin, asked: VoteRequest, state: State, sheltered: bool) -> None:
        """The promise of a vote is on the disk; one who hears a leader helps nobody against it.

        `sheltered`: it led or heard one before the step that took the request, too, and not too
        long ago. Within one step it may first grant and then lead.
        """
        if asked.pre_vote:
            role = state.role
            hears = isinstance(role, Leader) or (isinstance(role, Follower) and role.has_fetched)
            if sheltered and hears:
                raise Violation(
                    "a removed voter does not disturb",
                    f"{twin} leads or hears the leader of epoch {state.epoch}, and grants a "
                    f"pre-vote to {asked.candidate}",
                )
            self.elections.granted_pre_vote(twin, asked.epoch, asked.candidate)
            return
        given = self.history.votes.get(asked.epoch, {}).get(twin.key)
        if given is None or given.id != asked.candidate.id:
            raise Violation(
                CHECK,
                f"{twin} grants its vote of epoch {asked.epoch} to {asked.candidate}, durable is "
                f"{vote_words(given)}",
            )

    # -- clients and the end ------------------------------------------------------------------
    def invoked(self, op: ClientOp) -> None:
        self.clients.ops.append(op)

    def _finish_nodes(self, world: World) -> None:
        for process in world.processes.values():
            if process.replica is not None:
                twin, state = self.twins[process.id], self._states[process.id]
                self.submits.finish(twin, state.now)
                self.upgrades.finish(twin, state.now)
                self.leftovers.count(twin, process.storage.disk)

    def finished(self, world: World) -> None:
        committed = self.history.committed
        for process in world.processes.values():
            twin = self.twins.get(process.id)
            if twin is None or process.replica is None:
                continue
            if twin.high is committed:
                if not self.commits.holds(twin.voters, committed):
                    raise Violation(
                        "durable majority", f"at the end {committed} is not held by a majority"
                    )
                if process.replica.applied.offset == committed.end:
                    self._finish_nodes(world)
                    self.clients.finish(process.machine.values, world.now_us)
                    return
        raise Violation("liveness", f"at the end nobody has applied {committed}")


def _epoch_of(request: Request) -> int:
    """The epoch in whose name it is asked; of an operator's request, any."""
    if isinstance(request, FetchRequest | VoteRequest | FetchSnapshotRequest | UpdateVoterRequest):
        return request.epoch
    if isinstance(request, BeginQuorumEpochRequest | EndQuorumEpochRequest):
        return request.leader.epoch
    return _ANY_EPOCH


def _difference(expected: Sequence[Voter] | None, found: Sequence[Voter] | None) -> str:
    told = voter_changes(expected, found)
    return f": {told}" if told else ""
