"""Calls about topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.base.ids import Uuid
from quorate.client.admin.parts import ITEM_BYTES, in_parts, merged, parts_of, text_bytes
from quorate.client.admin.routing import Calls, item_failure
from quorate.client.connection import Connection
from quorate.client.errors import NoResponseError
from quorate.client.results import RequestFailedError, failure_of

if TYPE_CHECKING:
    from quorate.wire.messages.cluster import MetadataResponse
    from quorate.wire.messages.topics import (
        CreateTopicsRequest,
        DescribeTopicPartitionsResponse,
    )

PARTITIONS_PER_PAGE: Final = 2000
"""Most partitions of one response to DescribeTopicPartitions, as Kafka's client asks."""
NAMES_PER_REQUEST: Final = 1000
"""Most topics that one request names: a controller of Quorate takes requests of up to 1 MiB."""
_DEFAULT_PARTITIONS: Final = 9
_DESCRIBE_TOPIC_PARTITIONS: Final = 75
_DELETE_BY_ID: Final = 6
"""The version of DeleteTopics that has topic ids, of Kafka 2.8."""


class TopicListing(NamedTuple):
    """A topic of the cluster."""

    name: str
    topic_id: Uuid
    is_internal: bool


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition; `leader` is None without one. `elr` is None where the node does not report it."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None


class TopicDescription(NamedTuple):
    """A topic with its partitions, in order of their indexes."""

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


class TopicCreation(NamedTuple):
    """A topic to create; -1 is the cluster's default. With `assignments` the counts stay -1."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


class CreatedTopic(NamedTuple):
    """A topic as it was created; counts are -1 where the requester may not see them."""

    topic_id: Uuid
    partitions: int
    replication_factor: int


class NewPartitions(NamedTuple):
    """Increase a topic to `total` partitions; `assignments` are the replicas of the new ones."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None


Outcome = Mapping[str, RequestFailedError | None]
"""The error of each topic; None where the call succeeded."""


class TopicCalls(Calls):
    """listTopics, describeTopics, createTopics, createPartitions, deleteTopics.

    Controllers of Kafka do not describe topics (UnsupportedVersionError); those of Quorate do.
    """

    async def list_topics(self, include_internal: bool = True) -> tuple[TopicListing, ...]:
        """The topics that the requester may see, in order of their names."""
        found = await self.describe_topics()
        return tuple(
            TopicListing(topic.name, topic.topic_id, topic.is_internal)
            for name, topic in sorted(found.items())
            if isinstance(topic, TopicDescription) and (include_internal or not topic.is_internal)
        )

    async def describe_topics(
        self,
        names: Iterable[str] | None = None,
        page: int = PARTITIONS_PER_PAGE,
        prefix: str = "",
    ) -> Mapping[str, TopicDescription | RequestFailedError]:
        """Describe topics by name (None: all whose names begin with `prefix`).

        `page` bounds the partitions of one response. Controllers are asked through the active one.
        """
        wanted = None if names is None else sorted(set(names))
        if wanted is not None and not wanted:
            return {}

        async def ask() -> Mapping[str, TopicDescription | RequestFailedError]:
            node = await self.router.active_to_read()
            found: dict[str, TopicDescription | RequestFailedError] = {}
            if node.serves(_DESCRIBE_TOPIC_PARTITIONS) or self.router.config.controllers:
                for part in _parts(wanted):
                    found |= await self._pages(node, part, page, prefix)
            else:
                found |= await self._metadata(node, wanted)
            return {name: each for name, each in found.items() if name.startswith(prefix)}

        return await self.router.retry(ask)

    async def _pages(
        self, node: Connection, names: list[str] | None, page: int, prefix: str
    ) -> Mapping[str, TopicDescription | RequestFailedError]:
        from quorate.wire.messages.topics import (
            DescribeTopicPartitionsRequest,
            DescribeTopicPartitionsResponse,
        )

        cls = DescribeTopicPartitionsRequest
        found: dict[str, TopicDescription | RequestFailedError] = {}
        cursor = None
        if names is None and prefix:
            cursor = cls.Cursor(topic_name=prefix, partition_index=0)
        while True:
            left = [n for n in names or () if cursor is None or n >= cursor.topic_name]
            request = cls(
                topics=[cls.TopicRequest(name=name) for name in left],
                response_partition_limit=page,
                cursor=cursor,
            )
            answer = await self.router.ask(node, request, DescribeTopicPartitionsResponse)
            for topic in answer.topics:
                _add_page(found, topic)
            after = answer.next_cursor
            if after is None or (names is None and not _may_begin(after.topic_name, prefix)):
                return found
            place = after.topic_name, after.partition_index
            if cursor is not None and place <= (cursor.topic_name, cursor.partition_index):
                raise NoResponseError(f"{node.address} sent a cursor that does not advance")
            cursor = cls.Cursor(topic_name=place[0], partition_index=place[1])

    async def _metadata(
        self, node: Connection, names: list[str] | None
    ) -> Mapping[str, TopicDescription | RequestFailedError]:
        """Describe topics by the older Metadata request; it knows no eligible leader replicas."""
        from quorate.wire.messages.cluster import MetadataRequest, MetadataResponse

        topics = None
        if names is not None:
            topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer = await self.router.ask(node, request, MetadataResponse)
        found: dict[str, TopicDescription | RequestFailedError] = {}
        for topic in answer.topics:
            error = failure_of(topic.error_code, None)
            found[topic.name or ""] = error if error is not None else _from_metadata(topic)
        return found

    async def create_topics(
        self, topics: Iterable[TopicCreation], validate_only: bool = False
    ) -> Mapping[str, CreatedTopic | RequestFailedError]:
        """Create topics; returns when the change is committed."""
        from quorate.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse

        async def send(
            part: Sequence[TopicCreation],
        ) -> dict[str, CreatedTopic | RequestFailedError]:
            request = CreateTopicsRequest(
                topics=[_creatable(CreateTopicsRequest.CreatableTopic, topic) for topic in part],
                timeout_ms=self.router.config.request_timeout_ms,
                validate_only=validate_only,
            )
            answer = await self.router.ask_active(request, CreateTopicsResponse)
            found: dict[str, CreatedTopic | RequestFailedError] = {}
            for topic in answer.topics:
                error = item_failure(topic.error_code, topic.error_message)
                found[topic.name] = error or CreatedTopic(
                    topic.topic_id, topic.num_partitions, topic.replication_factor
                )
            return found

        parts = parts_of(topics, _creation_bytes, _creation_records)
        return merged(await in_parts(self.router, parts, send, lambda topic: topic.name))

    async def create_partitions(
        self, topics: Mapping[str, NewPartitions], validate_only: bool = False
    ) -> Outcome:
        """Add partitions to topics; returns when the change is committed."""
        from quorate.wire.messages.topics import CreatePartitionsRequest, CreatePartitionsResponse

        cls = CreatePartitionsRequest.CreatePartitionsTopic

        async def send(part: Sequence[str]) -> dict[str, RequestFailedError | None]:
            request = CreatePartitionsRequest(
                topics=[
                    cls(
                        name=name,
                        count=topics[name].total,
                        assignments=None
                        if (assigned := topics[name].assignments) is None
                        else [
                            cls.CreatePartitionsAssignment(broker_ids=list(brokers))
                            for brokers in assigned
                        ],
                    )
                    for name in part
                ],
                timeout_ms=self.router.config.request_timeout_ms,
                validate_only=validate_only,
            )
            answer = await self.router.ask_active(request, CreatePartitionsResponse)
            return {
                each.name: item_failure(each.error_code, each.error_message)
                for each in answer.results
            }

        parts = parts_of(
            topics,
            lambda name: text_bytes(name) + _assignment_bytes(topics[name].assignments or ()),
            lambda name: max(topics[name].total, 1),
        )
        return merged(await in_parts(self.router, parts, send))

    async def delete_topics(self, names: Iterable[str]) -> Outcome:
        """Delete topics by name; returns when the change is committed."""
        from quorate.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse

        async def send(part: Sequence[str]) -> dict[str, RequestFailedError | None]:
            request = DeleteTopicsRequest(
                topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in part],
                timeout_ms=self.router.config.request_timeout_ms,
            )
            answer = await self.router.ask_active(request, DeleteTopicsResponse, _DELETE_BY_ID)
            return {
                each.name or "": item_failure(each.error_code, each.error_message)
                for each in answer.responses
            }

        return merged(await in_parts(self.router, parts_of(names, text_bytes), send))


