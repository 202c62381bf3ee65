"""Kafka's own message definitions, out of its jars, and ours in the same form."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from quorate.base.ids import ZERO_UUID
from quorate.wire.schema import NEW, Field, Message, Struct

LIBS = Path(__file__).parents[2] / ".kafka" / "libs-4.4.0"
CLIENTS = ("kafka-clients-4.4.0.jar", "common/message")
METADATA = ("kafka-metadata-4.4.0.jar", "common/metadata")
ALL = (0, 32767)

Range = tuple[int, int]


class Row(NamedTuple):
    """One field: all that decides about bytes, and about what a new message holds."""

    path: str
    type: str
    versions: Range
    nullable: Range | None
    tag: int | None
    default: object
    ignorable: bool
    key: bool
    flexible: bool


@cache
def definition(name: str, source: tuple[str, str] = CLIENTS) -> dict[str, Any]:
    """The JSON definition of a message of Kafka 4.4.0."""
    jar, folder = source
    path = LIBS / jar
    if not path.exists():
        raise AssertionError(f"{path} is missing: `make .kafka/libs-4.4.0.stamp` gets Kafka's jars")
    with ZipFile(path) as archive:
        text = archive.read(f"{folder}/{name}.json").decode()
    found: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return found


def official_rows(definition: dict[str, Any]) -> list[Row]:
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
    valid = _range(definition["validVersions"])
    assert valid is not None
    return _official(definition["fields"], common, valid, "")


def _official(
    fields: list[dict[str, Any]], common: dict[str, Any], outer: Range, prefix: str
) -> list[Row]:
    rows = []
    for field in fields:
        # A field without versions is in those in which it is tagged (`FieldSpec`).
        versions = _both(_range(field.get("versions") or field["taggedVersions"]), outer)
        if versions is None:
            continue
        type_name = field["type"].removeprefix("[]")
        is_struct = type_name[0].isupper()
        path = prefix + field["name"][0].lower() + field["name"][1:]
        rows.append(
            Row(
                path,
                field["type"],
                versions,
                _both(_range(field.get("nullableVersions", "none")), versions),
                field.get("tag"),
                _official_default(field),
                field.get("ignorable", False),
                field.get("mapKey", False),
                field.get("flexibleVersions") != "none",
            )
        )
        if is_struct:
            inner = field.get("fields") or common[type_name]
            rows += _official(inner, common, versions, f"{path}.")
    return rows


def _official_default(field: dict[str, Any]) -> object:
    type_name, default = field["type"], field.get("default")
    if default == "null":
        return None
    if type_name == "records":
        return None if "nullableVersions" in field else b""
    if type_name.startswith("[]") or type_name[0].isupper():
        assert default is None
        return NEW
    if type_name == "bool":
        return str(default or False).lower() == "true"
    if type_name in ("string", "bytes", "uuid"):
        empty = {"string": "", "bytes": b"", "uuid": ZERO_UUID}[type_name]
        return default if default else empty
    return float(default or 0) if type_name == "float64" else int(str(default or 0), 0)


def declared_rows(cls: type[Message]) -> list[Row]:
    return _declared(cls, cls.schema.versions, "")


def _declared(cls: type[Struct], outer: Range, prefix: str) -> list[Row]:
    rows = []
    for field in cls.schema.fields:
        versions = _both((field.since, field.until if field.until is not None else 32767), outer)
        assert versions is not None, f"{prefix}{field.name} is in no version"
        nullable = None if field.nullable is None else _both((field.nullable, 32767), versions)
        path = f"{prefix}{field.json_name}"
        rows.append(
            Row(
                path,
                _type(field),
                versions,
                nullable,
                field.tag,
                field.default,
                field.ignorable,
                field.key,
                field.flexible,
            )
        )
        if field.holds_structs:
            rows += _declared(field.struct, versions, f"{path}.")
    return rows


def _type(field: Field) -> str:
    element = field.element.__name__ if isinstance(field.element, type) else field.element
    if field.type_name == "array":
        return f"[]{element}"
    return str(element) if field.type_name == "struct" else field.type_name


def _range(text: str) -> Range | None:
    if text == "none":
        return None
    if text.endswith("+"):
        return int(text[:-1]), 32767
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def _both(one: Range | None, other: Range) -> Range | None:
    if one is None:
        return None
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else None


def flexible_of(definition: dict[str, Any]) -> int | None:
    """The first flexible version within the valid ones; None when there is none."""
    flexible, valid = _range(definition["flexibleVersions"]), _range(definition["validVersions"])
    assert valid is not None
    both = _both(flexible, valid)
    return None if both is None else both[0]
