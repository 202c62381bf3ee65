"""The records inside a batch: the hot loop of every replay, and its strict version.

Layout: varint length, attributes (ignored), varint timestamp delta, varint offset delta, key and
value with varint lengths (-1 for none), varint header count (`DefaultRecord`). What a metadata log
may hold of it: `RecordsIterator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.formats.batch_view import BatchView
from quorate.formats.varint import encode_signed, read_signed

HEADER_SIZE: Final = 61
"""Bytes of a batch before its first record."""

_SMALL: Final = tuple(encode_signed(number) for number in range(1024))
"""The varints of nearly every index and length, ready made."""


def encode_values(values: Sequence[bytes]) -> bytes:
    """The records of a data batch: no key, no header, no timestamp delta."""
    parts: list[bytes] = []
    small = _SMALL
    for index, value in enumerate(values):
        count = len(value)
        delta = small[index] if index < 1024 else encode_signed(index)
        size = small[count] if count < 1024 else encode_signed(count)
        length = len(delta) + len(size) + count + 4
        prefix = small[length] if length < 1024 else encode_signed(length)
        parts += (prefix, b"\0\0", delta, b"\1", size, value, b"\0")
    return b"".join(parts)


def raw_records(view: BatchView) -> list[tuple[bytes | None, bytes | None]]:
    """(key, value) of every record, None where there is none.

    Raises BatchError where a record is cut, has a timestamp delta or headers, or is out of order:
    what makes a Java reader of the metadata log fail.
    """
    data, end = view.data, len(view.data)
    out: list[tuple[bytes | None, bytes | None]] = []
    position = HEADER_SIZE
    try:
        for index in range(view.count):
            length, position = read_signed(data, position)
            stop = position + length
            if length <= 0 or stop > end:
                raise view.error(f"record {index} has the length {length}")
            timestamp_delta, position = read_signed(data, position + 1, 10)
            offset_delta, position = read_signed(data, position)
            if timestamp_delta or offset_delta != index:
                raise view.error(_bad_deltas(index, timestamp_delta, offset_delta))
            key, position = _read_field(data, position, stop)
            value, position = _read_field(data, position, stop)
            if position != stop - 1 or data[position]:
                raise view.error(f"record {index} has headers or bytes after its value")
            position = stop
            out.append((key, value))
    except (IndexError, ValueError) as error:
        raise view.error(f"record {len(out)} is cut or malformed: {error}") from None
    if position != end:
        raise view.error(f"{end - position} bytes are left after {view.count} records")
    return out


def values(view: BatchView) -> list[bytes]:
    """The value of every record of a data batch; their offsets count up from base_offset.

    Raises BatchError as raw_records does, and for a key or a missing or empty value.
    """
    found = plain_values(view.data, HEADER_SIZE, len(view.data), view.count)
    return _values_slowly(view) if found is None else found


def plain_values(  # noqa: C901 - the hot loop: no calls in it
    data: bytes, position: int, end: int, count: int
) -> list[bytes] | None:
    """The value of each of `count` records that begin at `position` and end at `end` (exclusive).

    None unless they are as Kafka writes them: no keys, lengths below 8 KiB. raw_records accepts
    every spelling and names what is wrong.
    """
    out: list[bytes] = []
    try:
        for index in range(count):
            length = data[position]
            position += 1
            if length >= 0x80:
                more = data[position]
                if more >= 0x80:
                    return None
                length = length & 0x7F | more << 7
                position += 1
            stop = position + (length >> 1)
            # attributes and timestamp delta, both zero
            if data[position] | data[position + 1]:
                return None
            delta = data[position + 2]
            position += 3
            if delta >= 0x80:
                more = data[position]
                position += 1
                delta = delta & 0x7F | (more & 0x7F) << 7
                if more >= 0x80:
                    more = data[position]
                    position += 1
                    if more >= 0x80:
                        return None
                    delta |= more << 14
            # -1 in zigzag: no key
            if delta != index << 1 or data[position] != 1:
                return None
            size = data[position + 1]
            position += 2
            if size >= 0x80:
                more = data[position]
                if more >= 0x80:
                    return None
                size = size & 0x7F | more << 7
                position += 1
            last = position + (size >> 1)
            if last != stop - 1 or stop > end or data[last] or size & 1 or length & 1 or not size:
                return None
            out.append(data[position:last])
            position = stop
    except IndexError:
        return None
    return out if position == end else None


def _read_field(data: bytes, position: int, stop: int) -> tuple[bytes | None, int]:
    """A length and that many bytes (None for -1); ValueError when they pass `stop`."""
    size, position = read_signed(data, position)
    if size < 0:
        return None, position
    if position + size > stop:
        raise ValueError(f"a field of {size} bytes passes the record's end")
    return data[position : position + size], position + size


def _values_slowly(view: BatchView) -> list[bytes]:
    out: list[bytes] = []
    for index, (key, value) in enumerate(raw_records(view)):
        if key is not None:
            raise view.error(f"record {index} has a key, which a data record never has")
        if not value:
            raise view.error(f"record {index} has no value")
        out.append(value)
    return out


def _bad_deltas(index: int, timestamp_delta: int, offset_delta: int) -> str:
    if timestamp_delta:
        return f"record {index} has timestamp delta {timestamp_delta}, not 0"
    return f"record {index} has offset delta {offset_delta}"
