"""The records of `__consumer_offsets` for offsets and for classic and consumer groups.

Declared as Kafka 4.4.0's `group-coordinator/src/main/resources/common/message` says.
"""

from __future__ import annotations

from quorate.base.ids import Uuid
from quorate.wire.schema import (
    Message,
    Struct,
    array,
    binary,
    int8,
    int32,
    int64,
    string,
    struct,
    uuid,
)


class LegacyOffsetCommitKey(Message, kind="coordinator-key", key=0, versions=(0, 0), flexible=None):
    group: str = string()
    topic: str = string()
    partition: int = int32()


class LegacyOffsetCommitValue(
    Message, kind="coordinator-value", key=0, versions=(0, 0), flexible=None
):
    offset: int = int64()
    metadata: str = string()
    commit_timestamp: int = int64()


class OffsetCommitKey(Message, kind="coordinator-key", key=1, versions=(0, 0), flexible=None):
    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, kind="coordinator-value", key=1, versions=(0, 4), flexible=4):
    offset: int = int64()
    leader_epoch: int = int32(since=3, default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(since=1, until=1, default=-1, ignorable=True)
    topic_id: Uuid = uuid(since=4, tag=0, ignorable=True)


class GroupMetadataKey(Message, kind="coordinator-key", key=2, versions=(0, 0), flexible=None):
    group: str = string()


class GroupMetadataValue(Message, kind="coordinator-value", key=2, versions=(0, 4), flexible=4):
    class MemberMetadata(Struct):
        member_id: str = string()
        group_instance_id: str | None = string(since=3, nullable=3, default=None, ignorable=True)
        client_id: str = string()
        client_host: str = string()
        rebalance_timeout: int = int32(since=1, default=-1, ignorable=True)
        session_timeout: int = int32()
        subscription: bytes = binary()
        assignment: bytes = binary()

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable=0)
    leader: str | None = string(nullable=0)
    current_state_timestamp: int = int64(since=2, default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)


class ConsumerGroupMetadataKey(
    Message, kind="coordinator-key", key=3, versions=(0, 0), flexible=None
):
    group_id: str = string()


class ConsumerGroupMetadataValue(
    Message, kind="coordinator-value", key=3, versions=(0, 0), flexible=0
):
    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


class ConsumerGroupPartitionMetadataKey(
    Message, kind="coordinator-key", key=4, versions=(0, 0), flexible=None
):
    group_id: str = string()


class ConsumerGroupPartitionMetadataValue(
    Message, kind="coordinator-value", key=4, versions=(0, 0), flexible=0
):
    class TopicMetadata(Struct):
        class PartitionMetadata(Struct):
            partition: int = int32()
            racks: list[str] = array("string")

        topic_id: Uuid = uuid()
        topic_name: str = string()
        num_partitions: int = int32()
        partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)

    topics: list[TopicMetadata] = array(TopicMetadata)


class ConsumerGroupMemberMetadataKey(
    Message, kind="coordinator-key", key=5, versions=(0, 0), flexible=None
):
    group_id: str = string()
    member_id: str = string()


class ConsumerGroupMemberMetadataValue(
    Message, kind="coordinator-value", key=5, versions=(0, 0), flexible=0
):
    class ClassicMemberMetadata(Struct):
        class ClassicProtocol(Struct):
            name: str = string()
            metadata: bytes = binary()

        session_timeout_ms: int = int32()
        supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)

    instance_id: str | None = string(nullable=0)
    rack_id: str | None = string(nullable=0)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array("string")
    subscribed_topic_regex: str | None = string(nullable=0)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable=0)
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, nullable=0, tag=0
    )


class ConsumerGroupTargetAssignmentMetadataKey(
    Message, kind="coordinator-key", key=6, versions=(0, 0), flexible=None
):
    group_id: str = string()


class ConsumerGroupTargetAssignmentMetadataValue(
    Message, kind="coordinator-value", key=6, versions=(0, 0), flexible=0
):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(
    Message, kind="coordinator-key", key=7, versions=(0, 0), flexible=None
):
    group_id: str = string()
    member_id: str = string()


class ConsumerGroupTargetAssignmentMemberValue(
    Message, kind="coordinator-value", key=7, versions=(0, 0), flexible=0
):
    class TopicPartition(Struct):
        topic_id: Uuid = uuid()
        partitions: list[int] = array("int32")

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ConsumerGroupCurrentMemberAssignmentKey(
    Message, kind="coordinator-key", key=8, versions=(0, 0), flexible=None
):
    group_id: str = string()
    member_id: str = string()


class ConsumerGroupCurrentMemberAssignmentValue(
    Message, kind="coordinator-value", key=8, versions=(0, 0), flexible=0
):
    class TopicPartitions(Struct):
        topic_id: Uuid = uuid()
        partitions: list[int] = array("int32")
        assignment_epochs: list[int] | None = array("int32", nullable=0, tag=0)

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupRegularExpressionKey(
    Message, kind="coordinator-key", key=16, versions=(0, 0), flexible=None
):
    group_id: str = string()
    regular_expression: str = string()


class ConsumerGroupRegularExpressionValue(
    Message, kind="coordinator-value", key=16, versions=(0, 0), flexible=0
):
    topics: list[str] = array("string")
    version: int = int64()
    timestamp: int = int64()


class ConsumerProtocolSubscription(Message, kind="data", versions=(0, 3), flexible=None):
    class TopicPartition(Struct):
        topic: str = string(since=1, key=True)
        partitions: list[int] = array("int32", since=1)

    topics: list[str] = array("string")
    user_data: bytes | None = binary(nullable=0, default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, since=1, ignorable=True)
    generation_id: int = int32(since=2, default=-1, ignorable=True)
    rack_id: str | None = string(since=3, nullable=3, default=None, ignorable=True)


class ConsumerProtocolAssignment(Message, kind="data", versions=(0, 3), flexible=None):
    class TopicPartition(Struct):
        topic: str = string(key=True)
        partitions: list[int] = array("int32")

    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = binary(nullable=0, default=None)
