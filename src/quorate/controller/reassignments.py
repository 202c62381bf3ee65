"""Replicas move to other brokers: AlterPartitionReassignments, ListPartitionReassignments (KIP-455).

A reassignment adds the new replicas first and removes the old ones once the new ones are in sync;
`change_partition` completes it with the change of the ISR that makes it so.

Source: `ReplicationControlManager.alterPartitionReassignments` and `listPartitionReassignments`,
`PartitionReassignmentReplicas`, `PartitionReassignmentRevert`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.controller.assignments import check_assignment, check_size
from quorate.controller.building import LOOKED_AT, ROWS, Building, each_group, in_order, parts
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.partition_changes import Election, PartitionTarget, change_partition
from quorate.controller.replicas import PlacedPartition, election_of, rules_for
from quorate.controller.result import (
    PAUSE_EVERY,
    ApiError,
    Result,
    Steps,
    WriteOperation,
    error_text,
)
from quorate.formats.records import PartitionChangeRecord
from quorate.metadata.image import Image, Partition, Topic
from quorate.metadata.interning import Interner
from quorate.metadata.topics import merge
from quorate.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from quorate.wire.schema import Message

_Wanted = AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition
_Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
_Partition = _Topic.ReassignablePartitionResponse
_Ongoing = ListPartitionReassignmentsResponse.OngoingTopicReassignment


def is_reassigned(partition: Partition) -> bool:
    """A reassignment of the partition is under way."""
    return bool(partition.adding_replicas or partition.removing_replicas)


# -- change ------------------------------------------------------------------------------------
def _alter(
    head: HeadView, request: AlterPartitionReassignmentsRequest, context: Context
) -> Steps[AlterPartitionReassignmentsResponse]:
    """Each partition is decided alone; the records of all of them commit together.

    A request may name a partition twice. The second change follows the first one. Kafka decides both on
    the same partition, and its controller ends where the records contradict each other.
    """
    image = head.image
    changes: dict[tuple[str, int], list[PartitionChangeRecord]] = {}
    allows_change = request.allow_replication_factor_change
    records: list[Message] = []
    topics = []
    seen = 0
    for topic in request.topics:
        partitions = []
        seen += 1
        if seen % PAUSE_EVERY == 0:
            yield None
        for wanted in topic.partitions:
            seen += 1
            if seen % PAUSE_EVERY == 0:
                yield None
            refused: ApiError | None = None
            earlier = changes.setdefault((topic.name, wanted.partition_index), [])
            try:
                record = _alter_one(image, topic.name, wanted, earlier, allows_change, context)
            except ApiError as error:
                refused = error
            else:
                if record is not None:
                    records.append(record)
                    earlier.append(record)
            partitions.append(_partition_result(wanted.partition_index, refused))
        topics.append(_Topic(name=topic.name, partitions=partitions))
        check_size(records)
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=allows_change, responses=topics
    )
    return Result(records, response)


def _alter_one(
    image: Image,
    name: str,
    wanted: _Wanted,
    earlier: Sequence[PartitionChangeRecord],
    allows_change: bool,
    context: Context,
) -> PartitionChangeRecord | None:
    """earlier: the changes of the same partition that the request has asked for before this one."""
    topic = image.topics.named(name)
    if topic is None:
        text = f"Unable to find a topic named {name}."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    partition = topic.partitions.get(wanted.partition_index)
    if partition is None:
        text = f"Unable to find partition {name}:{wanted.partition_index}."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    for change in earlier:
        partition = merge(partition, change, Interner())
    place = PlacedPartition(topic, wanted.partition_index, partition)
    if wanted.replicas is None:
        target = _cancelled(image, place, context)
    else:
        check_assignment(image.cluster.brokers, wanted.replicas, None)
        if not allows_change:
            _check_factor(partition, len(wanted.replicas))
        target = _reassigned(partition, wanted.replicas)
    rules = rules_for(image, topic, context)
    return change_partition(topic.id, place.partition_id, partition, target, rules)


def _reassigned(partition: Partition, replicas: list[int]) -> PartitionTarget:
    """The new replicas first, then those to remove.

    A request may replace a reassignment that is under way. Kafka then leaves `adding` and `removing`
    where the new set is empty. So a replica that is to be removed may be one to wait for, and the
    reassignment never ends. Or a replica is removed that the request names. Here both follow the request
    (decision 7).
    """
    removing = sorted(set(partition.replicas) - set(replicas))
    adding = sorted(set(replicas) - set(partition.replicas))
    still_adding = [replica for replica in partition.adding_replicas if replica in replicas]
    return PartitionTarget(
        replicas=[*replicas, *removing], removing=removing, adding=adding or still_adding
    )


def _check_factor(partition: Partition, wanted: int) -> None:
    present = set(partition.replicas) - set(partition.removing_replicas)
    if len(present) != wanted:
        text = f"The replication factor is changed from {len(present)} to {wanted}"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _cancelled(image: Image, place: PlacedPartition, context: Context) -> PartitionTarget:
    """Back to the replicas of before. Where none of them is in sync, the first one leads, which is an
    unclean election."""
    topic, partition_id, partition = place
    if not is_reassigned(partition):
        raise ApiError.of(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    adding = partition.adding_replicas
    replicas = [replica for replica in partition.replicas if replica not in adding]
    isr = [replica for replica in partition.isr if replica not in adding]
    election = election_of(image, topic, context.configs)
    if not isr:
        if not replicas:
            text = "Invalid replica assignment: addingReplicas contains all replicas."
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        if election is not Election.UNCLEAN:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{partition_id} because it "
                "would require an unclean leader election.",
            )
        isr = replicas[:1]
    return PartitionTarget(isr=isr, replicas=replicas, removing=(), adding=(), election=election)


def _partition_result(index: int, refused: ApiError | None) -> _Partition:
    return _Partition(
        partition_index=index,
        error_code=ErrorCode.NONE if refused is None else refused.error,
        error_message=None if refused is None else error_text(refused.error, str(refused)),
    )


def _failed(
    request: AlterPartitionReassignmentsRequest, error: ErrorCode, message: str | None
) -> Building[AlterPartitionReassignmentsResponse]:
    """The error stands at the top and at each partition, as Kafka's request builds it."""
    text = error_text(error, message)

    def row(wanted: _Wanted) -> _Partition:
        index = wanted.partition_index
        return _Partition(partition_index=index, error_code=error, error_message=text)

    responses = yield from each_group(
        request.topics,
        lambda topic: topic.partitions,
        row,
        lambda topic, rows: _Topic(name=topic.name, partitions=rows),
    )
    return AlterPartitionReassignmentsResponse(
        error_code=error, error_message=text, responses=responses
    )


