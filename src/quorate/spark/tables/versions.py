"""The versions of the things of one kind in a slice: what holds now, and what has ended.

Slowly changing dimension, type 2: a row says since when and until when its value holds. Rows that
do not change are copied as they are, without a Python object for any of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from quorate.spark.tables.files import (
    DataFile,
    TableWriter,
    arrow_rows,
    file_name,
    read_file,
    safe_name,
)
from quorate.spark.tables.kinds import Key, Kind
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.store import WarehouseError

_FEW: Final = 16
"""It costs as much to load one row by itself as this many together."""

CURRENT: Final = "current"
CLOSED: Final = "closed"


def slice_of(group: str, slices: int) -> int:
    """The slice of a group, the same as `pmod(crc32(group), slices)` in Spark."""
    return zlib.crc32(group.encode()) % slices


class Version(NamedTuple):
    """A value and since when it holds."""

    value: Any
    offset: int
    time: int
    from_snapshot: bool
    row: int = -1
    """In the file that was read; -1 when it is new."""


@dataclass(frozen=True)
class SlicePlace:
    """Where a slice's files are, and where new ones go."""

    root: str
    run: int
    hidden: bool
    cluster_id: str
    number: int
    slices: int
    files: Mapping[str, str]
    """The current file of each kind that has one."""
    cut: bool = False
    """They are of an older, larger slice, which is cut now."""

    def writer(self, table: str, folder: str = "") -> TableWriter:
        prefix = f"{folder}/" if folder else ""
        path = prefix + safe_name(self.cluster_id) + "/" + file_name(f"{self.number:05d}", self.run)
        return TableWriter(self.root, table, path, self.hidden)


