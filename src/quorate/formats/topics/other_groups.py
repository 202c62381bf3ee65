"""The records of `__consumer_offsets` for share groups and streams groups.

Declared as Kafka 4.4.0's `group-coordinator/src/main/resources/common/message` says.
"""

from __future__ import annotations

from quorate.base.ids import Uuid
from quorate.wire.schema import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
    uuid,
)


class ShareGroupMemberMetadataKey(
    Message, kind="coordinator-key", key=10, versions=(0, 0), flexible=None
):
    group_id: str = string()
    member_id: str = string()


class ShareGroupMemberMetadataValue(
    Message, kind="coordinator-value", key=10, versions=(0, 0), flexible=0
):
    rack_id: str | None = string(nullable=0)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array("string")


class ShareGroupMetadataKey(
    Message, kind="coordinator-key", key=11, versions=(0, 0), flexible=None
):
    group_id: str = string()


class ShareGroupMetadataValue(
    Message, kind="coordinator-value", key=11, versions=(0, 0), flexible=0
):
    epoch: int = int32()
    metadata_hash: int = int64()


class ShareGroupTargetAssignmentMetadataKey(
    Message, kind="coordinator-key", key=12, versions=(0, 0), flexible=None
):
    group_id: str = string()


class ShareGroupTargetAssignmentMetadataValue(
    Message, kind="coordinator-value", key=12, versions=(0, 0), flexible=0
):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


class ShareGroupTargetAssignmentMemberKey(
    Message, kind="coordinator-key", key=13, versions=(0, 0), flexible=None
):
    group_id: str = string()
    member_id: str = string()


class ShareGroupTargetAssignmentMemberValue(
    Message, kind="coordinator-value", key=13, versions=(0, 0), flexible=0
):
    class TopicPartition(Struct):
        topic_id: Uuid = uuid()
        partitions: list[int] = array("int32")

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ShareGroupCurrentMemberAssignmentKey(
    Message, kind="coordinator-key", key=14, versions=(0, 0), flexible=None
):
    group_id: str = string()
    member_id: str = string()


class ShareGroupCurrentMemberAssignmentValue(
    Message, kind="coordinator-value", key=14, versions=(0, 0), flexible=0
):
    class TopicPartitions(Struct):
        topic_id: Uuid = uuid()
        partitions: list[int] = array("int32")

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupStatePartitionMetadataKey(
    Message, kind="coordinator-key", key=15, versions=(0, 0), flexible=None
):
    group_id: str = string()


class ShareGroupStatePartitionMetadataValue(
    Message, kind="coordinator-value", key=15, versions=(0, 0), flexible=0
):
    class TopicPartitionsInfo(Struct):
        topic_id: Uuid = uuid()
        topic_name: str = string()
        partitions: list[int] = array("int32")

    class TopicInfo(Struct):
        topic_id: Uuid = uuid()
        topic_name: str = string()

    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)


class StreamsGroupMetadataKey(
    Message, kind="coordinator-key", key=17, versions=(0, 0), flexible=None
):
    group_id: str = string()


class StreamsGroupMetadataValue(
    Message, kind="coordinator-value", key=17, versions=(0, 0), flexible=0
):
    class LastAssignmentConfig(Struct):
        key: str = string()
        value: str = string()

    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(
        LastAssignmentConfig, nullable=0, tag=1
    )
    stored_description_topology_epoch: int = int32(tag=2, default=-1)
    failed_description_topology_epoch: int = int32(tag=3, default=-1)


class StreamsGroupMemberMetadataKey(
    Message, kind="coordinator-key", key=19, versions=(0, 0), flexible=None
):
    group_id: str = string()
    member_id: str = string()


class StreamsGroupMemberMetadataValue(
    Message, kind="coordinator-value", key=19, versions=(0, 0), flexible=0
):
    class Endpoint(Struct):
        host: str = string()
        port: int = uint16()

    class KeyValue(Struct):
        key: str = string()
        value: str = string()

    instance_id: str | None = string(nullable=0)
    rack_id: str | None = string(nullable=0)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = struct(Endpoint, nullable=0, default=None)
    client_tags: list[KeyValue] = array(KeyValue)


class StreamsGroupTargetAssignmentMetadataKey(
    Message, kind="coordinator-key", key=20, versions=(0, 0), flexible=None
):
    group_id: str = string()


class StreamsGroupTargetAssignmentMetadataValue(
    Message, kind="coordinator-value", key=20, versions=(0, 0), flexible=0
):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


class StreamsGroupTargetAssignmentMemberKey(
    Message, kind="coordinator-key", key=21, versions=(0, 0), flexible=None
):
    group_id: str = string()
    member_id: str = string()


class StreamsGroupTargetAssignmentMemberValue(
    Message, kind="coordinator-value", key=21, versions=(0, 0), flexible=0
):
    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array("int32")

    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)


class StreamsGroupCurrentMemberAssignmentKey(
    Message, kind="coordinator-key", key=22, versions=(0, 0), flexible=None
):
    group_id: str = string()
    member_id: str = string()


class StreamsGroupCurrentMemberAssignmentValue(
    Message, kind="coordinator-value", key=22, versions=(0, 0), flexible=0
):
    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array("int32")
        assignment_epochs: list[int] | None = array("int32", nullable=0, tag=0)

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)
    active_tasks_pending_revocation: list[TaskIds] = array(TaskIds)
    standby_tasks_pending_revocation: list[TaskIds] = array(TaskIds)
    warmup_tasks_pending_revocation: list[TaskIds] = array(TaskIds)


class StreamsGroupTopologyKey(
    Message, kind="coordinator-key", key=23, versions=(0, 0), flexible=None
):
    group_id: str = string()


class TopicConfig(Struct):
    key: str = string()
    value: str = string()


class TopicInfo(Struct):
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[TopicConfig] = array(TopicConfig)


class StreamsGroupTopologyValue(
    Message, kind="coordinator-value", key=23, versions=(0, 0), flexible=0
):
    class Subtopology(Struct):
        class CopartitionGroup(Struct):
            source_topics: list[int] = array("int16")
            source_topic_regex: list[int] = array("int16")
            repartition_source_topics: list[int] = array("int16")

        subtopology_id: str = string()
        source_topics: list[str] = array("string")
        source_topic_regex: list[str] = array("string")
        state_changelog_topics: list[TopicInfo] = array(TopicInfo)
        repartition_sink_topics: list[str] = array("string")
        repartition_source_topics: list[TopicInfo] = array(TopicInfo)
        copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)

    epoch: int = int32()
    subtopologies: list[Subtopology] = array(Subtopology)
