"""Our bytes are those of `kio`, an independent codec, for random messages; and it reads ours."""

from __future__ import annotations

import io
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType

from quorate.wire.codec import decode, encode
from quorate.wire.schema import Field, Message, Struct
from time_budget import examples, one_in
from wire.message_strategies import all_messages, messages, versions

KINDS: dict[str, Any] = {
    "request": EntityType.request,
    "response": EntityType.response,
    "header": EntityType.header,
    "data": EntityType.data,
}
OF_4_4 = {
    ("ApiVersionsRequest", 5),
    ("ApiVersionsResponse", 5),
    ("UnregisterControllerRequest", 0),
    ("UnregisterControllerResponse", 0),
}
"""What kio does not have yet. Its bytes are in test_golden_bytes."""
KNOWN_TO_KIO = [
    cls for cls in all_messages() if any((cls.__name__, v) not in OF_4_4 for v in versions(cls))
]
DAY_MS = 86_400_000
KNOWN_CODES = [int(code) for code in KioErrorCode]


def kio_name(cls: type[Message]) -> str:
    stem = cls.__name__.removesuffix("Request").removesuffix("Response")
    known = {name.replace("_", ""): name for name in schema_name_map}
    return known[stem.lower()] if stem.lower() in known else known[cls.__name__.lower()]


def kio_versions(cls: type[Message]) -> list[int]:
    """The versions of `cls` that kio has."""
    found = schema_name_map[kio_name(cls)]
    kind = KINDS[cls.schema.kind]
    return [version for version in versions(cls) if kind in found.get(version, {})]


def to_kio(message: Struct, kio_class: Any, version: int) -> Any:
    """The same struct as a kio entity.

    kio has richer types for times and error codes and no value for some numbers; those are first
    changed in `message` to a number that it has.
    """
    present = [field for field in type(message).schema.fields if field.in_version(version)]
    theirs = dataclass_fields(kio_class)
    assert len(present) == len(theirs)
    values = {}
    for ours, their in zip(present, theirs, strict=True):
        assert ours.name.replace("_", "").startswith(their.name.replace("_", "").rstrip("s"))
        values[their.name] = _value(message, ours, their, kio_class, version)
    return kio_class(**values)


def _value(message: Struct, ours: Field, their: Any, kio_class: Any, version: int) -> Any:
    value = getattr(message, ours.name)
    if ours.holds_structs:
        inner = _kio_struct(kio_class, ours.struct.__name__)
        if ours.type_name == "struct":
            return None if value is None else to_kio(value, inner, version)
        return None if value is None else tuple(to_kio(one, inner, version) for one in value)
    kind = their.metadata["kafka_type"]
    if ours.type_name == "array":
        return None if value is None else tuple(_scalar(one, kind) for one in value)
    setattr(message, ours.name, value := _tame(value, kind, their.name))
    return _scalar(value, kind)


def _kio_struct(kio_class: Any, name: str) -> Any:
    """kio keeps the structs of a message beside it in its module, under Kafka's names."""
    module = __import__(kio_class.__module__, fromlist=[name])
    return getattr(module, name)


def _tame(value: Any, kind: str, name: str) -> Any:
    if kind == "error_code":
        return KNOWN_CODES[value % len(KNOWN_CODES)]
    if kind == "datetime_i64":
        return abs(value) % (DAY_MS * 30_000)
    if kind == "timedelta_i64":
        return value % (DAY_MS * 1000)
    return value


def _scalar(value: Any, kind: str) -> Any:
    if kind == "uuid":
        return UUID(bytes=value) if any(value) else None
    if kind == "error_code":
        return KioErrorCode(value)
    if kind == "datetime_i64":
        return datetime.fromtimestamp(value // 1000, UTC) + timedelta(milliseconds=value % 1000)
    if kind.startswith("timedelta"):
        return timedelta(milliseconds=value)
    return value


@pytest.mark.parametrize("cls", one_in(4, KNOWN_TO_KIO), ids=lambda cls: cls.__name__)
@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
@given(data=st.data())
def test_both_codecs_write_the_same_bytes(cls: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(kio_versions(cls)))
    message = data.draw(messages(cls, version))
    kio_class = load_entity_schema(kio_name(cls), version, KINDS[cls.schema.kind])
    entity = to_kio(message, kio_class, version)
    buffer = io.BytesIO()
    entity_writer(kio_class)(buffer, entity)
    wire = encode(message, version)
    assert wire == buffer.getvalue()
    assert decode(cls, version, buffer.getvalue()) == message


def test_kio_knows_every_version_of_every_message() -> None:
    missing = {
        (cls.__name__, version)
        for cls in all_messages()
        for version in versions(cls)
        if cls not in KNOWN_TO_KIO or version not in kio_versions(cls)
    }
    assert missing == OF_4_4
