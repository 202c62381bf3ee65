"""Compaction: many small files of history become few, and files that nobody needs are deleted.

Every run leaves a file for each cluster (and slice and kind) that it changed. Compaction joins
those of one cluster and slice, sorted as they are asked for, up to a size; no row changes. What
holds now is one file a slice already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quorate.spark.tables.bronze import Place
from quorate.spark.tables.errands import Errand, run_errands, write_rows
from quorate.spark.tables.files import DataFile, file_name, read_file
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.store import COMPACT, NoWarehouse, Plan, Store, Stored
from quorate.spark.tables.versions import CLOSED
from quorate.spark.tables.warehouse import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET_BYTES: Final = 16 << 20
"""Files of at least this size are left alone, and joined ones do not grow much beyond it."""
KEEP_HOURS: Final = 168


@dataclass
class CompactSummary:
    """What compaction did."""

    warehouse: str
    joined: int = 0
    """Files that were replaced."""
    written: int = 0
    deleted: int = 0
    """Files that no table had had for the time to keep."""
    seconds: float = 0.0


def compact(
    spark: SparkSession,
    warehouse: str,
    *,
    table_format: str = "delta",
    keep_hours: int = KEEP_HOURS,
    least_files: int = 4,
    tell: Callable[[str], None] = lambda text: None,
) -> CompactSummary:
    """Join small files, then delete what was replaced or left behind more than keep_hours ago.

    least_files: as many small files must belong together before they are worth it
    """
    began = time.monotonic()
    store = open_store(warehouse, table_format)
    if store.last_run() == 0:
        raise NoWarehouse(warehouse)
    run = store.next_run()
    summary = CompactSummary(store.root)
    tell("joining small files")
    errands = list(_errands(store, least_files))
    if errands:
        plan = Plan(run, COMPACT)
        for one in run_errands(spark, errands, _joiner(Place(store.root, run, store.hidden))):
            for file in one["files"]:
                plan.add(DataFile(**file))
        for errand in errands:
            plan.remove(errand.table, errand.paths)
        summary.joined = sum(len(errand.paths) for errand in errands)
        summary.written = sum(map(len, plan.adds.values()))
        store.commit(plan)
    tell("deleting what is not needed")
    summary.deleted = store.sweep(keep_hours)
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


def _errands(store: Store, least_files: int) -> Iterator[Errand]:
    for table in ("log", "changes", "quarantine", *KINDS):
        groups: dict[str, list[Stored]] = {}
        for file in store.files(table):
            if file.size < TARGET_BYTES and (table not in KINDS or file.path.startswith(CLOSED)):
                groups.setdefault(_group(table, file), []).append(file)
        for files in groups.values():
            for some in _portions(sorted(files, key=lambda file: file.path)):
                if len(some) >= least_files:
                    yield Errand(table, tuple(file.path for file in some))


def _group(table: str, file: Stored) -> str:
    """Files that may be joined: of one cluster, and in gold of one slice."""
    folder, name = file.path.rsplit("/", 1)
    return f"{folder}/{name.partition('-')[0]}" if table in KINDS else folder


def _portions(files: list[Stored]) -> Iterator[list[Stored]]:
    some: list[Stored] = []
    for file in files:
        if some and sum(one.size for one in some) + file.size > TARGET_BYTES:
            yield some
            some = []
        some.append(file)
    if some:
        yield some


def _joiner(place: Place) -> Callable[[Errand], dict[str, Any]]:
    def join(errand: Errand) -> dict[str, Any]:
        tables = [read_file(place.root, errand.table, path) for path in errand.paths]
        rows = pa.concat_tables(tables).sort_by([(name, "ascending") for name in _order(errand)])
        folder, name = errand.paths[0].rsplit("/", 1)
        path = f"{folder}/{file_name(name.partition('-')[0], place.run)}"
        return {"files": write_rows(place, errand.table, path, rows)}

    return join


def _order(errand: Errand) -> list[str]:
    if errand.table in KINDS:
        return [name for name, _ in KINDS[errand.table].keys] + ["valid_from_offset"]
    return ["offset"]
