"""The columns of many records of one type and version, without a loop over the records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.formats import bulk
from quorate.formats.records import (
    AccessControlEntryRecord,
    ConfigRecord,
    PartitionChangeRecord,
)
from quorate.spark.decode.arrays import Bytes, Column, Ints, Mask, Numbers, joined
from quorate.spark.decode.columns import COLUMNS
from quorate.spark.decode.facts import (
    DEFAULT,
    FIELDS,
    NO_CHANGE,
    PREFIXED,
    RESOURCE_FIELDS,
    TOPIC,
    acl_kind,
    config_kind,
)
from quorate.spark.decode.walk import walk
from quorate.wire.schema import Message

Arrays = dict[str, pa.Array]


def decode_group(
    cls: type[Message],
    version: int,
    data: Bytes,
    starts: Ints,
    ends: Ints,
    wanted: Collection[str],
) -> tuple[Mask, Arrays]:
    """Which records could be decoded, and their wanted columns; columns of nulls are left out.

    `starts`, `ends` and `data` as in `walk`. The JSON comes from the C codec where it is built.
    """
    sound = np.ones(len(starts), np.bool_)
    arrays: Arrays = {}
    prints = "record" in wanted and bulk.available()
    if prints:
        arrays["record"], sound = _printed(cls, version, data, starts, ends)
    needed = None if "record" in wanted and not prints else _needed(cls, wanted)
    walked = walk(cls, version, data, starts[sound], ends[sound], needed)
    if prints and not walked.sound.all():
        arrays["record"] = arrays["record"].filter(pa.array(walked.sound))
    sound[sound] = walked.sound
    count = int(sound.sum())
    if count == 0:
        return sound, {}
    constants = {"type": cls.__name__, "type_id": cls.schema.key, "version": version}
    for name in constants.keys() & wanted:
        arrays[name] = pa.repeat(pa.scalar(constants[name], COLUMNS[name]), count)
    if "record" in wanted and not prints:
        arrays["record"] = group_json(cls, version, walked.columns, count)
    for name, field in FIELDS.get(cls, {}).items():
        if name in wanted:
            arrays[name] = walked.columns[field].arrow()
    if cls is PartitionChangeRecord and "leader" in wanted:
        leader = arrays["leader"]
        arrays["leader"] = pc.if_else(pc.equal(leader, NO_CHANGE), None, leader)
    if "resource" in wanted or "topic_name" in wanted:
        arrays |= _resources(cls, walked.columns, wanted)
    return sound, arrays


def _printed(
    cls: type[Message], version: int, data: Bytes, starts: Ints, ends: Ints
) -> tuple[pa.Array, Mask]:
    """The JSON object of each record that could be decoded, and which could."""
    text, bounds, sound = bulk.json_texts(cls, version, data, starts, ends)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(text)]
    count = len(bounds) // 4 - 1
    array = pa.Array.from_buffers(pa.string(), count, buffers)
    return array, np.frombuffer(sound, np.bool_).copy()


def _needed(cls: type[Message], wanted: Collection[str]) -> set[str]:
    """The fields that the wanted columns need."""
    needed = {field for name, field in FIELDS.get(cls, {}).items() if name in wanted}
    if "resource" in wanted or "topic_name" in wanted:
        needed |= {"resource_type", "resource_name", "pattern_type"}
        needed |= {RESOURCE_FIELDS[cls][1]} if cls in RESOURCE_FIELDS else set()
    return needed


def group_json(
    cls: type[Message], version: int, columns: dict[str, Column], count: int
) -> pa.Array:
    """The JSON object of each record, as `json_text.to_json` writes it."""
    pieces: list[Any] = []
    constant = "{"
    for field in cls.schema.fields:
        if not field.in_version(version):
            continue
        column = columns[field.name]
        head = f'{"," if constant != "{" or pieces else ""}"{field.json_name}":'
        differs = None
        if field.tag is not None:
            default = field.default if field.default is None else field.new_default()
            differs = column.differs(default)
        if differs is None or differs.all():
            pieces += [constant + head, column.json()]
            constant = ""
        elif differs.any():
            piece = joined(head, column.json())
            pieces += [constant, pc.if_else(pa.array(differs), piece, "")]
            constant = ""
    if not pieces:
        return pa.repeat(pa.scalar("{}"), count)
    return joined(*pieces, constant + "}")


def _resources(cls: type[Message], columns: dict[str, Column], wanted: Collection[str]) -> Arrays:
    if cls in RESOURCE_FIELDS:
        kind, field = RESOURCE_FIELDS[cls]
        return _only({"resource": joined(f"{kind}/", _text(columns[field]))}, wanted)
    if cls not in (ConfigRecord, AccessControlEntryRecord):
        return {}
    name = columns["resource_name"].arrow()
    types = columns["resource_type"]
    if not isinstance(types, Numbers):
        raise TypeError("resource_type is a number")
    naming = config_kind if cls is ConfigRecord else acl_kind
    known, which = np.unique(types.values, return_inverse=True)
    kinds = pa.array([naming(int(number)) for number in known]).take(pa.array(which))
    if cls is ConfigRecord:
        shown = pc.if_else(pc.equal(name, ""), DEFAULT, name)
        topic = pc.if_else(pa.array(types.values == TOPIC), name, None)
        return _only({"resource": joined(kinds, "/", shown), "topic_name": topic}, wanted)
    prefixed = pc.equal(columns["pattern_type"].arrow(), PREFIXED)
    end = pc.if_else(prefixed, "*", "")
    return _only({"resource": joined(kinds, "/", name, end)}, wanted)


def _only(arrays: Arrays, wanted: Collection[str]) -> Arrays:
    return {name: array for name, array in arrays.items() if name in wanted}


def _text(column: Column) -> pa.Array:
    return pc.cast(column.arrow(), pa.string())
