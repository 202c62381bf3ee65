"""Log directories of brokers (KIP-113, KIP-827, KIP-1066)."""

from __future__ import annotations

from quorate.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string


class AlterReplicaLogDirsRequest(Message, kind="request", key=34, versions=(1, 2), flexible=2):
    """Moves replicas of one broker between its log directories."""

    class AlterReplicaLogDir(Struct):
        class AlterReplicaLogDirTopic(Struct):
            name: str = string(key=True)
            partitions: list[int] = array("int32")

        path: str = string(key=True)
        topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


class AlterReplicaLogDirsResponse(Message, kind="response", key=34, versions=(1, 2), flexible=2):
    """The outcome per partition."""

    class AlterReplicaLogDirTopicResult(Struct):
        class AlterReplicaLogDirPartitionResult(Struct):
            partition_index: int = int32()
            error_code: int = int16()

        topic_name: str = string()
        partitions: list[AlterReplicaLogDirPartitionResult] = array(
            AlterReplicaLogDirPartitionResult
        )

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)


class DescribeLogDirsRequest(Message, kind="request", key=35, versions=(1, 5), flexible=2):
    """Asks for the log directories of one broker; null topics: all."""

    class DescribableLogDirTopic(Struct):
        topic: str = string(key=True)
        partitions: list[int] = array("int32")

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable=0)


class DescribeLogDirsResponse(Message, kind="response", key=35, versions=(1, 5), flexible=2):
    """Directories with the replicas in them; sizes in bytes."""

    class DescribeLogDirsResult(Struct):
        class DescribeLogDirsTopic(Struct):
            class DescribeLogDirsPartition(Struct):
                partition_index: int = int32()
                partition_size: int = int64()
                offset_lag: int = int64()
                is_future_key: bool = boolean()

            name: str = string()
            partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)

        error_code: int = int16()
        log_dir: str = string()
        topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
        total_bytes: int = int64(since=4, default=-1, ignorable=True)
        usable_bytes: int = int64(since=4, default=-1, ignorable=True)
        is_cordoned: bool = boolean(since=5, ignorable=True)

    throttle_time_ms: int = int32()
    error_code: int = int16(since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
