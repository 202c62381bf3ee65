"""Calls about the log directories of brokers (KIP-113); only brokers answer them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorate.client.admin.parts import each_failed
from quorate.client.admin.reassignments import PartitionName, by_topic
from quorate.client.admin.routing import Calls
from quorate.client.errors import ClientError
from quorate.client.results import RequestFailedError, check, failure_of


class TopicPartitionReplica(NamedTuple):
    """A partition on one broker."""

    partition: PartitionName
    broker_id: int


class ReplicaInfo(NamedTuple):
    """A replica in a directory. `is_future`: it replaces the replica of now when it caught up."""

    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDir(NamedTuple):
    """A directory of a broker, or why it cannot be read. Sizes in bytes, -1 for unknown."""

    path: str
    error: RequestFailedError | None
    replicas: Mapping[PartitionName, ReplicaInfo]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool


class LogDirCalls(Calls):
    """describeLogDirs and alterReplicaLogDirs."""

    async def describe_log_dirs(
        self, broker_ids: Iterable[int]
    ) -> Mapping[int, tuple[LogDir, ...] | ClientError]:
        """The directories of each broker, or why it did not name them.

        A broker that fails does not hide the others. Raises UnsupportedEndpointTypeError for
        controllers.
        """
        self.router.refuse_controllers("DescribeLogDirs")
        ids = sorted(set(broker_ids))
        found = await self.router.gather([self._dirs_or_failure(each) for each in ids])
        return dict(zip(ids, found, strict=True))

    async def _dirs_or_failure(self, broker_id: int) -> tuple[LogDir, ...] | ClientError:
        try:
            return await self._dirs_of(broker_id)
        except ClientError as error:
            return error

    async def _dirs_of(self, broker_id: int) -> tuple[LogDir, ...]:
        from quorate.wire.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

        request = DescribeLogDirsRequest(topics=None)

        async def ask() -> tuple[LogDir, ...]:
            node = await self.router.node(broker_id)
            answer = await self.router.ask(node, request, DescribeLogDirsResponse)
            check(answer.error_code, None)
            return tuple(
                LogDir(
                    each.log_dir,
                    failure_of(each.error_code, None),
                    {
                        PartitionName(topic.name, one.partition_index): ReplicaInfo(
                            one.partition_size, one.offset_lag, one.is_future_key
                        )
                        for topic in each.topics
                        for one in topic.partitions
                    },
                    each.total_bytes,
                    each.usable_bytes,
                    each.is_cordoned,
                )
                for each in answer.results
            )

        return await self.router.retry(ask)

    async def alter_replica_log_dirs(
        self, moves: Mapping[TopicPartitionReplica, str]
    ) -> Mapping[TopicPartitionReplica, RequestFailedError | None]:
        """Move replicas to directories of their brokers; the error of each.

        The broker answers when it has begun. A replica that the broker does not have yet gets
        REPLICA_NOT_AVAILABLE, and is created in the directory. Raises UnsupportedEndpointTypeError
        for controllers.
        """
        self.router.refuse_controllers("AlterReplicaLogDirs")
        ids = sorted({replica.broker_id for replica in moves})
        found: dict[TopicPartitionReplica, RequestFailedError | None] = {}
        jobs = [
            each_failed(
                self._move_on(broker_id, moves),
                [each for each in moves if each.broker_id == broker_id],
                is_only=len(ids) == 1,
            )
            for broker_id in ids
        ]
        for part in await self.router.gather(jobs):
            found |= part
        return found

    async def _move_on(
        self, broker_id: int, moves: Mapping[TopicPartitionReplica, str]
    ) -> dict[TopicPartitionReplica, RequestFailedError | None]:
        from quorate.wire.messages.log_dirs import (
            AlterReplicaLogDirsRequest,
            AlterReplicaLogDirsResponse,
        )

        paths: dict[str, list[PartitionName]] = {}
        for replica, path in moves.items():
            if replica.broker_id == broker_id:
                paths.setdefault(path, []).append(replica.partition)
        cls = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        request = AlterReplicaLogDirsRequest(
            dirs=[
                cls(
                    path=path,
                    topics=[
                        cls.AlterReplicaLogDirTopic(name=topic, partitions=indexes)
                        for topic, indexes in by_topic(partitions).items()
                    ],
                )
                for path, partitions in paths.items()
            ]
        )

        async def send() -> dict[TopicPartitionReplica, RequestFailedError | None]:
            node = await self.router.node(broker_id)
            answer = await self.router.ask(node, request, AlterReplicaLogDirsResponse)
            return {
                TopicPartitionReplica(
                    PartitionName(topic.topic_name, each.partition_index), broker_id
                ): (failure_of(each.error_code, None))
                for topic in answer.results
                for each in topic.partitions
            }

        return await self.router.retry(send)
