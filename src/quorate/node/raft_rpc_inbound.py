"""Translates the raft requests that this node answers: Kafka's messages to the core's, and back.

`request_from_wire` translates the request of a peer or a tool, `response_to_wire` the core's
response, for the version of the request. Placement of errors, leader and endpoints: `RaftUtil`,
`KafkaRaftClient`. The requests that this node sends are translated by `raft_rpc_outbound`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.base.ids import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    LeaderAndEpoch,
    Listener,
    Listeners,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorate.raft import messages as core
from quorate.wire import messages as wire
from quorate.wire.schema import Message

_TOP_LEVEL: Final = frozenset(
    {ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
)
"""Errors of the whole request; all others are errors of its one partition."""
_FETCH_WITH_ENDPOINTS: Final = 17
_FETCH_WITH_REPLICA_STATE: Final = 15


class Asked(NamedTuple):
    """The version and the listener of a request: its response must fit both."""

    version: int
    listener: str
    """Name, upper case."""


Incoming = core.Request | Message
"""The core's request; or, as a Message, the response where the core need not be asked."""


def listeners_from_wire(endpoints: Any) -> Listeners:
    """Structs with name, host and port as listeners; names in upper case."""
    return tuple(Listener(end.name.upper(), end.host, end.port) for end in endpoints)


# -- requests -----------------------------------------------------------------------------------
def _fetch(message: wire.FetchRequest, version: int) -> Incoming:
    # Before topics had ids a Fetch names none: of no topic, to Kafka's controllers.
    partition = _single(message.topics, "partition", lambda t: t.topic_id == METADATA_TOPIC_ID)
    if partition is None:
        return wire.FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    new = version >= _FETCH_WITH_REPLICA_STATE
    replica_id = message.replica_state.replica_id if new else message.replica_id
    return core.FetchRequest(
        cluster_id=message.cluster_id,
        replica=ReplicaKey(replica_id, partition.replica_directory_id),
        epoch=partition.current_leader_epoch,
        offset=partition.fetch_offset,
        last_fetched_epoch=partition.last_fetched_epoch,
        max_wait_ms=message.max_wait_ms,
        max_bytes=message.max_bytes,
        high_watermark=partition.high_watermark,
    )


def _fetch_snapshot(message: wire.FetchSnapshotRequest, version: int) -> Incoming:
    if len(message.topics) != 1 or len(message.topics[0].partitions) != 1:
        return wire.FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    topic = message.topics[0]
    partition = topic.partitions[0]
    if topic.name != METADATA_TOPIC or partition.partition != 0:
        return _unknown_snapshot_partition(topic.name, partition.partition)
    return core.FetchSnapshotRequest(
        cluster_id=message.cluster_id,
        replica=ReplicaKey(message.replica_id, partition.replica_directory_id),
        epoch=partition.current_leader_epoch,
        snapshot_id=OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        position=partition.position,
        max_bytes=message.max_bytes,
    )


def _unknown_snapshot_partition(name: str, index: int) -> Message:
    topic = wire.FetchSnapshotResponse.TopicSnapshot
    return wire.FetchSnapshotResponse(
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.PartitionSnapshot(
                        index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                ],
            )
        ]
    )


def _vote(message: wire.VoteRequest, version: int) -> Incoming:
    partition = _single(message.topics, "partition_index", _is_metadata_topic)
    if partition is None:
        return wire.VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
    return core.VoteRequest(
        cluster_id=message.cluster_id,
        voter=_receiver(message.voter_id, partition.voter_directory_id),
        epoch=partition.replica_epoch,
        candidate=ReplicaKey(partition.replica_id, partition.replica_directory_id),
        last_epoch=partition.last_offset_epoch,
        last_offset=partition.last_offset,
        pre_vote=partition.pre_vote,
    )


def _begin_epoch(message: wire.BeginQuorumEpochRequest, version: int) -> Incoming:
    partition = _single(message.topics, "partition_index", _is_metadata_topic)
    if partition is None:
        return wire.BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    return core.BeginQuorumEpochRequest(
        cluster_id=message.cluster_id,
        voter=_receiver(message.voter_id, partition.voter_directory_id),
        leader=LeaderAndEpoch(partition.leader_id, partition.leader_epoch),
        leader_endpoints=listeners_from_wire(message.leader_endpoints),
    )


def _end_epoch(message: wire.EndQuorumEpochRequest, version: int) -> Incoming:
    partition = _single(message.topics, "partition_index", _is_metadata_topic)
    if partition is None:
        return wire.EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    if version >= 1:
        candidates = tuple(
            ReplicaKey(candidate.candidate_id, candidate.candidate_directory_id)
            for candidate in partition.preferred_candidates
        )
    else:
        candidates = tuple(ReplicaKey(node) for node in partition.preferred_successors)
    return core.EndQuorumEpochRequest(
        cluster_id=message.cluster_id,
        leader=LeaderAndEpoch(partition.leader_id, partition.leader_epoch),
        preferred_candidates=candidates,
        leader_endpoints=listeners_from_wire(message.leader_endpoints),
    )


