"""Hypothesis strategies for every message of the registry, derived from its declaration."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import strategies as st

from quorate.formats.topics.groups import ConsumerGroupMemberMetadataValue
from quorate.formats.topics.other_groups import StreamsGroupMetadataValue
from quorate.wire.messages import DefaultPrincipalData
from quorate.wire.messages.headers import RequestHeader, ResponseHeader
from quorate.wire.registry import APIS
from quorate.wire.schema import Field, Message, Schema, Struct

INT_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
MAX_LIST = 3


def all_messages() -> list[type[Message]]:
    """Every message class of the wire layer."""
    apis = [cls for api in APIS.values() for cls in (api.request, api.response)]
    return [*apis, RequestHeader, ResponseHeader, DefaultPrincipalData]


def stored_messages() -> list[type[Message]]:
    """What the wire layer has no case of: a tagged struct that may be null, and its like."""
    return [ConsumerGroupMemberMetadataValue, StreamsGroupMetadataValue]


def versions(cls: type[Message]) -> range:
    low, high = cls.schema.versions
    return range(low, high + 1)


def all_versions() -> Iterator[tuple[type[Message], int]]:
    for cls in all_messages():
        for version in versions(cls):
            yield cls, version


@cache
def structs(
    cls: type[Struct], schema: Schema, version: int, unknown: bool = False
) -> st.SearchStrategy[Any]:
    """Any `cls` of `version`; fields of other versions stay at their defaults."""
    fields = {
        field.name: values(field, schema, version, unknown)
        for field in cls.schema.fields
        if field.in_version(version)
    }
    if unknown and schema.is_flexible(version):
        fields["unknown_tags"] = unknown_tags(cls)
    return st.builds(cls, **fields)


def messages(cls: type[Message], version: int, unknown: bool = False) -> st.SearchStrategy[Any]:
    """Any message of `cls` that `version` can carry whole; with `unknown`, also unknown tags."""
    return structs(cls, cls.schema, version, unknown)


def unknown_tags(cls: type[Struct]) -> st.SearchStrategy[Any]:
    known = [field.tag for field in cls.schema.fields]
    tags = st.integers(0, 2**31 - 1).filter(lambda tag: tag not in known)
    found = st.dictionaries(tags, st.binary(max_size=6), max_size=2)
    return st.one_of(st.just(()), found.map(lambda tagged: tuple(sorted(tagged.items()))))


def values(field: Field, schema: Schema, version: int, unknown: bool) -> st.SearchStrategy[Any]:
    if field.type_name == "struct":
        inner = structs(field.struct, schema, version, unknown)
    elif field.type_name == "array" and isinstance(field.element, str):
        inner = st.lists(scalars(field.element), max_size=MAX_LIST)
    elif field.type_name == "array":
        inner = st.lists(structs(field.struct, schema, version, unknown), max_size=MAX_LIST)
    else:
        inner = scalars(field.type_name)
    return st.none() | inner if field.nullable_in(version) else inner


@cache
def scalars(type_name: str) -> st.SearchStrategy[Any]:
    if type_name in INT_RANGES:
        return st.integers(*INT_RANGES[type_name])
    if type_name == "string":
        return st.text(max_size=8) | st.integers(120, 140).map(lambda size: "n" * size)
    simple = {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16),
        "bytes": st.binary(max_size=8),
        "records": st.binary(max_size=200),
    }
    return simple[type_name]


def structs_of(cls: type[Struct]) -> Iterator[type[Struct]]:
    """`cls` and all structs inside it."""
    yield cls
    for field in cls.schema.fields:
        if field.holds_structs:
            yield from structs_of(field.struct)


def other_value(field: Field) -> Any:
    """A value of `field` that is not its default."""
    if field.type_name == "array":
        return [field.struct()] if field.holds_structs else [_another(str(field.element), None)]
    if field.type_name == "struct":
        if field.default is None:
            return field.struct()
        inner = field.struct.schema.fields[0]
        return field.struct(**{inner.name: other_value(inner)})
    return _another(field.type_name, field.default)


def _another(type_name: str, default: Any) -> Any:
    choices = {
        "bool": (True, False),
        "string": ("x", "y"),
        "bytes": (b"x", b"y"),
        "records": (b"x", b"y"),
        "uuid": (b"u" * 16, b"v" * 16),
    }.get(type_name, (1, 2))
    return choices[0] if choices[0] != default else choices[1]
