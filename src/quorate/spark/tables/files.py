"""Data files: written by whoever has the rows (a task on an executor), told to the driver by name.

A file is nothing before a run names it as part of a table. So a task that dies or runs twice does
no harm; what it left is swept away by `compact`.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from quorate.spark.files.paths import file_system
from quorate.spark.tables.layout import TABLES, table_path

BUFFER_ROWS: Final = 20_000
"""Rows that a writer keeps before it writes a row group."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_RUN: Final = re.compile(r"-(\d{8,})-[0-9a-f]{32}\.parquet$")


@dataclass(frozen=True)
class DataFile:
    """A Parquet file that was written for a table."""

    table: str
    path: str
    """Inside the folder of the table, with '/'."""
    size: int
    rows: int
    stats: str
    """Delta's JSON: numRecords, minValues, maxValues, nullCount."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def open_root(root: str) -> tuple[fs.FileSystem, str]:
    """The file system of a warehouse and the path on it; `root` is a path or a URI."""
    system, base, _ = file_system(root)
    return system, base


def safe_name(text: str) -> str:
    """`text` as a folder's name: other characters than letters, digits, _ and - become ~hex~."""
    return _UNSAFE.sub(lambda match: f"~{match.group().encode().hex()}~", text) or "~"


def file_name(prefix: str, run: int) -> str:
    """A name that no other file has; `run` is the one that will name the file in its plan."""
    return f"{prefix}-{run:08d}-{uuid4().hex}.parquet"


def run_of(path: str) -> int:
    """The run that a file was written for, 0 where its name is not one of `file_name`."""
    found = _RUN.search(path)
    return 0 if found is None else int(found[1])


def hidden_name(path: str) -> str:
    """Where a file of a Parquet store waits for its run: readers pass over names with a dot."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}")


class TableWriter:
    """Writes rows to one new file of a table; rows are tuples in the order of its columns."""

    def __init__(self, root: str, table: str, path: str, hidden: bool = False) -> None:
        """root: of the warehouse; path: inside the table's folder; hidden: see hidden_name."""
        self.table, self.path = table, path
        self._schema = TABLES[table]
        self._root, self._hidden = root, hidden
        self._rows: list[tuple[Any, ...]] = []
        self._writer: pq.ParquetWriter | None = None
        self._metadata: list[pq.FileMetaData] = []
        self._count = 0

    def add(self, row: tuple[Any, ...]) -> None:
        """Add one row."""
        self._rows.append(row)
        if len(self._rows) >= BUFFER_ROWS:
            self._flush()

    def add_table(self, table: pa.Table) -> None:
        """Add rows that are Arrow columns already."""
        self._flush()
        if table.num_rows:
            self._write(table)

    def close(self) -> DataFile | None:
        """Finish the file; None when it got no rows, and then there is no file."""
        self._flush()
        if self._writer is None:
            return None
        self._writer.close()
        system, full = self._place()
        size = system.get_file_info(full).size
        return DataFile(self.table, self.path, size, self._count, _stats(self._metadata[0]))

    def _flush(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._write(arrow_rows(rows, self._schema))

    def _write(self, table: pa.Table) -> None:
        if self._writer is None:
            system, full = self._place()
            system.create_dir(posixpath.dirname(full), recursive=True)
            self._writer = pq.ParquetWriter(
                full,
                self._schema,
                filesystem=system,
                compression="zstd",
                metadata_collector=self._metadata,
            )
        self._writer.write_table(table)
        self._count += table.num_rows

    def _place(self) -> tuple[fs.FileSystem, str]:
        system, base = open_root(self._root)
        full = posixpath.join(base, table_path(self.table), self.path)
        return system, hidden_name(full) if self._hidden else full


def arrow_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows as Arrow columns."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def read_file(root: str, table: str, path: str) -> pa.Table:
    """All rows of a file of a table, in its columns."""
    system, base = open_root(root)
    full = posixpath.join(base, table_path(table), path)
    return _in_columns(table, pq.read_table(full, filesystem=system, partitioning=None))


def read_batches(root: str, table: str, path: str) -> Iterator[pa.RecordBatch]:
    """The same in parts of at most BUFFER_ROWS rows."""
    system, base = open_root(root)
    full = posixpath.join(base, table_path(table), path)
    with pq.ParquetFile(full, filesystem=system) as opened:
        for batch in opened.iter_batches(BUFFER_ROWS, columns=TABLES[table].names):
            yield from _in_columns(table, pa.Table.from_batches([batch])).to_batches()


def _in_columns(table: str, found: pa.Table) -> pa.Table:
    """In the columns of the table; those that a release before did not have yet are null."""
    for field in TABLES[table]:
        if field.name not in found.column_names:
            found = found.append_column(field, pa.nulls(found.num_rows, field.type))
    return found.select(TABLES[table].names).cast(TABLES[table])


def found_file(root: str, table: str, path: str) -> DataFile:
    """A file that lies there, as whoever wrote it told of it."""
    system, base = open_root(root)
    full = posixpath.join(base, table_path(table), path)
    metadata = pq.read_metadata(full, filesystem=system)
    size = system.get_file_info(full).size
    return DataFile(table, path, size, metadata.num_rows, _stats(metadata))


def _stats(metadata: pq.FileMetaData) -> str:
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    unbound: set[str] = set()
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            name, found = column.path_in_schema, column.statistics
            if "." in name or found is None or column.physical_type == "BOOLEAN":
                continue
            if found.has_null_count:
                nulls[name] = nulls.get(name, 0) + found.null_count
            if found.has_min_max:
                low[name] = min(low.get(name, found.min), found.min)
                high[name] = max(high.get(name, found.max), found.max)
            elif found.num_values:
                unbound.add(name)
    told = [name for name in low if name not in unbound and _is_told(low[name], high[name])]
    values = {"numRecords": metadata.num_rows}
    bounds = {
        "minValues": {name: low[name] for name in told},
        "maxValues": {name: high[name] for name in told},
        "nullCount": nulls,
    }
    return json.dumps(values | bounds, default=_time_text, separators=(",", ":"))


def _is_told(*bounds: Any) -> bool:
    """Whether they are whole numbers, times or short texts.

    Longer texts would have to be cut. JSON has no word for infinity, and Parquet's bounds leave
    NaN out: so fractions are not told.
    """
    return all(
        len(bound) <= 64 if isinstance(bound, str) else not isinstance(bound, float | bytes)
        for bound in bounds
    )


def told_stats(stats: str) -> str:
    """A file's stats with those of their bounds that are told now: older plans have others."""
    found = json.loads(stats)
    for bounds in ("minValues", "maxValues"):
        found[bounds] = {name: value for name, value in found[bounds].items() if _is_told(value)}
    return json.dumps(found, separators=(",", ":"))


def _time_text(value: datetime) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
