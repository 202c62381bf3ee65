"""Voter changes, held against who asked for them: every request is answered in time and with the
error that it deserves, every change in the log was asked for, and who was refused changed nothing.

The order of errors is that of AddVoterHandler, RemoveVoterHandler and UpdateVoterHandler; of
conditions that pass while a step goes on, both what was and what is then count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, Listeners, ReplicaKey
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from quorate.raft.roles import NEVER, Leader
from quorate.raft.values import Voter
from quorate.sim.checks.history import Entry
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import matches, names
from quorate.sim.checks.words import message_words, voter_words
from quorate.sim.observe import Violation
from quorate.sim.process import CLUSTER_ID, LISTENER

if TYPE_CHECKING:
    from quorate.node.replica import Effects
    from quorate.raft.state import State
    from quorate.raft.values import RaftConfig

Change = AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest
Told = AddVoterResponse | RemoveVoterResponse | UpdateVoterResponse
ASKED_FOR = "a voter change was asked for"
DESERVED = "a voter change is answered as it deserves"
IN_TIME = "an operator is answered"
DONE = "a committed voter change is answered at once"
UNACKED = "an add that nobody waits for is answered when it is written"
KNOWN = "a leader knows voters as they report themselves"
REFUSED = "a refused change changes nothing"
_FENCES = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)
_OPEN = frozenset(
    {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE}
)
"""After these it may have been done, or be done yet."""
_NOTHING, _ANYTHING = (1, 0), (0, 1)


@dataclass(slots=True)
class Place:
    """Where a replica stands: does it lead, in what epoch, with which voters in force?"""

    leads: bool
    epoch: int
    version: int
    voters: tuple[Voter, ...]
    settled: bool = True
    """Does it know something of its epoch to be committed?"""


@dataclass(slots=True)
class Asked:
    """A request, what the replica was when it came, and the entry that did what it asks."""

    request: Change
    at_ms: int
    before: Place
    able: tuple[int, int]
    """The kraft.versions that the voter can run."""
    made: Entry | None = None
    later: list[tuple[int, int]] = field(default_factory=list)
    """The same of lives that it began since: its software may be another one."""

    @property
    def ables(self) -> tuple[tuple[int, int], ...]:
        """What it may have answered when it was asked which it can run."""
        return (self.able, *self.later)


class Changes:
    """Watches what each replica is asked, writes and says about voters."""

    def __init__(self) -> None:
        self._asked: dict[int, dict[int, Asked]] = {}
        """By node and reply_to: what is not answered yet, in this life."""
        self._reports: dict[int, tuple[int, dict[int, UpdateVoterRequest]]] = {}
        """By node: an epoch, and what voters, by id, have told it of themselves in that."""
        self._able: dict[ReplicaKey, tuple[Listeners, tuple[int, int]]] = {}
        """Where each replica listens in this life, and the kraft.versions that it can run."""
        self._reported: dict[int, tuple[Voter, ...]] = {}
        """By node: what voters have told it in this step, and it took."""

    def began(self, twin: Twin, config: RaftConfig) -> None:
        self._asked[twin.id] = {}
        self._reports.pop(twin.id, None)
        able = (config.min_kraft_version, config.max_kraft_version)
        self._able[twin.key] = (config.listeners, able)
        for waiting in self._asked.values():
            for asked in waiting.values():
                request = asked.request
                if isinstance(request, AddVoterRequest) and request.voter == twin.key:
                    asked.later.append(self._range(request))

    def _range(self, request: Change) -> tuple[int, int]:
        """What the replica that is meant can run; of one that cannot be asked, nothing is known."""
        if isinstance(request, UpdateVoterRequest):
            return request.min_kraft_version, request.max_kraft_version
        if isinstance(request, AddVoterRequest):
            listeners, able = self._able.get(request.voter, ((), _NOTHING))
            return able if listeners == request.listeners else _NOTHING
        return _ANYTHING

    def asked(self, twin: Twin, reply_to: int, request: Change, state: State) -> None:
        before = _place(twin, twin.led, twin.election.epoch)
        self._asked[twin.id][reply_to] = Asked(request, state.now, before, self._range(request))

    def reports(self, twin: Twin, epoch: int) -> Mapping[int, UpdateVoterRequest]:
        """What voters, by id, have told this leader of themselves in the epoch. (A step may end in
        a later one than that in which it wrote.)"""
        led, reports = self._reports.get(twin.id, (-1, {}))
        return reports if led == epoch else {}

    # -- in the log ---------------------------------------------------------------------------
    def made(self, twin: Twin, entry: Entry) -> None:
        """A leader wrote a voter set."""
        parent = entry.parent
        assert parent is not None and entry.voters is not None
        old = twin.own_voters if parent.voters is None else parent.voters
        if entry.kraft_version > parent.kraft_version:
            _check_ranges(twin, entry)
        if parent.epoch != entry.epoch:
            _check_own(twin, entry, old)
            self._check_told(twin, entry, others=False)
            return
        if parent.kraft_version < 1:
            self._check_told(twin, entry, others=True)
            return
        for asked in self._asked[twin.id].values():
            if asked.made is not None or _is_foreign(asked.request):
                continue
            if _does(asked.request, old, entry.voters):
                asked.made = entry
                _check_able(twin, entry, asked)
                return
        raise Violation(
            ASKED_FOR,
            f"{twin} writes {entry} with {names(entry.voters)} after {names(old)}; it was asked "
            f"for {[message_words(asked.request) for asked in self._asked[twin.id].values()]}",
        )

    def _check_told(self, twin: Twin, entry: Entry, *, others: bool) -> None:
        """A leader writes itself as it is, and with the upgrade the `others` as they said."""
        for voter in entry.voters or ():
            if voter.key == twin.key:
                listeners, able = self._able[twin.key]
                told = [Voter(twin.key, listeners, *able)]
            elif not others:
                continue
            else:
                told = [
                    _voter(report) for report in self._reports_of(twin, entry.epoch, voter.key.id)
                ]
            if voter not in told:
                said = " or ".join(map(voter_words, told)) or "nothing"
                raise Violation(
                    KNOWN, f"{twin} writes {voter_words(voter)} at {entry}; it was told {said}"
                )

    def _reports_of(self, twin: Twin, epoch: int, node_id: int) -> list[UpdateVoterRequest]:
        """The newest, and those of this step."""
        requests = [asked.request for asked in self._asked[twin.id].values()]
        newest = self.reports(twin, epoch).get(node_id)
        found = [] if newest is None else [newest]
        found += (
            one
            for one in requests
            if isinstance(one, UpdateVoterRequest) and one.voter.id == node_id
        )
        return found

    # -- answers ------------------------------------------------------------------------------
    def told(
        self, twin: Twin, reply_to: int, response: Told, state: State, *, is_over: bool = False
    ) -> None:
        """`is_over`: the replica stops with this step, and leads no more."""
        asked = self._asked[twin.id].pop(reply_to, None)
        if asked is None:
            return
        leads = isinstance(state.role, Leader) and not is_over
        now = _place(twin, leads, state.election.epoch)
        error, request = response.error, asked.request
        if asked.made is not None and error is not ErrorCode.NONE and error not in _OPEN:
            raise Violation(
                REFUSED, f"{twin} answers {error.name} to {message_words(request)}, and did it"
            )
        if error is ErrorCode.NONE:
            self._check_done(twin, asked, now)
            if isinstance(request, UpdateVoterRequest):
                reports = {**self.reports(twin, now.epoch), request.voter.id: request}
                self._reports[twin.id] = now.epoch, reports
                if now.version < 1:
                    known = self._reported.get(twin.id, ())
                    self._reported[twin.id] = (*known, _voter(request))
        if is_over and error is ErrorCode.BROKER_NOT_AVAILABLE:
            return  # who stops judges nothing
        if problem := misjudged(asked, now, error):
            raise Violation(
                DESERVED, f"{twin} answers {error.name} to {message_words(request)}: {problem}"
            )

    def _check_done(self, twin: Twin, asked: Asked, now: Place) -> None:
        """What is said to be done is in the log; at kraft.version 0 there is no place for it."""
        if asked.made is not None or min(asked.before.version, now.version) < 1:
            return
        entry = twin.tip.voters_entry
        while entry is not None and entry.epoch >= asked.before.epoch and entry.parent is not None:
            old = entry.parent.voters or twin.own_voters
            if _does(asked.request, old, entry.voters or ()):
                return
            entry = entry.parent.voters_entry
        raise Violation(
            "acknowledged means done",
            f"{twin} answers NONE to {message_words(asked.request)}, and has not written it",
        )

    def look(self, twin: Twin, effects: Effects, state: State) -> None:
        """Nobody waits for longer than a request may take, nor sleeps so long; and of who leads no
        more, nobody.

        Answers wait for a new epoch to become durable.
        """
        if self._reported:
            self._check_known(twin, self._reported.pop(twin.id, ()), state)
        waiting = self._asked[twin.id]
        if not waiting or not state.durable.election:
            return
        if effects.is_over:
            left = message_words(next(iter(waiting.values())).request)
            raise Violation(IN_TIME, f"{twin} ends, and has not answered {left}")
        patience = state.config.request_timeout_ms if isinstance(state.role, Leader) else -1
        wakes = NEVER if effects.wake_at_ms is None else effects.wake_at_ms
        for asked in waiting.values():
            if asked.made is not None and asked.made.end <= twin.high.end:
                raise Violation(
                    DONE,
                    f"{twin} has not answered {message_words(asked.request)}, and knows that "
                    f"{asked.made} is committed",
                )
            if asked.made is not None and _is_unacked(asked.request):
                raise Violation(
                    UNACKED,
                    f"{twin} has not answered {message_words(asked.request)}, and has written "
                    f"{asked.made}",
                )
            waited = state.now - asked.at_ms
            if waited > patience or wakes > asked.at_ms + patience:
                raise Violation(
                    IN_TIME,
                    f"{twin} was asked {message_words(asked.request)} {waited} ms ago and has not "
                    f"answered; it sleeps for {wakes - state.now} ms",
                )

    def _check_known(self, twin: Twin, told: tuple[Voter, ...], state: State) -> None:
        """At kraft.version 0 no log has it. Of several reports of one voter the last counts."""
        role = state.role
        known = role.volatile_voters if isinstance(role, Leader) else None
        if known is None:
            return
        for voter in {voter.key.id: voter for voter in told}.values():
            found = known.get(voter.key.id)
            if found != voter:
                takes = "nobody" if found is None else voter_words(found)
                raise Violation(
                    KNOWN, f"{twin} was told {voter_words(voter)}, and takes it for {takes}"
                )


def _is_unacked(request: Change) -> bool:
    return isinstance(request, AddVoterRequest) and not request.ack_when_committed


def _voter(report: UpdateVoterRequest) -> Voter:
    """As the voter set is to have it."""
    low, high = report.min_kraft_version, report.max_kraft_version
    return Voter(report.voter, report.listeners, low, high)


def _place(twin: Twin, leads: bool, epoch: int) -> Place:
    settled = twin.high.epoch == epoch
    return Place(leads, epoch, twin.tip.kraft_version, twin.voters, settled)


def _does(request: Change, old: tuple[Voter, ...], new: tuple[Voter, ...]) -> bool:
    """Is this the set that comes of the request?"""
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


def _check_able(twin: Twin, entry: Entry, asked: Asked) -> None:
    """Who was asked for can run what rules, by what it says and in truth."""
    if not isinstance(asked.request, RemoveVoterRequest):
        voter = next(v for v in entry.voters or () if v.key == asked.request.voter)
        _check_range(twin, entry, voter)
        found = (voter.min_kraft_version, voter.max_kraft_version)
        if _NOTHING not in asked.ables and found not in asked.ables:
            can = " or ".join(map(str, asked.ables))
            raise Violation("voter range", f"{twin} writes {entry}: {voter.key} can run {can}")


def _check_ranges(twin: Twin, entry: Entry) -> None:
    """The kraft.version rises: every voter can run it."""
    for voter in entry.voters or ():
        _check_range(twin, entry, voter)


def _check_range(twin: Twin, entry: Entry, voter: Voter) -> None:
    version = entry.kraft_version
    if not voter.min_kraft_version <= version <= voter.max_kraft_version:
        raise Violation("voter range", f"{twin} writes {entry}: {voter.key} cannot run {version}")


def _check_own(twin: Twin, entry: Entry, old: tuple[Voter, ...]) -> None:
    """The first of an epoch, or of kraft.version 1: nobody has come or gone."""
    if entry.parent is None or entry.parent.kraft_version < 1:
        return
    others = [voter for voter in entry.voters or () if not matches(voter.key, twin.key)]
    if others != [voter for voter in old if not matches(voter.key, twin.key)]:
        raise Violation(
            ASKED_FOR,
            f"{twin} begins its epoch with {names(entry.voters or ())} after {names(old)}",
        )


# -- which error is right ----------------------------------------------------------------------
def misjudged(asked: Asked, now: Place, error: ErrorCode) -> str | None:
    """Why this is not what the request deserves; None: it is."""
    request, before = asked.request, asked.before
    if (error is ErrorCode.INCONSISTENT_CLUSTER_ID) is not _is_foreign(request):
        return f"it is for the cluster {request.cluster_id}"
    if error in (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.BROKER_NOT_AVAILABLE):
        return None
    stays = before.epoch == now.epoch
    leads = before.leads and now.leads and stays
    if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return "it leads" if leads else None
    if isinstance(request, UpdateVoterRequest) and error in _FENCES:
        same = stays and request.epoch == now.epoch
        return f"it is in epoch {now.epoch}" if same else None
    if leads and _is_malformed(request):
        return None if error is ErrorCode.INVALID_REQUEST else "it is malformed"
    if error is ErrorCode.REQUEST_TIMED_OUT:
        busy = isinstance(request, UpdateVoterRequest) or max(before.version, now.version) > 0
        return None if busy or not (leads and before.settled) else "kraft.version is 0"
    if error is ErrorCode.NONE:
        return _overlooked(asked, now) if leads else None
    places = (before, now)
    return None if any(_justified(asked, place, error) for place in places) else "it is not so"


def _is_foreign(request: Change) -> bool:
    return request.cluster_id not in (None, CLUSTER_ID)


def _is_malformed(request: Change) -> bool:
    if request.voter.id < 0 or request.voter.directory_id == ZERO_UUID:
        return True
    if isinstance(request, RemoveVoterRequest):
        return False
    return all(listener.name != LISTENER for listener in request.listeners)


def _overlooked(asked: Asked, now: Place) -> str | None:
    """Said to be done, though it could not be."""
    if isinstance(asked.request, UpdateVoterRequest) or max(asked.before.version, now.version) > 0:
        return None
    return "kraft.version is 0"


def _justified(asked: Asked, place: Place, error: ErrorCode) -> bool:
    """Is the error true of this place?"""
    request, voters = asked.request, place.voters
    key = request.voter
    if error is ErrorCode.UNSUPPORTED_VERSION:
        return place.version < 1 and not isinstance(request, UpdateVoterRequest)
    if error is ErrorCode.DUPLICATE_VOTER:
        taken = any(voter.key.id == key.id for voter in voters)
        return taken and isinstance(request, AddVoterRequest)
    if error is ErrorCode.VOTER_NOT_FOUND:
        if isinstance(request, UpdateVoterRequest):
            return not any(matches(voter.key, key) for voter in voters)
        return len(voters) == 1 or all(voter.key != key for voter in voters)
    if error is ErrorCode.INVALID_REQUEST:
        unable = any(not low <= place.version <= high for low, high in asked.ables)
        return _is_malformed(request) or unable
    return False
