"""Parses records from the JSON in bronze."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.formats.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from quorate.formats.records import RECORD_TYPES
from quorate.spark.tables.kinds import uuid_of
from quorate.wire.schema import Field, Message, Struct

CONTROL: Final[dict[str, type[Message]]] = {
    "LeaderChange": LeaderChangeMessage,
    "SnapshotHeader": SnapshotHeaderRecord,
    "SnapshotFooter": SnapshotFooterRecord,
    "KRaftVersion": KRaftVersionRecord,
    "KRaftVoters": VotersRecord,
}
CLASSES: Final[dict[str, type[Message]]] = {
    cls.__name__: cls for cls in RECORD_TYPES.values()
} | CONTROL
"""The message class for each value of the column `type`."""

Convert = Callable[[Any], Any]
_READERS: dict[type[Struct], Callable[[dict[str, Any]], Struct]] = {}


class RecordJsonError(QuorateError):
    """The JSON of a record does not fit its type."""


def parse_record(type_name: str, text: str) -> Message | None:
    """The record of this type; None for an unknown type. Raises RecordJsonError."""
    cls = CLASSES.get(type_name)
    if cls is None:
        return None
    try:
        read = _READERS.get(cls) or _reader(cls)
        record: Message = read(json.loads(text))  # type: ignore[assignment]
        return record
    except (ValueError, TypeError, AttributeError, QuorateError) as error:
        raise RecordJsonError(f"{type_name}: {error} in {text[:200]}") from None


def _reader(cls: type[Struct]) -> Callable[[dict[str, Any]], Struct]:
    """The function that makes a `cls` from its JSON; missing members get their default.

    It is built once for each class: the schema is not looked up for each record.
    """
    fields = [(field.json_name, field.name, _convert(field)) for field in cls.schema.fields]

    def read(data: dict[str, Any]) -> Struct:
        words = {}
        for json_name, name, convert in fields:
            if json_name in data:
                value = data[json_name]
                words[name] = value if convert is None or value is None else convert(value)
        return cls(**words)

    _READERS[cls] = read
    return read


def _convert(field: Field) -> Convert | None:
    if field.type_name == "array":
        each = _READERS.get(field.struct) or _reader(field.struct) if field.holds_structs else None
        each = each or _of_type(str(field.element))
        return None if each is None else lambda items: [each(item) for item in items]
    if field.type_name == "struct":
        return _READERS.get(field.struct) or _reader(field.struct)
    return _of_type(field.type_name)


def _of_type(type_name: str) -> Convert | None:
    match type_name:
        case "uuid":
            return uuid_of
        case "bytes" | "records":
            return b64decode
        case "float64":
            return float
        case _:
            return None