def _add_voter(message: wire.AddRaftVoterRequest, version: int) -> Incoming:
    return core.AddVoterRequest(
        cluster_id=message.cluster_id,
        voter=ReplicaKey(message.voter_id, message.voter_directory_id),
        listeners=listeners_from_wire(message.listeners),
        timeout_ms=message.timeout_ms,
        ack_when_committed=message.ack_when_committed,
    )


def _remove_voter(message: wire.RemoveRaftVoterRequest, version: int) -> Incoming:
    return core.RemoveVoterRequest(
        cluster_id=message.cluster_id,
        voter=ReplicaKey(message.voter_id, message.voter_directory_id),
    )


def _update_voter(message: wire.UpdateRaftVoterRequest, version: int) -> Incoming:
    return core.UpdateVoterRequest(
        cluster_id=message.cluster_id,
        epoch=message.current_leader_epoch,
        voter=ReplicaKey(message.voter_id, message.voter_directory_id),
        listeners=listeners_from_wire(message.listeners),
        min_kraft_version=message.kraft_version_feature.min_supported_version,
        max_kraft_version=message.kraft_version_feature.max_supported_version,
    )


_REQUESTS: Final[dict[type[Message], Callable[[Any, int], Incoming]]] = {
    wire.FetchRequest: _fetch,
    wire.FetchSnapshotRequest: _fetch_snapshot,
    wire.VoteRequest: _vote,
    wire.BeginQuorumEpochRequest: _begin_epoch,
    wire.EndQuorumEpochRequest: _end_epoch,
    wire.AddRaftVoterRequest: _add_voter,
    wire.RemoveRaftVoterRequest: _remove_voter,
    wire.UpdateRaftVoterRequest: _update_voter,
}


