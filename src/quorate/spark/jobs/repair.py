"""Repair: what a disk or a copy has lost of a warehouse is made again, or forgotten and told.

Commits of tables are made again by the plans of their runs. Where data files of silver or gold are
gone, the state of their clusters is told anew from bronze. Records that bronze itself has lost are
forgotten, so that the next `ingest` of a log that has them takes them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from quorate.spark.tables.bronze import Place
from quorate.spark.tables.control import Progress, load_progress, plan_progress
from quorate.spark.tables.errands import write_rows
from quorate.spark.tables.files import DataFile, file_name, read_file, safe_name
from quorate.spark.tables.ingest import catch_up
from quorate.spark.tables.layout import BRONZE, CONTROL, STATE
from quorate.spark.tables.lineage import Span, union, without
from quorate.spark.tables.mending import mend
from quorate.spark.tables.relog import plan_log_again
from quorate.spark.tables.store import NoWarehouse, Plan, Store, Stored, WarehouseError
from quorate.spark.tables.summary import Summary
from quorate.spark.tables.warehouse import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class RepairSummary:
    """What was wrong with a warehouse, and what was done."""

    warehouse: str
    mended: list[str] = field(default_factory=list)
    """Commits that were lost or torn, in words."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Data files that are gone, by table."""
    told_anew: list[str] = field(default_factory=list)
    """Clusters whose state was told anew from bronze."""
    forgotten: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By cluster: offsets (end exclusive) of records that bronze no longer has."""
    seconds: float = 0.0


def repair(
    spark: SparkSession,
    warehouse: str,
    *,
    table_format: str = "delta",
    tell: Callable[[str], None] = lambda text: None,
) -> RepairSummary:
    """Look over a warehouse and put right what can be.

    Raises WarehouseError where there is none, and for a loss that only a backup can mend.
    """
    began = time.monotonic()
    store = open_store(warehouse, table_format)
    summary = RepairSummary(store.root)
    tell("looking over the tables' logs")
    summary.mended = mend(store)
    if store.next_run() == 1:
        raise NoWarehouse(warehouse)
    tell("looking for data files that are gone")
    missing, robbed = store.missing(), store.robbed()
    if missing or robbed:
        _forget(store, missing, summary, robbed)
        store.told_anew()
        tell("telling the state anew")
        catch_up(spark, store, Summary(store.root))
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


def _forget(
    store: Store,
    missing: Mapping[str, list[Stored]],
    summary: RepairSummary,
    robbed: Collection[str] = (),
) -> None:
    """One run: the missing files leave their tables, with all that must be told anew.

    robbed: tables of which it is not known what is missing: the state of all clusters is told anew
    """
    summary.missing = {table: [file.path for file in gone] for table, gone in missing.items()}
    for table in CONTROL:
        if table in missing:
            raise WarehouseError(
                f"{store.place(table)}/{missing[table][0].path} is missing: it says how far each "
                "cluster has come. Put it back, or take the logs into a new warehouse"
            )
    plan = Plan(store.next_run(), "repair")
    progress = load_progress(store)
    remade = plan_log_again(store, plan, progress) if "log" in robbed else None
    for table in ("snapshots", "quarantine") if remade is not None else BRONZE:
        plan.remove(table, summary.missing.get(table, ()))
    gone = [path for table in STATE for path in summary.missing.get(table, ())]
    for id, known in sorted(progress.items()):
        folder = safe_name(id)
        if remade is None:
            lost = _lost_offsets(store, folder, missing.get("log", ()))
        else:
            lost = remade[id]
        if lost:
            summary.forgotten[id] = lost
            known = replace(known, spans=tuple(_cut(known.spans, lost)))
        if robbed or any(folder in path.split("/") for path in gone):
            summary.told_anew.append(id)
            known = _untold(store, plan, folder, known)
        progress[id] = replace(known, run=plan.run)
    plan_progress(store, plan, progress)
    store.commit(plan)


def _lost_offsets(store: Store, folder: str, gone: Iterable[Stored]) -> list[tuple[int, int]]:
    """What a cluster's missing files had, but for what other files have."""
    lost = [
        (file.low["offset"], file.high["offset"] + 1)
        for file in gone
        if file.path.startswith(f"{folder}/")
    ]
    if not lost:
        return []
    names = {file.path for file in gone}
    held: list[tuple[int, int]] = []
    for file in store.files("log"):
        near = any(file.low["offset"] < end and file.high["offset"] >= at for at, end in lost)
        if file.path.startswith(f"{folder}/") and file.path not in names and near:
            offsets = read_file(store.root, "log", file.path).column("offset").to_pylist()
            held += union((offset, offset + 1) for offset in offsets)
    return [part for at, end in union(lost) for part in without(union(held), at, end)]


def _cut(spans: Iterable[Span], lost: Sequence[tuple[int, int]]) -> Iterable[Span]:
    for span in spans:
        for start, end in without(lost, span.start, span.end):
            yield span._replace(start=start, end=end)


def _untold(store: Store, plan: Plan, folder: str, known: Progress) -> Progress:
    """Let a cluster's silver, gold and misfits go: they will be told anew."""
    for table in STATE:
        mine = [file.path for file in store.files(table) if folder in file.path.split("/")]
        plan.remove(table, mine)
    gone = set(plan.removes.get("quarantine", ()))
    place = Place(store.root, plan.run, store.hidden)
    for file in store.files("quarantine"):
        if file.path in gone or not file.path.startswith(f"{folder}/"):
            continue
        rows = read_file(store.root, "quarantine", file.path)
        kept = rows.filter(pc.not_equal(rows.column("reason"), "misfit"))
        if kept.num_rows < rows.num_rows:
            plan.remove("quarantine", [file.path])
            path = f"{folder}/{file_name('kept', plan.run)}"
            for written in write_rows(place, "quarantine", path, kept):
                plan.add(DataFile(**written))
    return replace(
        known, applied_end=None, applied_time=0, open_transaction=None, unknown=(), problem=None
    )
