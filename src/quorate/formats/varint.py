"""The variable-length integers of record batches and record frames."""

from __future__ import annotations

from typing import Final

MAX_VARINT_BYTES: Final = 5


def encode_unsigned(value: int) -> bytes:
    """An unsigned varint: 7 bits a byte, low ones first (`ByteUtils.writeUnsignedVarint`)."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_signed(value: int) -> bytes:
    """A zigzag varint of a 32 or 64-bit integer (`ByteUtils.writeVarint`, `writeVarlong`)."""
    return encode_unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def read_unsigned(data: bytes, position: int, max_bytes: int = MAX_VARINT_BYTES) -> tuple[int, int]:
    """The unsigned varint at `position`, and the position after it.

    Raises IndexError at the end of `data`, ValueError when it is longer than `max_bytes`.
    """
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
    shift = 7
    last = position + max_bytes
    position += 1
    while position < last:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("variable-length integer is too long")


def read_signed(data: bytes, position: int, max_bytes: int = MAX_VARINT_BYTES) -> tuple[int, int]:
    """The zigzag varint at `position`, and the position after it; raises as read_unsigned."""
    value, position = read_unsigned(data, position, max_bytes)
    return (value >> 1) ^ -(value & 1), position
