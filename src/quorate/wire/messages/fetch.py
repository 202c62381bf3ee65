"""Pull replication: records of a log, and chunks of a snapshot (KIP-595, KIP-630)."""

from __future__ import annotations

from quorate.base.ids import Uuid
from quorate.wire.schema import (
    Message,
    Struct,
    array,
    batches,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
    uuid,
)


class FetchRequest(Message, kind="request", key=1, versions=(4, 18), flexible=12):
    """A replica asks for records behind its own; the ask acknowledges what it has."""

    class ReplicaState(Struct):
        replica_id: int = int32(default=-1)
        replica_epoch: int = int64(default=-1)

    class FetchTopic(Struct):
        class FetchPartition(Struct):
            partition: int = int32()
            current_leader_epoch: int = int32(since=9, default=-1, ignorable=True)
            fetch_offset: int = int64()
            last_fetched_epoch: int = int32(since=12, default=-1)
            log_start_offset: int = int64(since=5, default=-1, ignorable=True)
            partition_max_bytes: int = int32()
            replica_directory_id: Uuid = uuid(since=17, tag=0, ignorable=True)
            high_watermark: int = int64(since=18, tag=1, default=2**63 - 1, ignorable=True)

        topic: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partitions: list[FetchPartition] = array(FetchPartition)

    class ForgottenTopic(Struct):
        topic: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partitions: list[int] = array("int32")

    cluster_id: str | None = string(since=12, nullable=0, tag=0, default=None, ignorable=True)
    replica_id: int = int32(until=14, default=-1)
    replica_state: ReplicaState = struct(ReplicaState, since=15, tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = int8(ignorable=True)
    session_id: int = int32(since=7, ignorable=True)
    session_epoch: int = int32(since=7, default=-1, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11, ignorable=True)


class FetchResponse(Message, kind="response", key=1, versions=(4, 18), flexible=12):
    """Whole batches, or why there are none: divergence, a snapshot, another leader."""

    class FetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class EpochEndOffset(Struct):
                epoch: int = int32(default=-1)
                end_offset: int = int64(default=-1)

            class LeaderIdAndEpoch(Struct):
                leader_id: int = int32(default=-1)
                leader_epoch: int = int32(default=-1)

            class SnapshotId(Struct):
                end_offset: int = int64(default=-1)
                epoch: int = int32(default=-1)

            class AbortedTransaction(Struct):
                producer_id: int = int64()
                first_offset: int = int64()

            partition_index: int = int32()
            error_code: int = int16()
            high_watermark: int = int64()
            last_stable_offset: int = int64(default=-1, ignorable=True)
            log_start_offset: int = int64(since=5, default=-1, ignorable=True)
            diverging_epoch: EpochEndOffset = struct(EpochEndOffset, since=12, tag=0)
            current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, since=12, tag=1)
            snapshot_id: SnapshotId = struct(SnapshotId, since=12, tag=2)
            aborted_transactions: list[AbortedTransaction] | None = array(
                AbortedTransaction, nullable=0, ignorable=True
            )
            preferred_read_replica: int = int32(since=11, default=-1)
            records: bytes | None = batches(nullable=0)

        topic: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partitions: list[PartitionData] = array(PartitionData)

    class NodeEndpoint(Struct):
        node_id: int = int32(key=True)
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=0, default=None)

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16(since=7, ignorable=True)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=16, tag=0)


class FetchSnapshotRequest(Message, kind="request", key=59, versions=(0, 1)):
    """A replica asks for the bytes of a snapshot from a position on."""

    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: int = int64()
                epoch: int = int32()

            partition: int = int32()
            current_leader_epoch: int = int32()
            snapshot_id: SnapshotId = struct(SnapshotId)
            position: int = int64()
            replica_directory_id: Uuid = uuid(since=1, tag=0, ignorable=True)

        name: str = string()
        partitions: list[PartitionSnapshot] = array(PartitionSnapshot)

    cluster_id: str | None = string(nullable=0, tag=0, default=None)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=0x7FFFFFFF)
    topics: list[TopicSnapshot] = array(TopicSnapshot)


class FetchSnapshotResponse(Message, kind="response", key=59, versions=(0, 1)):
    """One chunk of a snapshot; it may start and end inside a batch."""

    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: int = int64()
                epoch: int = int32()

            class LeaderIdAndEpoch(Struct):
                leader_id: int = int32()
                leader_epoch: int = int32()

            index: int = int32()
            error_code: int = int16()
            snapshot_id: SnapshotId = struct(SnapshotId)
            current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, tag=0)
            size: int = int64()
            position: int = int64()
            unaligned_records: bytes = batches()

        name: str = string()
        partitions: list[PartitionSnapshot] = array(PartitionSnapshot)

    class NodeEndpoint(Struct):
        node_id: int = int32(key=True)
        host: str = string()
        port: int = uint16()

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    topics: list[TopicSnapshot] = array(TopicSnapshot)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
