"""Voter changes against their requests (KIP-853).

Every request is answered in time and with the right error, every change in the log was requested,
and a refused request changes nothing.

The order of errors is that of AddVoterHandler, RemoveVoterHandler and UpdateVoterHandler.
Conditions that change within a step count with both values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.base.ids import Listeners, ReplicaKey
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from quorate.raft.roles import Leader
from quorate.raft.values import Voter
from quorate.sim.checks.history import LoggedBatch
from quorate.sim.checks.messages import message_words, voter_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.times import FOREVER
from quorate.sim.checks.voter_change_errors import (
    PendingVoterChange,
    VoterChangeConditions,
    VoterChangeRequest,
    is_foreign_request,
    wrong_error,
)
from quorate.sim.checks.voters import matches, names
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.raft.values import RaftConfig
    from quorate.replica.replica import Effects

VoterChangeResponse = AddVoterResponse | RemoveVoterResponse | UpdateVoterResponse
REQUESTED = "voter change was requested"
RESPONSE = "voter change response"
IN_TIME = "voter change deadline"
DONE = "committed voter change is answered at once"
UNACKED = "AddVoter without ackWhenCommitted is answered at append"
KNOWN = "voter reports are stored"
REFUSED = "refused voter change has no effect"
_OPEN = frozenset(
    {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE}
)
"""After these errors the change may have happened, or may happen later."""
_NOTHING, _ANYTHING = (1, 0), (0, 1)


class VoterChangeCheck:
    """Checks each replica's requests, records and responses about voters."""

    def __init__(self) -> None:
        self._asked: dict[int, dict[int, PendingVoterChange]] = {}
        """By node and reply_to: requests without a response, in this incarnation."""
        self._reports: dict[int, tuple[int, dict[int, UpdateVoterRequest]]] = {}
        """By node: (epoch, the voters' UpdateRaftVoter requests of that epoch by node id)."""
        self._able: dict[ReplicaKey, tuple[Listeners, tuple[int, int]]] = {}
        """By replica: its listeners and its range of kraft.versions in this incarnation."""
        self._reported: dict[int, tuple[Voter, ...]] = {}
        """By node: voters that it accepted in this step by UpdateRaftVoter."""

    def process_started(self, model: ReplicaModel, config: RaftConfig) -> None:
        self._asked[model.id] = {}
        self._reports.pop(model.id, None)
        able = (config.min_kraft_version, config.max_kraft_version)
        self._able[model.key] = (config.listeners, able)
        for waiting in self._asked.values():
            for asked in waiting.values():
                request = asked.request
                if isinstance(request, AddVoterRequest) and request.voter == model.key:
                    asked.later.append(self._range(request))

    def _range(self, request: VoterChangeRequest) -> tuple[int, int]:
        """The range that the added voter supports; nothing where it cannot be reached at those
        endpoints."""
        if isinstance(request, UpdateVoterRequest):
            return request.min_kraft_version, request.max_kraft_version
        if isinstance(request, AddVoterRequest):
            listeners, able = self._able.get(request.voter, ((), _NOTHING))
            return able if listeners == request.listeners else _NOTHING
        return _ANYTHING

    def request_received(
        self, model: ReplicaModel, reply_to: int, request: VoterChangeRequest, state: RaftState
    ) -> None:
        before = _status(model, model.was_leader, model.election.epoch)
        self._asked[model.id][reply_to] = PendingVoterChange(
            request, state.now, before, self._range(request)
        )

    def reports(self, model: ReplicaModel, epoch: int) -> Mapping[int, UpdateVoterRequest]:
        """The voters' updates of this epoch, by node id. A step may end in a later epoch than that
        in which it appended."""
        led, reports = self._reports.get(model.id, (-1, {}))
        return reports if led == epoch else {}

    # -- in the log ---------------------------------------------------------------------------
    def voters_written(self, model: ReplicaModel, entry: LoggedBatch) -> None:
        """A leader appended a voter set: a request asked for it, or it begins an epoch or the
        upgrade."""
        parent = entry.parent
        assert parent is not None and entry.voters is not None
        old = model.initial_voters if parent.voters is None else parent.voters
        if entry.kraft_version > parent.kraft_version:
            _check_ranges(model, entry)
        if parent.epoch != entry.epoch:
            _check_own(model, entry, old)
            self._check_reported(model, entry, others=False)
            return
        if parent.kraft_version < 1:
            self._check_reported(model, entry, others=True)
            return
        for asked in self._asked[model.id].values():
            if asked.made is not None or is_foreign_request(asked.request):
                continue
            if _does(asked.request, old, entry.voters):
                asked.made = entry
                _check_able(model, entry, asked)
                return
        raise ViolationError(
            REQUESTED,
            f"{model} writes {entry} with {names(entry.voters)} after {names(old)}; requested was "
            f"{[message_words(asked.request) for asked in self._asked[model.id].values()]}",
        )

    def _check_reported(self, model: ReplicaModel, entry: LoggedBatch, *, others: bool) -> None:
        """A leader appends itself with its own configuration, and in an upgrade the `others` with
        their reported values."""
        for voter in entry.voters or ():
            if voter.key == model.key:
                listeners, able = self._able[model.key]
                reported = [Voter(model.key, listeners, *able)]
            elif not others:
                continue
            else:
                reported = [
                    _voter(report) for report in self._reports_of(model, entry.epoch, voter.key.id)
                ]
            if voter not in reported:
                said = " or ".join(map(voter_words, reported)) or "nothing"
                raise ViolationError(
                    KNOWN,
                    f"{model} writes {voter_words(voter)} at {entry}; reported to it was {said}",
                )

    def _reports_of(
        self, model: ReplicaModel, epoch: int, node_id: int
    ) -> list[UpdateVoterRequest]:
        """The newest update of this voter, and those of this step."""
        requests = [asked.request for asked in self._asked[model.id].values()]
        newest = self.reports(model, epoch).get(node_id)
        found = [] if newest is None else [newest]
        found += (
            one
            for one in requests
            if isinstance(one, UpdateVoterRequest) and one.voter.id == node_id
        )
        return found

    # -- answers ------------------------------------------------------------------------------
    def answered(
        self,
        model: ReplicaModel,
        reply_to: int,
        response: VoterChangeResponse,
        state: RaftState,
        *,
        is_over: bool = False,
    ) -> None:
        """A response to a voter change. `is_over`: the replica stops with this step and no longer
        leads."""
        asked = self._asked[model.id].pop(reply_to, None)
        if asked is None:
            return
        leads = isinstance(state.role, Leader) and not is_over
        now = _status(model, leads, state.election.epoch)
        error, request = response.error, asked.request
        if asked.made is not None and error is not ErrorCode.NONE and error not in _OPEN:
            raise ViolationError(
                REFUSED,
                f"{model} answers {error.name} to {message_words(request)} and has appended it",
            )
        if error is ErrorCode.NONE:
            self._check_done(model, asked, now)
            if isinstance(request, UpdateVoterRequest):
                reports = {**self.reports(model, now.epoch), request.voter.id: request}
                self._reports[model.id] = now.epoch, reports
                if now.version < 1:
                    known = self._reported.get(model.id, ())
                    self._reported[model.id] = (*known, _voter(request))
        if is_over and error is ErrorCode.BROKER_NOT_AVAILABLE:
            return  # a replica that stops checks no conditions
        if problem := wrong_error(asked, now, error):
            raise ViolationError(
                RESPONSE, f"{model} answers {error.name} to {message_words(request)}: {problem}"
            )

    def _check_done(
        self, model: ReplicaModel, asked: PendingVoterChange, now: VoterChangeConditions
    ) -> None:
        """An acknowledged change is in the log. At kraft.version 0 the log has no voters."""
        if asked.made is not None or min(asked.before.version, now.version) < 1:
            return
        entry = model.tip.voters_entry
        while entry is not None and entry.epoch >= asked.before.epoch and entry.parent is not None:
            old = entry.parent.voters or model.initial_voters
            if _does(asked.request, old, entry.voters or ()):
                return
            entry = entry.parent.voters_entry
        raise ViolationError(
            "acknowledged voter change is in the log",
            f"{model} answers NONE to {message_words(asked.request)} and has not appended it",
        )

    def after_step(self, model: ReplicaModel, effects: Effects, state: RaftState) -> None:
        """Check a whole step: no request waits longer than its timeout, and a replica that does
        not lead has none open.

        Responses wait until a new epoch is durable.
        """
        if self._reported:
            self._check_known(model, self._reported.pop(model.id, ()), state)
        waiting = self._asked[model.id]
        if not waiting or not state.durable.election_is_durable:
            return
        if effects.is_over:
            left = message_words(next(iter(waiting.values())).request)
            raise ViolationError(IN_TIME, f"{model} stops and has not answered {left}")
        patience = state.config.request_timeout_ms if isinstance(state.role, Leader) else -1
        wakes = FOREVER if effects.wake_at_ms is None else effects.wake_at_ms
        for asked in waiting.values():
            if asked.made is not None and asked.made.end <= model.committed_tip.end:
                raise ViolationError(
                    DONE,
                    f"{model} has not answered {message_words(asked.request)} and knows that "
                    f"{asked.made} is committed",
                )
            if asked.made is not None and _is_unacked(asked.request):
                raise ViolationError(
                    UNACKED,
                    f"{model} has not answered {message_words(asked.request)} and has appended "
                    f"{asked.made}",
                )
            waited = state.now - asked.at_ms
            if waited > patience or wakes > asked.at_ms + patience:
                raise ViolationError(
                    IN_TIME,
                    f"{model} received {message_words(asked.request)} {waited} ms ago and has not "
                    f"answered; it sleeps for {wakes - state.now} ms",
                )

    def _check_known(
        self, model: ReplicaModel, reported: tuple[Voter, ...], state: RaftState
    ) -> None:
        """Check that the leader stores reported voters at kraft.version 0. The last of several
        reports counts."""
        role = state.role
        known = role.volatile_voters if isinstance(role, Leader) else None
        if known is None:
            return
        for voter in {voter.key.id: voter for voter in reported}.values():
            found = known.get(voter.key.id)
            if found != voter:
                takes = "no voter" if found is None else voter_words(found)
                raise ViolationError(
                    KNOWN, f"{model} received {voter_words(voter)} and stores {takes}"
                )


