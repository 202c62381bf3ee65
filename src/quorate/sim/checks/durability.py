"""Durable before sent: the sender's disk would return the state that a message states.

KIP-595: a replica persists its epoch and its vote before it responds, and a follower's Fetch offset
states what it has flushed. A crash must not retract a sent message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
    Response,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorate.sim.checks.messages import election_words, message_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voters import matches
from quorate.sim.world.observer import ViolationError

CHECK = "durable before sent"
"""The check of every function of this file."""


def _epoch(model: ReplicaModel, epoch: int, message: object) -> None:
    if epoch > model.vote.epoch:
        raise ViolationError(
            CHECK,
            f"{model} sends in epoch {epoch}, durable is {election_words(model.vote)}: "
            f"{message_words(message)}",
        )


def _fetch(model: ReplicaModel, request: FetchRequest) -> None:
    if request.epoch > model.vote.epoch:
        _epoch(model, request.epoch, request)
    synced = model.durable_tip
    if request.offset > synced.end or (
        request.offset == synced.end and request.last_fetched_epoch != synced.epoch
    ):
        raise ViolationError(
            CHECK,
            f"{model} acknowledges {request.offset} of epoch {request.last_fetched_epoch}, durable "
            f"is its log up to {synced}",
        )


def _vote(model: ReplicaModel, request: VoteRequest) -> None:
    _epoch(model, request.epoch, request)
    vote, synced = model.vote, model.durable_tip
    own = vote.voted is not None and vote.epoch == request.epoch and matches(vote.voted, model.key)
    if not request.pre_vote and not own:
        raise ViolationError(
            CHECK,
            f"{model} asks for votes in epoch {request.epoch}, durable is {election_words(vote)}",
        )
    claimed = (request.last_epoch, request.last_offset)
    if claimed > (synced.epoch, synced.end):
        claim = f"a log to {request.last_offset} of epoch {request.last_epoch}"
        raise ViolationError(CHECK, f"{model} claims {claim}, durable is its log up to {synced}")


def _begin(model: ReplicaModel, request: BeginQuorumEpochRequest | EndQuorumEpochRequest) -> None:
    _leader(model, request.leader, request)
    if request.leader.leader_id != model.id:
        text = f"{model} sends in the name of another leader: {message_words(request)}"
        raise ViolationError("only the leader acts", text)


def _named_epoch(model: ReplicaModel, request: FetchSnapshotRequest | UpdateVoterRequest) -> None:
    _epoch(model, request.epoch, request)


def _leader(model: ReplicaModel, leader: LeaderAndEpoch, message: object) -> None:
    vote = model.vote
    if leader.epoch > vote.epoch:
        _epoch(model, leader.epoch, message)
    if leader.leader_id == model.id and leader.epoch == vote.epoch and vote.leader_id != model.id:
        raise ViolationError(
            CHECK,
            f"{model} sends as leader, durable is {election_words(vote)}: {message_words(message)}",
        )


REQUESTS: Mapping[type[Request], Callable[..., None]] = MappingProxyType(
    {
        FetchRequest: _fetch,
        VoteRequest: _vote,
        BeginQuorumEpochRequest: _begin,
        EndQuorumEpochRequest: _begin,
        FetchSnapshotRequest: _named_epoch,
        UpdateVoterRequest: _named_epoch,
    }
)
"""By request type: the check of the sender's disk."""


def check_fetch_answer(model: ReplicaModel, response: FetchResponse) -> None:
    """A Fetch response comes from the leader of the epoch, or names it."""
    leader = response.leader
    vote = model.vote
    if leader.epoch > vote.epoch or leader.leader_id == model.id != vote.leader_id:
        _leader(model, leader, response)
    if response.high_watermark > model.high_watermark and response.error is ErrorCode.NONE:
        raise ViolationError(
            "durable majority",
            f"{model} sends the high watermark {response.high_watermark}, and knows "
            f"{model.high_watermark}",
        )


def _answer(
    model: ReplicaModel,
    response: (
        VoteResponse
        | BeginQuorumEpochResponse
        | EndQuorumEpochResponse
        | FetchSnapshotResponse
        | UpdateVoterResponse
    ),
) -> None:
    _leader(model, response.leader, response)


ANSWERS: Mapping[type[Response], Callable[..., None]] = MappingProxyType(
    {
        FetchResponse: check_fetch_answer,
        VoteResponse: _answer,
        BeginQuorumEpochResponse: _answer,
        EndQuorumEpochResponse: _answer,
        FetchSnapshotResponse: _answer,
        UpdateVoterResponse: _answer,
    }
)
"""By response type: the check of the sender's disk. Responses to operators name no epoch."""
