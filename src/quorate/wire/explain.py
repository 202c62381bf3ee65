"""Why a message cannot be encoded: called only when its encoder has already given up."""

from __future__ import annotations

from typing import Any, Final

from quorate.wire.errors import EncodeError, UnsupportedFieldError
from quorate.wire.schema import Field, Message, Schema, Struct

_RANGES: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def explain(message: Message, version: int, error: Exception) -> EncodeError:
    """The error that names the first field of `message` which does not fit `version`."""
    schema = type(message).schema
    where = f"{schema.name} v{version}"
    try:
        _check_struct(message, type(message), schema, version, "")
    except UnsupportedFieldError as found:
        return UnsupportedFieldError(f"{where}: {found}")
    except EncodeError as found:
        return EncodeError(f"{where}: {found}")
    return EncodeError(f"{where}: {error}")


def _check_struct(value: Any, cls: type[Struct], schema: Schema, version: int, path: str) -> None:
    if type(value) is not cls:
        raise EncodeError(f"{path.rstrip('.') or 'it'} must be a {cls.__qualname__}, not {value!r}")
    for field in cls.schema.fields:
        inner = getattr(value, field.name)
        if field.in_version(version):
            _check_field(inner, field, schema, version, f"{path}{field.name}")
        elif not field.ignorable and inner != field.new_default():
            raise UnsupportedFieldError(
                f"{path}{field.name} is {inner!r}, but this version does not have the field"
            )
    _check_tags(value, cls, schema, version, path)


def _check_tags(value: Struct, cls: type[Struct], schema: Schema, version: int, path: str) -> None:
    tags = [tag for tag, _ in value.unknown_tags]
    if tags and not schema.is_flexible(version):
        raise UnsupportedFieldError(
            f"{path}unknown_tags is set, but this version has no tagged fields"
        )
    known = [field.tag for field in cls.schema.tagged(version)]
    twice = sorted({tag for tag in tags if tags.count(tag) > 1 or tag in known})
    if twice:
        raise EncodeError(f"{path}unknown_tags holds tags that are taken: {twice}")


def _check_field(value: Any, field: Field, schema: Schema, version: int, path: str) -> None:
    if value is None:
        if not field.nullable_in(version):
            raise EncodeError(f"{path} is null, which this version does not allow")
    elif field.type_name == "struct":
        _check_struct(value, field.struct, schema, version, f"{path}.")
    elif field.type_name != "array":
        _check_value(value, field.type_name, path)
    elif not isinstance(value, (list, tuple)):
        raise EncodeError(f"{path} must be a list, not {value!r}")
    elif isinstance(field.element, str):
        for index, item in enumerate(value):
            _check_value(item, field.element, f"{path}[{index}]")
    else:
        for index, item in enumerate(value):
            _check_struct(item, field.struct, schema, version, f"{path}[{index}].")


def _check_value(value: Any, type_name: str, path: str) -> None:
    if type_name in _RANGES:
        low, high = _RANGES[type_name]
        if not isinstance(value, int):
            raise EncodeError(f"{path} must be an int, not {value!r}")
        if not low <= value <= high:
            raise EncodeError(f"{path} is {value}, but an {type_name} goes from {low} to {high}")
    elif type_name == "string":
        _check_string(value, path)
    elif type_name == "float64":
        if not isinstance(value, (int, float)):
            raise EncodeError(f"{path} must be a number, not {value!r}")
    elif type_name != "bool":
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise EncodeError(f"{path} must be bytes, not {value!r}")
        if type_name == "uuid" and len(value) != 16:
            raise EncodeError(f"{path} has {len(value)} bytes, but a uuid has 16")


def _check_string(value: Any, path: str) -> None:
    if not isinstance(value, str):
        raise EncodeError(f"{path} must be a str, not {value!r}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise EncodeError(f"{path} is not text that UTF-8 can write: {error.reason}") from None
    if size > 32767:
        raise EncodeError(f"{path} has {size} bytes of UTF-8, but a string has at most 32767")
