"""Translates the raft requests that this node sends to peers: the core's messages to Kafka's, and
back.

`request_to_wire` gives the message for a request of the core; the codec refuses a version that has
no field for it (UnsupportedFieldError). `response_from_wire` translates the response. Which fields
Kafka's sender fills: `RaftUtil`, `KafkaRaftClient.build*Request`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    LeaderAndEpoch,
    Listener,
    Listeners,
    OffsetAndEpoch,
)
from quorate.formats.batch import iter_batches, to_raft_batch
from quorate.formats.errors import FormatError, NewerBatchError
from quorate.raft import messages as core
from quorate.raft.values import Batch
from quorate.wire import messages as wire
from quorate.wire.errors import WireError
from quorate.wire.schema import Message

CLIENT_NAME: Final = "quorate"
_FETCH_WITH_REPLICA_STATE: Final = 15


# -- requests -----------------------------------------------------------------------------------
def _fetch(request: core.FetchRequest, version: int) -> Message:
    topic = wire.FetchRequest.FetchTopic
    new = version >= _FETCH_WITH_REPLICA_STATE
    return wire.FetchRequest(
        cluster_id=request.cluster_id,
        # KIP-903: from version 15 on ReplicaState has the id, and the old field keeps its default.
        replica_id=-1 if new else request.replica.id,
        replica_state=wire.FetchRequest.ReplicaState(replica_id=request.replica.id if new else -1),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=[
            topic(
                topic=METADATA_TOPIC,
                topic_id=METADATA_TOPIC_ID,
                partitions=[
                    topic.FetchPartition(
                        current_leader_epoch=request.epoch,
                        fetch_offset=request.offset,
                        last_fetched_epoch=request.last_fetched_epoch,
                        replica_directory_id=request.replica.directory_id,
                        high_watermark=request.high_watermark,
                    )
                ],
            )
        ],
    )


def _fetch_snapshot(request: core.FetchSnapshotRequest, version: int) -> Message:
    topic = wire.FetchSnapshotRequest.TopicSnapshot
    part = topic.PartitionSnapshot
    offset, epoch = request.snapshot_id
    return wire.FetchSnapshotRequest(
        cluster_id=request.cluster_id,
        replica_id=request.replica.id,
        max_bytes=request.max_bytes,
        topics=[
            topic(
                name=METADATA_TOPIC,
                partitions=[
                    part(
                        current_leader_epoch=request.epoch,
                        snapshot_id=part.SnapshotId(end_offset=offset, epoch=epoch),
                        position=request.position,
                        replica_directory_id=request.replica.directory_id,
                    )
                ],
            )
        ],
    )


def _vote(request: core.VoteRequest, version: int) -> Message:
    partition = wire.VoteRequest.TopicData.PartitionData(
        replica_epoch=request.epoch,
        replica_id=request.candidate.id,
        replica_directory_id=request.candidate.directory_id,
        last_offset_epoch=request.last_epoch,
        last_offset=request.last_offset,
        pre_vote=request.pre_vote,
    )
    message = wire.VoteRequest(
        cluster_id=request.cluster_id,
        topics=[wire.VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
    )
    if request.voter is not None:
        message.voter_id, partition.voter_directory_id = request.voter
    return message


def _begin_epoch(request: core.BeginQuorumEpochRequest, version: int) -> Message:
    cls = wire.BeginQuorumEpochRequest
    partition = cls.TopicData.PartitionData(
        leader_id=request.leader.leader_id, leader_epoch=request.leader.epoch
    )
    message = cls(
        cluster_id=request.cluster_id,
        topics=[cls.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=_listeners(cls.LeaderEndpoint, request.leader_endpoints),
    )
    if request.voter is not None:
        message.voter_id, partition.voter_directory_id = request.voter
    return message


def _end_epoch(request: core.EndQuorumEpochRequest, version: int) -> Message:
    cls = wire.EndQuorumEpochRequest
    data = cls.TopicData.PartitionData
    partition = data(
        leader_id=request.leader.leader_id,
        leader_epoch=request.leader.epoch,
        # KIP-853: version 0 has the ids alone, version 1 the directory ids too. The codec writes the
        # list that the version has.
        preferred_successors=[key.id for key in request.preferred_candidates],
        preferred_candidates=[
            data.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in request.preferred_candidates
        ],
    )
    return cls(
        cluster_id=request.cluster_id,
        topics=[cls.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=_listeners(cls.LeaderEndpoint, request.leader_endpoints),
    )


def _add_voter(request: core.AddVoterRequest, version: int) -> Message:
    return wire.AddRaftVoterRequest(
        cluster_id=request.cluster_id,
        timeout_ms=request.timeout_ms,
        voter_id=request.voter.id,
        voter_directory_id=request.voter.directory_id,
        listeners=_listeners(wire.AddRaftVoterRequest.Listener, request.listeners),
        ack_when_committed=request.ack_when_committed,
    )


def _remove_voter(request: core.RemoveVoterRequest, version: int) -> Message:
    return wire.RemoveRaftVoterRequest(
        cluster_id=request.cluster_id,
        voter_id=request.voter.id,
        voter_directory_id=request.voter.directory_id,
    )


def _update_voter(request: core.UpdateVoterRequest, version: int) -> Message:
    cls = wire.UpdateRaftVoterRequest
    return cls(
        cluster_id=request.cluster_id,
        current_leader_epoch=request.epoch,
        voter_id=request.voter.id,
        voter_directory_id=request.voter.directory_id,
        listeners=_listeners(cls.Listener, request.listeners),
        kraft_version_feature=cls.KRaftVersionFeature(
            min_supported_version=request.min_kraft_version,
            max_supported_version=request.max_kraft_version,
        ),
    )


def _api_versions(request: core.ApiVersionsRequest, version: int) -> Message:
    return api_versions_request()


def api_versions_request() -> wire.ApiVersionsRequest:
    """The request with the name and version of this software (KIP-511)."""
    from quorate import __version__

    return wire.ApiVersionsRequest(
        client_software_name=CLIENT_NAME, client_software_version=__version__
    )


_REQUESTS: Final[dict[type[Any], tuple[int, Callable[[Any, int], Message]]]] = {
    core.FetchRequest: (1, _fetch),
    core.FetchSnapshotRequest: (59, _fetch_snapshot),
    core.VoteRequest: (52, _vote),
    core.BeginQuorumEpochRequest: (53, _begin_epoch),
    core.EndQuorumEpochRequest: (54, _end_epoch),
    core.AddVoterRequest: (80, _add_voter),
    core.RemoveVoterRequest: (81, _remove_voter),
    core.UpdateVoterRequest: (82, _update_voter),
    core.ApiVersionsRequest: (18, _api_versions),
}


def api_key_of(request: core.Request) -> int:
    """The key of the API that carries this request."""
    return _REQUESTS[type(request)][0]


def request_to_wire(request: core.Request, version: int) -> Message:
    """Kafka's request for `version` of its api."""
    return _REQUESTS[type(request)][1](request, version)


