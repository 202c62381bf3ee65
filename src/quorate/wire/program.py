"""One version of a message as plain tuples: the input of the codec in C.

A struct is (class, flexible, fields): the tagged fields in front, ascending by tag, then those of
the body in the order of their bytes, then those that the version lacks. A field is:

(name, kind, kind of its elements, place, tag, nullable, classic, least bytes of an element,
has a default value, default value, struct or None)

`_native.c` reads exactly this; a change of the format changes FORMAT in both.
"""

from __future__ import annotations

from typing import Any, Final

from quorate.wire.schema import NEW, Field, Message, Schema, Struct
from quorate.wire.source import is_classic, min_element_size, min_struct_size

KINDS: Final = {
    "bool": 0,
    "int8": 1,
    "int16": 2,
    "uint16": 3,
    "int32": 4,
    "uint32": 5,
    "int64": 6,
    "float64": 7,
    "uuid": 8,
    "string": 9,
    "bytes": 10,
    "records": 10,
    "struct": 11,
    "array": 12,
}
_BODY, _TAGGED, _DROPPED, _REFUSED = range(4)

Program = tuple[Any, ...]


def program_for(cls: type[Message], version: int) -> Program:
    """The program of `version` of a message."""
    return _struct(cls, cls.schema, version)


def items_program(cls: type[Struct], schema: Schema, version: int) -> Program:
    """The program of a struct inside `version` of the message with `schema`."""
    return _struct(cls, schema, version)


def _struct(cls: type[Struct], schema: Schema, version: int) -> Program:
    own = cls.schema
    ordered = (*own.tagged(version), *own.untagged(version), *own.absent(version))
    fields = tuple(_field(field, schema, version) for field in ordered)
    return cls, schema.is_flexible(version), fields


def _field(field: Field, schema: Schema, version: int) -> Program:
    classic = is_classic(field, schema, version)
    element, least, inner = 0, 1, None
    if field.holds_structs:
        element = KINDS["struct"]
        inner = _struct(field.struct, schema, version)
        least = min_struct_size(field.struct, schema, version)
    elif field.type_name == "array":
        element = KINDS[str(field.element)]
        least = min_element_size(str(field.element), classic)
    fixed = field.default is not NEW
    return (
        field.name,
        KINDS[field.type_name],
        element,
        _place(field, version),
        field.tag or 0,
        field.nullable_in(version),
        classic,
        least,
        fixed,
        field.default if fixed else None,
        inner,
    )


def _place(field: Field, version: int) -> int:
    if not field.in_version(version):
        return _DROPPED if field.ignorable else _REFUSED
    return _BODY if field.tag is None else _TAGGED
