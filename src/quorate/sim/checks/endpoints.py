"""All listeners of a node are told, and what is told of them is taken (KIP-853).

Of the leader a follower takes what BeginQuorumEpoch tells when that is more than it knows
(`KafkaRaftClient.maybeTransition`), and what the leader's own Fetch answers tell, always.
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
from quorate.sim.checks.strangers import is_stranger
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.words import listener_words, message_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.base.ids import LeaderAndEpoch, Listeners
    from quorate.node.replica import Answer, Effects, Input
    from quorate.raft.ready import Send
    from quorate.raft.state import State

TELLS: Final = "a node tells all its listeners"
TAKES: Final = "a follower takes the endpoints of its leader"
ONCE: Final = "a voter tells a leader of itself once, or once in a while"


@dataclass(slots=True)
class _Report:
    role: Role
    """The follower that told its leader."""
    at_ms: int
    until_ms: int
    """When the request's time is up."""
    correlation: int
    is_done: bool = False


class Endpoints:
    def __init__(self) -> None:
        self._agreed: dict[int, tuple[Listeners, Listeners]] = {}
        """By node: what it was told of its leader last, and knows of it: the very same objects
        need not be compared again."""
        self._reports: dict[int, _Report] = {}
        """By node: its last UpdateRaftVoter in this life."""
        self._fetches: dict[int, tuple[int, int, int]] = {}
        """By node: its last Fetch, when its time is up, and how often it had forgotten all requests
        until then: what comes later is no answer to it any more."""

    def began(self, twin: Twin) -> None:
        self._reports.pop(twin.id, None)
        self._fetches.pop(twin.id, None)

    def look(self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
        report = self._reports.get(twin.id)
        if report is not None and not report.is_done and state.now < report.until_ms:
            _settle(report, happened, state)
        if len(happened) == 1 and isinstance(state.role, Follower) and not effects.is_over:
            self._check_takes(twin, happened[0], state.role, state)
        for send in effects.sends:
            if isinstance(send.request, FetchRequest):
                until = state.now + send.timeout_ms
                self._fetches[twin.id] = send.correlation, until, state.requests.resets
            elif isinstance(send.request, AddVoterRequest | UpdateVoterRequest):
                _check_itself(twin, send.request, state)
                if isinstance(send.request, UpdateVoterRequest):
                    self._check_again(twin, send, state)
        for answer in effects.answers:
            if type(answer.response) is not FetchResponse:
                _check_answer(twin, answer, state)

    def _check_again(self, twin: Twin, send: Send, state: State) -> None:
        """Once in a fetch timeout; at kraft.version 0 each leader hears it, and no more than that
        (`KafkaRaftClient.shouldSendUpdateVoteRequest`)."""
        now, role = state.now, state.role
        last = self._reports.get(twin.id)
        self._reports[twin.id] = _Report(role, now, now + send.timeout_ms, send.correlation)
        if last is None or last.role is not role:
            return
        done = last.is_done and twin.kraft_version < 1
        if done or now < last.at_ms + state.config.fetch_timeout_ms:
            raise Violation(
                ONCE,
                f"{twin} told node {send.to} of itself {now - last.at_ms} ms ago"
                f"{', was heard' if last.is_done else ''}, and does it again: "
                f"{message_words(send.request)}",
            )

    def _check_takes(self, twin: Twin, item: Input, role: Follower, state: State) -> None:
        known = role.leader_endpoints
        if isinstance(item, Answered) and isinstance(item.response, FetchResponse):
            told, leader = item.response.leader_endpoints, item.response.leader
            agreed = self._agreed.get(twin.id)
            if agreed is not None and agreed[0] is told and agreed[1] is known:
                return
            if item.response.error is not ErrorCode.NONE or not _is_followed(leader, state):
                return
            if not self._is_awaited(twin, item, state):
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

    def _is_awaited(self, twin: Twin, item: Answered, state: State) -> bool:
        correlation, until, resets = self._fetches.get(twin.id, (-1, 0, 0))
        in_time = state.now < until and resets == state.requests.resets
        return in_time and item.correlation == correlation


def _settle(report: _Report, happened: Sequence[Input], state: State) -> None:
    """Was it answered well, and in time?"""
    for item in happened:
        if isinstance(item, Answered) and item.correlation == report.correlation:
            good = item.response.error is ErrorCode.NONE
            report.is_done = good and _is_followed(item.response.leader, state)  # type: ignore[union-attr]


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