# -- responses ----------------------------------------------------------------------------------
def _fetch_answer(message: wire.FetchResponse, listener: str) -> core.Response:
    if message.error_code:
        return core.FetchResponse(ErrorCode.of(message.error_code))
    partition = _single(message.responses, "Fetch")
    leader = LeaderAndEpoch(
        partition.current_leader.leader_id, partition.current_leader.leader_epoch
    )
    diverging = partition.diverging_epoch
    snapshot = partition.snapshot_id
    return core.FetchResponse(
        error=ErrorCode.of(partition.error_code),
        leader=leader,
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        diverging=_place(diverging.end_offset, diverging.epoch),
        snapshot_id=_place(snapshot.end_offset, snapshot.epoch),
        batches=_batches(partition.records),
        leader_endpoints=_leader_endpoints(message, leader.leader_id, listener),
    )


def _place(offset: int, epoch: int) -> OffsetAndEpoch | None:
    return None if offset < 0 and epoch < 0 else OffsetAndEpoch(offset, epoch)


def _batches(records: bytes | None) -> tuple[Batch, ...]:
    """The valid batches at the front; a corrupt one and those after it are fetched again."""
    found: list[Batch] = []
    try:
        for view in iter_batches(records or b"", cut_tail=True):
            found.append(to_raft_batch(view))
    except NewerBatchError as error:
        if not found:
            raise WireError(f"a newer release wrote the fetched records: {error}") from None
    except FormatError as error:
        if not found:
            raise WireError(f"the fetched records are damaged: {error}") from None
    return tuple(found)


