"""Batches of a log or a snapshot as Arrow record batches.

`Decoder` makes the rows of the source: one a record, one for each damage. `ViewDecoder` makes those
of a typed view: the records of one type, with their fields. Only the columns that are asked for are
made; what batch headers tell needs no look into records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from quorate.formats.errors import FormatError, NewerRecord, RecordError
from quorate.formats.json_text import to_json
from quorate.formats.records import RECORD_TYPES, decode_record
from quorate.formats.varint import read_unsigned
from quorate.spark.decode.arrays import Ints
from quorate.spark.decode.columns import COLUMNS, DECODED, IN_RAW
from quorate.spark.decode.facts import facts
from quorate.spark.decode.groups import Arrays, decode_group
from quorate.spark.decode.rows import Item, Origin, Row, Rows, Values, chunked
from quorate.spark.decode.typed import HEAD, column_name, plain_field, view_type
from quorate.spark.decode.walk import walk
from quorate.spark.files.paths import SourceError
from quorate.wire.schema import Message

Part = tuple[Ints, Arrays]
"""Some rows, by their places, and their columns; a column that is left out is null."""

_NEWER: Final = "a newer Kafka may have written it"


class AnyDecoder(Protocol):
    """What the source reads with."""

    def decode(self, origin: Origin, items: Sequence[Item]) -> pa.RecordBatch:
        """One record batch of these batches and damages, in their order."""
        ...


def chunks(decoder: AnyDecoder, origin: Origin, found: Iterable[Item]) -> Iterator[pa.RecordBatch]:
    """The record batches of a file's batches and damages."""
    for items in chunked(found):
        yield decoder.decode(origin, items)


def schema(columns: Iterable[str]) -> pa.Schema:
    """Arrow's schema of these columns; raises FormatError for one that does not exist."""
    names = list(columns)
    for name in names:
        if name not in COLUMNS:
            raise FormatError(f"there is no column '{name}'; there are: {', '.join(COLUMNS)}")
    return pa.schema([(name, COLUMNS[name]) for name in names])


class Decoder:
    """Makes rows of the columns asked for, in their order.

    With `keep_raw` the column raw has every record's bytes, else only those not understood. With
    `fail_fast` a record that cannot be decoded raises SourceError. Records of a type whose name
    does not pass `passes` may be left out.
    """

    def __init__(
        self,
        columns: Sequence[str] = tuple(COLUMNS),
        *,
        keep_raw: bool = False,
        fail_fast: bool = False,
        passes: Callable[[str], bool] | None = None,
    ) -> None:
        self.schema = schema(columns)
        self._passes = passes
        self._keep_raw = keep_raw
        self._fail_fast = fail_fast
        self._wanted = [name for name in columns if name in DECODED]

    def decode(self, origin: Origin, items: Sequence[Item]) -> pa.RecordBatch:
        rows = Rows(origin, items, look_inside=bool(self._wanted))
        places, decoded = self._decoded(rows, origin) if self._wanted else (None, {})
        arrays = [
            decoded[name] if name in decoded else rows.told(name, places)
            for name in self.schema.names
        ]
        return pa.record_batch(arrays, schema=self.schema)

    def _decoded(self, rows: Rows, origin: Origin) -> tuple[Ints | None, Arrays]:
        """The columns that are found in records, and the places of the rows unless it is all."""
        value_places = rows.value_places
        values = rows.values
        left = np.ones(rows.count, np.bool_)
        if self._passes is not None:
            left[value_places[values.drop(self._passes)]] = False
        chosen = None if left.all() else np.flatnonzero(left)
        parts: list[Part] = []
        for here, arrays in self._groups(values):
            places = value_places[here]
            left[places] = False
            parts.append((places, arrays))
        parts.append(self._one_by_one(rows, value_places, np.flatnonzero(left), origin))
        at = pa.array(np.argsort(np.concatenate([places for places, _ in parts]), kind="stable"))
        return chosen, {name: _together(name, parts, at) for name in self._wanted}

    def _groups(self, many: Values) -> Iterator[Part]:
        """Records of one type and version, where there are many of them."""
        for cls, version, here in many.kinds():
            sound, arrays = decode_group(
                cls, version, many.data, many.starts[here], many.ends[here], self._wanted
            )
            here = here[sound]
            if self._keep_raw and "raw" in self._wanted:
                arrays["raw"] = pa.array([many[place] for place in here.tolist()], pa.binary())
            yield here, arrays

    def _one_by_one(self, rows: Rows, value_places: Ints, left: Ints, origin: Origin) -> Part:
        """The rows that are left, by the codec."""
        which = np.searchsorted(value_places, left).tolist()
        found = [
            rows.odd[place] if place in rows.odd else record_row(rows.values[value])
            for place, value in zip(left.tolist(), which, strict=True)
        ]
        for row in found:
            if row["problem"] is None:
                if not self._keep_raw:
                    row["raw"] = None
            elif self._fail_fast:
                raise SourceError(f"{origin.file}: {row['problem']}")
        return left, {
            name: pa.array([row.get(name) for row in found], COLUMNS[name]) for name in self._wanted
        }