def _is_unacked(request: VoterChangeRequest) -> bool:
    return isinstance(request, AddVoterRequest) and not request.ack_when_committed


def _voter(report: UpdateVoterRequest) -> Voter:
    """The voter that the update describes."""
    low, high = report.min_kraft_version, report.max_kraft_version
    return Voter(report.voter, report.listeners, low, high)


def _status(model: ReplicaModel, leads: bool, epoch: int) -> VoterChangeConditions:
    settled = model.committed_tip.epoch == epoch
    return VoterChangeConditions(leads, epoch, model.tip.kraft_version, model.voters, settled)


def _does(request: VoterChangeRequest, old: tuple[Voter, ...], new: tuple[Voter, ...]) -> bool:
    """Whether the request leads from the old set to the new one."""
    if isinstance(request, RemoveVoterRequest):
        return new == tuple(voter for voter in old if voter.key != request.voter)
    rest = [voter for voter in old if voter.key.id != request.voter.id]
    mine = [voter for voter in new if voter.key.id == request.voter.id]
    if len(mine) != 1 or [voter for voter in new if voter is not mine[0]] != rest:
        return False
    if mine[0].key != request.voter or mine[0].listeners != request.listeners:
        return False
    if isinstance(request, AddVoterRequest):
        return len(new) == len(old) + 1
    ranges = (mine[0].min_kraft_version, mine[0].max_kraft_version)
    return ranges == (request.min_kraft_version, request.max_kraft_version)


