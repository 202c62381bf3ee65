"""Compaction: joins small files of history, and deletes files that no table uses any more.

Every run leaves a file for each cluster (and slice and kind) that it changed. Compaction joins
those of one cluster and slice up to a size, sorted for queries; no row changes. Current rows are one
file a slice already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quorate.spark.tables.file_tasks import FileTask, run_file_tasks, write_rows
from quorate.spark.tables.files import DataFile, WriteTarget, file_name, read_file
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.read_version import commit_run, read_version
from quorate.spark.tables.store import (
    COMPACT,
    NoWarehouseError,
    StoredFile,
    TableFiles,
    TableStore,
)
from quorate.spark.tables.summary import retry_while_overtaken
from quorate.spark.tables.versions import CLOSED
from quorate.spark.tables.warehouse import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET_BYTES: Final = 16 << 20
"""Files of at least this size are not joined, and joined files are not much larger."""
KEEP_HOURS: Final = 168


@dataclass
class CompactSummary:
    """The result of a compaction."""

    warehouse: str
    joined: int = 0
    """Files that were replaced."""
    written: int = 0
    deleted: int = 0
    """Files that no table had used for `keep_hours`."""
    seconds: float = 0.0


def compact_warehouse(
    spark: SparkSession,
    warehouse: str,
    *,
    table_format: str = "delta",
    keep_hours: int = KEEP_HOURS,
    least_files: int = 4,
    notify: Callable[[str], None] = lambda text: None,
) -> CompactSummary:
    """Join small files, then delete files that were replaced or abandoned more than keep_hours ago.

    least_files: join only where at least this many small files belong together

    Other jobs may write to the warehouse at the same time. When one of them replaces a file that
    this job joins, it looks for small files again.
    """
    began = time.monotonic()
    store = open_store(warehouse, table_format)
    if store.last_run() == 0:
        raise NoWarehouseError(warehouse)
    summary = CompactSummary(store.root)
    notify("joining small files")
    retry_while_overtaken(lambda: _join_files(spark, store, least_files, summary), notify)
    notify("deleting unused files")
    summary.deleted = store.sweep(keep_hours)
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


def _join_files(
    spark: SparkSession, store: TableStore, least_files: int, summary: CompactSummary
) -> None:
    """Join small files, in one run. Raises ConcurrentRunError."""
    read = read_version(store, ())  # it changes no rows, so it works on no cluster
    tasks = list(_file_tasks(read.tables, least_files))
    if not tasks:
        return
    plan = read.plan(COMPACT)
    target = WriteTarget(store.root, plan.run, store.hidden)
    for one in run_file_tasks(spark, tasks, _joiner(target)):
        for file in one["files"]:
            plan.add(DataFile(**file))
    for task in tasks:
        plan.remove(task.table, task.paths)
    written = sum(map(len, plan.adds.values()))
    commit_run(read, plan)
    summary.joined = sum(len(task.paths) for task in tasks)
    summary.written = written


def _file_tasks(tables: TableFiles, least_files: int) -> Iterator[FileTask]:
    for table in ("log", "changes", "quarantine", *KINDS):
        groups: dict[str, list[StoredFile]] = {}
        for file in tables.files(table):
            if file.size < TARGET_BYTES and (table not in KINDS or file.path.startswith(CLOSED)):
                groups.setdefault(_group(table, file), []).append(file)
        for files in groups.values():
            for some in _portions(sorted(files, key=lambda file: file.path)):
                if len(some) >= least_files:
                    yield FileTask(table, tuple(file.path for file in some))


def _group(table: str, file: StoredFile) -> str:
    """Files with the same group may be joined: those of one cluster, and in gold of one slice."""
    folder, name = file.path.rsplit("/", 1)
    return f"{folder}/{name.partition('-')[0]}" if table in KINDS else folder


def _portions(files: list[StoredFile]) -> Iterator[list[StoredFile]]:
    some: list[StoredFile] = []
    for file in files:
        if some and sum(one.size for one in some) + file.size > TARGET_BYTES:
            yield some
            some = []
        some.append(file)
    if some:
        yield some


def _joiner(place: WriteTarget) -> Callable[[FileTask], dict[str, Any]]:
    def join(task: FileTask) -> dict[str, Any]:
        tables = [read_file(place.root, task.table, path) for path in task.paths]
        rows = pa.concat_tables(tables).sort_by([(name, "ascending") for name in _order(task)])
        folder, name = task.paths[0].rsplit("/", 1)
        path = f"{folder}/{file_name(name.partition('-')[0], place.run)}"
        return {"files": write_rows(place, task.table, path, rows)}

    return join


def _order(task: FileTask) -> list[str]:
    if task.table in KINDS:
        return [name for name, _ in KINDS[task.table].keys] + ["valid_from_offset"]
    return ["offset"]
