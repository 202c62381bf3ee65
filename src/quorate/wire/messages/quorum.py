"""What the quorum is, and changes of its voters (KIP-595, KIP-853, KIP-1186)."""

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
    struct,
    uint16,
    uuid,
)


class DescribeQuorumRequest(Message, kind="request", key=55, versions=(0, 2)):
    """Asks the leader for the state of its replicas."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = int32()

        topic_name: str = string()
        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)


class DescribeQuorumResponse(Message, kind="response", key=55, versions=(0, 2)):
    """Voters and observers with their log ends and last fetches (times in ms)."""

    class TopicData(Struct):
        class PartitionData(Struct):
            class ReplicaState(Struct):
                replica_id: int = int32()
                replica_directory_id: Uuid = uuid(since=2)
                log_end_offset: int = int64()
                last_fetch_timestamp: int = int64(since=1, default=-1, ignorable=True)
                last_caught_up_timestamp: int = int64(since=1, default=-1, ignorable=True)

            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(since=2, nullable=0, ignorable=True)
            leader_id: int = int32()
            leader_epoch: int = int32()
            high_watermark: int = int64()
            current_voters: list[ReplicaState] = array(ReplicaState)
            observers: list[ReplicaState] = array(ReplicaState)

        topic_name: str = string()
        partitions: list[PartitionData] = array(PartitionData)

    class Node(Struct):
        class Listener(Struct):
            name: str = string(key=True)
            host: str = string()
            port: int = uint16()

        node_id: int = int32(key=True)
        listeners: list[Listener] = array(Listener)

    error_code: int = int16()
    error_message: str | None = string(since=2, nullable=0, ignorable=True)
    topics: list[TopicData] = array(TopicData)
    nodes: list[Node] = array(Node, since=2)


class AddRaftVoterRequest(Message, kind="request", key=80, versions=(0, 1)):
    """Makes an observer a voter."""

    class Listener(Struct):
        name: str = string(key=True)
        host: str = string()
        port: int = uint16()

    cluster_id: str | None = string(nullable=0)
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean(since=1, default=True)


class AddRaftVoterResponse(Message, kind="response", key=80, versions=(0, 1)):
    """The voter is added, or why not."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, ignorable=True)


class RemoveRaftVoterRequest(Message, kind="request", key=81, versions=(0, 0)):
    """Makes a voter an observer."""

    cluster_id: str | None = string(nullable=0)
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()


class RemoveRaftVoterResponse(Message, kind="response", key=81, versions=(0, 0)):
    """The voter is removed, or why not."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, ignorable=True)


class UpdateRaftVoterRequest(Message, kind="request", key=82, versions=(0, 0)):
    """A voter reports its endpoints and versions to the leader."""

    class Listener(Struct):
        name: str = string(key=True)
        host: str = string()
        port: int = uint16()

    class KRaftVersionFeature(Struct):
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    cluster_id: str | None = string(nullable=0)
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()
    listeners: list[Listener] = array(Listener)
    kraft_version_feature: KRaftVersionFeature = struct(
        KRaftVersionFeature, kafka_name="KRaftVersionFeature"
    )


class UpdateRaftVoterResponse(Message, kind="response", key=82, versions=(0, 0)):
    """The update is taken, or who leads."""

    class CurrentLeader(Struct):
        leader_id: int = int32(default=-1)
        leader_epoch: int = int32(default=-1)
        host: str = string()
        port: int = int32()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: CurrentLeader = struct(CurrentLeader, tag=0)