def _check_able(model: ReplicaModel, entry: LoggedBatch, asked: PendingVoterChange) -> None:
    """The requested voter supports the kraft.version, in its record and in truth."""
    if not isinstance(asked.request, RemoveVoterRequest):
        voter = next(v for v in entry.voters or () if v.key == asked.request.voter)
        _check_range(model, entry, voter)
        found = (voter.min_kraft_version, voter.max_kraft_version)
        if _NOTHING not in asked.ables and found not in asked.ables:
            can = " or ".join(map(str, asked.ables))
            raise ViolationError(
                "voter range", f"{model} writes {entry}: {voter.key} supports {can}"
            )


def _check_ranges(model: ReplicaModel, entry: LoggedBatch) -> None:
    """An upgrade: every voter supports the new kraft.version."""
    for voter in entry.voters or ():
        _check_range(model, entry, voter)


def _check_range(model: ReplicaModel, entry: LoggedBatch, voter: Voter) -> None:
    version = entry.kraft_version
    if not voter.min_kraft_version <= version <= voter.max_kraft_version:
        raise ViolationError(
            "voter range", f"{model} writes {entry}: {voter.key} does not support {version}"
        )


def _check_own(model: ReplicaModel, entry: LoggedBatch, old: tuple[Voter, ...]) -> None:
    """The first voter set of an epoch changes no other voter."""
    if entry.parent is None or entry.parent.kraft_version < 1:
        return
    others = [voter for voter in entry.voters or () if not matches(voter.key, model.key)]
    if others != [voter for voter in old if not matches(voter.key, model.key)]:
        raise ViolationError(
            REQUESTED,
            f"{model} begins its epoch with {names(entry.voters or ())} after {names(old)}",
        )
