"""The little of DER that names and Java's key stores need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.base.errors import QuorateError

OID: Final = 0x06
_LONG: Final = 0x80


class DerError(QuorateError):
    """Bytes that are not DER."""


def elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Each element as tag, content, and its whole encoding. Raises DerError."""
    pos = 0
    while pos < len(data):
        start = pos
        head = data[pos : pos + 2]
        if len(head) < 2:
            raise DerError("truncated DER")
        tag, length = head
        pos += 2
        if length >= _LONG:
            size = length - _LONG
            length = int.from_bytes(data[pos : pos + size], "big")
            pos += size
        if pos + length > len(data):
            raise DerError("truncated DER")
        yield tag, data[pos : pos + length], data[start : pos + length]
        pos += length


def oid_text(content: bytes) -> str:
    """The dotted form of an object identifier's content."""
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if byte < _LONG:
            numbers.append(value)
            value = 0
    if not numbers:
        raise DerError("an empty object identifier")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
