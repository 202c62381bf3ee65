"""All listeners of a node are told, and what is told of them is taken (KIP-853).

Of the leader a follower takes what BeginQuorumEpoch tells when that is more than it knows
(`KafkaRaftClient.maybeTransition`), and what the leader's own Fetch answers tell, always.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.raft.inputs import Answered, Received
from quorate.raft.messages import (
    AddVoterRequest,
    BeginQuorumEpochRequest,
    FetchResponse,
    UpdateVoterRequest,
)
from quorate.raft.roles import Follower, Leader, Resigned
from quorate.sim.checks.strangers import is_stranger
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.words import listener_words, message_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.base.ids import LeaderAndEpoch, Listeners
    from quorate.node.replica import Answer, Effects, Input
    from quorate.raft.state import State

TELLS: Final = "a node tells all its listeners"
TAKES: Final = "a follower takes the endpoints of its leader"
_OF_ITSELF: Final = frozenset((AddVoterRequest, UpdateVoterRequest))


class Endpoints:
    def __init__(self) -> None:
        self._agreed: dict[int, tuple[Listeners, Listeners]] = {}
        """By node: what it was told of its leader last, and knows of it: the very same objects
        need not be compared again."""

    def look(self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
        for send in effects.sends:
            if type(send.request) in _OF_ITSELF:
                _check_itself(twin, send.request, state)  # type: ignore[arg-type]
        for answer in effects.answers:
            if type(answer.response) is not FetchResponse:
                _check_answer(twin, answer, state)
        if len(happened) == 1 and isinstance(state.role, Follower) and not effects.is_over:
            self._check_takes(twin, happened[0], state.role, state)

    def _check_takes(self, twin: Twin, item: Input, role: Follower, state: State) -> None:
        known = role.leader_endpoints
        if isinstance(item, Answered) and isinstance(item.response, FetchResponse):
            told, leader = item.response.leader_endpoints, item.response.leader
            agreed = self._agreed.get(twin.id)
            if agreed is not None and agreed[0] is told and agreed[1] is known:
                return
            if item.response.error is not ErrorCode.NONE or not _is_followed(leader, state):
                return
            fine = not _has_listener(told, state) or all(one in known for one in told)
            self._agreed[twin.id] = told, known
        elif isinstance(item, Received) and isinstance(item.request, BeginQuorumEpochRequest):
            told, leader = item.request.leader_endpoints, item.request.leader
            if not _is_followed(leader, state) or is_stranger(
                item.request, state.config.cluster_id
            ):
                return
            fine = not _has_listener(told, state) or len(known) >= len(told)
        else:
            return
        if not fine:
            raise Violation(
                TAKES,
                f"{twin} was told that node {leader.leader_id}, which it follows, listens at "
                f"{listener_words(told)}, and takes it to listen at {listener_words(known)}",
            )


def _is_followed(leader: LeaderAndEpoch, state: State) -> bool:
    return (leader.leader_id, leader.epoch) == (state.election.leader_id, state.election.epoch)


def _has_listener(told: Listeners, state: State) -> bool:
    """Is there one by which this node could ask?"""
    own = state.config.listeners
    return not own or any(listener.name == own[0].name for listener in told)


def _check_itself(twin: Twin, request: AddVoterRequest | UpdateVoterRequest, state: State) -> None:
    """Whose place among the voters is its own concern tells where it listens."""
    if request.listeners != state.config.listeners:
        raise Violation(
            TELLS,
            f"{twin} listens at {listener_words(state.config.listeners)}, and asks "
            f"{message_words(request)}",
        )


def _check_answer(twin: Twin, answer: Answer, state: State) -> None:
    """Who names itself as the leader says where it listens; of Fetches see `fetches`."""
    response = answer.response
    told: Listeners | None = getattr(response, "leader_endpoints", None)
    if told is None or not isinstance(state.role, Leader | Resigned):
        return
    leader: LeaderAndEpoch = response.leader  # type: ignore[union-attr]
    if leader.leader_id == twin.id and told != state.config.listeners:
        raise Violation(
            TELLS,
            f"{twin} listens at {listener_words(state.config.listeners)}, and answers "
            f"{message_words(response)}",
        )