def _may_begin(name: str, prefix: str) -> bool:
    """Whether this name, or a later one, begins with the prefix."""
    return name[: len(prefix)] <= prefix


def _parts(names: list[str] | None) -> Iterator[list[str] | None]:
    """The names in parts of NAMES_PER_REQUEST; None stays None."""
    if names is None:
        yield None
        return
    for start in range(0, len(names), NAMES_PER_REQUEST):
        yield names[start : start + NAMES_PER_REQUEST]


def _add_page(
    found: dict[str, TopicDescription | RequestFailedError],
    topic: DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic,
) -> None:
    """Add the partitions of one page to what earlier pages have of the topic."""
    name = topic.name or ""
    error = failure_of(topic.error_code, None)
    if error is not None:
        found[name] = error
        return
    partitions = tuple(
        PartitionDescription(
            each.partition_index,
            each.leader_id if each.leader_id >= 0 else None,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
            _ids(each.eligible_leader_replicas),
            _ids(each.last_known_elr),
        )
        for each in topic.partitions
    )
    before = found.get(name)
    earlier = before.partitions if isinstance(before, TopicDescription) else ()
    found[name] = _described(name, topic.topic_id, topic.is_internal, (*earlier, *partitions))


def _ids(ids: list[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)


def _from_metadata(topic: MetadataResponse.MetadataResponseTopic) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            each.partition_index,
            each.leader_id if each.leader_id >= 0 else None,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
            None,
            None,
        )
        for each in topic.partitions
    )
    return _described(topic.name or "", topic.topic_id, topic.is_internal, partitions)


def _described(
    name: str, topic_id: Uuid, is_internal: bool, partitions: tuple[PartitionDescription, ...]
) -> TopicDescription:
    ordered = tuple(sorted(partitions, key=lambda each: each.index))
    return TopicDescription(name, topic_id, is_internal, ordered)


def _assignment_bytes(assignments: Iterable[Sequence[int]]) -> int:
    return sum(ITEM_BYTES + 4 * len(brokers) for brokers in assignments)


def _creation_bytes(topic: TopicCreation) -> int:
    configs = sum(text_bytes(name, value) for name, value in topic.configs.items())
    return text_bytes(topic.name) + configs + _assignment_bytes(topic.assignments.values())


def _creation_records(topic: TopicCreation) -> int:
    """The records of a topic. A default count of partitions is taken for more than most clusters have."""
    partitions = len(topic.assignments) or topic.partitions
    return 1 + len(topic.configs) + (_DEFAULT_PARTITIONS if partitions < 0 else partitions)


def _creatable(
    cls: type[CreateTopicsRequest.CreatableTopic], topic: TopicCreation
) -> CreateTopicsRequest.CreatableTopic:
    return cls(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            cls.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignments.items()
        ],
        configs=[
            cls.CreatableTopicConfig(name=name, value=value)
            for name, value in topic.configs.items()
        ],
    )
