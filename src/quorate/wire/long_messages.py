"""Messages with a long list, encoded part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quorate.wire.codec import encode
from quorate.wire.schema import Field, Message

_LENGTH_BYTES: Final = 4
"""Of a list in the classic form."""


def long_list(message: Message, most: int) -> str | None:
    """The field of the message whose list has more than `most` structs; None: there is none."""
    for field in type(message).schema.fields:
        if field.type_name == "array" and field.holds_structs and field.tag is None:
            found = getattr(message, field.name)
            if found is not None and len(found) > most:
                return field.name
    return None


class MessageParts:
    """The bytes of a message, gathered while parts of one of its lists are encoded."""

    def __init__(self, message: Message, version: int, name: str) -> None:
        """name: of the list. Its rows are given to `add`. Raises EncodeError."""
        schema = type(message).schema
        [field] = (each for each in schema.fields if each.name == name)
        self._frame = message.replace(**{name: []})
        self._version = version
        self._name = name
        self._is_classic = not (schema.is_flexible(version) and field.flexible)
        self._count = 0
        self._parts: list[bytes] = []
        empty = encode(self._frame, version)
        self._head = empty[: self._start_of_list(field, empty)]
        self._tail = empty[len(self._head) + len(self._length(0)) :]

    def _start_of_list(self, field: Field, empty: bytes) -> int:
        """Where the list begins: an empty one and one with a row differ in their length first."""
        one = encode(self._frame.replace(**{self._name: [field.struct()]}), self._version)
        same = next(at for at, (a, b) in enumerate(zip(empty, one, strict=False)) if a != b)
        return same - (_LENGTH_BYTES - 1) if self._is_classic else same

    def _length(self, count: int) -> bytes:
        if self._is_classic:
            return count.to_bytes(_LENGTH_BYTES, "big")
        left, found = count + 1, bytearray()
        while left > 0x7F:
            found.append(left & 0x7F | 0x80)
            left >>= 7
        found.append(left)
        return bytes(found)

    def add(self, rows: Sequence[Any]) -> None:
        """Encode the next rows. Raises EncodeError, and keeps none of them."""
        whole = encode(self._frame.replace(**{self._name: list(rows)}), self._version)
        start = len(self._head) + len(self._length(len(rows)))
        self._parts.append(whole[start : len(whole) - len(self._tail)])
        self._count += len(rows)

    def joined(self) -> bytes:
        """The bytes of the message with all rows that were added."""
        return b"".join((self._head, self._length(self._count), *self._parts, self._tail))
