"""From a record's bytes straight into an image: the path of a million partitions.

Nearly every record of a large snapshot is a PartitionRecord of one plain shape: no reassignment,
no tagged field, lists under 127 long. Such a one is unpacked by one struct, its lists of ids
looked up as bytes. Anything else takes the way of every record, with the same result.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from quorate.formats.records import decode_record
from quorate.metadata.delta import ImageDelta
from quorate.metadata.image import RECOVERED, Partition

_PARTITION_RECORD: Final = 3
_FRAME: Final = 3
"""Bytes before the fields: version of the frame, type, version of the record."""
_REPLICAS: Final = 23
"""Where the length of the replicas stands: after the frame, partition id and topic id."""
_EMPTY: Final = 1
"""A compact array's length is written one too high."""

_SHAPES: Final[dict[tuple[int, int], Struct]] = {}


def replay_value(delta: ImageDelta, value: bytes) -> None:
    """Apply the record that `value` frames.

    Raises RecordError when the bytes are none, ReplayError when the record does not fit.
    """
    if not replay_plain_partition(delta, value):
        delta.replay(decode_record(value)[0])


def replay_plain_partition(delta: ImageDelta, value: bytes) -> bool:
    """Apply `value` when it is a PartitionRecord (v1, v2) of the plain shape; else say False."""
    size = len(value)
    if size <= _REPLICAS or value[1] != _PARTITION_RECORD or value[0] != 1:
        return False
    replicas_length = value[_REPLICAS]
    isr_at = _REPLICAS - 3 + 4 * replicas_length
    if isr_at >= size or not 1 <= value[2] <= 2:
        return False
    isr_length = value[isr_at]
    shape = _SHAPES.get((replicas_length, isr_length)) or _shape(replicas_length, isr_length)
    if shape is None or shape.size != size - _FRAME:
        return False
    (
        index,
        topic_id,
        _,
        replicas,
        _,
        isr,
        removing,
        adding,
        leader,
        leader_epoch,
        partition_epoch,
        directories_length,
        directories,
        tags,
    ) = shape.unpack_from(value, _FRAME)
    if removing != _EMPTY or adding != _EMPTY or directories_length != replicas_length or tags:
        return False
    interner = delta.interner
    partition = Partition(
        interner.packed_ids(replicas),
        interner.packed_uuids(directories),
        interner.packed_ids(isr),
        (),
        (),
        leader,
        RECOVERED,
        leader_epoch,
        partition_epoch,
    )
    delta.topics.put_partition(topic_id, index, partition)
    return True


def _shape(replicas_length: int, isr_length: int) -> Struct | None:
    """The fields' layout for these two lengths; None where they are no short lists."""
    if not (0 < replicas_length < 0x80 and 0 < isr_length < 0x80):
        return None
    replicas, isr = replicas_length - 1, isr_length - 1
    shape = Struct(f">i16sB{4 * replicas}sB{4 * isr}sBBiiiB{16 * replicas}sB")
    _SHAPES[replicas_length, isr_length] = shape
    return shape
