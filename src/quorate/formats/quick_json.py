"""Metadata records straight from their bytes to JSON text, for logs with millions of them.

Records of one type mostly have the same shape: the same lengths and counts at the same places, and
only the values between them differ. For each shape a function is generated from the declaration:
it checks that the lengths and counts are where they should be, takes all values with one `struct`
call and sets them into one f-string. What has no shape, or is damaged, goes through the codec. The
text is that of `json_text.record_json`; a property test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Layout
from typing import Any, Final

from quorate.formats.errors import RecordError
from quorate.formats.json_text import UUIDS, base64, double, record_json, text, type_name
from quorate.formats.records import decode_record_as_java, read_frame
from quorate.formats.varint import read_unsigned
from quorate.wire.schema import FORMATS, SIZES, Field, Struct

Quick = Callable[[bytes], str | None]

_SEEN_BEFORE_COMPILING: Final = 8
_SHAPES_OF_A_KEY: Final = 8
_MAX_VALUES: Final = 250
_CACHED_TEXTS: Final = 100_000


class _Texts(dict[bytes, str]):
    """Quoted text by its UTF-8 bytes."""

    def __missing__(self, value: bytes) -> str:
        if len(self) >= _CACHED_TEXTS:
            self.clear()
        quoted = text(value.decode())
        self[value] = quoted
        return quoted


class _Ints(dict[int, str]):
    """Text by number; ids and epochs are mostly small."""

    def __missing__(self, value: int) -> str:
        return str(value)


class _Latest(dict[int, Quick]):
    """The shape that was met last, by type and length; one that fits nothing where none was."""

    def __missing__(self, key: int) -> Quick:
        return _no_shape


def _no_shape(value: bytes) -> str | None:
    return None


_INTS: Final = _Ints((number, str(number)) for number in range(-2, 2000))


class RecordPrinter:
    """Turns record values into JSON text; keeps the shapes that it has met, by type and length."""

    def __init__(self) -> None:
        self._latest = _Latest()
        self._shapes: dict[int, list[Quick]] = {}
        self._seen: dict[int, int] = {}

    def print(self, value: bytes) -> str:
        """Return `{"type":...,"version":...,"data":{...}}`. Raises RecordError."""
        key = len(value) << 8 | value[1] if len(value) > 1 else 0
        try:
            if (printed := self._latest[key](value)) is not None:
                return printed
            for quick in self._shapes.get(key, ()):
                if (printed := quick(value)) is not None:
                    self._latest[key] = quick
                    return printed
        except UnicodeDecodeError:
            pass  # as Kafka's tool, which puts U+FFFD there
        return self._print_slowly(key, value)

    def print_all(self, values: Sequence[bytes]) -> list[str]:
        """Return what `print` returns of each value."""
        latest, print_one = self._latest, self.print
        try:
            return [
                latest[len(value) << 8 | value[1]](value) or print_one(value) for value in values
            ]
        except (IndexError, UnicodeDecodeError):
            return [print_one(value) for value in values]

    def _print_slowly(self, key: int, value: bytes) -> str:
        record, version = decode_record_as_java(value)
        self._learn(key, value)
        return record_json(record, version)

    def _learn(self, key: int, value: bytes) -> None:
        """Compile the shape of a sound value once shapes like it have been missed often."""
        self._seen[key] = seen = self._seen.get(key, 0) + 1
        shapes = self._shapes.setdefault(key, [])
        if seen < _SEEN_BEFORE_COMPILING or len(shapes) >= _SHAPES_OF_A_KEY:
            return
        self._seen[key] = 0
        quick = compile_shape(value)
        if quick is not None:
            shapes.append(quick)
            self._latest[key] = quick


def compile_shape(value: bytes) -> Quick | None:
    """The function for every value of the shape of this one, which decodes; None without one.

    It returns the JSON text, or None for a value of another shape; the value's length must be that
    of the sample. Raises UnicodeDecodeError for damaged text.
    """
    try:
        cls, version, position = read_frame(value)
        shape = _Shape(value, version)
        shape.constant(0, position)
        data = shape.walk(cls, position)
    except (_NoShapeError, RecordError):
        return None
    if len(shape.names) > _MAX_VALUES:
        return None
    return shape.compile(f'{{{{"type":"{type_name(cls)}","version":{version},"data":{data}}}}}')


class _NoShapeError(Exception):
    """The text depends on more than a shape can check."""


class _Shape:
    """Walks a sample along its declaration, and notes where its constants and values are.

    Templates are the inside of an f-string: braces of the JSON are doubled.
    """

    def __init__(self, value: bytes, version: int) -> None:
        self.names: list[str] = []
        self._value = value
        self._version = version
        self._layout = ">"
        self._mask = bytearray(len(value))
        self._checks: list[str] = []
        self._position = 0

    def constant(self, start: int, end: int) -> None:
        """The bytes from `start` to `end` (exclusive) must be those of the sample."""
        self._mask[start:end] = b"\xff" * (end - start)
        self._layout += f"{end - start}x"
        self._position = end

    def walk(self, cls: type[Struct], position: int) -> str:
        """The template of a struct that begins at `position`."""
        self._position = position
        templates = {field.name: self._field(field) for field in cls.schema.untagged(self._version)}
        tagged = {field.tag: field for field in cls.schema.tagged(self._version)}
        for _ in range(self._varint()):
            tag, size = self._varint(), self._varint()
            if tag not in tagged:
                raise _NoShapeError
            end = self._position + size
            templates[tagged[tag].name] = self._tagged(tagged[tag])
            if self._position != end:
                raise _NoShapeError
        members = [
            f'"{field.json_name}":{templates[field.name]}'
            for field in cls.schema.fields
            if field.name in templates
        ]
        return f"{{{{{','.join(members)}}}}}"

    def compile(self, template: str) -> Quick:
        """The function that checks, takes the values apart and fills the template."""
        mask = int.from_bytes(self._mask)
        scope: dict[str, Any] = {
            "unpack": Layout(self._layout).unpack,
            "from_bytes": int.from_bytes,
            "MASK": mask,
            "CONSTANTS": int.from_bytes(self._value) & mask,
            "UUIDS": UUIDS,
            "TEXTS": _Texts(),
            "INTS": _INTS,
            "double": double,
            "base64": base64,
        }
        lines = [
            "def quick(value):",
            '    if from_bytes(value, "big") & MASK != CONSTANTS: return None',
        ]
        if self.names:
            lines.append(f"    {', '.join(self.names)}, = unpack(value)")
        lines += [f"    if {check}: return None" for check in self._checks]
        lines.append(f"    return f'{template}'")
        exec("\n".join(lines), scope)
        quick: Quick = scope["quick"]
        return quick

    def _varint(self) -> int:
        start = self._position
        number, end = read_unsigned(self._value, start)
        self.constant(start, end)
        return number

    def _take(self, layout: str, size: int) -> str:
        name = f"v{len(self.names)}"
        self.names.append(name)
        self._layout += layout
        self._position += size
        return name

    def _tagged(self, field: Field) -> str:
        """Print as `_field`. A tagged field that has its default is not printed, so it has no shape."""
        before = len(self.names)
        template = self._field(field)
        if field.type_name in SIZES:
            self._checks.append(f"{self.names[before]} == {field.default!r}")
        elif not _differs(field, template):
            raise _NoShapeError
        return template

    def _field(self, field: Field) -> str:
        if field.type_name == "struct":
            if field.nullable_in(self._version):
                raise _NoShapeError
            return self.walk(field.struct, self._position)
        if field.type_name in SIZES:
            return self._scalar(field.type_name)
        count = self._varint() - 1
        if count < 0:
            return "null"
        if field.type_name != "array":
            return self._bytes(field.type_name, count)
        elements = [self._element(field) for _ in range(count)]
        return f"[{','.join(elements)}]"

    def _element(self, field: Field) -> str:
        if field.holds_structs:
            return self.walk(field.struct, self._position)
        name = str(field.element)
        if name in SIZES:
            return self._scalar(name)
        return self._bytes(name, self._varint() - 1)

    def _scalar(self, type_name: str) -> str:
        name = self._take(FORMATS[type_name], SIZES[type_name])
        match type_name:
            case "bool":
                return f'{{"true" if {name} else "false"}}'
            case "uuid":
                return f"{{UUIDS[{name}]}}"
            case "float64":
                return f"{{double({name})}}"
            case "int64":
                return f"{{{name}}}"
            case _:
                return f"{{INTS[{name}]}}"

    def _bytes(self, type_name: str, size: int) -> str:
        name = self._take(f"{size}s", size)
        return f"{{TEXTS[{name}]}}" if type_name == "string" else f"{{base64({name})}}"


def _differs(field: Field, template: str) -> bool:
    """True when whatever fills the template is not the default of a tagged field."""
    if field.type_name == "array":
        return template not in ("null", "[]")
    return field.type_name == "string" and field.default is None and template != "null"
