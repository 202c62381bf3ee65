"""How an epoch begins and ends (KIP-595, KIP-853, KIP-996)."""

from __future__ import annotations

from quorate.base.ids import Uuid
from quorate.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class VoteRequest(Message, kind="request", key=52, versions=(0, 2)):
    """A candidate, or a prospective one (v2), asks a voter for its vote."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = int32()
            replica_epoch: int = int32()
            replica_id: int = int32()
            replica_directory_id: Uuid = uuid(since=1, ignorable=True)
            voter_directory_id: Uuid = uuid(since=1, ignorable=True)
            last_offset_epoch: int = int32()
            last_offset: int = int64()
            pre_vote: bool = boolean(since=2)

        topic_name: str = string()
        partitions: list[PartitionData] = array(PartitionData)

    cluster_id: str | None = string(nullable=0, default=None)
    voter_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[TopicData] = array(TopicData)


class VoteResponse(Message, kind="response", key=52, versions=(0, 2)):
    """Granted or not, and the leader as far as the voter knows."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            leader_epoch: int = int32()
            vote_granted: bool = boolean()

        topic_name: str = string()
        partitions: list[PartitionData] = array(PartitionData)

    class NodeEndpoint(Struct):
        node_id: int = int32(key=True)
        host: str = string()
        port: int = uint16()

    error_code: int = int16()
    topics: list[TopicData] = array(TopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)


class BeginQuorumEpochRequest(Message, kind="request", key=53, versions=(0, 1), flexible=1):
    """The leader announces its epoch and its listeners to a voter."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = int32()
            voter_directory_id: Uuid = uuid(since=1, ignorable=True)
            leader_id: int = int32()
            leader_epoch: int = int32()

        topic_name: str = string()
        partitions: list[PartitionData] = array(PartitionData)

    class LeaderEndpoint(Struct):
        name: str = string(key=True)
        host: str = string()
        port: int = uint16()

    cluster_id: str | None = string(nullable=0, default=None)
    voter_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[TopicData] = array(TopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, since=1, ignorable=True)


class BeginQuorumEpochResponse(Message, kind="response", key=53, versions=(0, 1), flexible=1):
    """The epoch is accepted, or a newer one named."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            leader_epoch: int = int32()

        topic_name: str = string()
        partitions: list[PartitionData] = array(PartitionData)

    class NodeEndpoint(Struct):
        node_id: int = int32(key=True)
        host: str = string()
        port: int = uint16()

    error_code: int = int16()
    topics: list[TopicData] = array(TopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)


class EndQuorumEpochRequest(Message, kind="request", key=54, versions=(0, 1), flexible=1):
    """A leader that resigns says who should follow it, best first."""

    class TopicData(Struct):
        class PartitionData(Struct):
            class ReplicaInfo(Struct):
                candidate_id: int = int32()
                candidate_directory_id: Uuid = uuid()

            partition_index: int = int32()
            leader_id: int = int32()
            leader_epoch: int = int32()
            preferred_successors: list[int] = array("int32", until=0, ignorable=True)
            preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, since=1, ignorable=True)

        topic_name: str = string()
        partitions: list[PartitionData] = array(PartitionData)

    class LeaderEndpoint(Struct):
        name: str = string(key=True)
        host: str = string()
        port: int = uint16()

    cluster_id: str | None = string(nullable=0, default=None)
    topics: list[TopicData] = array(TopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, since=1, ignorable=True)


class EndQuorumEpochResponse(Message, kind="response", key=54, versions=(0, 1), flexible=1):
    """The end is accepted, or a newer epoch named."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            leader_epoch: int = int32()

        topic_name: str = string()
        partitions: list[PartitionData] = array(PartitionData)

    class NodeEndpoint(Struct):
        node_id: int = int32(key=True)
        host: str = string()
        port: int = uint16()

    error_code: int = int16()
    topics: list[TopicData] = array(TopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
