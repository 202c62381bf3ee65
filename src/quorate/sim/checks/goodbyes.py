"""A leader says when it comes, and when it goes: BeginQuorumEpoch and EndQuorumEpoch (KIP-595).

It tells every voter, those that stay silent again and again, and names all of them as successors
(`LeaderState.needToSendBeginQuorumRequests`, `nonLeaderVotersByDescendingFetchOffset`); their order
is looked at in `duties`. And it goes for the reason that it gives. A voter that is to stop waits
until another one leads (KIP-595, graceful shutdown).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import ReplicaKey
from quorate.raft.inputs import Answered, Received, SendFailed, Shutdown
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchResponse,
    VoteRequest,
)
from quorate.raft.roles import NEVER, Follower, Leader, Prospective, Resigned, Unattached
from quorate.sim.checks.strangers import is_stranger
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter, matches, names
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects, Input
    from quorate.raft.messages import Response
    from quorate.raft.ready import Send
    from quorate.raft.state import State
    from quorate.raft.values import Voter

SAYS = "a leader says when it comes and goes"
WHOLE = "a leader names all successors"
ADDRESSED = "a request names whom it is for"
FIRST_RUNS = "the first successor runs at once"
REASON = "a leader goes for the reason that it gives"
FOLLOWS = "who is told where its leader is follows it"
WAITS = "who stops waits for a successor"
REMOVED: Final = "resigned (removed"
_DISK: Final = "storage failed"
_NEVER: Final = -1
_NOTHING: Final[frozenset[int]] = frozenset()


@dataclass(slots=True)
class Reign:
    """A leader that may be heard; times are ms of its own clock."""

    epoch: int
    voters: tuple[Voter, ...]
    since: int
    """When that began, with these voters."""
    asked: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By node: what it was sent last, and until when nothing more is sent to it."""


def check_taught(
    twin: Twin, request: BeginQuorumEpochRequest, response: Response, state: State
) -> None:
    """Who says yes to BeginQuorumEpoch was meant, and knows the leader from then on, or of a later
    epoch."""
    known = state.election
    told = request.leader
    knows = known.epoch > told.epoch or (known.epoch, known.leader_id) == (
        told.epoch,
        told.leader_id,
    )
    meant = request.voter
    if response.error == ErrorCode.NONE and meant is not None and not matches(meant, twin.key):
        raise Violation(ADDRESSED, f"{twin} was told what is meant for {meant}, and said yes")
    if response.error == ErrorCode.NONE and not knows:
        raise Violation(
            SAYS,
            f"{twin} was told that node {told.leader_id} begins epoch {told.epoch}, said yes, and "
            f"knows node {known.leader_id} of epoch {known.epoch}",
        )


