"""BeginQuorumEpoch and EndQuorumEpoch notifications of a leader (KIP-595), and graceful shutdown.

1. A new leader sends BeginQuorumEpoch to every voter, and again to voters that do not fetch
   (`LeaderState.needToSendBeginQuorumRequests`).
2. A leader that resigns sends EndQuorumEpoch with all other voters as successors
   (`LeaderState.nonLeaderVotersByDescendingFetchOffset`). `leader_duties` checks their order.
3. It resigns for the reason that it gives.
4. A voter that shuts down waits until another leader is elected.
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
from quorate.raft.roles import Follower, Leader, Prospective, Resigned, Unattached
from quorate.sim.checks.cluster_id import is_foreign
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.times import FOREVER
from quorate.sim.checks.voters import is_voter, matches, names
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.messages import Response
    from quorate.raft.ready import Send
    from quorate.raft.state import RaftState
    from quorate.raft.values import Voter
    from quorate.replica.replica import Effects, Input

NOTIFIES = "epoch notifications"
SUCCESSORS = "EndQuorumEpoch names all voters"
RECEIVER = "request names its receiver"
FIRST_SUCCESSOR = "first successor starts an election at once"
REASON = "resignation reason is true"
FOLLOWS_KNOWN = "known leader is followed"
SHUTDOWN_WAITS = "shutdown waits for a new leader"
REMOVED: Final = "resigned (removed"
_DISK: Final = "storage failed"
_NEVER: Final = -1
_NOTHING: Final[frozenset[int]] = frozenset()


@dataclass(slots=True)
class _NotifyingLeader:
    """A leader whose epoch is durable; times are ms of its own clock."""

    epoch: int
    voters: tuple[Voter, ...]
    since: int
    """Start of the leadership with these voters."""
    asked: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By node: (correlation id of the last request, time until which no other is sent)."""


def check_begin_accepted(
    model: ReplicaModel, request: BeginQuorumEpochRequest, response: Response, state: RaftState
) -> None:
    """A replica that accepts BeginQuorumEpoch is its receiver, and knows that leader or one of a
    later epoch."""
    known = state.election
    announced = request.leader
    knows = known.epoch > announced.epoch or (known.epoch, known.leader_id) == (
        announced.epoch,
        announced.leader_id,
    )
    meant = request.voter
    if response.error == ErrorCode.NONE and meant is not None and not matches(meant, model.key):
        raise ViolationError(RECEIVER, f"{model} accepted a request for {meant}")
    if response.error == ErrorCode.NONE and not knows:
        raise ViolationError(
            NOTIFIES,
            f"{model} accepted that node {announced.leader_id} begins epoch {announced.epoch}, and "
            f"knows node {known.leader_id} of epoch {known.epoch}",
        )