class KindState:
    """The things of one kind in a slice."""

    def __init__(self, kind: Kind, place: SlicePlace) -> None:
        self.kind = kind
        self._place = place
        self._schema = TABLES[kind.name]
        self._table = self._read()
        self._versions: dict[Key, Version | None] = {}
        self._rows: dict[Key, int] = self._index()
        self._loads = 0
        self._lists: list[list[Any]] | None = None
        self._gone: list[int] = []
        """Rows of the table that no longer hold."""
        self._closed: TableWriter | None = None
        self._children: dict[Key, set[Key]] | None = None
        self._before: dict[Key, Version] | None = None
        """During a baseline: what held before it."""

    def get(self, key: Key) -> Any:
        """The value of a thing, None when there is none."""
        found = self._version(key)
        return None if found is None else found.value

    def __iter__(self) -> Iterator[Key]:
        """The key of every thing that is there."""
        yield from (key for key in self._rows if key not in self._versions)
        yield from (key for key, version in self._versions.items() if version is not None)

    def children(self, parent: Key) -> list[Key]:
        """The keys that begin with this one, which has the kind's own length for it."""
        if self._children is None:
            self._children = {}
            for key in self:
                self._children.setdefault(key[: len(parent)], set()).add(key)
        return sorted(self._children.get(parent, ()))

    def put(self, key: Key, value: Any, offset: int, time: int) -> None:
        """Let a thing have this value from an offset on; None ends it."""
        known = self._version(key)
        if self._children is not None:
            family = self._children.setdefault(key[: self.kind.parent], set())
            family.discard(key) if value is None else family.add(key)
        fresh = None if value is None else Version(value, offset, time, False)
        if self._before is not None:
            self._versions[key] = fresh and fresh._replace(from_snapshot=True)
        elif known is None or known.value != value or self.kind.conceals(value):
            self._end(key, known, offset, time)
            self._versions[key] = fresh

    def begin_baseline(self) -> None:
        """Forget everything until end_baseline compares."""
        versions = {key: self._version(key) for key in self}
        self._before = {key: version for key, version in versions.items() if version is not None}
        self._children = None
        self._versions = dict.fromkeys(self._rows)

    def end_baseline(self, offset: int, time: int) -> None:
        """End what the snapshot lacks or has otherwise; what it has alike goes on."""
        before, self._before = self._before or {}, None
        self._children = None
        now = self._versions
        self._versions = dict.fromkeys(self._rows)
        for key in {**before, **now}:
            was, is_now = before.get(key), now.get(key)
            alike = self.kind.state
            if was is not None and is_now is not None and alike(was.value) == alike(is_now.value):
                self._versions[key] = was
                continue
            self._end(key, was, offset, time)
            self._versions[key] = is_now and is_now._replace(offset=offset, time=time)

    def write(self, always: bool = False) -> Iterator[DataFile]:
        """The files of what ended and of what holds now, if anything changed."""
        if self._closed is not None:
            closed = self._closed.close()
            if closed is not None:
                yield closed
        fresh = [
            self._row(key, version, None, None)
            for key, version in self._versions.items()
            if version is not None and version.row < 0
        ]
        if self.changed or always:
            writer = self._place.writer(self.kind.name, CURRENT)
            writer.add_table(self._kept())
            writer.add_table(arrow_rows(fresh, self._schema))
            current = writer.close()
            if current is not None:
                yield current

    @property
    def changed(self) -> bool:
        """Whether the file of what holds now must be written anew."""
        return bool(self._gone) or any(
            version is not None and version.row < 0 for version in self._versions.values()
        )

    def _end(self, key: Key, version: Version | None, offset: int, time: int) -> None:
        if version is None:
            return
        if version.row >= 0:
            self._gone.append(version.row)
        if version.offset < offset:
            if self._closed is None:
                self._closed = self._place.writer(self.kind.name, CLOSED)
            self._closed.add(self._row(key, version, offset, time))

    def _row(
        self, key: Key, version: Version, offset: int | None, time: int | None
    ) -> tuple[Any, ...]:
        values = self.kind.to_values(version.value)
        validity = (version.offset, offset, version.time, time, offset is None)
        return (self._place.cluster_id, *key, *values, *validity, version.from_snapshot)

    def _version(self, key: Key) -> Version | None:
        if key in self._versions:
            return self._versions[key]
        row = self._rows.get(key)
        found = None if row is None else self._load(row)
        if found is not None:
            self._versions[key] = found
        return found

    def _load(self, row: int) -> Version:
        cells = self._cells(row)
        keys, values = len(self.kind.keys), len(self.kind.fields)
        key, told = tuple(cells[1 : 1 + keys]), tuple(cells[1 + keys : 1 + values])
        value = self.kind.from_values(key, told)
        offset, _, time, _, _, from_snapshot = cells[1 + values :]
        return Version(value, offset, time, from_snapshot, row)

    def _cells(self, row: int) -> list[Any]:
        """A row's cells: one by one while few are asked for, then all rows at once."""
        if self._lists is None:
            self._loads += 1
            if self._loads <= self._table.num_rows // _FEW + _FEW:
                return [column[row].as_py() for column in self._table.columns]
            self._lists = [column.to_pylist() for column in self._table.columns]
        return [column[row] for column in self._lists]

    def _read(self) -> pa.Table:
        path = self._place.files.get(self.kind.name)
        if path is None:
            return self._schema.empty_table()
        table = read_file(self._place.root, self.kind.name, path)
        plain = [
            pa.field(f.name, pa.int64()) if pa.types.is_timestamp(f.type) else f
            for f in self._schema
        ]
        mine = in_slice(self.kind, table, self._place.number, self._place.slices)
        if mine.num_rows < table.num_rows and not self._place.cut:
            raise WarehouseError(
                f"{self.kind.name}/{path}: {table.num_rows - mine.num_rows} rows are of other "
                f"slices than {self._place.number}: the warehouse was changed by something else, "
                "or by an older quorate. Take the logs into a new warehouse"
            )
        return mine.cast(pa.schema(plain)).combine_chunks()

    def _index(self) -> dict[Key, int]:
        return {key: row for row, key in enumerate(_keys(self.kind, self._table))}

    def _kept(self) -> pa.Table:
        table = self._table
        if self._gone:
            rows = pa.array(range(table.num_rows), pa.int64())
            gone = pc.is_in(rows, value_set=pa.array(self._gone, pa.int64()))
            table = table.filter(pc.invert(gone))
        return table.cast(self._schema)


def in_slice(kind: Kind, table: pa.Table, number: int, slices: int) -> pa.Table:
    """The rows of gold that are of this slice, of so many."""
    mine = [slice_of(kind.group(key), slices) == number for key in _keys(kind, table)]
    return table if all(mine) else table.filter(pa.array(mine, pa.bool_()))


def _keys(kind: Kind, table: pa.Table) -> list[Key]:
    names = [name for name, _ in kind.keys]
    if not names:
        return [()] * table.num_rows
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