def _empty(
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse | None:
    return None if request.topics else AlterPartitionReassignmentsResponse()


ALTER_PARTITION_REASSIGNMENTS: Final = WriteOperation(
    "AlterPartitionReassignments",
    _alter,
    _failed,
    _empty,
    timeout_ms=lambda request: request.timeout_ms,
)


# -- list --------------------------------------------------------------------------------------
def list_reassignments(
    image: Image, request: ListPartitionReassignmentsRequest
) -> Building[ListPartitionReassignmentsResponse]:
    """The reassignments under way, of all topics or of those that the request names."""
    topics: list[_Ongoing] = []
    looked_at = 0
    # Few of many topics have one: only those are sorted.
    changing = (yield from _changing(image)) if request.topics is None else []
    listed: Iterable[tuple[str, Iterable[int]]] = (
        ((asked.name, asked.partition_indexes) for asked in request.topics)
        if request.topics is not None
        else ((topic.name, topic.partitions) for topic in changing)
    )
    for name, indexes in listed:
        ordered = (yield from in_order(indexes)) if request.topics is None else indexes
        found: list[_Ongoing.OngoingPartitionReassignment] = []
        for part in parts(ordered, ROWS):
            if looked_at >= ROWS:
                yield None
                looked_at = 0
            looked_at += len(part)
            found += _ongoing(image, name, part)
        looked_at += 1
        if found:
            topics.append(_Ongoing(name=name, partitions=found))
        elif looked_at >= ROWS:
            yield None
            looked_at = 0
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def not_listed(
    request: ListPartitionReassignmentsRequest, error: ErrorCode, message: str | None
) -> Building[ListPartitionReassignmentsResponse]:
    """The refusal: it repeats the partitions that the request names."""
    topics = yield from each_group(
        request.topics or (),
        lambda asked: asked.partition_indexes,
        lambda index: _Ongoing.OngoingPartitionReassignment(partition_index=index),
        lambda asked, rows: _Ongoing(name=asked.name, partitions=rows),
    )
    return ListPartitionReassignmentsResponse(
        error_code=error, error_message=message, topics=topics
    )


def _changing(image: Image) -> Building[list[Topic]]:
    """The topics with a reassignment, by name."""
    found: list[Topic] = []
    looked_at = 0
    for topic in image.topics.by_id.values():
        for part in parts(topic.partitions.values(), LOOKED_AT):
            if looked_at >= LOOKED_AT:
                yield None
                looked_at = 0
            looked_at += len(part)
            if any(map(is_reassigned, part)):
                found.append(topic)
                break
    return (yield from in_order(found, lambda topic: topic.name))


def _ongoing(
    image: Image, name: str, indexes: Iterable[int]
) -> Iterator[_Ongoing.OngoingPartitionReassignment]:
    topic = image.topics.named(name)
    for index in indexes if topic is not None else ():
        partition = topic.partitions.get(index) if topic is not None else None
        if partition is not None and is_reassigned(partition):
            yield _Ongoing.OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
