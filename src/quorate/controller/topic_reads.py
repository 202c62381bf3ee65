"""DescribeTopicPartitions: topics of the image, page by page (KIP-966).

Source: `DescribeTopicPartitionsRequestHandler` and `KRaftMetadataCache.describeTopicResponse`. A
controller of Kafka does not serve it. A broker shows a leader only if it has an endpoint on the
listener of the request; a controller shows the leader of the image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.controller.building import Building, each, in_order, parts, smallest
from quorate.controller.result import PAUSE_EVERY, ApiError
from quorate.metadata.image import NO_LEADER, Image, Partition, Topic
from quorate.wire.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

MAX_PARTITIONS: Final = 1000
"""Of one response. Kafka's `max.request.partition.size.limit` is 2000; its brokers answer in threads, and
a controller has one loop."""
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_Partition = _Topic.DescribeTopicPartitionsResponsePartition
_Cursor = DescribeTopicPartitionsResponse.Cursor

May = Callable[[str], bool]
"""Whether the requester may see the topic of this name."""


def describe_topic_partitions(
    image: Image, request: DescribeTopicPartitionsRequest, may: May
) -> Building[DescribeTopicPartitionsResponse]:
    """The page of topics that begins at the request's cursor, in order of their names.

    A list of all topics leaves out those that the requester may not see. In a list of named topics
    they have an error. Raises ApiError for an invalid cursor.
    """
    cursor = request.cursor
    first, start = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    if start < 0:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor}",
        )
    asked = {topic.name for topic in request.topics}
    if asked and cursor is not None and first not in asked:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic: " + first,
        )
    room = max(min(request.response_partition_limit, MAX_PARTITIONS), 1)
    page = _Page(image, first, start, room)
    if asked:
        yield from _describe_named(page, asked, may)
    else:
        yield from _describe_all(page, may)
    return page.response


def _describe_named(page: _Page, asked: set[str], may: May) -> Building[None]:
    names = yield from in_order(name for name in asked if name >= page.first)
    visible: list[str] = []
    hidden: list[str] = []
    for part in parts(names, PAUSE_EVERY):
        yield None
        for name in part:
            (visible if may(name) else hidden).append(name)
    yield from page.fill(visible, is_named=True)
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    page.response.topics += yield from each(hidden, lambda name: _failed(name, error))


def _describe_all(page: _Page, may: May) -> Building[None]:
    """A page needs few of the names: the others are sorted only for a requester who may see few. The
    permission for each name that is taken is asked and logged."""
    ids = page.image.topics.ids
    # Every topic has a partition: one name more than the page has room for is the next cursor.
    most = page.room + 1
    names = yield from smallest((name for name in ids if name >= page.first), most)
    yield from page.fill(filter(may, names))
    if len(names) == most and not page.is_complete:
        last = names[-1]
        rest = yield from in_order(name for name in ids if name > last)
        for part in parts(rest, PAUSE_EVERY):
            yield None
            yield from page.fill(filter(may, part))
            if page.is_complete:
                break


class _Page:
    """The response, as far as it is filled."""

    def __init__(self, image: Image, first: str, start: int, room: int) -> None:
        """The page begins at partition `start` of the topic `first`; room: for so many partitions."""
        self.image = image
        self.first = first
        self.room = room
        self.response = DescribeTopicPartitionsResponse()
        self._start = start

    @property
    def is_complete(self) -> bool:
        """There is a cursor for the next page."""
        return self.response.next_cursor is not None

    def fill(self, names: Iterable[str], *, is_named: bool = False) -> Building[None]:
        """Add the topics of these names. is_named: the request names them."""
        response = self.response
        for number, name in enumerate(names, 1):
            if number % PAUSE_EVERY == 0:
                yield None
            begin = self._start if name == self.first else 0
            if self.room <= 0:
                response.next_cursor = _Cursor(topic_name=name, partition_index=0)
                break
            topic = self.image.topics.named(name)
            if topic is None:
                if is_named:
                    response.topics.append(_failed(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            described, after = yield from _described(self.image, topic, begin, self.room)
            response.topics.append(described)
            self.room -= len(described.partitions)
            if after is not None:
                response.next_cursor = _Cursor(topic_name=name, partition_index=after)
                break


def _failed(name: str, error: ErrorCode) -> _Topic:
    return _Topic(error_code=error, name=name, topic_id=ZERO_UUID, is_internal=name in _INTERNAL)


def _described(
    image: Image, topic: Topic, begin: int, room: int
) -> Building[tuple[_Topic, int | None]]:
    """Up to `room` partitions from index `begin` on; the index after them, None at the end."""
    indexes = yield from smallest((i for i in topic.partitions if i >= begin), room + 1)
    after = indexes[room] if len(indexes) > room else None
    described = _Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in _INTERNAL,
        partitions=[_partition(image, i, topic.partitions[i]) for i in indexes[:room]],
    )
    return described, after


def _partition(image: Image, index: int, partition: Partition) -> _Partition:
    has_leader = partition.leader != NO_LEADER
    return _Partition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=[each for each in partition.replicas if _is_offline(image, each)],
    )


def _is_offline(image: Image, broker_id: int) -> bool:
    broker = image.cluster.brokers.get(broker_id)
    return broker is None or broker.fenced
