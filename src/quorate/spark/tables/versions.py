"""The versions of the things of one kind in a slice: current ones, and ones that have ended.

The tables are slowly changing dimensions of type 2: a row says from when to when its value holds.
Rows that do not change are copied as Arrow columns, without a Python object for each.
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
from quorate.spark.tables.kinds import Key, ThingKind
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.store import WarehouseError

_FEW: Final = 16
"""Loading one row alone costs as much as loading this many together."""

CURRENT: Final = "current"
CLOSED: Final = "closed"


def slice_of(group: str, slices: int) -> int:
    """The slice of a group; equal to `pmod(crc32(group), slices)` in Spark."""
    return zlib.crc32(group.encode()) % slices


class ThingVersion(NamedTuple):
    """A value, and from when it holds (offset, time in us)."""

    value: Any
    offset: int
    time: int
    from_snapshot: bool
    row: int = -1
    """The row in the file that was read; -1 for a new version."""


@dataclass(frozen=True)
class SliceTarget:
    """The files of a slice, and where to write new ones."""

    root: str
    run: int
    hidden: bool
    cluster_id: str
    number: int
    slices: int
    files: Mapping[str, str]
    """The current file of each kind that has one."""
    resliced: bool = False
    """Whether `files` are of an older, larger slice, of which this one is a part."""

    def writer(self, table: str, folder: str = "") -> TableWriter:
        prefix = f"{folder}/" if folder else ""
        path = prefix + safe_name(self.cluster_id) + "/" + file_name(f"{self.number:05d}", self.run)
        return TableWriter(self.root, table, path, self.hidden)


class KindState:
    """The things of one kind in a slice."""

    def __init__(self, kind: ThingKind, target: SliceTarget) -> None:
        self.kind = kind
        self._target = target
        self._schema = TABLES[kind.name]
        self._table = self._read()
        self._versions: dict[Key, ThingVersion | None] = {}
        self._rows: dict[Key, int] = self._index()
        self._loads = 0
        self._lists: list[list[Any]] | None = None
        self._gone: list[int] = []
        """Rows of the table that have ended."""
        self._closed: TableWriter | None = None
        self._children: dict[Key, set[Key]] | None = None
        self._before: dict[Key, ThingVersion] | None = None
        """During a baseline: the versions before it."""

    def get(self, key: Key) -> Any:
        """The value of a thing; None when it does not exist."""
        found = self._version(key)
        return None if found is None else found.value

    def __iter__(self) -> Iterator[Key]:
        """The keys of all things."""
        yield from (key for key in self._rows if key not in self._versions)
        yield from (key for key, version in self._versions.items() if version is not None)

    def children(self, parent: Key) -> list[Key]:
        """The keys that begin with a parent key, of the length `ThingKind.parent`; sorted."""
        if self._children is None:
            self._children = {}
            for key in self:
                self._children.setdefault(key[: len(parent)], set()).add(key)
        return sorted(self._children.get(parent, ()))

    def put(self, key: Key, value: Any, offset: int, time: int) -> None:
        """Set the value of a thing from an offset on; None ends it."""
        known = self._version(key)
        if self._children is not None:
            family = self._children.setdefault(key[: self.kind.parent], set())
            family.discard(key) if value is None else family.add(key)
        fresh = None if value is None else ThingVersion(value, offset, time, False)
        if self._before is not None:
            self._versions[key] = fresh and fresh._replace(from_snapshot=True)
        elif known is None or known.value != value or self.kind.conceals(value):
            self._end(key, known, offset, time)
            self._versions[key] = fresh

    def begin_baseline(self) -> None:
        """Start from nothing; `end_baseline` compares with what there was."""
        versions = {key: self._version(key) for key in self}
        self._before = {key: version for key, version in versions.items() if version is not None}
        self._children = None
        self._versions = dict.fromkeys(self._rows)

    def end_baseline(self, offset: int, time: int) -> None:
        """End versions that the snapshot lacks or has with another value; equal ones go on."""
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
        """Write the files of ended and of current versions, if anything changed."""
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
            writer = self._target.writer(self.kind.name, CURRENT)
            writer.add_table(self._kept())
            writer.add_table(arrow_rows(fresh, self._schema))
            current = writer.close()
            if current is not None:
                yield current

    @property
    def changed(self) -> bool:
        """Whether the file of current versions must be written again."""
        return bool(self._gone) or any(
            version is not None and version.row < 0 for version in self._versions.values()
        )

    def _end(self, key: Key, version: ThingVersion | None, offset: int, time: int) -> None:
        if version is None:
            return
        if version.row >= 0:
            self._gone.append(version.row)
        if version.offset < offset:
            if self._closed is None:
                self._closed = self._target.writer(self.kind.name, CLOSED)
            self._closed.add(self._row(key, version, offset, time))

    def _row(
        self, key: Key, version: ThingVersion, offset: int | None, time: int | None
    ) -> tuple[Any, ...]:
        values = self.kind.to_values(version.value)
        validity = (version.offset, offset, version.time, time, offset is None)
        return (self._target.cluster_id, *key, *values, *validity, version.from_snapshot)

    def _version(self, key: Key) -> ThingVersion | None:
        if key in self._versions:
            return self._versions[key]
        row = self._rows.get(key)
        found = None if row is None else self._load(row)
        if found is not None:
            self._versions[key] = found
        return found

    def _load(self, row: int) -> ThingVersion:
        cells = self._cells(row)
        keys, values = len(self.kind.keys), len(self.kind.fields)
        key, values_of_row = tuple(cells[1 : 1 + keys]), tuple(cells[1 + keys : 1 + values])
        value = self.kind.from_values(key, values_of_row)
        offset, _, time, _, _, from_snapshot = cells[1 + values :]
        return ThingVersion(value, offset, time, from_snapshot, row)

    def _cells(self, row: int) -> list[Any]:
        """The cells of a row: loaded row by row at first, then all rows at once (see _FEW)."""
        if self._lists is None:
            self._loads += 1
            if self._loads <= self._table.num_rows // _FEW + _FEW:
                return [column[row].as_py() for column in self._table.columns]
            self._lists = [column.to_pylist() for column in self._table.columns]
        return [column[row] for column in self._lists]

    def _read(self) -> pa.Table:
        path = self._target.files.get(self.kind.name)
        if path is None:
            return self._schema.empty_table()
        table = read_file(self._target.root, self.kind.name, path)
        plain = [
            pa.field(f.name, pa.int64()) if pa.types.is_timestamp(f.type) else f
            for f in self._schema
        ]
        mine = in_slice(self.kind, table, self._target.number, self._target.slices)
        if mine.num_rows < table.num_rows and not self._target.resliced:
            raise WarehouseError(
                f"{self.kind.name}/{path}: {table.num_rows - mine.num_rows} rows are of other "
                f"slices than {self._target.number}: the warehouse was changed by something else, "
                "or by an older quorate. Ingest the logs into a new warehouse"
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


def in_slice(kind: ThingKind, table: pa.Table, number: int, slices: int) -> pa.Table:
    """The rows of a gold table that belong to slice `number` of `slices`."""
    mine = [slice_of(kind.group(key), slices) == number for key in _keys(kind, table)]
    return table if all(mine) else table.filter(pa.array(mine, pa.bool_()))


def _keys(kind: ThingKind, table: pa.Table) -> list[Key]:
    names = [name for name, _ in kind.keys]
    if not names:
        return [()] * table.num_rows
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
