"""AssignReplicasToDirs: a broker says in which log directory each replica lies (KIP-858).

Source: `ReplicationControlManager.handleAssignReplicasToDirs`.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.brokers import check_epoch, metadata_version
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.partition_changes import (
    PartitionTarget,
    change_partition,
    has_online_directory,
)
from quorate.controller.replicas import PlacedPartition, leader_and_isr_changes, rules_for
from quorate.controller.result import ApiError, Result, WriteOperation
from quorate.metadata.image import Broker, Image
from quorate.wire.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from quorate.wire.schema import Message

_Directory = AssignReplicasToDirsResponse.DirectoryData
_Topic = _Directory.TopicData
_Partition = _Topic.PartitionData


def _assign(
    head: HeadView, request: AssignReplicasToDirsRequest, context: Context
) -> Result[AssignReplicasToDirsResponse]:
    """An unknown or failed directory is written all the same: the broker then leaves the ISR and
    the leadership of the partitions in it."""
    image = head.image
    if not metadata_version(image).directory_assignment:
        text = "Directory assignment is not supported yet."
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    broker = check_epoch(image, request.broker_id, request.broker_epoch)
    records: list[Message] = []
    failed: dict[tuple[Uuid, int], PlacedPartition] = {}
    response = AssignReplicasToDirsResponse()
    for given in request.directories:
        is_online = has_online_directory(broker, given.id)
        answer = _Directory(id=given.id, topics=[])
        for topic in given.topics:
            partitions = []
            for partition in topic.partitions:
                place = _place(image, topic.topic_id, partition.partition_index, broker)
                error = place if isinstance(place, ErrorCode) else ErrorCode.NONE
                partitions.append(
                    _Partition(partition_index=partition.partition_index, error_code=error)
                )
                if isinstance(place, ErrorCode):
                    continue
                records.extend(_moved(image, place, broker, given.id, context))
                if not is_online:
                    failed[topic.topic_id, place.partition_id] = place
            answer.topics.append(_Topic(topic_id=topic.topic_id, partitions=partitions))
        response.directories.append(answer)
    records.extend(leader_and_isr_changes(image, failed.values(), context, to_remove=broker.id))
    return Result(records, response, atomic=False)


def _place(image: Image, topic_id: Uuid, index: int, broker: Broker) -> PlacedPartition | ErrorCode:
    topic = image.topics.by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker.id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return PlacedPartition(topic, index, partition)


def _moved(
    image: Image, place: PlacedPartition, broker: Broker, directory: Uuid, context: Context
) -> list[Message]:
    topic, index, partition = place
    target = PartitionTarget(directories={broker.id: directory})
    rules = rules_for(image, topic, context)
    record = change_partition(topic.id, index, partition, target, rules)
    return [] if record is None else [record]


def _failed(
    request: AssignReplicasToDirsRequest, error: ErrorCode, message: str | None
) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=error)


ASSIGN_REPLICAS_TO_DIRS: Final = WriteOperation("AssignReplicasToDirs", _assign, _failed)
