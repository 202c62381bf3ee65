"""Messages with long lists, encoded part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from quorate.wire.codec import encode
from quorate.wire.schema import Field, Message, Struct

_LENGTH_BYTES: Final = 4
"""Of a list in the classic form."""


def lists_of(struct: Struct) -> list[tuple[Field, list[Any]]]:
    """The lists of structs in the body of the struct, with their fields."""
    return [
        (field, rows)
        for field in type(struct).schema.fields
        if field.holds_structs and field.type_name == "array" and field.tag is None
        if (rows := getattr(struct, field.name)) is not None
    ]


def long_list(struct: Struct, most: int) -> str | None:
    """The field of the struct whose list has more than `most` structs; None: there is none."""
    for field, rows in lists_of(struct):
        if len(rows) > most:
            return field.name
    return None


class MessageParts:
    """The bytes of a message, gathered while parts of one of its lists are encoded."""

    def __init__(self, message: Message, version: int, name: str) -> None:
        """name: of the list. Its rows are given to `add`. Raises EncodeError."""
        frame = message.replace(**{name: []})
        self._is_flexible = type(message).schema.is_flexible(version)
        field = _field(message, name)
        self._list = _List(
            lambda rows: encode(frame.replace(**{name: rows}), version),
            field.struct(),
            self._is_classic(field),
        )
        self._count = 0
        self._parts: list[bytes] = []

    def _is_classic(self, field: Field) -> bool:
        return not (self._is_flexible and field.flexible)

    def add(self, rows: Sequence[Struct]) -> None:
        """Encode the next rows. Raises EncodeError, and keeps none of them."""
        self._parts.append(self._list.items(rows))
        self._count += len(rows)

    def begin(self, row: Struct, name: str) -> RowParts:
        """Encode the next row, with a long list of its own. name: of that list; its rows are given to `add`
        of what this returns, then `end` is called. Raises EncodeError."""
        frame, field = row.replace(**{name: []}), _field(row, name)
        whole = self._list.items
        rows = _List(
            lambda inner: whole([frame.replace(**{name: inner})]),
            field.struct(),
            self._is_classic(field),
        )
        return RowParts(self, rows)

    def ended(self, row: bytes) -> None:
        """Take the bytes of the next row."""
        self._parts.append(row)
        self._count += 1

    def joined(self) -> bytes:
        """The bytes of the message with all rows that were added."""
        return self._list.whole(self._count, self._parts)


class RowParts:
    """The bytes of a row, gathered while parts of one of its lists are encoded."""

    def __init__(self, message: MessageParts, rows: _List) -> None:
        self._message = message
        self._list = rows
        self._count = 0
        self._parts: list[bytes] = []

    def add(self, rows: Sequence[Struct]) -> None:
        """Encode the next rows. Raises EncodeError, and keeps none of them."""
        self._parts.append(self._list.items(rows))
        self._count += len(rows)

    def end(self) -> None:
        """All rows were added."""
        self._message.ended(self._list.whole(self._count, self._parts))


class _List:
    """A list inside the bytes of something: what stands before and behind it."""

    def __init__(
        self, with_rows: Callable[[list[Any]], bytes], row: Struct, is_classic: bool
    ) -> None:
        """with_rows: the bytes with these rows; row: any. Raises EncodeError."""
        self._with_rows = with_rows
        self._is_classic = is_classic
        empty, one = with_rows([]), with_rows([row])
        # An empty list and one with a row differ in the last byte of their length first.
        start = next(at for at, (a, b) in enumerate(zip(empty, one, strict=False)) if a != b)
        if is_classic:
            start -= _LENGTH_BYTES - 1
        self._head = empty[:start]
        self._tail = empty[start + len(self._length(0)) :]

    def _length(self, count: int) -> bytes:
        if self._is_classic:
            return count.to_bytes(_LENGTH_BYTES, "big")
        left, found = count + 1, bytearray()
        while left > 0x7F:
            found.append(left & 0x7F | 0x80)
            left >>= 7
        found.append(left)
        return bytes(found)

    def items(self, rows: Sequence[Any]) -> bytes:
        """The bytes of the rows alone. Raises EncodeError."""
        whole = self._with_rows(list(rows))
        start = len(self._head) + len(self._length(len(rows)))
        return whole[start : len(whole) - len(self._tail)]

    def whole(self, count: int, parts: Sequence[bytes]) -> bytes:
        """The bytes with all rows."""
        return b"".join((self._head, self._length(count), *parts, self._tail))


def _field(struct: Struct, name: str) -> Field:
    [found] = (field for field in type(struct).schema.fields if field.name == name)
    return found
