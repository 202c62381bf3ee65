"""Routes each request and each response of a replica to the checks that concern it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.raft.inputs import Received
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
from quorate.raft.roles import Follower, Leader
from quorate.sim.checks.clients import ClientCheck
from quorate.sim.checks.cluster_id import ForeignClusterCheck, is_foreign
from quorate.sim.checks.durability import ANSWERS, CHECK, REQUESTS, check_fetch_answer
from quorate.sim.checks.elections import ElectionCheck
from quorate.sim.checks.epoch_notifications import check_begin_accepted
from quorate.sim.checks.fetch_responses import FetchResponseCheck
from quorate.sim.checks.history import ClusterHistory
from quorate.sim.checks.leader_duties import LeaderDutyCheck
from quorate.sim.checks.messages import message_words, vote_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voter_changes import VoterChangeCheck
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.messages import Request
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Answer, Effects

_ANY_EPOCH: Final = 1 << 31
"""Later than every epoch."""
_CheckedRequest = VoteRequest | BeginQuorumEpochRequest | AddVoterRequest | RemoveVoterRequest
_CHECKED_REQUESTS: Final = frozenset(
    (VoteRequest, BeginQuorumEpochRequest, AddVoterRequest, RemoveVoterRequest)
)
_LEADER_REQUESTS: Final = frozenset((FetchRequest, FetchSnapshotRequest, UpdateVoterRequest))
"""Requests that only the leader of their epoch serves."""
_VOTER_CHANGES: Final = frozenset((AddVoterRequest, RemoveVoterRequest, UpdateVoterRequest))


class MessageChecks:
    """The requests that a replica received and has not answered, and the checks of its messages.

    A request may wait in the replica while its epoch and its role change. What a check needs to
    know of the moment of arrival is recorded then.
    """

    def __init__(
        self,
        history: ClusterHistory,
        elections: ElectionCheck,
        leader_duties: LeaderDutyCheck,
        clients: ClientCheck,
        voter_changes: VoterChangeCheck,
        fetch_responses: FetchResponseCheck,
        foreign_cluster: ForeignClusterCheck,
    ) -> None:
        self._history = history
        self._elections = elections
        self._leader_duties = leader_duties
        self._clients = clients
        self._voter_changes = voter_changes
        self._fetch_responses = fetch_responses
        self._foreign_cluster = foreign_cluster
        self._asked: dict[tuple[int, int], _CheckedRequest] = {}
        """By node and reply_to: requests whose response is checked against them."""
        self._leader_was_known: set[tuple[int, int]] = set()
        """By node and reply_to: pre-vote requests to a replica that led, or knew a live leader,
        before the step that took the request."""
        self._fenced: set[tuple[int, int]] = set()
        """By node and reply_to: requests of an epoch that was over at their arrival. Also requests
        to a leader, in an epoch that the receiver does not know."""

    def process_started(self, model: ReplicaModel) -> None:
        """Forget the requests of the previous incarnation: it never answers them.

        A node may number the requests of each incarnation from the start (ControllerNode does).
        """
        for request in [name for name in self._asked if name[0] == model.id]:
            del self._asked[request]
        self._leader_was_known = {name for name in self._leader_was_known if name[0] != model.id}
        self._fenced = {name for name in self._fenced if name[0] != model.id}

    def received(
        self, model: ReplicaModel, item: Received, effects: Effects, state: RaftState, alone: bool
    ) -> None:
        """A request arrived. `alone`: it is the only input of its step."""
        request = item.request
        if is_foreign(request, state.config.cluster_id):
            self._foreign_cluster.request_received(model, item.reply_to, request)
            return
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            self._fetch_responses.request_received(model, item.reply_to, request, state.now)
        epoch, of_leader = _epoch_of(request), type(request) in _LEADER_REQUESTS
        if epoch < model.election.epoch or (of_leader and epoch > state.election.epoch):
            self._fenced.add((model.id, item.reply_to))
            if of_leader:
                return
        if type(request) in _VOTER_CHANGES:
            self._voter_changes.request_received(model, item.reply_to, request, state)  # type: ignore[arg-type]
        if type(request) in _CHECKED_REQUESTS:
            self._asked[model.id, item.reply_to] = request  # type: ignore[assignment]
            pre_vote = isinstance(request, VoteRequest) and request.pre_vote
            if pre_vote and state.now < model.leader_known_until_ms:
                self._leader_was_known.add((model.id, item.reply_to))
        elif type(request) in _LEADER_REQUESTS:
            model.received.add(
                item.reply_to,
                request,
                state.now,
                epoch=model.election.epoch,
                log_end=model.tip.end,
            )
        elif (
            isinstance(request, EndQuorumEpochRequest)
            and not effects.is_over
            and (alone or model.leader_known_until_ms)  # else it may follow only since then
        ):
            self._leader_duties.epoch_end_received(model, request, state)

    def sent(self, model: ReplicaModel, effects: Effects, state: RaftState) -> None:
        """Check the requests and the responses of a whole step."""
        for send in effects.sends:
            check = REQUESTS.get(type(send.request))
            if check is not None:
                check(model, send.request)
        for answer in effects.answers:
            response = answer.response
            if self._fenced and (model.id, answer.reply_to) in self._fenced:
                self._check_fence(model, answer)
            self._leader_duties.answered(model, answer.reply_to, response, state)
            self._fetch_responses.answered(model, answer, state)
            if isinstance(response, FetchResponse):
                check_fetch_answer(model, response)
                continue
            check = ANSWERS.get(type(response))
            if check is not None:
                check(model, response)
            name = (model.id, answer.reply_to)
            asked = self._asked.pop(name, None)
            if isinstance(response, VoteResponse):
                leader_was_known = name in self._leader_was_known
                self._leader_was_known.discard(name)
                if response.granted and isinstance(asked, VoteRequest):
                    self._granted(model, asked, state, leader_was_known)
            elif isinstance(asked, BeginQuorumEpochRequest):
                check_begin_accepted(model, asked, response, state)
            elif isinstance(response, AddVoterResponse | RemoveVoterResponse):
                assert isinstance(asked, AddVoterRequest | RemoveVoterRequest)
                self._clients.voter_change_answered(model, asked, response)
                self._voter_changes.answered(
                    model, answer.reply_to, response, state, is_over=effects.is_over
                )
            elif isinstance(response, UpdateVoterResponse):
                self._voter_changes.answered(
                    model, answer.reply_to, response, state, is_over=effects.is_over
                )

    def _check_fence(self, model: ReplicaModel, answer: Answer) -> None:
        """A request of another epoch than the receiver's has no success (KIP-595)."""
        self._fenced.discard((model.id, answer.reply_to))
        if answer.response.error == ErrorCode.NONE:
            raise ViolationError(
                "fencing",
                f"{model} is in epoch {model.election.epoch} and answers a request of another one: "
                f"{message_words(answer.response)}",
            )

    def _granted(
        self, model: ReplicaModel, asked: VoteRequest, state: RaftState, leader_was_known: bool
    ) -> None:
        """A granted vote is durable. A replica with a live leader grants no pre-vote (KIP-996).

        `leader_was_known`: it led, or its leader was alive, before the step that took the request
        too. Within one step it may first grant and then lead.
        """
        if asked.pre_vote:
            role = state.role
            hears = isinstance(role, Leader) or (isinstance(role, Follower) and role.has_fetched)
            if leader_was_known and hears:
                raise ViolationError(
                    "a removed voter does not disturb",
                    f"{model} leads or hears the leader of epoch {state.epoch}, and grants a "
                    f"pre-vote to {asked.candidate}",
                )
            self._elections.granted_pre_vote(model, asked.epoch, asked.candidate)
            return
        given = self._history.votes.get(asked.epoch, {}).get(model.key)
        if given is None or given.id != asked.candidate.id:
            raise ViolationError(
                CHECK,
                f"{model} grants its vote of epoch {asked.epoch} to {asked.candidate}, durable is "
                f"{vote_words(given)}",
            )


def _epoch_of(request: Request) -> int:
    """The epoch of the sender; for a request of an operator, one that is never over."""
    if isinstance(request, FetchRequest | VoteRequest | FetchSnapshotRequest | UpdateVoterRequest):
        return request.epoch
    if isinstance(request, BeginQuorumEpochRequest | EndQuorumEpochRequest):
        return request.leader.epoch
    return _ANY_EPOCH
