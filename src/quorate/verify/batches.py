"""Record batches of magic 2, decoded without the code that the node decodes them with.

Layout: `DefaultRecordBatch` and `DefaultRecord` of Kafka.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

RECORDS_AT: Final = 61
"""Bytes of a batch before its first record."""
_HEADER: Final = struct.Struct(">qiib6xi8xq")
"""Base offset, length of the rest, epoch, magic, last offset delta, maximum timestamp. Between them
are CRC and attributes, and the first timestamp."""
_COUNT: Final = struct.Struct(">i")
_COUNT_AT: Final = 57
_MAGIC: Final = 2
_LENGTH_FROM: Final = 12
"""The length of a batch counts the bytes after base offset and length."""


class BatchBytes(NamedTuple):
    """A whole batch; `end_offset` is exclusive, `max_timestamp` ms since 1970."""

    base_offset: int
    end_offset: int
    epoch: int
    max_timestamp: int
    data: bytes


def batches(data: bytes) -> Iterator[BatchBytes]:
    """The whole batches, up to the first that is cut or of another magic."""
    at = 0
    while True:
        base, end_offset, epoch, max_timestamp, end = batch_at(data, at)
        if end < 0:
            return
        yield BatchBytes(base, end_offset, epoch, max_timestamp, data[at:end])
        at = end


def batch_at(data: bytes, at: int) -> tuple[int, int, int, int, int]:
    """Base offset, end offset (exclusive), epoch and maximum timestamp of the batch at a position,
    and the position behind it. That is -1 where no whole batch of this magic is."""
    if at + _HEADER.size > len(data):
        return 0, 0, 0, 0, -1
    base, length, epoch, magic, last_delta, max_timestamp = _HEADER.unpack_from(data, at)
    end: int = at + _LENGTH_FROM + length
    if magic != _MAGIC or not at < end <= len(data):
        return 0, 0, 0, 0, -1
    return base, base + last_delta + 1, epoch, max_timestamp, end


def values(data: bytes) -> list[bytes]:
    """The values of a batch's records. Raises IndexError or struct.error where it is no batch."""
    found = []
    at = RECORDS_AT
    for _ in range(_COUNT.unpack_from(data, _COUNT_AT)[0]):
        length, at = varint(data, at)
        end = at + length
        at = record_value(data, at)
        size, at = varint(data, at)
        found.append(data[at : at + size])
        at = end
    return found


def record_value(data: bytes, at: int) -> int:
    """The position of the length of a record's value; `at` is behind the record's length."""
    _, at = varint(data, at + 1)  # attributes, then the timestamp delta
    _, at = varint(data, at)  # the offset delta
    key, at = varint(data, at)
    return at + max(key, 0)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint, and the position behind it. Raises IndexError."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at