class EpochNotificationCheck:
    """The other voters are notified in the first step in which the new role may be announced: once
    its epoch is durable."""

    def __init__(self) -> None:
        self._resigned: dict[int, int] = {}
        """By node: the epoch whose end it has announced."""
        self._before: dict[int, int] = {}
        """By node: the epoch that it led in an earlier incarnation, of whose voters' fetches it
        knows nothing."""
        self._leaders: dict[int, _NotifyingLeader] = {}
        self._searching: dict[int, frozenset[int]] = {}
        """By unattached node that knows a leader but not its endpoints: correlation ids of its open
        requests."""
        self._prospective: set[int] = set()
        """Nodes that were prospective at the end of their last step. One that becomes a follower
        again then keeps its timeout, as in Kafka, whatever the leader sent meanwhile."""
        self._until: dict[int, int] = {}
        """By node that is shutting down: the deadline of the shutdown, ms of its own clock."""

    def process_started(self, model: ReplicaModel) -> None:
        led = model.election.leader_id == model.id
        self._before[model.id] = model.election.epoch if led else _NEVER
        self._resigned[model.id] = _NEVER
        self._leaders.pop(model.id, None)
        self._until.pop(model.id, None)
        self._searching.pop(model.id, None)
        self._prospective.discard(model.id)

    def after_step(
        self, model: ReplicaModel, happened: Sequence[Input], effects: Effects, state: RaftState
    ) -> None:
        for send in effects.sends:
            self._check_send(model, send, state)
        for item in happened:
            if isinstance(item, Shutdown):
                self._until.setdefault(model.id, state.now + item.timeout_ms)
        if effects.stopped and effects.faulted is None:
            _check_shutdown(model, self._until.get(model.id, FOREVER), state)
        if len(happened) == 1:
            if model.id not in self._prospective:
                _check_first_successor(model, happened[0], effects, state)
            asked = self._searching.get(model.id, _NOTHING)
            _check_follows_known(model, happened[0], asked, effects, state)
        self._track_search(model, state)
        role, leader = state.role, self._leaders.get(model.id)
        if isinstance(role, Leader) and not effects.is_over:
            if state.durable.election_is_durable:
                self._check_leader(model, leader, happened, effects, state)
            return
        led = self._leaders.pop(model.id, None) is not None
        for note in effects.notes:
            if REMOVED in note:
                _check_removed(model, note)
        if state.durable.election_is_durable and self._announces_end(model, led, effects, state):
            _check_notified(model, _others(model), EndQuorumEpochRequest, effects, state)

    def _track_search(self, model: ReplicaModel, state: RaftState) -> None:
        if isinstance(state.role, Unattached) and state.election.leader_id != _NEVER:
            self._searching[model.id] = frozenset(state.requests.by_correlation)
        elif self._searching:
            self._searching.pop(model.id, None)
        if isinstance(state.role, Prospective):
            self._prospective.add(model.id)
        elif self._prospective:
            self._prospective.discard(model.id)

    def _announces_end(
        self, model: ReplicaModel, led: bool, effects: Effects, state: RaftState
    ) -> bool:
        """Whether this is the step that announces the end of its leadership."""
        if effects.faulted is not None:
            return led and effects.faulted.startswith(_DISK)
        epoch = state.election.epoch
        if not isinstance(state.role, Resigned) or effects.stopped:
            return False
        first = self._resigned[model.id] != epoch
        self._resigned[model.id] = epoch
        return first

    def _check_leader(
        self,
        model: ReplicaModel,
        leader: _NotifyingLeader | None,
        happened: Sequence[Input],
        effects: Effects,
        state: RaftState,
    ) -> None:
        """A new leader notifies all voters at once, and later each voter that has not fetched for
        half the fetch timeout."""
        now, epoch = state.now, state.election.epoch
        if leader is None or leader.epoch != epoch:
            waiting = [voter for voter in _others(model) if _last_request(model, voter) is None]
            _check_notified(model, waiting, BeginQuorumEpochRequest, effects, state)
            leader = self._leaders[model.id] = _NotifyingLeader(epoch, model.voters, now)
        elif leader.voters is not model.voters:
            leader.voters, leader.since = model.voters, now
        asked = leader.asked
        if asked:
            for item in happened:
                if isinstance(item, Answered | SendFailed):
                    _match_response(asked, item.correlation, now + state.config.retry_backoff_ms)
        for send in effects.sends:
            asked[send.to] = send.correlation, now + send.timeout_ms
        period = state.config.fetch_timeout_ms // 2
        if now < leader.since + period:
            return
        for voter in _others(model):
            _, until = asked.get(voter.key.id, (0, 0))
            heard = _last_request(model, voter)
            silent = max(until, leader.since, 0 if heard is None else heard + period)
            if now >= silent + period:
                raise ViolationError(
                    NOTIFIES,
                    f"{model} leads epoch {epoch}, and has not notified {voter.key} for "
                    f"{now - silent} ms, which does not fetch; the limit is {period} ms",
                )

    def _check_send(self, model: ReplicaModel, send: Send, state: RaftState) -> None:
        request = send.request
        if isinstance(request, VoteRequest | BeginQuorumEpochRequest):
            _check_receiver(model, send.to, request.voter)
            endpoints = None if isinstance(request, VoteRequest) else request.leader_endpoints
            if endpoints is not None and endpoints != state.config.listeners:
                raise ViolationError(
                    NOTIFIES, f"{model} listens at {state.config.listeners}, and sends {endpoints}"
                )
        elif isinstance(request, EndQuorumEpochRequest):
            named = request.preferred_candidates
            others = {voter.key for voter in model.voters if not matches(voter.key, model.key)}
            if self._before[model.id] == request.leader.epoch:
                others = set()
            if set(named) != others or len(named) != len(others):
                raise ViolationError(
                    SUCCESSORS,
                    f"{model} ends epoch {request.leader.epoch} and names "
                    f"[{', '.join(map(str, named))}] of {names(model.voters)}",
                )


def _match_response(
    asked: dict[int, tuple[int, int]], correlation: int, backoff_end_ms: int
) -> None:
    """A response arrived: the next request waits for the retry backoff at most."""
    for node_id, (last, _) in asked.items():
        if last == correlation:
            asked[node_id] = last, backoff_end_ms
            return


def _others(model: ReplicaModel) -> list[Voter]:
    """The other voters that have endpoints."""
    return [voter for voter in model.voters if voter.key.id != model.id and voter.listeners]


def _last_request(model: ReplicaModel, voter: Voter) -> int | None:
    """Time of the voter's last request as a follower of this epoch; None: it has sent none."""
    if model.received.epoch != model.election.epoch:
        return None
    last = None
    for key, at in model.received.last_request_ms.items():
        if matches(voter.key, key) and (last is None or at > last):
            last = at
    return last


