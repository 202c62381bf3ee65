"""Record batches of format 2, as a metadata log and its snapshots hold them.

Layout and rules: `DefaultRecordBatch` and `DefaultRecord` of Kafka; what a metadata log may hold
of it: `RecordsIterator`. Offsets, epochs and positions are plain integers, times are ms.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fastcrc.crc32 import iscsi as crc32c

from quorate.formats.batch_records import HEADER_SIZE, encode_values, raw_records, values
from quorate.formats.batch_view import CONTROL, MAGIC, BatchView
from quorate.formats.control import (
    ControlRecord,
    SnapshotFooter,
    SnapshotHeader,
    decode_control,
    encode_control,
)
from quorate.formats.errors import (
    BatchError,
    IncompleteBatchError,
    NewerBatchError,
    NewerRecordError,
    RecordError,
)
from quorate.formats.varint import encode_signed
from quorate.raft.values import Batch
from quorate.raft.values import ControlRecord as RaftControlRecord

__all__ = [
    "HEADER_SIZE",
    "MAGIC",
    "MAX_BATCH_SIZE",
    "PIECE_SIZE",
    "PREFIX_SIZE",
    "BatchView",
    "Buffer",
    "batch_size",
    "control_records",
    "encode_batch",
    "encode_control_batch",
    "encode_keyed_batch",
    "iter_batches",
    "raw_records",
    "read_batch",
    "read_batches",
    "to_raft_batch",
    "values",
    "whole_batches_size",
    "with_base_offset_and_epoch",
]

Buffer = bytes | bytearray | memoryview

PREFIX_SIZE: Final = 12
"""Base offset and length: what precedes the bytes that the length counts."""
MAX_BATCH_SIZE: Final = 8 * 1024 * 1024
"""Most bytes of a batch in a metadata log (`KafkaRaftClient.MAX_BATCH_SIZE_BYTES`)."""

PIECE_SIZE: Final = 4 * 1024 * 1024
"""Bytes that read_batches asks for at a time."""

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")
_UP_TO_CRC: Final = struct.Struct(">qiibI")
_PREFIX: Final = struct.Struct(">qi")
_BASE_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")


def read_batch(buf: Buffer, start: int, origin: int = 0) -> BatchView:
    """The batch that begins at `start` of `buf`; only its bounds are checked.

    `origin` is the position of `buf` in its file. Raises IncompleteBatchError when `buf` ends first,
    BatchError when the length cannot be one.
    """
    position = origin + start
    room = len(buf) - start
    if room < PREFIX_SIZE:
        raise IncompleteBatchError(f"only {room} bytes are left of a batch", position)
    base_offset, length = _PREFIX.unpack_from(buf, start)
    if length < HEADER_SIZE - PREFIX_SIZE:
        raise BatchError(f"length {length} is less than a batch's header", position)
    size = PREFIX_SIZE + length
    if room < size:
        raise IncompleteBatchError(f"only {room} of {size} bytes of a batch are there", position)
    data = bytes(buf[start : start + size])
    (
        base_offset,
        _,
        epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = _HEADER.unpack_from(data)
    return BatchView(
        position,
        data,
        base_offset,
        epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )


def iter_batches(
    buf: Buffer, origin: int = 0, *, cut_tail: bool = False, verify: bool = True
) -> Iterator[BatchView]:
    """Every batch of `buf`, verified (format, checksum, attributes, count).

    `origin` is the position of `buf` in its file. With `cut_tail` an incomplete last batch ends
    the iteration, as in the answer to a Fetch; else it raises IncompleteBatchError. Raises BatchError,
    whose position is where the sound batches end.
    """
    start, end = 0, len(buf)
    while start < end:
        try:
            view = read_batch(buf, start, origin)
        except IncompleteBatchError:
            if cut_tail:
                return
            raise
        if verify:
            view.verify()
        yield view
        start += len(view.data)


def read_batches(
    read: Callable[[int, int], bytes], end: int, *, start: int = 0, verify: bool = True
) -> Iterator[BatchView]:
    """Every batch of a file between the positions `start` and `end`, read piece by piece.

    `read(position, size)` gives the bytes there, fewer at the file's end. Raises as iter_batches.
    """
    position = start
    while position < end:
        piece = read(position, min(PIECE_SIZE, end - position))
        sound = whole_batches_size(piece, position)
        if not sound:
            # one batch larger than a piece, or the end of the file inside a batch
            view = read_batch(_whole_batch(read, piece, position, end), 0, position)
            if verify:
                view.verify()
            yield view
            position += view.size
            continue
        yield from iter_batches(memoryview(piece)[:sound], position, verify=verify)
        position += sound


def _whole_batch(read: Callable[[int, int], bytes], piece: bytes, position: int, end: int) -> bytes:
    size = batch_size(piece)
    return piece if size is None or size > end - position else read(position, size)


def batch_size(buf: Buffer) -> int | None:
    """Bytes of the batch at the front of `buf`, whole or not; None when too little is there."""
    return None if len(buf) < PREFIX_SIZE else PREFIX_SIZE + int(_PREFIX.unpack_from(buf)[1])


def whole_batches_size(buf: Buffer, origin: int = 0) -> int:
    """Bytes of the whole batches at the front of `buf`: where an incomplete tail begins.

    Looks at the lengths only. `origin` is the position of `buf` in its file. Raises
    BatchError when a length cannot be one.
    """
    start, end = 0, len(buf)
    while end - start >= PREFIX_SIZE:
        length = _PREFIX.unpack_from(buf, start)[1]
        if length < HEADER_SIZE - PREFIX_SIZE:
            raise BatchError(f"length {length} is less than a batch's header", origin + start)
        if start + PREFIX_SIZE + length > end:
            break
        start += PREFIX_SIZE + length
    return start


def encode_batch(base_offset: int, epoch: int, timestamp_ms: int, values: Sequence[bytes]) -> bytes:
    """A data batch of these record values; raises ValueError when there is none."""
    return _assemble(base_offset, epoch, timestamp_ms, 0, len(values), encode_values(values))


def encode_keyed_batch(
    base_offset: int, epoch: int, timestamp_ms: int, records: Sequence[tuple[bytes, bytes]]
) -> bytes:
    """A control batch of these (key, value) pairs; raises ValueError when there is none."""
    parts: list[bytes] = []
    for index, (key, value) in enumerate(records):
        body = b"".join(
            (
                b"\0\0",
                encode_signed(index),
                encode_signed(len(key)),
                key,
                encode_signed(len(value)),
                value,
                b"\0",
            )
        )
        parts += (encode_signed(len(body)), body)
    return _assemble(base_offset, epoch, timestamp_ms, CONTROL, len(records), b"".join(parts))


def encode_control_batch(
    base_offset: int, epoch: int, timestamp_ms: int, records: Sequence[ControlRecord]
) -> bytes:
    """A control batch of these records; raises ValueError when there is none."""
    pairs = [encode_control(record) for record in records]
    return encode_keyed_batch(base_offset, epoch, timestamp_ms, pairs)


def control_records(view: BatchView) -> list[ControlRecord]:
    """Every record of a control batch; their offsets count up from base_offset.

    Raises BatchError as raw_records does, and for an unknown type or a damaged value;
    NewerBatchError for what a later release may have written.
    """
    try:
        return [decode_control(key, value) for key, value in raw_records(view)]
    except NewerRecordError as error:
        text = f"{error}, base offset {view.base_offset}"
        raise NewerBatchError(text, view.position) from None
    except RecordError as error:
        raise view.error(str(error)) from None


def to_raft_batch(view: BatchView) -> Batch:
    """The batch as the core knows it; the payload is all its bytes, of a control batch too.

    A follower keeps the leader's bytes as they are. Raises BatchError as control_records does, and
    for a snapshot's header or footer, which have no place in a log.
    """
    control: list[RaftControlRecord] = []
    for record in control_records(view) if view.is_control else ():
        if isinstance(record, SnapshotHeader | SnapshotFooter):
            raise view.error("a snapshot's header or footer has no place in a log")
        control.append(record)
    return Batch(
        view.base_offset,
        view.last_offset,
        view.epoch,
        view.size,
        tuple(control),
        view.data,
    )


def with_base_offset_and_epoch(data: bytes, base_offset: int, epoch: int) -> bytes:
    """The same batch at another place of the log; the checksum covers neither field."""
    return b"".join((_BASE_OFFSET.pack(base_offset), data[8:12], _EPOCH.pack(epoch), data[16:]))


def _assemble(
    base_offset: int, epoch: int, timestamp_ms: int, attributes: int, count: int, records: bytes
) -> bytes:
    if count < 1:
        raise ValueError("a batch holds at least one record")
    after = _AFTER_CRC.pack(attributes, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count)
    length = HEADER_SIZE - PREFIX_SIZE + len(records)
    head = _UP_TO_CRC.pack(base_offset, length, epoch, MAGIC, crc32c(records, crc32c(after)))
    return b"".join((head, after, records))
