"""Many records at once, without an object for each: by the extension in C, where it is built.

It knows what Kafka writes. What is unusual it marks, and leaves to the readers of one batch or one
record; without it they do everything.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from quorate.wire.program import KINDS
from quorate.wire.schema import Field, Message

Places = Any
"""A contiguous buffer of int64."""


def _extension() -> ModuleType | None:
    try:
        found = import_module("quorate.wire._native")
    except ImportError:
        return None
    return found if hasattr(found, "json_texts") else None


_NATIVE: Final = _extension()


def available() -> bool:
    """Whether the extension is there; the functions below need it."""
    return _NATIVE is not None


def value_bounds(
    data: bytes, starts: Places, ends: Places, counts: Places
) -> tuple[bytes, bytes, bytes]:
    """Return where the values of data batches lie, whose records lie between these places of `data`.

    The first bytes of all values, and those behind their last (int64 each); and of each batch
    whether it is as Kafka writes it (a byte, 0 or 1): for others the bounds are meaningless.
    """
    found: tuple[bytes, bytes, bytes] = _NATIVE.value_bounds(data, starts, ends, counts)  # type: ignore[union-attr]
    return found


def json_texts(
    cls: type[Message], version: int, data: Any, starts: Places, ends: Places
) -> tuple[bytes, bytes, bytes]:
    """The JSON object of each message that lies between these places of `data`.

    As `json_text.to_json` writes it: the text of all; the bounds of each (int32, one more than
    texts); and of each message whether it could be printed (a byte, 0 or 1): others have no text.
    The class is one of numbers, uuids, texts, and lists of int32 or uuids.
    """
    found: tuple[bytes, bytes, bytes] = _NATIVE.json_texts(  # type: ignore[union-attr]
        _columns(cls, version), data, starts, ends
    )
    return found


@cache
def _columns(cls: type[Message], version: int) -> tuple[tuple[Any, ...], ...]:
    fields = [field for field in cls.schema.fields if field.in_version(version)]
    return tuple(_column(field, version) for field in fields)


def _column(field: Field, version: int) -> tuple[Any, ...]:
    """The description of a field for `native_c/bulk.h`."""
    tagged = field.tag is not None
    return (
        f',"{field.json_name}":'.encode(),
        KINDS[field.type_name],
        KINDS[str(field.element)] if field.type_name == "array" else 0,
        field.tag if tagged else -1,
        field.nullable_in(version),
        json.dumps(field.new_default()).encode() if tagged else None,
    )
