"""Durable before audible: what a message promises, the disk of its sender would give back."""

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
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import matches
from quorate.sim.checks.words import election_words, message_words
from quorate.sim.observe import Violation

CHECK = "durable before audible"


def _epoch(twin: Twin, epoch: int, message: object) -> None:
    if epoch > twin.vote.epoch:
        raise Violation(
            CHECK,
            f"{twin} speaks in epoch {epoch}, durable is {election_words(twin.vote)}: "
            f"{message_words(message)}",
        )


def _fetch(twin: Twin, request: FetchRequest) -> None:
    if request.epoch > twin.vote.epoch:
        _epoch(twin, request.epoch, request)
    synced = twin.synced
    if request.offset > synced.end or (
        request.offset == synced.end and request.last_fetched_epoch != synced.epoch
    ):
        raise Violation(
            CHECK,
            f"{twin} acknowledges {request.offset} of epoch {request.last_fetched_epoch}, durable "
            f"is its log up to {synced}",
        )


def _vote(twin: Twin, request: VoteRequest) -> None:
    _epoch(twin, request.epoch, request)
    vote, synced = twin.vote, twin.synced
    own = vote.voted is not None and vote.epoch == request.epoch and matches(vote.voted, twin.key)
    if not request.pre_vote and not own:
        raise Violation(
            CHECK,
            f"{twin} asks for votes in epoch {request.epoch}, durable is {election_words(vote)}",
        )
    claimed = (request.last_epoch, request.last_offset)
    if claimed > (synced.epoch, synced.end):
        told = f"a log to {request.last_offset} of epoch {request.last_epoch}"
        raise Violation(CHECK, f"{twin} claims {told}, durable is its log up to {synced}")


def _begin(twin: Twin, request: BeginQuorumEpochRequest | EndQuorumEpochRequest) -> None:
    _leader(twin, request.leader, request)
    if request.leader.leader_id != twin.id:
        text = f"{twin} speaks for another leader: {message_words(request)}"
        raise Violation("one leader acts", text)


def _named_epoch(twin: Twin, request: FetchSnapshotRequest | UpdateVoterRequest) -> None:
    _epoch(twin, request.epoch, request)


def _leader(twin: Twin, leader: LeaderAndEpoch, message: object) -> None:
    vote = twin.vote
    if leader.epoch > vote.epoch:
        _epoch(twin, leader.epoch, message)
    if leader.leader_id == twin.id and leader.epoch == vote.epoch and vote.leader_id != twin.id:
        raise Violation(
            CHECK,
            f"{twin} speaks as leader, durable is {election_words(vote)}: {message_words(message)}",
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
"""What to hold against the sender's disk when it sends one of these."""


def check_fetch_answer(twin: Twin, response: FetchResponse) -> None:
    """The leader of an epoch speaks, or one that names it."""
    leader = response.leader
    vote = twin.vote
    if leader.epoch > vote.epoch or leader.leader_id == twin.id != vote.leader_id:
        _leader(twin, leader, response)
    if response.high_watermark > twin.high_watermark and response.error is ErrorCode.NONE:
        raise Violation(
            "durable majority",
            f"{twin} tells of the high watermark {response.high_watermark}, and knows "
            f"{twin.high_watermark}",
        )


def _answer(
    twin: Twin,
    response: (
        VoteResponse
        | BeginQuorumEpochResponse
        | EndQuorumEpochResponse
        | FetchSnapshotResponse
        | UpdateVoterResponse
    ),
) -> None:
    _leader(twin, response.leader, response)


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
"""The same for answers; those to operators' requests name no epoch."""