class Goodbyes:
    """In the first step in which its new role may be spoken of, the others hear of it."""

    def __init__(self) -> None:
        self._resigned: dict[int, int] = {}
        """By node: the epoch whose end the others were told."""
        self._before: dict[int, int] = {}
        """By node: the epoch that it led in an earlier life. It knows nothing of the others."""
        self._reigns: dict[int, Reign] = {}
        self._looking: dict[int, frozenset[int]] = {}
        """By node that knows a leader and not where it is: its requests that are under way."""
        self._running: set[int] = set()
        """Nodes that were prospective at the end of their last step: one that falls back to its
        leader then waits as Kafka's does, whatever that leader has said meanwhile."""
        self._until: dict[int, int] = {}
        """By node that was told to stop: until when it may wait, ms of its own clock."""

    def began(self, twin: Twin) -> None:
        led = twin.election.leader_id == twin.id
        self._before[twin.id] = twin.election.epoch if led else _NEVER
        self._resigned[twin.id] = _NEVER
        self._reigns.pop(twin.id, None)
        self._until.pop(twin.id, None)
        self._looking.pop(twin.id, None)
        self._running.discard(twin.id)

    def look(self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
        for send in effects.sends:
            self._check_send(twin, send, state)
        for item in happened:
            if isinstance(item, Shutdown):
                self._until.setdefault(twin.id, state.now + item.timeout_ms)
        if effects.stopped and effects.faulted is None:
            _check_waited(twin, self._until.get(twin.id, NEVER), state)
        if len(happened) == 1:
            if twin.id not in self._running:
                _check_first_runs(twin, happened[0], effects, state)
            asked = self._looking.get(twin.id, _NOTHING)
            _check_follows(twin, happened[0], asked, effects, state)
        self._looks(twin, state)
        role, reign = state.role, self._reigns.get(twin.id)
        if isinstance(role, Leader) and not effects.is_over:
            if state.durable.election:
                self._leads(twin, reign, happened, effects, state)
            return
        led = self._reigns.pop(twin.id, None) is not None
        for note in effects.notes:
            if REMOVED in note:
                _check_removed(twin, note)
        if state.durable.election and self._goes(twin, led, effects, state):
            _check_told(twin, _others(twin), EndQuorumEpochRequest, effects, state)

    def _looks(self, twin: Twin, state: State) -> None:
        if isinstance(state.role, Unattached) and state.election.leader_id != _NEVER:
            self._looking[twin.id] = frozenset(state.requests._by_correlation)
        elif self._looking:
            self._looking.pop(twin.id, None)
        if isinstance(state.role, Prospective):
            self._running.add(twin.id)
        elif self._running:
            self._running.discard(twin.id)

    def _goes(self, twin: Twin, led: bool, effects: Effects, state: State) -> bool:
        """Is this the step in which all are to hear that it leads no more?"""
        if effects.faulted is not None:
            return led and effects.faulted.startswith(_DISK)
        epoch = state.election.epoch
        if not isinstance(state.role, Resigned) or effects.stopped:
            return False
        first = self._resigned[twin.id] != epoch
        self._resigned[twin.id] = epoch
        return first

    def _leads(
        self,
        twin: Twin,
        reign: Reign | None,
        happened: Sequence[Input],
        effects: Effects,
        state: State,
    ) -> None:
        """All are told at once; later, whoever has not fetched for half the fetch timeout."""
        now, epoch = state.now, state.election.epoch
        if reign is None or reign.epoch != epoch:
            waiting = [voter for voter in _others(twin) if _heard(twin, voter) is None]
            _check_told(twin, waiting, BeginQuorumEpochRequest, effects, state)
            reign = self._reigns[twin.id] = Reign(epoch, twin.voters, now)
        elif reign.voters is not twin.voters:
            reign.voters, reign.since = twin.voters, now
        asked = reign.asked
        if asked:
            for item in happened:
                if isinstance(item, Answered | SendFailed):
                    _settle(asked, item.correlation, now + state.config.retry_backoff_ms)
        for send in effects.sends:
            asked[send.to] = send.correlation, now + send.timeout_ms
        period = state.config.fetch_timeout_ms // 2
        if now < reign.since + period:
            return
        for voter in _others(twin):
            _, until = asked.get(voter.key.id, (0, 0))
            heard = _heard(twin, voter)
            silent = max(until, reign.since, 0 if heard is None else heard + period)
            if now >= silent + period:
                raise Violation(
                    SAYS,
                    f"{twin} leads epoch {epoch}, and has not told {voter.key} since "
                    f"{now - silent} ms, which does not fetch; it may within {period} ms",
                )

    def _check_send(self, twin: Twin, send: Send, state: State) -> None:
        request = send.request
        if isinstance(request, VoteRequest | BeginQuorumEpochRequest):
            _check_address(twin, send.to, request.voter)
            told = None if isinstance(request, VoteRequest) else request.leader_endpoints
            if told is not None and told != state.config.listeners:
                raise Violation(
                    SAYS, f"{twin} listens at {state.config.listeners}, and tells of {told}"
                )
        elif isinstance(request, EndQuorumEpochRequest):
            named = request.preferred_candidates
            told_by = {voter.key for voter in twin.voters if not matches(voter.key, twin.key)}
            if self._before[twin.id] == request.leader.epoch:
                told_by = set()
            if set(named) != told_by or len(named) != len(told_by):
                raise Violation(
                    WHOLE,
                    f"{twin} ends epoch {request.leader.epoch} and names "
                    f"[{', '.join(map(str, named))}] of {names(twin.voters)}",
                )


def _settle(asked: dict[int, tuple[int, int]], correlation: int, rest_ms: int) -> None:
    """An answer came: its sender rests for the backoff at most."""
    for node_id, (last, _) in asked.items():
        if last == correlation:
            asked[node_id] = last, rest_ms
            return


def _others(twin: Twin) -> list[Voter]:
    """The voters that can be told something."""
    return [voter for voter in twin.voters if voter.key.id != twin.id and voter.listeners]


def _heard(twin: Twin, voter: Voter) -> int | None:
    """When it asked something as a follower in this epoch last."""
    if twin.heard_in != twin.election.epoch:
        return None
    last = None
    for key, at in twin.heard.items():
        if matches(voter.key, key) and (last is None or at > last):
            last = at
    return last


def _check_told(
    twin: Twin, whom: Sequence[Voter], kind: type, effects: Effects, state: State
) -> None:
    told = {send.to for send in effects.sends if isinstance(send.request, kind)}
    missed = tuple(voter for voter in whom if voter.key.id not in told)
    if missed:
        what = "begins" if kind is BeginQuorumEpochRequest else "ends"
        raise Violation(
            SAYS, f"{twin} {what} epoch {state.election.epoch} and does not tell {names(missed)}"
        )


def _check_address(twin: Twin, to: int, named: ReplicaKey | None) -> None:
    """Another receiver's key is refused (INVALID_VOTER_KEY), so the request is made in vain."""
    voter = next((voter for voter in twin.voters if voter.key.id == to), None)
    if voter is None or named is None:
        return
    if not matches(voter.key, named) and not matches(named, voter.key):
        raise Violation(ADDRESSED, f"{twin} asks {voter.key} for {named}")


def _check_first_runs(twin: Twin, item: Input, effects: Effects, state: State) -> None:
    """Who is named first in EndQuorumEpoch waits for nothing (`handleEndQuorumEpochRequest`)."""
    if not isinstance(item, Received) or effects.is_over:
        return
    request = item.request
    if not isinstance(request, EndQuorumEpochRequest):
        return
    if is_stranger(request, state.config.cluster_id):
        return
    named, role = request.preferred_candidates, state.role
    present = (state.election.leader_id, state.election.epoch)
    if (
        named
        and matches(named[0], twin.key)
        and isinstance(role, Follower)
        and present == (request.leader.leader_id, request.leader.epoch)
        and is_voter(twin.voters, twin.key)
        and state.installing is None
        and state.shutdown_deadline is None
    ):
        raise Violation(
            FIRST_RUNS,
            f"{twin} is the first of those that are to follow node {present[0]} in epoch "
            f"{present[1]}, and waits for {role.fetch_deadline - state.now} ms",
        )


def _check_follows(
    twin: Twin, item: Input, asked: frozenset[int], effects: Effects, state: State
) -> None:
    """Also when it knew the leader already, and not where that listens
    (`KafkaRaftClient.maybeTransition`). `asked`: of its requests those that were under way."""
    if not isinstance(state.role, Unattached) or effects.is_over:
        return
    told: FetchResponse | BeginQuorumEpochRequest | None
    if isinstance(item, Answered) and item.correlation in asked:
        told = item.response if isinstance(item.response, FetchResponse) else None
    elif isinstance(item, Received) and isinstance(item.request, BeginQuorumEpochRequest):
        well = any(
            one.reply_to == item.reply_to and one.response.error == ErrorCode.NONE
            for one in effects.answers
        )
        told = item.request if well else None
    else:
        return
    if told is None or not told.leader_endpoints:
        return
    named, known = told.leader, state.election
    if (named.leader_id, named.epoch) == (known.leader_id, known.epoch):
        raise Violation(
            FOLLOWS,
            f"{twin} was told that node {named.leader_id} leads epoch {named.epoch} and where it "
            "listens, and looks for a leader",
        )


def _check_waited(twin: Twin, until: int, state: State) -> None:
    """It is no voter, or the only one, knows another leader, or so many peers cannot be reached
    that none of them can be elected; a leader has said goodbye before
    (`KafkaRaftClient.maybeCompleteShutdown`)."""
    voters, known = twin.voters, state.election.leader_id
    if state.now >= until or not is_voter(voters, twin.key) or len(voters) == 1:
        return
    if known not in (_NEVER, twin.id):
        return
    there = [voter for voter in voters if voter.key.id not in state.requests.gone]
    if isinstance(state.role, Leader) or len(there) > len(voters) // 2:
        raise Violation(
            WAITS,
            f"{twin} stops in epoch {state.election.epoch} as {type(state.role).__name__.lower()}, "
            f"and knows no other leader; it may wait for {until - state.now} ms more, and "
            f"{names(tuple(there))} can be reached",
        )


def _check_removed(twin: Twin, note: str) -> None:
    """Its removal is committed, as far as it knows itself."""
    voters = twin.high.voters
    if voters is None or is_voter(voters, twin.key):
        raise Violation(
            REASON,
            f'{twin}: "{note}", and what is committed up to {twin.high} does not remove it',
        )
