"""DescribeTopicPartitions: topics of the image, page by page (KIP-966).

Source: `DescribeTopicPartitionsRequestHandler` and `KRaftMetadataCache.describeTopicResponse`. A
controller of Kafka does not serve it. A broker shows a leader only if it has an endpoint on the
listener of the request; a controller shows the leader of the image.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.controller.result import ApiError
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
) -> DescribeTopicPartitionsResponse:
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
    hidden = {name for name in asked if name >= first and not may(name)}
    if asked:
        names = iter(sorted(name for name in asked if name >= first and name not in hidden))
    else:
        # Every topic has a partition: one name more than the page has room for is the next cursor.
        names = filter(may, _in_order(image.topics.ids, first, room + 1))
    response = DescribeTopicPartitionsResponse()
    for name in names:
        begin = start if name == first else 0
        if room <= 0:
            response.next_cursor = _Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.named(name)
        if topic is None:
            if asked:
                response.topics.append(_failed(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        described, after = _described(image, topic, begin, room)
        response.topics.append(described)
        room -= len(described.partitions)
        if after is not None:
            response.next_cursor = _Cursor(topic_name=name, partition_index=after)
            break
    if asked:
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response.topics += [_failed(name, error) for name in sorted(hidden)]
    return response


def _in_order(ids: Mapping[str, object], first: str, part: int) -> Iterator[str]:
    """The names from `first` on. They are sorted in parts: a page needs few of them, and the requester's
    permission for each name that is taken is asked and logged."""
    names = heapq.nsmallest(part, (name for name in ids if name >= first))
    while names:
        yield from names
        last = names[-1]
        names = heapq.nsmallest(part, (name for name in ids if name > last))


def _failed(name: str, error: ErrorCode) -> _Topic:
    return _Topic(error_code=error, name=name, topic_id=ZERO_UUID, is_internal=name in _INTERNAL)


def _described(image: Image, topic: Topic, begin: int, room: int) -> tuple[_Topic, int | None]:
    """Up to `room` partitions from index `begin` on; the index after them, None at the end."""
    indexes = sorted(index for index in topic.partitions if index >= begin)
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
