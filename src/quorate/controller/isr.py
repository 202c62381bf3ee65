"""AlterPartition: the leader of a partition changes its ISR (KIP-497, KIP-841, KIP-903).

Source: `ReplicationControlManager.alterPartition` and `validateAlterPartitionData`.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.brokers import check_epoch
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.partition_changes import (
    NO_LEADER_CHANGE,
    PartitionTarget,
    change_partition,
)
from quorate.controller.replicas import election_of, rules_for
from quorate.controller.result import Result, WriteOperation
from quorate.metadata.image import RECOVERED, RECOVERING, Image, Partition, Topic
from quorate.metadata.interning import Interner
from quorate.metadata.topics import merge
from quorate.wire.messages import AlterPartitionRequest, AlterPartitionResponse
from quorate.wire.schema import Message

_BROKER_EPOCHS: Final = 3
"""The version of AlterPartition from which members of the ISR come with their broker epochs."""
_ANY_EPOCH: Final = -1

_Wanted = AlterPartitionRequest.TopicData.PartitionData
_Answer = AlterPartitionResponse.TopicData.PartitionData


def _alter_partition(
    head: HeadView, request: AlterPartitionRequest, context: Context
) -> Result[AlterPartitionResponse]:
    """Each partition is decided alone; a refused one does not affect the others.

    A request may name a partition twice. The second change is asked of the partition as the first one
    leaves it, so its epochs are too old. Kafka decides both on the same partition. Its ISR may then hold a
    broker that is no replica any more.
    """
    image = head.image
    check_epoch(image, request.broker_id, request.broker_epoch)
    records: list[Message] = []
    answers = []
    changed: dict[tuple[Uuid, int], Partition] = {}
    for topic_data in request.topics:
        topic = image.topics.by_id.get(topic_data.topic_id)
        partitions = []
        for wanted in topic_data.partitions:
            if topic is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID
                partitions.append(_Answer(partition_index=wanted.partition_index, error_code=error))
                continue
            partitions.append(
                _alter(image, request.broker_id, topic, wanted, context, records, changed)
            )
        answers.append(
            AlterPartitionResponse.TopicData(topic_id=topic_data.topic_id, partitions=partitions)
        )
    return Result(records, AlterPartitionResponse(topics=answers), atomic=False)


def _alter(
    image: Image,
    broker_id: int,
    topic: Topic,
    wanted: _Wanted,
    context: Context,
    records: list[Message],
    changed: dict[tuple[Uuid, int], Partition],
) -> _Answer:
    """Decide one partition. records, changed: get what it results in."""
    index = wanted.partition_index
    isr = _new_isr(wanted, context.version)
    partition = changed.get((topic.id, index)) or topic.partitions.get(index)
    if partition is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _Answer(partition_index=index, error_code=error)
    error = _problem(image, broker_id, partition, wanted, isr, context)
    if error is not ErrorCode.NONE:
        return _Answer(partition_index=index, error_code=error)
    target = PartitionTarget(
        isr=[replica for replica, _ in isr],
        recovery_state=wanted.leader_recovery_state,
        election=election_of(image, topic, context.configs),
    )
    rules = rules_for(image, topic, context)
    record = change_partition(topic.id, index, partition, target, rules)
    if record is not None:
        records.append(record)
        partition = changed[topic.id, index] = merge(partition, record, Interner())
        if record.leader not in (broker_id, NO_LEADER_CHANGE):
            # The change completes a reassignment that takes the leadership from the broker that asks:
            # it has to read the new metadata first.
            error = ErrorCode.NEW_LEADER_ELECTED
            return _Answer(partition_index=index, error_code=error)
    return _Answer(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _new_isr(wanted: _Wanted, version: int) -> list[tuple[int, int]]:
    """(broker id, broker epoch) of each member; -1: any epoch."""
    if version < _BROKER_EPOCHS:
        return [(replica, _ANY_EPOCH) for replica in wanted.new_isr]
    return [(state.broker_id, state.broker_epoch) for state in wanted.new_isr_with_epochs]


def _problem(
    image: Image,
    broker_id: int,
    partition: Partition,
    wanted: _Wanted,
    isr: list[tuple[int, int]],
    context: Context,
) -> ErrorCode:
    """Why the change is refused, in Kafka's order of checks; NONE: it is not.

    A leader that knows a higher epoch than this node has a newer controller: it looks for that one.
    """
    if wanted.leader_epoch > partition.leader_epoch:
        return ErrorCode.NOT_CONTROLLER
    if wanted.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if wanted.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if wanted.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    replicas = [replica for replica, _ in isr]
    is_set = len(set(replicas)) == len(replicas)
    if not replicas or not is_set or not set(replicas) <= set(partition.replicas):
        return ErrorCode.INVALID_REQUEST
    if partition.leader not in replicas:
        return ErrorCode.INVALID_REQUEST
    state = wanted.leader_recovery_state
    if state not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST  # an exception of Kafka's, which ends the leadership
    if state == RECOVERING and len(replicas) > 1:
        return ErrorCode.INVALID_REQUEST
    if state == RECOVERING and partition.leader_recovery_state == RECOVERED:
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(image, *member, context) for member in isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_eligible(image: Image, broker_id: int, epoch: int, context: Context) -> bool:
    if not context.is_active(image, broker_id):
        return False
    return epoch in (_ANY_EPOCH, image.cluster.brokers[broker_id].epoch)


def _failed(
    request: AlterPartitionRequest, error: ErrorCode, message: str | None
) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=error)


def _empty(request: AlterPartitionRequest) -> AlterPartitionResponse | None:
    return None if request.topics else AlterPartitionResponse()


ALTER_PARTITION: Final = WriteOperation("AlterPartition", _alter_partition, _failed, _empty)
