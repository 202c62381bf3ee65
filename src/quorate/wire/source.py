"""Source lines, names and sizes: what the generators of encoders and decoders share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from quorate.wire.schema import FORMATS, NEW, SIZES, Field, Schema, Struct


class Lines:
    """Source lines in the making, with unique names for the variables in them."""

    def __init__(self, indent: int) -> None:
        self.lines: list[str] = []
        self.layouts: set[str] = set()
        """Definitions of the struct layouts that the lines use."""
        self._indent = indent
        self._names = 0

    def add(self, *lines: str) -> None:
        self.lines.extend("    " * self._indent + line for line in lines)

    def new_name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines added inside are the body of `head`."""
        self.add(head)
        self._indent += 1
        yield
        self._indent -= 1

    def layout(self, method: str, letters: str) -> str:
        """The name of struct's `method` for big-endian `letters`."""
        name = f"{method}_{letters.replace('?', 'z')}"
        self.layouts.add(f'{name} = Layout(">{letters}").{method}')
        return name


def is_classic(field: Field, schema: Schema, version: int) -> bool:
    """True when lengths of `field` have the fixed-size form of before KIP-482."""
    return not (field.flexible and schema.is_flexible(version))


def length_letter(type_name: str) -> str:
    """struct's letter of a classic length."""
    return "h" if type_name == "string" else "i"


def min_size(field: Field, schema: Schema, version: int) -> int:
    """The least bytes that `field` takes in `version` of the message with `schema`."""
    if field.type_name == "struct":
        nullable = field.nullable_in(version)
        return 1 if nullable else min_struct_size(field.struct, schema, version)
    return min_element_size(field.type_name, is_classic(field, schema, version))


def min_element_size(type_name: str, classic: bool) -> int:
    """The least bytes of a value of a type that is no struct."""
    if type_name in SIZES:
        return SIZES[type_name]
    if not classic:
        return 1
    return 2 if type_name == "string" else 4


def min_struct_size(cls: type[Struct], schema: Schema, version: int) -> int:
    """The least bytes of a struct, never 0: lists of structs are bounded by it."""
    body = sum(min_size(field, schema, version) for field in cls.schema.untagged(version))
    return max(1, body + schema.is_flexible(version))


def differs(field: Field, value: str) -> str:
    """Source that is true when the expression `value` is not the default of `field`."""
    default = field.default
    if default is NEW and field.type_name == "struct":
        parts = [differs(inner, f"{value}.{inner.name}") for inner in field.struct.schema.fields]
        absent = [] if field.nullable is None else [f"{value} is None"]
        return " or ".join([*absent, *parts, f"{value}.unknown_tags"])
    if default is NEW:
        return value if field.nullable is None else f"{value} != []"
    if default is None:
        return f"{value} is not None"
    if field.type_name == "bool":
        return f"not {value}" if default else value
    return f"{value} != {default!r}"


def literal(field: Field) -> str:
    """Source of the default of `field`; for structs their constructor."""
    if field.default is not NEW:
        return repr(field.default)
    return "[]" if field.type_name == "array" else f"{field.struct.__name__}()"


def letter_of(type_name: str) -> str:
    return FORMATS[type_name]