def _together(name: str, parts: Sequence[Part], at: pa.Array) -> pa.Array:
    """One column of all parts, in the order of the rows."""
    kind = COLUMNS[name]
    if not any(name in arrays for _, arrays in parts):
        return pa.nulls(len(at), kind)
    arrays = [
        arrays[name].cast(kind) if name in arrays else pa.nulls(len(places), kind)
        for places, arrays in parts
    ]
    return pa.concat_arrays(arrays).take(at)


def record_row(value: bytes) -> Row:
    """The decoded columns of one metadata record."""
    try:
        record, version = decode_record(value)
    except RecordError as error:
        return {**_frame(value), "raw": value, "problem": f"{error}{_note(error)}"}
    cls = type(record)
    return {
        "type": cls.__name__,
        "type_id": cls.schema.key,
        "version": version,
        "record": to_json(record, version),
        "raw": value,
        "problem": None,
        **facts(record),
    }


def _note(error: RecordError) -> str:
    if not isinstance(error, NewerRecord):
        return ""
    known = _NEWER in str(error)
    return f"{'' if known else f': {_NEWER}'}{IN_RAW}"


def _frame(value: bytes) -> Row:
    """What can be said of a value that cannot be decoded."""
    try:
        _, position = read_unsigned(value, 0)
        type_id, position = read_unsigned(value, position)
        version, _ = read_unsigned(value, position)
    except (IndexError, ValueError):
        return {}
    if max(type_id, version) > 0x7FFF:
        return {}
    known = RECORD_TYPES.get(type_id)
    name = f"unknown-{type_id}" if known is None else known.__name__
    return {"type": name, "type_id": type_id, "version": version}


class ViewDecoder:
    """Makes the rows of a typed view.

    Records that cannot be decoded are left out; with `fail_fast` they raise SourceError.
    """

    def __init__(
        self, cls: type[Message], columns: Sequence[str], *, fail_fast: bool = False
    ) -> None:
        every = view_type(cls)
        for name in columns:
            if name not in every.names:
                raise FormatError(
                    f"{cls.__name__} has no column '{name}'; there are: {', '.join(every.names)}"
                )
        self._cls = cls
        self._fail_fast = fail_fast
        self.schema = to_arrow_schema(StructType([every[name] for name in columns]), timezone="UTC")
        self._fields = [one for one in cls.schema.fields if column_name(one) in columns]

    def decode(self, origin: Origin, items: Sequence[Item]) -> pa.RecordBatch:
        rows = Rows(origin, items)
        values = rows.values
        left = values.of_type(self._cls)
        parts: list[Part] = []
        for cls, version, here in values.kinds():
            if cls is self._cls:
                sound, arrays = self._walked(version, values, here)
                parts.append((here[sound], arrays))
                left = left[~np.isin(left, here[sound], assume_unique=True)]
        parts.append(self._one_by_one(values, left, origin))
        return self._batch(rows, parts)

    def _batch(self, rows: Rows, parts: Sequence[Part]) -> pa.RecordBatch:
        found = np.concatenate([here for here, _ in parts])
        order = np.argsort(found)
        places = rows.value_places[found[order]]
        at = pa.array(order)
        columns = []
        for field in self.schema:
            if field.name in HEAD and field.name != "version":
                columns.append(rows.told(field.name, places))
                continue
            pieces = [
                arrays[field.name].cast(field.type)
                if field.name in arrays
                else pa.nulls(len(here), field.type)
                for here, arrays in parts
            ]
            columns.append(pa.concat_arrays(pieces).take(at))
        return pa.record_batch(columns, schema=self.schema)

    def _walked(self, version: int, values: Values, here: Ints) -> tuple[Ints, Arrays]:
        names = {field.name for field in self._fields}
        found = walk(self._cls, version, values.data, values.starts[here], values.ends[here], names)
        arrays = {
            column_name(field): found.columns[field.name].arrow()
            for field in self._fields
            if field.name in found.columns
        }
        sound = np.flatnonzero(found.sound)
        arrays["version"] = pa.repeat(pa.scalar(version, pa.int32()), len(sound))
        return sound, arrays

    def _one_by_one(self, values: Values, left: Ints, origin: Origin) -> Part:
        places, rows = [], []
        for place in left.tolist():
            try:
                record, version = decode_record(values[place])
            except RecordError as error:
                if self._fail_fast:
                    raise SourceError(f"{origin.file}: {error}{_note(error)}") from None
                continue
            row = {
                column_name(one): plain_field(record, one) if one.in_version(version) else None
                for one in self._fields
            }
            rows.append({**row, "version": version})
            places.append(place)
        body = [field for field in self.schema if field.name not in HEAD or field.name == "version"]
        return np.array(places, np.int64), {
            field.name: pa.array([row[field.name] for row in rows], field.type) for field in body
        }
