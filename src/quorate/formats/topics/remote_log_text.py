"""The records of `__remote_log_metadata` as the text of Kafka's Java objects."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from quorate.base.ids import uuid_to_text
from quorate.formats.errors import RecordError
from quorate.formats.topics.remote_log import (
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataSnapshotRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    SegmentLeaderEpochEntry,
    TopicIdPartitionEntry,
)
from quorate.wire.schema import Message

REMOTE_LOG_RECORDS: Final[dict[int, type[Message]]] = {
    0: RemoteLogSegmentMetadataRecord,
    1: RemoteLogSegmentMetadataUpdateRecord,
    2: RemotePartitionDeleteMetadataRecord,
    3: RemoteLogSegmentMetadataSnapshotRecord,
}
"""The class of each record type, by its number."""


class SegmentState(IntEnum):
    """What happens to a segment."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class DeleteState(IntEnum):
    """How far the deletion of a partition is."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


def remote_log_text(record: Message) -> str:
    """The text of a record of REMOTE_LOG_RECORDS (`RemoteLogSegmentMetadata.toString` and others).

    Raises RecordError with Kafka's message for values that Kafka refuses.
    """
    match record:
        case RemoteLogSegmentMetadataRecord():
            return _segment(record)
        case RemoteLogSegmentMetadataUpdateRecord():
            return (
                f"RemoteLogSegmentMetadataUpdate{{"
                f"remoteLogSegmentId={_segment_id(record.remote_log_segment_id)}, "
                f"customMetadata={_custom(record.custom_metadata)}, "
                f"state={_segment_state(record.remote_log_segment_state)}, "
                f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
            )
        case RemotePartitionDeleteMetadataRecord():
            return (
                f"RemotePartitionDeleteMetadata{{"
                f"topicPartition={_partition(record.topic_id_partition)}, "
                f"state={_delete_state(record.remote_partition_delete_state)}, "
                f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
            )
        case RemoteLogSegmentMetadataSnapshotRecord():
            return _snapshot(record)
        case _:
            raise TypeError(f"{type(record).__name__} is no record of a remote log")


def _segment(record: RemoteLogSegmentMetadataRecord) -> str:
    start, end = record.start_offset, record.end_offset
    if start < 0:
        raise RecordError(
            f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative"
        )
    if end < start:
        raise RecordError(
            f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than "
            f"startOffset = {start}"
        )
    epochs = _epochs(record.segment_leader_epochs)
    return (
        f"RemoteLogSegmentMetadata{{"
        f"remoteLogSegmentId={_segment_id(record.remote_log_segment_id)}, "
        f"startOffset={start}, endOffset={end}, brokerId={record.broker_id}, "
        f"maxTimestampMs={record.max_timestamp_ms}, "
        f"eventTimestampMs={record.event_timestamp_ms}, segmentLeaderEpochs={epochs}, "
        f"segmentSizeInBytes={record.segment_size_in_bytes}, "
        f"customMetadata={_custom(record.custom_metadata)}, "
        f"state={_segment_state(record.remote_log_segment_state)}, "
        f"txnIdxEmpty={_bool(record.txn_index_empty)}}}"
    )


def _snapshot(record: RemoteLogSegmentMetadataSnapshotRecord) -> str:
    state = _segment_state(record.remote_log_segment_state)
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={uuid_to_text(record.segment_id)}, "
        f"startOffset={record.start_offset}, endOffset={record.end_offset}, "
        f"maxTimestampMs={record.max_timestamp_ms}, "
        f"segmentLeaderEpochs={_epochs(record.segment_leader_epochs)}, "
        f"segmentSizeInBytes={record.segment_size_in_bytes}, "
        f"customMetadata={_custom(record.custom_metadata)}, state={state}, "
        f"txnIdxEmpty={_bool(record.txn_index_empty)}}}"
    )


def _segment_id(entry: RemoteLogSegmentIdEntry) -> str:
    partition = _partition(entry.topic_id_partition)
    return f"RemoteLogSegmentId{{topicIdPartition={partition}, id={uuid_to_text(entry.id)}}}"


def _partition(entry: TopicIdPartitionEntry) -> str:
    return f"{uuid_to_text(entry.id)}:{entry.name}-{entry.partition}"


def _epochs(entries: Sequence[SegmentLeaderEpochEntry]) -> str:
    if not entries:
        raise RecordError("segmentLeaderEpochs can not be null or empty")
    offsets = {entry.leader_epoch: entry.offset for entry in entries}
    return f"{{{', '.join(f'{epoch}={offsets[epoch]}' for epoch in sorted(offsets))}}}"


def _custom(metadata: bytes | None) -> str:
    if metadata is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(metadata)} bytes}}]"


def _segment_state(number: int) -> str:
    if number not in SegmentState.__members__.values():
        raise RecordError("state can not be null")
    return SegmentState(number).name


def _delete_state(number: int) -> str:
    if number not in DeleteState.__members__.values():
        raise RecordError("null")
    return DeleteState(number).name


def _bool(value: bool) -> str:
    return "true" if value else "false"
