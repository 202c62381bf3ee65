"""What the generated codec calls: varints, tagged fields, and the faults it may meet."""

from __future__ import annotations

import struct

from quorate.wire.errors import WireError
from quorate.wire.schema import UnknownTags


class CodecFaultError(Exception):
    """Inside the codec only: a value or bytes that break a rule; the text says which."""


DECODE_FAULTS = (CodecFaultError, IndexError, struct.error, UnicodeDecodeError)
"""All that bytes can provoke in generated decoders."""

ENCODE_FAULTS = (
    CodecFaultError,
    struct.error,
    AttributeError,
    TypeError,
    ValueError,
    OverflowError,
)
"""All that wrong values can provoke in generated encoders (UnicodeEncodeError is a ValueError)."""

MAX_STRING = 0x7FFF
MAX_ARRAY_LENGTH = 1_000_000
MAX_TAGGED_FIELDS = 10_000
"""Kafka 4.4's limits (`MessageUtil`): a longer list, or more tagged fields, is refused."""
MAX_INT32 = 0x7FFFFFFF
_UINT32 = 1 << 32
_MORE_THAN_31_BITS = "the varint is greater than 31 bits"


def long_varint(buf: bytes, first: int, pos: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte (`first`, just before `pos`) is over 127.

    Returns the value and the position behind it. At most 5 bytes and 31 bits: no length and no
    tag of the protocol is greater.
    """
    value, pos = _varint(buf, first, pos)
    if value > MAX_INT32:
        raise CodecFaultError(_MORE_THAN_31_BITS)
    return value, pos


def _varint(buf: bytes, first: int, pos: int) -> tuple[int, int]:
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value, pos
    raise CodecFaultError(_MORE_THAN_31_BITS)


def tag_count(buf: bytes, first: int, pos: int) -> tuple[int, int]:
    """The number of tagged fields, whose first byte is `first`, and the position behind it.

    Texts are those of Kafka's generated readers.
    """
    count, pos = (first, pos) if first < 128 else _varint(buf, first, pos)
    if count > MAX_INT32:
        raise _too_large(count)
    if count > len(buf) - pos:
        raise CodecFaultError(
            f"Tried to read {count} tagged fields, but there are only {len(buf) - pos} bytes "
            "remaining."
        )
    if count > MAX_TAGGED_FIELDS:
        raise CodecFaultError(
            f"Tried to read {count} tagged fields, which exceeds the maximum allowed count of "
            f"{MAX_TAGGED_FIELDS}."
        )
    return count, pos


def _too_large(count: int) -> CodecFaultError:
    """The fault of a number of tagged fields that no int32 holds; Kafka reads 32 bits as negative."""
    if count >= _UINT32:
        return CodecFaultError(_MORE_THAN_31_BITS)
    return CodecFaultError(f"Invalid negative number of tagged fields {count - _UINT32}")


def unknown_tags(buf: bytes, count: int, pos: int) -> tuple[UnknownTags, int]:
    """The `count` tagged fields at `pos` of a struct that knows none, and the position behind."""
    found: dict[int, bytes] = {}
    for _ in range(count):
        tag = buf[pos]
        pos += 1
        if tag > 127:
            tag, pos = long_varint(buf, tag, pos)
        size = buf[pos]
        pos += 1
        if size > 127:
            size, pos = long_varint(buf, size, pos)
        stop = pos + size
        if stop > len(buf):
            raise short(size, len(buf) - pos)
        found[tag] = buf[pos:stop]
        pos = stop
    return tuple(sorted(found.items())), pos


def put_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_tags(out: bytearray, known: list[tuple[int, bytearray]], unknown: UnknownTags) -> None:
    """Append the tagged section: known and unknown fields, ascending by tag."""
    fields: list[tuple[int, bytes | bytearray]] = [*known, *unknown]
    fields.sort(key=lambda field: field[0])
    put_varint(out, len(fields))
    last = -1
    for tag, value in fields:
        if tag <= last:
            raise CodecFaultError("tag set twice")
        last = tag
        put_varint(out, tag)
        put_varint(out, len(value))
        out += value


def short(needed: int, left: int) -> CodecFaultError:
    """The fault of a length that reaches beyond the end."""
    return CodecFaultError(f"{needed} bytes are announced, {max(left, 0)} are left")


def too_many(count: int, left: int) -> CodecFaultError:
    """The fault of a list too long for the bytes behind it."""
    return CodecFaultError(
        f"a list of {count} elements cannot fit into the {max(left, 0)} bytes left"
    )


def too_long(count: int) -> CodecFaultError:
    """The fault of a list that is too long whatever is behind it, with Kafka's text."""
    return CodecFaultError(
        f"Tried to read a collection of size {count}, which exceeds the maximum allowed size of "
        f"{MAX_ARRAY_LENGTH}."
    )


def null() -> CodecFaultError:
    return CodecFaultError("it is null, which this version does not allow")


def decode_error(
    error: Exception,
    place: tuple[bytes, int],
    message: tuple[str, int],
    fields: tuple[tuple[str, int], ...],
    at: int,
) -> WireError:
    """The WireError for a fault met at `place` (buffer, position) while reading fields[at].

    fields: (path, size) in wire order; size 0 where it is not fixed. Fixed fields are read in
    runs; the one that does not fit is looked for here.
    """
    buf, pos = place
    if isinstance(error, struct.error):
        while fields[at][1] and pos + fields[at][1] <= len(buf) and at + 1 < len(fields):
            pos += fields[at][1]
            at += 1
    why = {
        struct.error: "the bytes end inside it",
        IndexError: "the bytes end before it",
        UnicodeDecodeError: "it is not valid UTF-8",
    }.get(type(error), str(error))
    name, version = message
    return WireError(f"{name} v{version}: cannot read {fields[at][0]} at byte {pos}: {why}")
