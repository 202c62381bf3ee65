"""The words in which messages are declared.

One class declares a message in all its versions:

    class VoteRequest(Message, kind="request", key=52, versions=(0, 2), flexible=0):
        class TopicData(Struct):
            topic_name: str = string()

        cluster_id: str | None = string(nullable=0, default=None)
        voter_id: int = int32(since=1, default=-1, ignorable=True)
        topics: list[TopicData] = array(TopicData)

Every class gets slots, a keyword constructor with defaults for all fields, `==`, `repr`, and
`unknown_tags`: the tagged fields of a newer peer, (tag, bytes) ascending by tag, written back as
they came. Versions are inclusive; `since` and `until` are only given where they differ from the
range of the message or outer struct. Source of the rules: the README of Kafka's message
definitions (`clients/src/main/resources/common/message`) and its generator's FieldSpec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self, dataclass_transform

from quorate.base.ids import ZERO_UUID

Kind = Literal[
    "request", "response", "header", "data", "metadata", "coordinator-key", "coordinator-value"
]
UnknownTags = tuple[tuple[int, bytes], ...]

FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""struct's letter for each type of fixed size."""

SIZES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
"""Bytes of each type of fixed size."""

NEW: Final = object()
"""As a default: an empty list, or a struct of defaults, made anew for each message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct; `name` is filled in when its class is made.

    type_name: a fixed-size type of FORMATS, "string", "bytes", "records", "struct" or "array"
    element: the class of a struct; the class or the type of an array's elements
    default: value of a new message, and of a version without the field (NEW, None = null)
    """

    name: str = ""
    type_name: str
    element: type[Struct] | str | None = None
    default: Any
    since: int = 0
    until: int | None = None
    nullable: int | None = None
    """The first version that can say null."""
    tag: int | None = None
    ignorable: bool = False
    """A version without the field drops its value silently."""
    key: bool = False
    """Kafka's mapKey: the field identifies its struct in a list."""
    flexible: bool = True
    """False: the classic form also in flexible versions."""
    kafka_name: str = ""
    """Kafka's name, where it is not the plain camel case of ours."""

    def in_version(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)

    def nullable_in(self, version: int) -> bool:
        return self.nullable is not None and version >= self.nullable

    @property
    def json_name(self) -> str:
        """The name in Kafka's JSON form of a message: `clusterId`."""
        name = self.kafka_name or "".join(part.capitalize() for part in self.name.split("_"))
        return name[0].lower() + name[1:]

    @property
    def struct(self) -> type[Struct]:
        """The class of a struct, or of the structs in an array."""
        if not isinstance(self.element, type):
            raise TypeError(f"field {self.name} holds no struct")
        return self.element

    @property
    def holds_structs(self) -> bool:
        return isinstance(self.element, type)

    def new_default(self) -> Any:
        if self.default is not NEW:
            return self.default
        return [] if self.type_name == "array" else self.struct()


def _fixed(type_name: str, zero: Any) -> Callable[..., Any]:
    def word(*, default: Any = zero, **words: Any) -> Any:
        return Field(type_name=type_name, default=default, **words)

    word.__name__ = word.__qualname__ = type_name
    word.__doc__ = f"A field of type {type_name}."
    return word


boolean: Final = _fixed("bool", False)
int8: Final = _fixed("int8", 0)
int16: Final = _fixed("int16", 0)
uint16: Final = _fixed("uint16", 0)
int32: Final = _fixed("int32", 0)
uint32: Final = _fixed("uint32", 0)
int64: Final = _fixed("int64", 0)
float64: Final = _fixed("float64", 0.0)
uuid: Final = _fixed("uuid", ZERO_UUID)


def string(*, default: str | None = "", **words: Any) -> Any:
    """Text of up to 32767 bytes of UTF-8."""
    return Field(type_name="string", default=default, **words)


def binary(*, default: bytes | None = b"", **words: Any) -> Any:
    """Kafka's `bytes`."""
    return Field(type_name="bytes", default=default, **words)