def _fetch_snapshot_answer(message: wire.FetchSnapshotResponse, listener: str) -> core.Response:
    if message.error_code:
        return core.FetchSnapshotResponse(ErrorCode.of(message.error_code))
    partition = _single(message.topics, "FetchSnapshot")
    leader = LeaderAndEpoch(
        partition.current_leader.leader_id, partition.current_leader.leader_epoch
    )
    return core.FetchSnapshotResponse(
        error=ErrorCode.of(partition.error_code),
        leader=leader,
        snapshot_id=OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        size=partition.size,
        position=partition.position,
        chunk=bytes(partition.unaligned_records),
        leader_endpoints=_leader_endpoints(message, leader.leader_id, listener),
    )


def _vote_answer(message: wire.VoteResponse, listener: str) -> core.Response:
    if message.error_code:
        return core.VoteResponse(ErrorCode.of(message.error_code))
    partition = _single(message.topics, "Vote")
    return core.VoteResponse(
        error=ErrorCode.of(partition.error_code),
        leader=LeaderAndEpoch(partition.leader_id, partition.leader_epoch),
        granted=partition.vote_granted,
        leader_endpoints=_leader_endpoints(message, partition.leader_id, listener),
    )


def _begin_epoch_answer(message: wire.BeginQuorumEpochResponse, listener: str) -> core.Response:
    return _epoch_answer(core.BeginQuorumEpochResponse, message, listener, "BeginQuorumEpoch")


def _end_epoch_answer(message: wire.EndQuorumEpochResponse, listener: str) -> core.Response:
    return _epoch_answer(core.EndQuorumEpochResponse, message, listener, "EndQuorumEpoch")


def _epoch_answer(cls: Any, message: Any, listener: str, name: str) -> core.Response:
    error = ErrorCode.of(message.error_code)
    if message.error_code:
        refused: core.Response = cls(error)
        return refused
    partition = _single(message.topics, name)
    answer: core.Response = cls(
        error=ErrorCode.of(partition.error_code),
        leader=LeaderAndEpoch(partition.leader_id, partition.leader_epoch),
        leader_endpoints=_leader_endpoints(message, partition.leader_id, listener),
    )
    return answer


def _add_voter_answer(message: wire.AddRaftVoterResponse, listener: str) -> core.Response:
    return core.AddVoterResponse(ErrorCode.of(message.error_code), message.error_message)


def _remove_voter_answer(message: wire.RemoveRaftVoterResponse, listener: str) -> core.Response:
    return core.RemoveVoterResponse(ErrorCode.of(message.error_code), message.error_message)


def _update_voter_answer(message: wire.UpdateRaftVoterResponse, listener: str) -> core.Response:
    leader = message.current_leader
    endpoints: Listeners = ()
    if leader.leader_id >= 0 and leader.host:
        endpoints = (Listener(listener, leader.host, leader.port),)
    return core.UpdateVoterResponse(
        ErrorCode.of(message.error_code),
        LeaderAndEpoch(leader.leader_id, leader.leader_epoch),
        endpoints,
    )


def _api_versions_answer(message: wire.ApiVersionsResponse, listener: str) -> core.Response:
    return core.ApiVersionsResponse(
        ErrorCode.of(message.error_code),
        {
            feature.name: (feature.min_version, feature.max_version)
            for feature in message.supported_features
        },
    )


_RESPONSES: Final[dict[type[Message], Callable[[Any, str], core.Response]]] = {
    wire.FetchResponse: _fetch_answer,
    wire.FetchSnapshotResponse: _fetch_snapshot_answer,
    wire.VoteResponse: _vote_answer,
    wire.BeginQuorumEpochResponse: _begin_epoch_answer,
    wire.EndQuorumEpochResponse: _end_epoch_answer,
    wire.AddRaftVoterResponse: _add_voter_answer,
    wire.RemoveRaftVoterResponse: _remove_voter_answer,
    wire.UpdateRaftVoterResponse: _update_voter_answer,
    wire.ApiVersionsResponse: _api_versions_answer,
}


def response_from_wire(message: Message, listener: str) -> core.Response:
    """The core's response; `listener` is the name of the listener that reaches the peers.

    Raises WireError when it is about another partition, or when its first batch is corrupt.
    """
    return _RESPONSES[type(message)](message, listener)


def _single(topics: Any, name: str) -> Any:
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise WireError(f"the {name} response is not about the metadata partition alone")
    return topics[0].partitions[0]


def _leader_endpoints(message: Any, leader_id: int, listener: str) -> Listeners:
    return tuple(
        Listener(listener, node.host, node.port)
        for node in message.node_endpoints
        if node.node_id == leader_id
    )


def _listeners(cls: Any, listeners: Listeners) -> list[Any]:
    return [cls(name=name, host=host, port=port) for name, host, port in listeners]
