"""Topics: made, grown, deleted."""

from __future__ import annotations

from quorate.base.ids import Uuid
from quorate.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class CreateTopicsRequest(Message, kind="request", key=19, versions=(2, 7), flexible=5):
    """Makes topics, with a count or with an assignment of replicas."""

    class CreatableTopic(Struct):
        class CreatableReplicaAssignment(Struct):
            partition_index: int = int32(key=True)
            broker_ids: list[int] = array("int32")

        class CreatableTopicConfig(Struct):
            name: str = string(key=True)
            value: str | None = string(nullable=0)

        name: str = string(key=True)
        num_partitions: int = int32()
        replication_factor: int = int16()
        assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
        configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean()


class CreateTopicsResponse(Message, kind="response", key=19, versions=(2, 7), flexible=5):
    """The topics as made, with their configs."""

    class CreatableTopicResult(Struct):
        class CreatableTopicConfigs(Struct):
            name: str = string()
            value: str | None = string(nullable=0)
            read_only: bool = boolean()
            config_source: int = int8(default=-1, ignorable=True)
            is_sensitive: bool = boolean()

        name: str = string(key=True)
        topic_id: Uuid = uuid(since=7, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(nullable=0, ignorable=True)
        topic_config_error_code: int = int16(since=5, tag=0, ignorable=True)
        num_partitions: int = int32(since=5, default=-1, ignorable=True)
        replication_factor: int = int16(since=5, default=-1, ignorable=True)
        configs: list[CreatableTopicConfigs] | None = array(
            CreatableTopicConfigs, since=5, nullable=0, ignorable=True
        )

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)


class DeleteTopicsRequest(Message, kind="request", key=20, versions=(1, 6), flexible=4):
    """Deletes topics by name or (v6) by id."""

    class DeleteTopicState(Struct):
        name: str | None = string(nullable=0, default=None)
        topic_id: Uuid = uuid()

    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = array("string", until=5, ignorable=True)
    timeout_ms: int = int32()


class DeleteTopicsResponse(Message, kind="response", key=20, versions=(1, 6), flexible=4):
    """The outcome per topic."""

    class DeletableTopicResult(Struct):
        name: str | None = string(nullable=6, key=True)
        topic_id: Uuid = uuid(since=6, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(since=5, nullable=0, default=None, ignorable=True)

    throttle_time_ms: int = int32(ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)


class CreatePartitionsRequest(Message, kind="request", key=37, versions=(0, 3), flexible=2):
    """Adds partitions to topics."""

    class CreatePartitionsTopic(Struct):
        class CreatePartitionsAssignment(Struct):
            broker_ids: list[int] = array("int32")

        name: str = string(key=True)
        count: int = int32()
        assignments: list[CreatePartitionsAssignment] | None = array(
            CreatePartitionsAssignment, nullable=0
        )

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsResponse(Message, kind="response", key=37, versions=(0, 3), flexible=2):
    """The outcome per topic."""

    class CreatePartitionsTopicResult(Struct):
        name: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=0, default=None)

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)


class DescribeTopicPartitionsRequest(Message, kind="request", key=75, versions=(0, 0)):
    """Asks for topics by name (none: all), from `cursor` on (KIP-966)."""

    class TopicRequest(Struct):
        name: str = string()

    class Cursor(Struct):
        topic_name: str = string()
        partition_index: int = int32()

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = struct(Cursor, nullable=0, default=None)


class DescribeTopicPartitionsResponse(Message, kind="response", key=75, versions=(0, 0)):
    """Topics in order of their names; `next_cursor` is where the next response begins."""

    class DescribeTopicPartitionsResponseTopic(Struct):
        class DescribeTopicPartitionsResponsePartition(Struct):
            error_code: int = int16()
            partition_index: int = int32()
            leader_id: int = int32()
            leader_epoch: int = int32(default=-1, ignorable=True)
            replica_nodes: list[int] = array("int32")
            isr_nodes: list[int] = array("int32")
            eligible_leader_replicas: list[int] | None = array("int32", nullable=0, default=None)
            last_known_elr: list[int] | None = array("int32", nullable=0, default=None)
            offline_replicas: list[int] = array("int32", ignorable=True)

        error_code: int = int16()
        name: str | None = string(nullable=0, key=True)
        topic_id: Uuid = uuid(ignorable=True)
        is_internal: bool = boolean(ignorable=True)
        partitions: list[DescribeTopicPartitionsResponsePartition] = array(
            DescribeTopicPartitionsResponsePartition
        )
        topic_authorized_operations: int = int32(default=-(2**31))

    class Cursor(Struct):
        topic_name: str = string()
        partition_index: int = int32()

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = struct(Cursor, nullable=0, default=None)