def batches(*, nullable: int | None = None, **words: Any) -> Any:
    """Record batches as bytes; null by default where null can be said, as in Kafka."""
    default = b"" if nullable is None else None
    return Field(type_name="records", default=default, nullable=nullable, **words)


def array(element: type[Struct] | str, *, default: Any = NEW, **words: Any) -> Any:
    """A list of structs, or of values of a named type ("int32")."""
    return Field(type_name="array", element=element, default=default, **words)


def struct(element: type[Struct], *, default: Any = NEW, **words: Any) -> Any:
    """A struct inside the message."""
    return Field(type_name="struct", element=element, default=default, **words)


@dataclass(frozen=True, slots=True)
class Schema:
    """What a class declares. Nested structs have kind "data" and the widest versions."""

    name: str
    fields: tuple[Field, ...]
    kind: Kind = "data"
    key: int | None = None
    """The api key of requests and responses, the record type of metadata records."""
    versions: tuple[int, int] = (0, 32767)
    flexible: int | None = 0
    """The first flexible version (KIP-482); None: there is none."""

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible

    def untagged(self, version: int) -> list[Field]:
        """The fields in the body of `version`, in wire order."""
        return [f for f in self.fields if f.tag is None and f.in_version(version)]

    def tagged(self, version: int) -> list[Field]:
        """The tagged fields of `version`, ascending by tag."""
        found = [f for f in self.fields if f.tag is not None and f.in_version(version)]
        return sorted(found, key=lambda f: f.tag or 0)

    def absent(self, version: int) -> list[Field]:
        """The fields that `version` lacks."""
        return [f for f in self.fields if not f.in_version(version)]


@dataclass_transform(kw_only_default=True)
class Declared(type):
    """Makes slots out of declared fields, and keeps their schema."""

    schema: Schema

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **words: Any
    ) -> Declared:
        declared = {k: replace(v, name=k) for k, v in namespace.items() if isinstance(v, Field)}
        for field_name in declared:
            del namespace[field_name]
        namespace["__slots__"] = tuple(declared)
        if not bases:
            del namespace["unknown_tags"]
            namespace["__slots__"] = ("unknown_tags",)
        made = super().__new__(cls, name, bases, namespace)
        made.schema = Schema(name, tuple(declared.values()), **words)
        return made

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **words: Any
    ) -> None:
        super().__init__(name, bases, namespace)


class Struct(metaclass=Declared):
    """Base of the structs inside messages."""

    unknown_tags: UnknownTags = ()

    def __init__(self, **values: Any) -> None:
        """Compile the constructor of the class, once, when it is first called."""
        cls = type(self)
        compiled = _constructor(cls.schema)
        cls.__init__ = compiled  # type: ignore[method-assign]
        compiled(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [f"{f.name}={getattr(self, f.name)!r}" for f in type(self).schema.fields]
        if self.unknown_tags:
            shown.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def replace(self, **changes: Any) -> Self:
        """A shallow copy with some fields changed."""
        return type(self)(**(self._values() | changes))

    def _values(self) -> dict[str, Any]:
        names = [f.name for f in type(self).schema.fields]
        return {name: getattr(self, name) for name in (*names, "unknown_tags")}


class Message(Struct):
    """Base of messages and records: what can be encoded and decoded by itself."""


def _constructor(schema: Schema) -> Callable[..., None]:
    """`__init__` with a keyword and a default for each field."""
    scope: dict[str, Any] = {"NEW": NEW}
    words, body = ["unknown_tags=()"], ["self.unknown_tags = unknown_tags"]
    for field in schema.fields:
        name = field.name
        scope[f"default_{name}"] = field.default
        words.append(f"{name}=default_{name}")
        if field.default is NEW:
            scope[f"new_{name}"] = list if field.type_name == "array" else field.struct
            body.append(f"self.{name} = new_{name}() if {name} is NEW else {name}")
        else:
            body.append(f"self.{name} = {name}")
    lines = "\n    ".join(body)
    exec(f"def __init__(self, *, {', '.join(words)}):\n    {lines}\n", scope)
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{schema.name}.__init__"
    return made
