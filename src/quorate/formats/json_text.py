"""Messages and records as the JSON text that Kafka's tools print.

Field names are in lowerCamelCase, uuids in base64, bytes in padded base64. Tagged fields are there
only where they differ from their default, unknown ones never (`JsonConverterGenerator`, Jackson).
A writer of each (class, version) is generated from the declaration when it is first used.
"""

from __future__ import annotations

import math
import re
from base64 import urlsafe_b64encode
from binascii import b2a_base64
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final

from quorate.wire.schema import Field, Message, Struct

Writer = Callable[[Any], str]

_CACHED_UUIDS: Final = 200_000
_RARE_CONTROLS: Final = re.compile("[\0-\x07\x0b\x0e-\x1f]")
_WRITERS: Final[dict[tuple[type[Struct], int], Writer]] = {}


def to_json(message: Message, version: int) -> str:
    """The JSON object of `message` in `version`, on one line, without blanks."""
    return json_writer(type(message), version)(message)


def record_json(record: Message, version: int) -> str:
    """A metadata record as dump-log prints it: type, version and data."""
    name, data = type_name(type(record)), to_json(record, version)
    return f'{{"type":"{name}","version":{version},"data":{data}}}'


def type_name(cls: type[Message]) -> str:
    """`REGISTER_BROKER_RECORD` of RegisterBrokerRecord."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).upper()


def json_writer(cls: type[Struct], version: int) -> Writer:
    """The function that writes a `cls` of `version`."""
    writer = _WRITERS.get((cls, version))
    if writer is None:
        scope: dict[str, Any] = {
            "text": text,
            "double": double,
            "base64": base64,
            "UUIDS": UUIDS,
        }
        exec(_source(cls, version, scope), scope)
        writer = scope["write"]
        _WRITERS[cls, version] = writer
    return writer


def text(value: str) -> str:
    """A JSON string, escaped as Jackson does: what must be, and nothing else."""
    quoted = encode_basestring(value)
    if "\\u00" in quoted and _RARE_CONTROLS.search(value):
        # the same escapes with upper-case digits
        return '"' + "".join(map(_escaped, value)) + '"'
    return quoted


def double(value: float) -> str:
    """A float64 as Java prints it (`Double.toString`); quoted where JSON has no number for it."""
    word = no_number(value)
    if word is not None:
        return f'"{word}"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # rarely needed, and 2 ms to load

    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    figures = "".join(map(str, digits))
    power = int(exponent) + len(figures) - 1
    fraction = figures[1:].rstrip("0") or "0"
    return f"{'-' if sign else ''}{figures[0]}.{fraction}E{power}"


def no_number(value: float) -> str | None:
    """The text for a float64 that JSON has no number for; None of all others."""
    if math.isfinite(value):
        return None
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def base64(value: bytes) -> str:
    return '"' + b2a_base64(value, newline=False).decode() + '"'


class _Uuids(dict[bytes, str]):
    """Quoted text by uuid; the same few topics and directories come again and again."""

    def __missing__(self, value: bytes) -> str:
        if len(self) >= _CACHED_UUIDS:
            self.clear()
        quoted = '"' + urlsafe_b64encode(value).decode()[:22] + '"'
        self[value] = quoted
        return quoted


UUIDS: Final = _Uuids()


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04X}" if _RARE_CONTROLS.match(char) else encode_basestring(char)[1:-1]


def _source(cls: type[Struct], version: int, scope: dict[str, Any]) -> str:
    """Source of `write(m)`; adds the writers of inner structs and defaults to `scope`."""
    lines, pieces = ["def write(m):"], []
    for field in cls.schema.fields:
        if not field.in_version(version):
            continue
        lines.append(f"    {field.name} = m.{field.name}")
        piece = f'",{_quoted(field)}:" + {_expression(field, version, scope)}'
        if field.tag is not None:
            scope[f"default_{field.name}"] = field.new_default()
            piece = f'({piece} if {field.name} != default_{field.name} else "")'
        pieces.append(piece)
    joined = " + ".join(pieces) or '""'
    lines.append(f'    return "{{" + ({joined})[1:] + "}}"')
    return "\n".join(lines)


def _quoted(field: Field) -> str:
    return f'\\"{field.json_name}\\"'


def _expression(field: Field, version: int, scope: dict[str, Any]) -> str:
    name = field.name
    if field.holds_structs:
        scope[f"write_{name}"] = json_writer(field.struct, version)
    if field.type_name == "array":
        element = f"write_{name}(e)" if field.holds_structs else _value(str(field.element), "e")
        expression = f'"[" + ",".join([{element} for e in {name}]) + "]"'
    elif field.type_name == "struct":
        expression = f"write_{name}({name})"
    else:
        expression = _value(field.type_name, name)
    if field.nullable_in(version):
        return f'("null" if {name} is None else {expression})'
    return f"({expression})"


def _value(type_name: str, name: str) -> str:
    match type_name:
        case "bool":
            return f'"true" if {name} else "false"'
        case "string":
            return f"text({name})"
        case "uuid":
            return f"UUIDS[{name}]"
        case "bytes" | "records":
            return f"base64({name})"
        case "float64":
            return f"double({name})"
        case _:
            return f"str({name})"
