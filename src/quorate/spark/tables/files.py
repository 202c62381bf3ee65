"""Data files of tables: tasks write them on executors and return their names to the driver.

A file belongs to no table until the plan of a run names it. So a task that dies or runs twice does
no harm; the job `compact` deletes what it left.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from quorate.spark.files.paths import file_system
from quorate.spark.tables.layout import TABLES, table_path
from quorate.spark.write_errors import DiskWriteError

BUFFER_ROWS: Final = 20_000
"""Rows that a writer collects for a row group."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_ESCAPED: Final = re.compile(r"~([0-9a-f]*)~?")
_RUN: Final = re.compile(r"-(\d{8,})-[0-9a-f]{32}\.parquet$")


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table."""

    table: str
    path: str
    """The path in the folder of the table, with '/'."""
    size: int
    rows: int
    stats: str
    """The statistics of Delta Lake, as JSON: numRecords, minValues, maxValues, nullCount."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class WriteTarget:
    """Where tasks write."""

    root: str
    run: int
    hidden: bool


def open_root(root: str) -> tuple[fs.FileSystem, str]:
    """The file system of a warehouse, and the path on it; `root` is a path or a URI."""
    system, base, _ = file_system(root)
    return system, base


def safe_name(text: str) -> str:
    """`text` as the name of a folder: characters except letters, digits, _ and - become ~hex~."""
    return _UNSAFE.sub(lambda match: f"~{match.group().encode().hex()}~", text) or "~"


def named_by(folder: str) -> str:
    """The text of which `safe_name` made this name of a folder."""
    return _ESCAPED.sub(lambda match: bytes.fromhex(match.group(1)).decode(), folder)


def file_name(prefix: str, run: int) -> str:
    """A unique name for a file; `run` is the run whose plan will name it."""
    return f"{prefix}-{run:08d}-{uuid4().hex}.parquet"


def run_of(path: str) -> int:
    """The run that a file was written for; 0 when its name is not of `file_name`."""
    found = _RUN.search(path)
    return 0 if found is None else int(found[1])


def hidden_name(path: str) -> str:
    """The name of a file of a Parquet store before its run: readers skip names with a dot."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}")


class TableWriter:
    """Writes rows to a new file of a table; a row is a tuple in the order of the columns."""

    def __init__(self, root: str, table: str, path: str, hidden: bool = False) -> None:
        """root: of the warehouse; path: in the folder of the table; hidden: see `hidden_name`."""
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
        """Add rows in Arrow columns."""
        self._flush()
        if table.num_rows:
            self._write(table)

    def close(self) -> DataFile | None:
        """Finish the file. Returns None when there are no rows, and then writes no file."""
        self._flush()
        if self._writer is None:
            return None
        system, full = self._place()
        with self._writing(full):
            self._writer.close()
        size = system.get_file_info(full).size
        return DataFile(self.table, self.path, size, self._count, _stats(self._metadata[0]))

    def _flush(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._write(arrow_rows(rows, self._schema))

    def _write(self, table: pa.Table) -> None:
        system, full = self._place()
        with self._writing(full):
            if self._writer is None:
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

    @contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        """Name the file in errors of writing: PyArrow does not. Raises DiskWriteError."""
        try:
            yield
        except OSError as error:
            if self._writer is not None:
                with suppress(OSError, RuntimeError):
                    self._writer.close()
                self._writer.is_open = False  # otherwise its end would print a traceback
            raise DiskWriteError(path, error) from None

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
    """All rows of a file, with all columns of its table."""
    system, base = open_root(root)
    full = posixpath.join(base, table_path(table), path)
    return _in_columns(table, pq.read_table(full, filesystem=system, partitioning=None))


def read_batches(root: str, table: str, path: str) -> Iterator[pa.RecordBatch]:
    """The same in batches of at most BUFFER_ROWS rows."""
    system, base = open_root(root)
    full = posixpath.join(base, table_path(table), path)
    with pq.ParquetFile(full, filesystem=system) as opened:
        for batch in opened.iter_batches(BUFFER_ROWS, columns=TABLES[table].names):
            yield from _in_columns(table, pa.Table.from_batches([batch])).to_batches()


def _in_columns(table: str, found: pa.Table) -> pa.Table:
    """Return all columns of the table; columns that an earlier release did not have are null."""
    for field in TABLES[table]:
        if field.name not in found.column_names:
            found = found.append_column(field, pa.nulls(found.num_rows, field.type))
    return found.select(TABLES[table].names).cast(TABLES[table])


def existing_file(root: str, table: str, path: str) -> DataFile:
    """The DataFile of a file that exists: what its writer returned, from the file itself."""
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
    bounded = [
        name for name in low if name not in unbound and _has_safe_bounds(low[name], high[name])
    ]
    values = {"numRecords": metadata.num_rows}
    bounds = {
        "minValues": {name: low[name] for name in bounded},
        "maxValues": {name: high[name] for name in bounded},
        "nullCount": nulls,
    }
    return json.dumps(values | bounds, default=_time_text, separators=(",", ":"))


def _has_safe_bounds(*bounds: Any) -> bool:
    """Whether bounds can be statistics: whole numbers, times and short texts.

    Delta Lake would truncate longer texts. Fractions have no bounds: JSON has no infinity, and the
    bounds of Parquet ignore NaN, so a reader would skip a file that has such a row.
    """
    return all(
        len(bound) <= 64 if isinstance(bound, str) else not isinstance(bound, float | bytes)
        for bound in bounds
    )


def with_safe_bounds(stats: str) -> str:
    """Statistics without bounds that `_has_safe_bounds` refuses; plans of old releases have them."""
    found = json.loads(stats)
    for bounds in ("minValues", "maxValues"):
        found[bounds] = {
            name: value for name, value in found[bounds].items() if _has_safe_bounds(value)
        }
    return json.dumps(found, separators=(",", ":"))


def _time_text(value: datetime) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
