"""Refusals: the answer of the right kind for each request."""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    Request,
    Response,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.roles import Leader
from quorate.raft.state import RaftState

_ANSWER: Final[dict[type[Request], type[Response]]] = {
    VoteRequest: VoteResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
    FetchRequest: FetchResponse,
    FetchSnapshotRequest: FetchSnapshotResponse,
    AddVoterRequest: AddVoterResponse,
    RemoveVoterRequest: RemoveVoterResponse,
    UpdateVoterRequest: UpdateVoterResponse,
    ApiVersionsRequest: ApiVersionsResponse,
}


def bare_refusal(request: Request, error: ErrorCode, message: str | None = None) -> Response:
    """An answer with nothing but an error (top level on the wire)."""
    if isinstance(request, AddVoterRequest):
        return AddVoterResponse(error, message)
    if isinstance(request, RemoveVoterRequest):
        return RemoveVoterResponse(error, message)
    return _ANSWER[type(request)](error)


def with_error(response: Response, error: ErrorCode) -> Response:
    """The error in place of an answer that will never be true."""
    return type(response)(error)


def refusal(
    s: RaftState, request: Request, error: ErrorCode, message: str | None = None
) -> Response:
    """An answer with an error, and the leader that this node knows where the answer has room."""
    leader, endpoints = s.leader_and_epoch, s.leader_endpoints
    if isinstance(request, VoteRequest):
        return VoteResponse(error, leader, False, endpoints)
    if isinstance(request, FetchRequest):
        start = s.log.start_offset
        return FetchResponse(error, leader, log_start_offset=start, leader_endpoints=endpoints)
    if isinstance(request, FetchSnapshotRequest):
        return FetchSnapshotResponse(error, leader, leader_endpoints=endpoints)
    if isinstance(request, BeginQuorumEpochRequest):
        return BeginQuorumEpochResponse(error, leader, endpoints)
    if isinstance(request, EndQuorumEpochRequest):
        return EndQuorumEpochResponse(error, leader, endpoints)
    if isinstance(request, AddVoterRequest | RemoveVoterRequest | ApiVersionsRequest):
        return bare_refusal(request, error, message)
    return UpdateVoterResponse(error, leader, endpoints)


def refuse(
    s: RaftState, reply_to: int, request: Request, error: ErrorCode, message: str | None = None
) -> None:
    s.out.reply(reply_to, refusal(s, request, error, message))


def leader_error(s: RaftState, epoch: int) -> ErrorCode | None:
    """Why this node cannot serve a request for the leader of `epoch`; None when it can.

    `KafkaRaftClient.validateLeaderOnlyRequest`.
    """
    if epoch < s.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > s.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(s.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if s.shutdown_deadline is not None:
        return ErrorCode.BROKER_NOT_AVAILABLE
    return None


def wrong_cluster(s: RaftState, cluster_id: str | None) -> bool:
    return cluster_id is not None and cluster_id != s.config.cluster_id
