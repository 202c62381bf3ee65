"""The beginning of a frame that is too long to be kept, and what its bytes say of the message.

A node refuses a request that is longer than its limit, and answers it. It needs the names at the
beginning of the request for that, where the response has errors only beside them.
"""

from __future__ import annotations

from functools import cache
from struct import Struct as Layout
from typing import Any, Final, TypeVar

from quorate.wire.errors import WireError
from quorate.wire.messages.headers import RequestHeader
from quorate.wire.runtime import MAX_STRING
from quorate.wire.schema import FORMATS, Field, Message, Schema, Struct
from quorate.wire.source import is_classic, length_letter

M = TypeVar("M", bound=Message)

_LAYOUTS: Final = {letter: Layout(f">{letter}") for letter in {*FORMATS.values(), "B"}}
_LONGEST_VARINT: Final = 5
"""Bytes."""


class TruncatedFrame(bytes):
    """The first bytes of a frame, of `size` bytes in all. The others were read and dropped."""

    size: int

    @classmethod
    def of(cls, start: bytes, size: int) -> TruncatedFrame:
        """Return the frame that begins with `start`."""
        frame = cls(start)
        frame.size = size
        return frame


def decode_beginning(cls: type[M], version: int, data: bytes, pos: int) -> M:
    """What `data`, from `pos` on, has of a message whose end may be missing.

    Where the bytes end inside a list, it has the structs before that. It also has the incomplete one, if
    what names it is complete: the fields before its own first list, or that list if it is the first field.
    All fields behind that have their defaults, and so have tagged fields. Raises WireError where the bytes
    are not a `cls` of `version`.
    """
    reader = _Reader(cls.schema, version, data, pos)
    message = cls()
    reader.fill(message)
    return message


def bytes_beginning(data: bytes, pos: int) -> tuple[bytes, int]:
    """What `data` has of the compact bytes (KIP-482) that begin at `pos`, and their whole length.

    Raises WireError.
    """
    reader = _Reader(RequestHeader.schema, 0, data, pos)
    try:
        return reader.rest_of_bytes()
    except _EndError:
        raise WireError(f"the bytes end inside the length at byte {pos}") from None


@cache
def _fields(cls: type[Struct], version: int) -> list[Field]:
    return cls.schema.untagged(version)


class _EndError(Exception):
    """The bytes end inside a value."""


class _Reader:
    def __init__(self, schema: Schema, version: int, data: bytes, pos: int) -> None:
        self._schema = schema
        self._version = version
        self._data = data
        self._pos = pos
        self._has_ended = False

    def fill(self, struct: Struct) -> bool:
        """Read a struct. Returns False where the bytes end inside what names it: all before its first list,
        that list if there is nothing before it, or all of a struct without a list."""
        is_named = False
        try:
            for index, field in enumerate(_fields(type(struct), self._version)):
                is_named = is_named or (field.type_name == "array" and index > 0)
                setattr(struct, field.name, self._field(field))
                if self._has_ended:
                    return is_named
        except _EndError:
            self._has_ended = True
            return is_named
        try:
            if self._schema.is_flexible(self._version):
                self._skip_tags()
        except _EndError:
            self._has_ended = True
        return True

    def _field(self, field: Field) -> Any:
        if field.type_name in FORMATS:
            return self._fixed(FORMATS[field.type_name])
        if field.type_name == "struct":
            if field.nullable_in(self._version) and self._fixed("b") < 0:
                return None
            inner = field.struct()
            if not self.fill(inner):
                raise _EndError
            return inner
        length = self._length(field, field.type_name)
        if length < 0:
            if not field.nullable_in(self._version):
                raise self._fault(field, "it is null, which this version does not allow")
            return None
        if field.type_name == "array":
            return self._list(field, length)
        return self._content(field, field.type_name, length)

    def _list(self, field: Field, count: int) -> list[Any]:
        items: list[Any] = []
        try:
            while len(items) < count and not self._has_ended:
                if field.holds_structs:
                    item = field.struct()
                    if self.fill(item):
                        items.append(item)
                else:
                    items.append(self._element(field, str(field.element)))
        except _EndError:
            self._has_ended = True
        return items

    def _element(self, field: Field, type_name: str) -> Any:
        if type_name in FORMATS:
            return self._fixed(FORMATS[type_name])
        return self._content(field, type_name, self._length(field, type_name))

    def _length(self, field: Field, type_name: str) -> int:
        """Read the length of a string, of bytes or of a list; -1: it is null."""
        if is_classic(field, self._schema, self._version):
            return int(self._fixed(length_letter(type_name)))
        return self._varint() - 1

    def _content(self, field: Field, type_name: str, length: int) -> Any:
        if length < 0:
            raise self._fault(field, "it is null, which this version does not allow")
        if type_name != "string":
            return self._bytes(length)
        if length > MAX_STRING:
            raise self._fault(field, "the string is longer than 32767 bytes")
        try:
            return self._bytes(length).decode()
        except UnicodeDecodeError:
            raise self._fault(field, "it is not valid UTF-8") from None

    def _bytes(self, length: int) -> bytes:
        stop = self._pos + length
        if stop > len(self._data):
            raise _EndError
        found = self._data[self._pos : stop]
        self._pos = stop
        return found

    def _fixed(self, letter: str) -> Any:
        layout = _LAYOUTS[letter]
        return layout.unpack(self._bytes(layout.size))[0]

    def _varint(self) -> int:
        value = 0
        for index in range(_LONGEST_VARINT):
            byte: int = self._fixed("B")
            value |= (byte & 0x7F) << 7 * index
            if byte < 128:
                return value
        raise WireError(f"{self._where()}: the varint at byte {self._pos} is too long")

    def _skip_tags(self) -> None:
        for _ in range(self._varint()):
            self._varint()
            self._bytes(self._varint())

    def _fault(self, field: Field, why: str) -> WireError:
        return WireError(f"{self._where()}: cannot read {field.name} at byte {self._pos}: {why}")

    def rest_of_bytes(self) -> tuple[bytes, int]:
        """What there is of compact bytes, and their whole length."""
        size = self._varint() - 1
        return self._data[self._pos : self._pos + max(size, 0)], size

    def _where(self) -> str:
        return f"{self._schema.name} v{self._version}"
