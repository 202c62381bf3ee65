"""Between a record's bytes and an image without a record in between: for a million partitions.

Nearly every record of a large snapshot is a PartitionRecord of one plain shape: no reassignment,
no tagged field, lists under 127 long. Such a one is read and written by one struct, its lists of
ids looked up by their bytes. Anything else takes the way of every record, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from quorate.base.ids import Uuid
from quorate.formats.records import decode_record, encode_record
from quorate.formats.versions import MetadataVersion, record_version
from quorate.metadata import dump
from quorate.metadata.delta import ImageDelta
from quorate.metadata.dump import OnLoss, refuse_loss
from quorate.metadata.image import RECOVERED, Image, Partition, Topic
from quorate.metadata.interning import TABLE_LIMIT

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


def record_values(
    image: Image,
    *,
    metadata_version: MetadataVersion | None = None,
    on_loss: OnLoss = refuse_loss,
) -> Iterator[bytes]:
    """The records of `image` as bytes, in order: `dump.records` encoded, but several times faster.

    Holds a topic of `image` no longer than until the next one. Arguments and errors as of `dump.records`.
    """
    writer = dump.Writer(image, metadata_version, on_loss)
    del image  # `writer` releases its topics one by one
    for record, version in writer.before_topics():
        yield encode_record(record, version)
    packer = _Packer(record_version("PartitionRecord", writer.version))
    for topic in writer.topics():
        yield encode_record(*writer.topic(topic))
        for index in sorted(topic.partitions):
            partition = topic.partitions[index]
            value = packer.plain_partition(topic, index, partition)
            yield value or encode_record(*writer.partition(topic, index, partition))
    for record, version in writer.after_topics():
        yield encode_record(record, version)


class _Packer:
    """Writes plain partitions; remembers the bytes of the tuples that it met."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._frame = bytes((1, _PARTITION_RECORD, version))
        self._ids: dict[tuple[int, ...], bytes] = {}
        self._uuids: dict[tuple[Uuid, ...], bytes] = {}

    def plain_partition(self, topic: Topic, index: int, partition: Partition) -> bytes | None:
        """The value of the partition's record; None unless it has the plain shape."""
        (
            replicas,
            directories,
            isr,
            removing,
            adding,
            leader,
            recovery,
            leader_epoch,
            partition_epoch,
            elr,
            last_known_elr,
        ) = partition
        if removing or adding or recovery or elr or last_known_elr or not self._version:
            return None
        if len(directories) != len(replicas):
            return None
        replicas_length, isr_length = len(replicas) + 1, len(isr) + 1
        shape = _SHAPES.get((replicas_length, isr_length)) or _shape(replicas_length, isr_length)
        if shape is None:
            return None
        return self._frame + shape.pack(
            index,
            topic.id,
            replicas_length,
            self._ids.get(replicas) or self._pack_ids(replicas),
            isr_length,
            self._ids.get(isr) or self._pack_ids(isr),
            _EMPTY,
            _EMPTY,
            leader,
            leader_epoch,
            partition_epoch,
            replicas_length,
            self._uuids.get(directories) or self._pack_uuids(directories),
            0,
        )

    def _pack_ids(self, ids: tuple[int, ...]) -> bytes:
        if len(self._ids) >= TABLE_LIMIT:
            self._ids.clear()
        packed = self._ids[ids] = b"".join(id.to_bytes(4, "big", signed=True) for id in ids)
        return packed

    def _pack_uuids(self, uuids: tuple[Uuid, ...]) -> bytes:
        if len(self._uuids) >= TABLE_LIMIT:
            self._uuids.clear()
        packed = self._uuids[uuids] = b"".join(uuids)
        return packed


def _shape(replicas_length: int, isr_length: int) -> Struct | None:
    """The fields' layout for these two lengths; None where they are no short lists."""
    if not (0 < replicas_length < 0x80 and 0 < isr_length < 0x80):
        return None
    replicas, isr = replicas_length - 1, isr_length - 1
    shape = Struct(f">i16sB{4 * replicas}sB{4 * isr}sBBiiiB{16 * replicas}sB")
    _SHAPES[replicas_length, isr_length] = shape
    return shape
