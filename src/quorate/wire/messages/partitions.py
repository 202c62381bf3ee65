"""State of partitions: in-sync replicas, directories, leaders, moves; producer ids."""

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
    int64,
    string,
    uuid,
)


class AlterPartitionRequest(Message, kind="request", key=56, versions=(2, 3)):
    """The leader of a partition asks for another set of in-sync replicas."""

    class TopicData(Struct):
        class PartitionData(Struct):
            class BrokerState(Struct):
                broker_id: int = int32()
                broker_epoch: int = int64(default=-1)

            partition_index: int = int32()
            leader_epoch: int = int32()
            new_isr: list[int] = array("int32", until=2)
            new_isr_with_epochs: list[BrokerState] = array(BrokerState, since=3)
            leader_recovery_state: int = int8()
            partition_epoch: int = int32()

        topic_id: Uuid = uuid(ignorable=True)
        partitions: list[PartitionData] = array(PartitionData)

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


class AlterPartitionResponse(Message, kind="response", key=56, versions=(2, 3)):
    """The state in force now."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            leader_epoch: int = int32()
            isr: list[int] = array("int32")
            leader_recovery_state: int = int8(ignorable=True)
            partition_epoch: int = int32()

        topic_id: Uuid = uuid(ignorable=True)
        partitions: list[PartitionData] = array(PartitionData)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicData] = array(TopicData)


class AssignReplicasToDirsRequest(Message, kind="request", key=73, versions=(0, 0)):
    """A broker says in which of its directories replicas lie (KIP-858)."""

    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: int = int32()

            topic_id: Uuid = uuid()
            partitions: list[PartitionData] = array(PartitionData)

        id: Uuid = uuid()
        topics: list[TopicData] = array(TopicData)

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[DirectoryData] = array(DirectoryData)


class AssignReplicasToDirsResponse(Message, kind="response", key=73, versions=(0, 0)):
    """Each assignment is taken, or why not."""

    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: int = int32()
                error_code: int = int16()

            topic_id: Uuid = uuid()
            partitions: list[PartitionData] = array(PartitionData)

        id: Uuid = uuid()
        topics: list[TopicData] = array(TopicData)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[DirectoryData] = array(DirectoryData)


class AllocateProducerIdsRequest(Message, kind="request", key=67, versions=(0, 0)):
    """A broker asks for a block of producer ids (KIP-730)."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class AllocateProducerIdsResponse(Message, kind="response", key=67, versions=(0, 0)):
    """The first id of the block and its length."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()


class ElectLeadersRequest(Message, kind="request", key=43, versions=(0, 2), flexible=2):
    """Asks for elections of partition leaders; type 0 preferred, 1 unclean."""

    class TopicPartitions(Struct):
        topic: str = string(key=True)
        partitions: list[int] = array("int32")

    election_type: int = int8(since=1)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable=0)
    timeout_ms: int = int32(default=60000)


class ElectLeadersResponse(Message, kind="response", key=43, versions=(0, 2), flexible=2):
    """The outcome per partition."""

    class ReplicaElectionResult(Struct):
        class PartitionResult(Struct):
            partition_id: int = int32()
            error_code: int = int16()
            error_message: str | None = string(nullable=0)

        topic: str = string()
        partition_result: list[PartitionResult] = array(PartitionResult)

    throttle_time_ms: int = int32()
    error_code: int = int16(since=1)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)


class AlterPartitionReassignmentsRequest(Message, kind="request", key=45, versions=(0, 1)):
    """Sets the target replicas of partitions; null cancels (KIP-455)."""

    class ReassignableTopic(Struct):
        class ReassignablePartition(Struct):
            partition_index: int = int32()
            replicas: list[int] | None = array("int32", nullable=0, default=None)

        name: str = string()
        partitions: list[ReassignablePartition] = array(ReassignablePartition)

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean(since=1, default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


class AlterPartitionReassignmentsResponse(Message, kind="response", key=45, versions=(0, 1)):
    """The outcome per partition."""

    class ReassignableTopicResponse(Struct):
        class ReassignablePartitionResponse(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(nullable=0)

        name: str = string()
        partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(since=1, default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)


class ListPartitionReassignmentsRequest(Message, kind="request", key=46, versions=(0, 0)):
    """Asks which partitions move; null: all."""

    class ListPartitionReassignmentsTopics(Struct):
        name: str = string()
        partition_indexes: list[int] = array("int32")

    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable=0, default=None
    )


class ListPartitionReassignmentsResponse(Message, kind="response", key=46, versions=(0, 0)):
    """Partitions that move: replicas, those to come and those to go."""

    class OngoingTopicReassignment(Struct):
        class OngoingPartitionReassignment(Struct):
            partition_index: int = int32()
            replicas: list[int] = array("int32")
            adding_replicas: list[int] = array("int32")
            removing_replicas: list[int] = array("int32")

        name: str = string()
        partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