def _check_notified(
    model: ReplicaModel, whom: Sequence[Voter], kind: type, effects: Effects, state: RaftState
) -> None:
    notified = {send.to for send in effects.sends if isinstance(send.request, kind)}
    missed = tuple(voter for voter in whom if voter.key.id not in notified)
    if missed:
        what = "begins" if kind is BeginQuorumEpochRequest else "ends"
        raise ViolationError(
            NOTIFIES,
            f"{model} {what} epoch {state.election.epoch} and does not notify {names(missed)}",
        )


def _check_receiver(model: ReplicaModel, to: int, named: ReplicaKey | None) -> None:
    """The request has the key of its receiver. A different key is refused (INVALID_VOTER_KEY)."""
    voter = next((voter for voter in model.voters if voter.key.id == to), None)
    if voter is None or named is None:
        return
    if not matches(voter.key, named) and not matches(named, voter.key):
        raise ViolationError(RECEIVER, f"{model} asks {voter.key} for {named}")


def _check_first_successor(
    model: ReplicaModel, item: Input, effects: Effects, state: RaftState
) -> None:
    """The first preferred successor starts an election without a delay
    (`KafkaRaftClient.handleEndQuorumEpochRequest`)."""
    if not isinstance(item, Received) or effects.is_over:
        return
    request = item.request
    if not isinstance(request, EndQuorumEpochRequest):
        return
    if is_foreign(request, state.config.cluster_id):
        return
    named, role = request.preferred_candidates, state.role
    present = (state.election.leader_id, state.election.epoch)
    if (
        named
        and matches(named[0], model.key)
        and isinstance(role, Follower)
        and present == (request.leader.leader_id, request.leader.epoch)
        and is_voter(model.voters, model.key)
        and state.installing is None
        and state.shutdown_deadline is None
    ):
        raise ViolationError(
            FIRST_SUCCESSOR,
            f"{model} is the first successor of node {present[0]} in epoch "
            f"{present[1]}, and waits for {role.fetch_deadline - state.now} ms",
        )


def _check_follows_known(
    model: ReplicaModel, item: Input, asked: frozenset[int], effects: Effects, state: RaftState
) -> None:
    """A replica that learns the endpoints of a leader that it knew already follows it
    (`KafkaRaftClient.maybeTransition`).

    `asked` are the correlation ids of its open requests.
    """
    if not isinstance(state.role, Unattached) or effects.is_over:
        return
    announcement: FetchResponse | BeginQuorumEpochRequest | None
    if isinstance(item, Answered) and item.correlation in asked:
        announcement = item.response if isinstance(item.response, FetchResponse) else None
    elif isinstance(item, Received) and isinstance(item.request, BeginQuorumEpochRequest):
        is_accepted = any(
            one.reply_to == item.reply_to and one.response.error == ErrorCode.NONE
            for one in effects.answers
        )
        announcement = item.request if is_accepted else None
    else:
        return
    if announcement is None or not announcement.leader_endpoints:
        return
    named, known = announcement.leader, state.election
    if (named.leader_id, named.epoch) == (known.leader_id, known.epoch):
        raise ViolationError(
            FOLLOWS_KNOWN,
            f"{model} received the endpoints of node {named.leader_id}, leader of epoch "
            f"{named.epoch}, and stays unattached",
        )


def _check_shutdown(model: ReplicaModel, until: int, state: RaftState) -> None:
    """A voter may finish its shutdown early for one of these reasons
    (`KafkaRaftClient.maybeCompleteShutdown`).

    1. It is not a voter, or the only one.
    2. It knows another leader.
    3. It does not lead, and so many peers are unreachable that no other voter can be elected.
    """
    voters, known = model.voters, state.election.leader_id
    if state.now >= until or not is_voter(voters, model.key) or len(voters) == 1:
        return
    if known not in (_NEVER, model.id):
        return
    there = [voter for voter in voters if voter.key.id not in state.requests.unreachable]
    if isinstance(state.role, Leader) or len(there) > len(voters) // 2:
        raise ViolationError(
            SHUTDOWN_WAITS,
            f"{model} stops in epoch {state.election.epoch} as {type(state.role).__name__.lower()}, "
            f"and knows no other leader; {until - state.now} ms of its timeout are left, and "
            f"{names(tuple(there))} are reachable",
        )


def _check_removed(model: ReplicaModel, note: str) -> None:
    """Its removal is committed as far as it knows."""
    voters = model.committed_tip.voters
    if voters is None or is_voter(voters, model.key):
        raise ViolationError(
            REASON,
            f'{model}: "{note}", and the log committed up to {model.committed_tip} does not remove it',
        )
