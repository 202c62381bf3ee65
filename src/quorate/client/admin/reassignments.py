"""Calls about partition reassignments (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.client.admin.parts import in_parts, merged, parts_of, text_bytes
from quorate.client.admin.routing import Calls, item_failure
from quorate.client.errors import UnsupportedVersionError
from quorate.client.results import RequestFailedError, check

_NO_FACTOR_OPTION: Final = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or updating "
    "the server version"
)
"""Of a node before Kafka 4.1 (`AlterPartitionReassignmentsRequest.Builder`)."""


class PartitionName(NamedTuple):
    """A partition; its text is Kafka's, `orders-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Reassignment(NamedTuple):
    """A reassignment in progress; `replicas` are all replicas of now."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that stay."""
        return tuple(each for each in self.replicas if each not in self.removing)


def by_topic(partitions: Iterable[PartitionName]) -> dict[str, list[int]]:
    """The partitions' indexes by topic, in order."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found


class ReassignmentCalls(Calls):
    """alterPartitionReassignments and listPartitionReassignments."""

    async def alter_partition_reassignments(
        self,
        targets: Mapping[PartitionName, Sequence[int] | None],
        *,
        allow_factor_change: bool = True,
    ) -> Mapping[PartitionName, RequestFailedError | None]:
        """Set the replicas of partitions; None cancels. Returns when the change is committed.

        `allow_factor_change=False` refuses a target of another size (KIP-860). The result has the
        error of each partition.
        """
        from quorate.wire.messages.partitions import (
            AlterPartitionReassignmentsRequest,
            AlterPartitionReassignmentsResponse,
        )

        cls = AlterPartitionReassignmentsRequest.ReassignableTopic
        lowest = 0 if allow_factor_change else 1

        async def send(
            part: Sequence[PartitionName],
        ) -> dict[PartitionName, RequestFailedError | None]:
            topics = []
            for topic, indexes in by_topic(part).items():
                partitions = []
                for index in indexes:
                    replicas = targets[PartitionName(topic, index)]
                    partitions.append(
                        cls.ReassignablePartition(
                            partition_index=index,
                            replicas=None if replicas is None else list(replicas),
                        )
                    )
                topics.append(cls(name=topic, partitions=partitions))
            request = AlterPartitionReassignmentsRequest(
                timeout_ms=self.router.config.request_timeout_ms,
                allow_replication_factor_change=allow_factor_change,
                topics=topics,
            )
            router, response = self.router, AlterPartitionReassignmentsResponse
            try:
                answer = await router.ask_active(request, response, lowest)
            except UnsupportedVersionError:
                if allow_factor_change:
                    raise
                error = RequestFailedError(ErrorCode.UNSUPPORTED_VERSION, _NO_FACTOR_OPTION)
                return dict.fromkeys(part, error)
            check(answer.error_code, answer.error_message)
            return {
                PartitionName(topic.name, each.partition_index): item_failure(
                    each.error_code, each.error_message
                )
                for topic in answer.responses
                for each in topic.partitions
            }

        parts = parts_of(
            targets, lambda each: text_bytes(each.topic) + 4 * len(targets[each] or ())
        )
        return merged(await in_parts(self.router, parts, send))

    async def list_partition_reassignments(
        self, partitions: Iterable[PartitionName] | None = None
    ) -> Mapping[PartitionName, Reassignment]:
        """The reassignments in progress, of these partitions or of all."""
        from quorate.wire.messages.partitions import (
            ListPartitionReassignmentsRequest,
            ListPartitionReassignmentsResponse,
        )

        cls = ListPartitionReassignmentsRequest

        async def ask(part: Sequence[PartitionName] | None) -> dict[PartitionName, Reassignment]:
            topics = None
            if part is not None:
                topics = [
                    cls.ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
                    for topic, indexes in by_topic(part).items()
                ]
            request = cls(timeout_ms=self.router.config.request_timeout_ms, topics=topics)
            answer = await self.router.ask_active(request, ListPartitionReassignmentsResponse)
            check(answer.error_code, answer.error_message)
            return {
                PartitionName(topic.name, each.partition_index): Reassignment(
                    tuple(each.replicas),
                    tuple(each.adding_replicas),
                    tuple(each.removing_replicas),
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        if partitions is None:
            return await self.router.retry(lambda: ask(None))
        parts = parts_of(partitions, lambda each: text_bytes(each.topic))
        return merged(await in_parts(self.router, parts, ask))
