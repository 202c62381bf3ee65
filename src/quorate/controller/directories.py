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
from quorate.controller.result import ApiError, Result, Steps, Turn, WriteOperation
from quorate.metadata.image import Broker, Image
from quorate.wire.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from quorate.wire.schema import Message

_Directory = AssignReplicasToDirsResponse.DirectoryData
_Topic = _Directory.TopicData
_Partition = _Topic.PartitionData


def _assign(
    head: HeadView, request: AssignReplicasToDirsRequest, context: Context
) -> Steps[AssignReplicasToDirsResponse]:
    """An unknown or failed directory is written all the same: the broker then leaves the ISR and
    the leadership of the partitions in it.

    Other writes are decided after a number of partitions. Each part moves its partitions and takes the
    broker out of those in a failed directory, so it leaves an image that is consistent.
    """
    if not metadata_version(head.image).directory_assignment:
        text = "Directory assignment is not supported yet."
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    check_epoch(head.image, request.broker_id, request.broker_epoch)
    part = _Part(head, request, context)
    response = AssignReplicasToDirsResponse()
    for given in request.directories:
        answer = _Directory(id=given.id, topics=[])
        for topic in given.topics:
            partitions = []
            for partition in topic.partitions:
                if part.seen == context.config.part_records:
                    yield Turn(part.records())
                    if not _is_registered(head.image, request):
                        return Result((), _failed(request, ErrorCode.STALE_BROKER_EPOCH, None))
                    part = _Part(head, request, context)
                index = partition.partition_index
                error = part.assign(given.id, topic.topic_id, index)
                partitions.append(_Partition(partition_index=index, error_code=error))
            answer.topics.append(_Topic(topic_id=topic.topic_id, partitions=partitions))
        response.directories.append(answer)
    return Result(part.records(), response, atomic=False)


def _is_registered(image: Image, request: AssignReplicasToDirsRequest) -> bool:
    broker = image.cluster.brokers.get(request.broker_id)
    return broker is not None and broker.epoch == request.broker_epoch


class _Part:
    """Some of the assignments, decided on one image."""

    def __init__(
        self, head: HeadView, request: AssignReplicasToDirsRequest, context: Context
    ) -> None:
        self._image = head.image
        self._context = context
        cluster = context.liveness.without_failing(head.image.cluster)
        self._broker = cluster.brokers[request.broker_id]
        self._moves: list[Message] = []
        self._offline: dict[tuple[Uuid, int], PlacedPartition] = {}
        self.seen = 0
        """Assignments, also those that are refused."""

    def assign(self, directory: Uuid, topic_id: Uuid, index: int) -> ErrorCode:
        """The replica of this partition lies in the directory. Returns why it is refused, or NONE."""
        self.seen += 1
        image, broker = self._image, self._broker
        place = _place(image, topic_id, index, broker)
        if isinstance(place, ErrorCode):
            return place
        self._moves += _moved(image, place, broker, directory, self._context)
        if not has_online_directory(broker, directory):
            self._offline[topic_id, index] = place
        return ErrorCode.NONE

    def records(self) -> list[Message]:
        """The moves, then what leaves the ISR for it."""
        found = self._offline.values()
        left = leader_and_isr_changes(self._image, found, self._context, to_remove=self._broker.id)
        return [*self._moves, *left]


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
