"""A node advertises all its listeners, and a follower adopts its leader's (KIP-853).

From BeginQuorumEpoch a follower adopts endpoints that are more than it knows
(`KafkaRaftClient.maybeTransition`). From a Fetch response of the leader it always does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.raft.inputs import Answered, Received
from quorate.raft.messages import (
    AddVoterRequest,
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    UpdateVoterRequest,
)
from quorate.raft.roles import Follower, Leader, Resigned, Role
from quorate.sim.checks.cluster_id import is_foreign
from quorate.sim.checks.messages import listener_words, message_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.base.ids import LeaderAndEpoch, Listeners
    from quorate.raft.ready import Send
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Answer, Effects, Input

ADVERTISED: Final = "all listeners are advertised"
ADOPTED: Final = "follower adopts leader endpoints"
UPDATE_RATE: Final = "UpdateRaftVoter rate"


@dataclass(slots=True)
class _VoterUpdate:
    role: Role
    """The follower role that sent it."""
    at_ms: int
    until_ms: int
    """When the request times out."""
    correlation: int
    is_done: bool = False


class EndpointCheck:
    """Checks the endpoints in requests, responses and follower state, and the rate of
    UpdateRaftVoter.
    """

    def __init__(self) -> None:
        self._agreed: dict[int, tuple[Listeners, Listeners]] = {}
        """By node: the endpoints last received and those last stored. The same two objects need no
        second comparison."""
        self._updates: dict[int, _VoterUpdate] = {}
        """By node: its last UpdateRaftVoter request of this incarnation."""
        self._fetches: dict[int, tuple[int, int, int]] = {}
        """By node: (correlation id, timeout, number of request resets) of its last Fetch. A later
        response is ignored."""

    def process_started(self, model: ReplicaModel) -> None:
        self._updates.pop(model.id, None)
        self._fetches.pop(model.id, None)

    def after_step(
        self, model: ReplicaModel, happened: Sequence[Input], effects: Effects, state: RaftState
    ) -> None:
        update = self._updates.get(model.id)
        if update is not None and not update.is_done and state.now < update.until_ms:
            _match_response(update, happened, state)
        if len(happened) == 1 and isinstance(state.role, Follower) and not effects.is_over:
            self._check_adopted(model, happened[0], state.role, state)
        for send in effects.sends:
            if isinstance(send.request, FetchRequest):
                until = state.now + send.timeout_ms
                self._fetches[model.id] = send.correlation, until, state.requests.resets
            elif isinstance(send.request, AddVoterRequest | UpdateVoterRequest):
                _check_own_listeners(model, send.request, state)
                if isinstance(send.request, UpdateVoterRequest):
                    self._check_update_rate(model, send, state)
        for answer in effects.answers:
            if type(answer.response) is not FetchResponse:
                _check_answer(model, answer, state)

    def _check_update_rate(self, model: ReplicaModel, send: Send, state: RaftState) -> None:
        """UpdateRaftVoter is sent at most once in a fetch timeout. At kraft.version 0 a follower
        stops when the leader has accepted it (`KafkaRaftClient.shouldSendUpdateVoteRequest`)."""
        now, role = state.now, state.role
        last = self._updates.get(model.id)
        self._updates[model.id] = _VoterUpdate(role, now, now + send.timeout_ms, send.correlation)
        if last is None or last.role is not role:
            return
        done = last.is_done and model.kraft_version < 1
        if done or now < last.at_ms + state.config.fetch_timeout_ms:
            raise ViolationError(
                UPDATE_RATE,
                f"{model} sent its endpoints to node {send.to} {now - last.at_ms} ms ago"
                f"{', which accepted them' if last.is_done else ''}, and sends them again: "
                f"{message_words(send.request)}",
            )

    def _check_adopted(
        self, model: ReplicaModel, item: Input, role: Follower, state: RaftState
    ) -> None:
        known = role.leader_endpoints
        if isinstance(item, Answered) and isinstance(item.response, FetchResponse):
            received, leader = item.response.leader_endpoints, item.response.leader
            agreed = self._agreed.get(model.id)
            if agreed is not None and agreed[0] is received and agreed[1] is known:
                return
            if item.response.error is not ErrorCode.NONE or not _is_followed(leader, state):
                return
            if not self._is_awaited(model, item, state):
                return
            adopted = not _has_listener(received, state) or all(one in known for one in received)
            self._agreed[model.id] = received, known
        elif isinstance(item, Received) and isinstance(item.request, BeginQuorumEpochRequest):
            received, leader = item.request.leader_endpoints, item.request.leader
            if not _is_followed(leader, state) or is_foreign(item.request, state.config.cluster_id):
                return
            adopted = not _has_listener(received, state) or len(known) >= len(received)
        else:
            return
        if not adopted:
            raise ViolationError(
                ADOPTED,
                f"{model} received that its leader, node {leader.leader_id}, listens at "
                f"{listener_words(received)}, and stores {listener_words(known)}",
            )

    def _is_awaited(self, model: ReplicaModel, item: Answered, state: RaftState) -> bool:
        correlation, until, resets = self._fetches.get(model.id, (-1, 0, 0))
        in_time = state.now < until and resets == state.requests.resets
        return in_time and item.correlation == correlation


def _match_response(update: _VoterUpdate, happened: Sequence[Input], state: RaftState) -> None:
    """Whether the leader accepted the request in time."""
    for item in happened:
        if isinstance(item, Answered) and item.correlation == update.correlation:
            good = item.response.error is ErrorCode.NONE
            update.is_done = good and _is_followed(item.response.leader, state)  # type: ignore[union-attr]


def _is_followed(leader: LeaderAndEpoch, state: RaftState) -> bool:
    return (leader.leader_id, leader.epoch) == (state.election.leader_id, state.election.epoch)


def _has_listener(received: Listeners, state: RaftState) -> bool:
    """Whether this node could connect to one of the listeners."""
    own = state.config.listeners
    return not own or any(listener.name == own[0].name for listener in received)


def _check_own_listeners(
    model: ReplicaModel, request: AddVoterRequest | UpdateVoterRequest, state: RaftState
) -> None:
    """AddRaftVoter and UpdateRaftVoter carry all listeners of their sender."""
    if request.listeners != state.config.listeners:
        raise ViolationError(
            ADVERTISED,
            f"{model} listens at {listener_words(state.config.listeners)} and sends "
            f"{message_words(request)}",
        )


def _check_answer(model: ReplicaModel, answer: Answer, state: RaftState) -> None:
    """A response that names its sender as the leader carries its listeners. `fetch_responses`
    checks Fetch responses."""
    response = answer.response
    received: Listeners | None = getattr(response, "leader_endpoints", None)
    if received is None or not isinstance(state.role, Leader | Resigned):
        return
    leader: LeaderAndEpoch = response.leader  # type: ignore[union-attr]
    if leader.leader_id == model.id and received != state.config.listeners:
        raise ViolationError(
            ADVERTISED,
            f"{model} listens at {listener_words(state.config.listeners)} and answers "
            f"{message_words(response)}",
        )
