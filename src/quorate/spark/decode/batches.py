"""The decoders of the source: batches of a log or a snapshot to Arrow record batches.

`Decoder` makes the rows of the source: one for each record, one for each damage. `ViewDecoder`
makes the rows of a typed view: the records of one type, with their fields. Both make only the
requested columns. Columns that batch headers fill need no decoding of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from quorate.formats.errors import FormatError, RecordError
from quorate.formats.json_text import to_json
from quorate.formats.records import RECORD_TYPES, decode_record
from quorate.formats.varint import read_unsigned
from quorate.spark.decode.arrays import Ints
from quorate.spark.decode.columns import COLUMNS, DECODED, problem_of
from quorate.spark.decode.facts import facts
from quorate.spark.decode.groups import Arrays, decode_group
from quorate.spark.decode.rows import BatchRows, Item, Origin, RecordValues, Row, chunked
from quorate.spark.decode.typed import HEAD, column_name, plain_field, view_type
from quorate.spark.decode.walk import walk
from quorate.spark.files.paths import SourceError
from quorate.wire.schema import Message

DecodedPart = tuple[Ints, Arrays]
"""The indices of some rows, and their columns; a missing column is null."""


class RowDecoder(Protocol):
    """The interface of the two decoders."""

    def decode(self, origin: Origin, items: Sequence[Item]) -> pa.RecordBatch:
        """One Arrow record batch of these batches and damages, in their order."""
        ...


def decoded_batches(
    decoder: RowDecoder, origin: Origin, found: Iterable[Item]
) -> Iterator[pa.RecordBatch]:
    """The Arrow record batches of the batches and damages of a file."""
    for items in chunked(found):
        yield decoder.decode(origin, items)


def schema(columns: Iterable[str]) -> pa.Schema:
    """The Arrow schema of these columns. Raises FormatError for an unknown column."""
    names = list(columns)
    for name in names:
        if name not in COLUMNS:
            raise FormatError(f"there is no column '{name}'; there are: {', '.join(COLUMNS)}")
    return pa.schema([(name, COLUMNS[name]) for name in names])


class Decoder:
    """Makes the rows of the source, with the requested columns in their order.

    keep_raw: the column raw has the bytes of every record, else only of those it cannot decode
    fail_fast: raise SourceError at a record that cannot be decoded
    passes: whether records of a type (by name) are wanted; others may be left out
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
        rows = BatchRows(origin, items, look_inside=bool(self._wanted))
        places, decoded = self._decoded(rows, origin) if self._wanted else (None, {})
        arrays = [
            decoded[name] if name in decoded else rows.header_column(name, places)
            for name in self.schema.names
        ]
        return pa.record_batch(arrays, schema=self.schema)

    def _decoded(self, rows: BatchRows, origin: Origin) -> tuple[Ints | None, Arrays]:
        """The columns that records fill, and the indices of the rows; None stands for all rows.

        1. Leave out records of types that are not wanted.
        2. Decode large groups of records of one type and version at once (`groups`).
        3. Decode the rest record by record with the codec: rare types, unusual or damaged records.
        4. Put the parts together in the order of the rows.
        """
        value_places = rows.value_places
        values = rows.values
        left = np.ones(rows.count, np.bool_)
        if self._passes is not None:
            left[value_places[values.drop(self._passes)]] = False
        chosen = None if left.all() else np.flatnonzero(left)
        parts: list[DecodedPart] = []
        for here, arrays in self._groups(values):
            places = value_places[here]
            left[places] = False
            parts.append((places, arrays))
        parts.append(self._one_by_one(rows, value_places, np.flatnonzero(left), origin))
        at = pa.array(np.argsort(np.concatenate([places for places, _ in parts]), kind="stable"))
        return chosen, {name: _together(name, parts, at) for name in self._wanted}

    def _groups(self, many: RecordValues) -> Iterator[DecodedPart]:
        """The rows of records of one type and version, for groups that are large enough."""
        for cls, version, here in many.kinds():
            sound, arrays = decode_group(
                cls, version, many.data, many.starts[here], many.ends[here], self._wanted
            )
            here = here[sound]
            if self._keep_raw and "raw" in self._wanted:
                arrays["raw"] = pa.array([many[place] for place in here.tolist()], pa.binary())
            yield here, arrays

    def _one_by_one(
        self, rows: BatchRows, value_places: Ints, left: Ints, origin: Origin
    ) -> DecodedPart:
        """The remaining rows, decoded one by one."""
        which = np.searchsorted(value_places, left).tolist()
        found = [
            rows.special_rows[place]
            if place in rows.special_rows
            else record_row(rows.values[value])
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


def _together(name: str, parts: Sequence[DecodedPart], at: pa.Array) -> pa.Array:
    """One column of all parts, in the order of the rows (`at`)."""
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
        return {**_frame(value), "raw": value, "problem": problem_of(error)}
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


def _frame(value: bytes) -> Row:
    """Type and version of a record that cannot be decoded, where its frame has them."""
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
    """Makes the rows of the typed view of a record type.

    It leaves out records that cannot be decoded; with `fail_fast` it raises SourceError.
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
        rows = BatchRows(origin, items)
        values = rows.values
        left = values.of_type(self._cls)
        parts: list[DecodedPart] = []
        for cls, version, here in values.kinds():
            if cls is self._cls:
                sound, arrays = self._walked(version, values, here)
                parts.append((here[sound], arrays))
                left = left[~np.isin(left, here[sound], assume_unique=True)]
        parts.append(self._one_by_one(values, left, origin))
        return self._batch(rows, parts)

    def _batch(self, rows: BatchRows, parts: Sequence[DecodedPart]) -> pa.RecordBatch:
        found = np.concatenate([here for here, _ in parts])
        order = np.argsort(found)
        places = rows.value_places[found[order]]
        at = pa.array(order)
        columns = []
        for field in self.schema:
            if field.name in HEAD and field.name != "version":
                columns.append(rows.header_column(field.name, places))
                continue
            pieces = [
                arrays[field.name].cast(field.type)
                if field.name in arrays
                else pa.nulls(len(here), field.type)
                for here, arrays in parts
            ]
            columns.append(pa.concat_arrays(pieces).take(at))
        return pa.record_batch(columns, schema=self.schema)

    def _walked(self, version: int, values: RecordValues, here: Ints) -> tuple[Ints, Arrays]:
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

    def _one_by_one(self, values: RecordValues, left: Ints, origin: Origin) -> DecodedPart:
        places, rows = [], []
        for place in left.tolist():
            try:
                record, version = decode_record(values[place])
            except RecordError as error:
                if self._fail_fast:
                    raise SourceError(f"{origin.file}: {problem_of(error)}") from None
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