def request_from_wire(message: Any, version: int, cluster_id: str | None = None) -> Incoming:
    """The core's request; or the response at once where it names another partition.

    With `cluster_id`, that of this node, another cluster is refused before another partition
    (`hasValidClusterId`). Otherwise the core refuses it.
    """
    incoming = _REQUESTS[type(message)](message, version)
    if (
        isinstance(incoming, Message)
        and cluster_id
        and message.cluster_id not in (None, cluster_id)
    ):
        answer: Any = type(incoming)
        incoming = answer(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    return incoming


def _single(topics: Any, index_name: str, is_ours: Callable[[Any], bool]) -> Any:
    """The only partition of the request; None when it is not the metadata partition alone."""
    if len(topics) != 1 or not is_ours(topics[0]) or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if getattr(partition, index_name) == 0 else None


def _is_metadata_topic(topic: Any) -> bool:
    return bool(topic.topic_name == METADATA_TOPIC)


def _receiver(voter_id: int, directory_id: Any) -> ReplicaKey | None:
    return None if voter_id < 0 else ReplicaKey(voter_id, directory_id)


# -- responses ----------------------------------------------------------------------------------
_NOT_DIVERGING: Final = wire.FetchResponse.FetchableTopicResponse.PartitionData.EpochEndOffset()
_NO_SNAPSHOT: Final = wire.FetchResponse.FetchableTopicResponse.PartitionData.SnapshotId()
"""What most responses have, made once: nobody changes them."""


def _fetch_answer(response: core.FetchResponse, data: bytes, asked: Asked) -> Message:
    if response.error and response.error in _TOP_LEVEL:
        return wire.FetchResponse(error_code=response.error)
    topic = wire.FetchResponse.FetchableTopicResponse
    data_of = topic.PartitionData
    partition = data_of(
        error_code=response.error,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
        diverging_epoch=_NOT_DIVERGING,
        current_leader=data_of.LeaderIdAndEpoch(
            leader_id=response.leader.leader_id, leader_epoch=response.leader.epoch
        ),
        snapshot_id=_NO_SNAPSHOT,
        records=data,
    )
    if response.diverging is not None:
        offset, epoch = response.diverging
        partition.diverging_epoch = data_of.EpochEndOffset(epoch=epoch, end_offset=offset)
    if response.snapshot_id is not None:
        offset, epoch = response.snapshot_id
        partition.snapshot_id = data_of.SnapshotId(end_offset=offset, epoch=epoch)
    found = _leader_endpoint(response, asked) if asked.version >= _FETCH_WITH_ENDPOINTS else None
    return wire.FetchResponse(
        responses=[topic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        node_endpoints=_endpoints(wire.FetchResponse.NodeEndpoint, response, found),
    )


def _fetch_snapshot_answer(
    response: core.FetchSnapshotResponse, data: bytes, asked: Asked
) -> Message:
    if response.error in _TOP_LEVEL:
        return wire.FetchSnapshotResponse(error_code=response.error)
    topic = wire.FetchSnapshotResponse.TopicSnapshot
    part = topic.PartitionSnapshot
    partition = part(
        error_code=response.error,
        current_leader=part.LeaderIdAndEpoch(
            leader_id=response.leader.leader_id, leader_epoch=response.leader.epoch
        ),
    )
    if response.error is ErrorCode.NONE:
        offset, epoch = response.snapshot_id
        partition.snapshot_id = part.SnapshotId(end_offset=offset, epoch=epoch)
        partition.size = response.size
        partition.position = response.position
        partition.unaligned_records = data
    found = _leader_endpoint(response, asked) if asked.version >= 1 else None
    return wire.FetchSnapshotResponse(
        topics=[topic(name=METADATA_TOPIC, partitions=[partition])],
        node_endpoints=_endpoints(wire.FetchSnapshotResponse.NodeEndpoint, response, found),
    )


def _vote_answer(response: core.VoteResponse, data: bytes, asked: Asked) -> Message:
    return _election_answer(wire.VoteResponse, response, asked, vote_granted=response.granted)


def _begin_epoch_answer(
    response: core.BeginQuorumEpochResponse, data: bytes, asked: Asked
) -> Message:
    return _election_answer(wire.BeginQuorumEpochResponse, response, asked)


def _end_epoch_answer(response: core.EndQuorumEpochResponse, data: bytes, asked: Asked) -> Message:
    return _election_answer(wire.EndQuorumEpochResponse, response, asked)


def _election_answer(cls: Any, response: Any, asked: Asked, **fields: Any) -> Message:
    """Responses to Vote, BeginQuorumEpoch and EndQuorumEpoch have the same structure."""
    if response.error in _TOP_LEVEL:
        refused: Message = cls(error_code=response.error)
        return refused
    partition = cls.TopicData.PartitionData(
        error_code=response.error,
        leader_id=response.leader.leader_id,
        leader_epoch=response.leader.epoch,
        **fields,
    )
    found = _leader_endpoint(response, asked) if asked.version >= 1 else None
    answer: Message = cls(
        topics=[cls.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        node_endpoints=_endpoints(cls.NodeEndpoint, response, found),
    )
    return answer


def _add_voter_answer(response: core.AddVoterResponse, data: bytes, asked: Asked) -> Message:
    return wire.AddRaftVoterResponse(error_code=response.error, error_message=response.message)


def _remove_voter_answer(response: core.RemoveVoterResponse, data: bytes, asked: Asked) -> Message:
    return wire.RemoveRaftVoterResponse(error_code=response.error, error_message=response.message)


def _update_voter_answer(response: core.UpdateVoterResponse, data: bytes, asked: Asked) -> Message:
    leader = wire.UpdateRaftVoterResponse.CurrentLeader(
        leader_id=response.leader.leader_id, leader_epoch=response.leader.epoch
    )
    found = _leader_endpoint(response, asked)
    if found is not None:
        leader.host, leader.port = found.host, found.port
    return wire.UpdateRaftVoterResponse(error_code=response.error, current_leader=leader)


_RESPONSES: Final[dict[type[Any], Callable[[Any, bytes, Asked], Message]]] = {
    core.FetchResponse: _fetch_answer,
    core.FetchSnapshotResponse: _fetch_snapshot_answer,
    core.VoteResponse: _vote_answer,
    core.BeginQuorumEpochResponse: _begin_epoch_answer,
    core.EndQuorumEpochResponse: _end_epoch_answer,
    core.AddVoterResponse: _add_voter_answer,
    core.RemoveVoterResponse: _remove_voter_answer,
    core.UpdateVoterResponse: _update_voter_answer,
}


def response_to_wire(response: core.Response, data: bytes, asked: Asked) -> Message:
    """Kafka's response; `data` are the bytes that the core's response refers to."""
    return _RESPONSES[type(response)](response, data, asked)


def _leader_endpoint(response: Any, asked: Asked) -> Listener | None:
    """The leader's endpoint for the listener that the request came on."""
    if response.leader.leader_id < 0:
        return None
    for listener in response.leader_endpoints:
        if listener.name.upper() == asked.listener:
            return Listener(*listener)
    return None


def _endpoints(cls: Any, response: Any, found: Listener | None) -> list[Any]:
    if found is None:
        return []
    return [cls(node_id=response.leader.leader_id, host=found.host, port=found.port)]
