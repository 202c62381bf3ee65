"""Random messages of any declaration, for property tests."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from quorate.formats.records import RECORD_TYPES
from quorate.wire.schema import Field, Message, Struct

_INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXT = st.text(st.characters(codec="utf-8"), max_size=12)


def _values(name: str) -> st.SearchStrategy[Any]:
    if name in _INTEGERS:
        limit = 1 << (_INTEGERS[name] - 1)
        return st.integers(-limit, limit - 1)
    return {
        "uint16": st.integers(0, 0xFFFF),
        "bool": st.booleans(),
        "uuid": st.binary(min_size=16, max_size=16),
        "float64": st.floats(allow_nan=False) | st.just(math.inf),
        "string": _TEXT,
        "bytes": st.binary(max_size=12),
    }[name]


def _field(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.type_name == "array":
        inner = structs(field.struct, version) if field.holds_structs else None
        found: st.SearchStrategy[Any] = st.lists(
            _values(str(field.element)) if inner is None else inner, max_size=4
        )
    elif field.type_name == "struct":
        found = structs(field.struct, version)
    else:
        found = _values(field.type_name)
    return found | st.none() if field.nullable_in(version) else found


def structs(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Random instances with the fields of `version`; tagged fields are left out at times."""
    fields = {
        field.name: _field(field, version)
        for field in cls.schema.fields
        if field.in_version(version)
    }
    untagged = {f.name: fields[f.name] for f in cls.schema.untagged(version)}
    tagged = {f.name: fields[f.name] for f in cls.schema.tagged(version)}
    return st.fixed_dictionaries(untagged, optional=tagged).map(lambda values: cls(**values))


def records() -> st.SearchStrategy[tuple[Message, int]]:
    """(record, version) of every type and version."""
    every = [
        (cls, version)
        for cls in RECORD_TYPES.values()
        for version in range(cls.schema.versions[0], cls.schema.versions[1] + 1)
    ]
    return st.sampled_from(every).flatmap(lambda pair: st.tuples(structs(*pair), st.just(pair[1])))
