"""Repair: restores lost commits and files of a warehouse, or removes what cannot be restored.

1. Lost commits of tables are written again from the plans of their runs.
2. Where data files of silver or gold are lost, the state of their clusters is derived again from
   bronze.
3. Records that bronze itself has lost are removed from its progress, so that the next `ingest` of a
   log that has them ingests them again.
4. Where two jobs at once have written history twice (`doubled`), it is derived again from bronze.
5. Checksums that `epochs` lacks are read again from the logs that were ingested (`checksums`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from quorate.spark.tables.checksums import count_missing, with_checksums
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.delta_repair import repair_commits
from quorate.spark.tables.doubled import doubled_history
from quorate.spark.tables.files import read_file, safe_name
from quorate.spark.tables.ingest import catch_up
from quorate.spark.tables.layout import BRONZE, CONTROL, STATE
from quorate.spark.tables.lineage import EpochSpan, covered, uncovered, union
from quorate.spark.tables.log_rebuild import plan_log_rebuild
from quorate.spark.tables.read_version import ReadVersion, commit_run, read_version
from quorate.spark.tables.store import (
    NoWarehouseError,
    RunPlan,
    StoredFile,
    TableFiles,
    TableStore,
    WarehouseError,
)
from quorate.spark.tables.summary import IngestSummary, retry_while_overtaken
from quorate.spark.tables.warehouse import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class RepairSummary:
    """What was wrong with a warehouse, and what was done.

    The names are those of the command's JSON.
    """

    warehouse: str
    repaired: list[str] = field(default_factory=list)
    """Messages about commits that were lost or torn, and are restored."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Lost data files, by table."""
    rebuilt: list[str] = field(default_factory=list)
    """Clusters whose state was derived again from bronze."""
    forgotten: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By cluster: ranges of offsets (end exclusive) that bronze has lost."""
    doubled: list[str] = field(default_factory=list)
    """Clusters whose history two jobs at once had written twice; it was derived again."""
    checksums: dict[str, int] = field(default_factory=dict)
    """By cluster: checksums of epochs that were read again from the ingested logs."""
    seconds: float = 0.0


def repair_warehouse(
    spark: SparkSession,
    warehouse: str,
    *,
    table_format: str = "delta",
    notify: Callable[[str], None] = lambda text: None,
) -> RepairSummary:
    """Check a warehouse, and repair what can be repaired.

    Other jobs may write to the warehouse at the same time: what they change meanwhile is checked
    again. Raises WarehouseError where there is none, and for a loss that needs a backup.
    """
    began = time.monotonic()
    store = open_store(warehouse, table_format)
    summary = RepairSummary(store.root)
    notify("checking the tables' logs")
    summary.repaired = repair_commits(store)
    if store.version().run == 0:
        raise NoWarehouseError(warehouse)
    notify("looking for lost data files")
    retry_while_overtaken(lambda: _check_files(store, summary), notify)
    notify("looking for doubled history")
    retry_while_overtaken(lambda: _check_history(spark, store, summary), notify)
    notify("looking for checksums of epochs")
    retry_while_overtaken(lambda: _restore_checksums(store, summary), notify)
    notify("applying the log to the state")
    retry_while_overtaken(lambda: catch_up(spark, store, IngestSummary(store.root)), notify)
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


def _check_files(store: TableStore, summary: RepairSummary) -> None:
    """Remove what is lost, if anything is. Raises ConcurrentRunError."""
    read, tables_to_rebuild = read_version(store), store.tables_to_rebuild()
    missing = read.tables.missing()
    if missing or tables_to_rebuild:
        remove_lost(read, missing, summary, tables_to_rebuild)
        store.mark_rebuilt()


def _check_history(spark: SparkSession, store: TableStore, summary: RepairSummary) -> None:
    """Remove doubled history, if there is any. Raises ConcurrentRunError."""
    read = read_version(store)
    found = doubled_history(spark, read)
    if not found.clusters:
        return
    plan, progress = read.plan("repair"), read.progress
    for id, spans in found.spans.items():
        known = progress.get(id, ClusterProgress(id)).with_spans(spans)
        progress[id] = replace(known, unproven=tuple(union([*known.unproven, *covered(spans)])))
    if found.log:
        plan_log_rebuild(read.tables, plan, {id: progress[id] for id in found.log})
    plan.remove("snapshots", found.snapshots)
    for id in sorted(found.clusters):
        progress[id] = _without_state(read.tables, plan, safe_name(id), progress[id])
    commit_run(read, plan, progress)
    summary.doubled = sorted(found.clusters)


def _restore_checksums(store: TableStore, summary: RepairSummary) -> None:
    """Read missing checksums of epochs again, where their logs still are. Raises
    ConcurrentRunError."""
    read = read_version(store)
    progress, restored = read.progress, {}
    for id, known in progress.items():
        spans = with_checksums(read.tables, id, known.spans)
        count = count_missing(known.spans) - count_missing(spans)
        if count:
            progress[id], restored[id] = replace(known, spans=spans), count
    if restored:
        commit_run(read, read.plan("repair"), progress)
    summary.checksums = restored


def remove_lost(
    read: ReadVersion,
    missing: Mapping[str, list[StoredFile]],
    summary: RepairSummary,
    tables_to_rebuild: Collection[str] = (),
) -> None:
    """One run: missing files leave their tables, with all state that must be derived again.

    tables_to_rebuild: tables with unknown losses, for which the state of all clusters is derived
        again

    Raises ConcurrentRunError, and WarehouseError where a file of the progress is missing.
    """
    tables, progress = read.tables, read.progress
    summary.rebuilt, summary.forgotten = [], {}
    summary.missing = {table: [file.path for file in gone] for table, gone in missing.items()}
    for table in CONTROL:
        if table in missing:
            raise WarehouseError(
                f"{tables.place(table)}/{missing[table][0].path} is missing: it has the progress of "
                "each cluster. Restore it, or ingest the logs into a new warehouse"
            )
    plan = read.plan("repair")
    remade = plan_log_rebuild(tables, plan, progress) if "log" in tables_to_rebuild else None
    for table in ("snapshots", "quarantine") if remade is not None else BRONZE:
        plan.remove(table, summary.missing.get(table, ()))
    gone = [path for table in STATE for path in summary.missing.get(table, ())]
    for id, known in sorted(progress.items()):
        folder = safe_name(id)
        lost = (
            _lost_offsets(tables, folder, missing.get("log", ())) if remade is None else remade[id]
        )
        if lost:
            summary.forgotten[id] = lost
            known = replace(known, spans=tuple(without_ranges(known.spans, lost)))
        if tables_to_rebuild or any(folder in path.split("/") for path in gone):
            summary.rebuilt.append(id)
            known = _without_state(tables, plan, folder, known)
        progress[id] = known
    commit_run(read, plan, progress)


def _lost_offsets(
    tables: TableFiles, folder: str, gone: Iterable[StoredFile]
) -> list[tuple[int, int]]:
    """The offset ranges of a cluster that only its missing files had."""
    lost = [
        (file.low["offset"], file.high["offset"] + 1)
        for file in gone
        if file.path.startswith(f"{folder}/")
    ]
    if not lost:
        return []
    names = {file.path for file in gone}
    held: list[tuple[int, int]] = []
    for file in tables.files("log"):
        near = any(file.low["offset"] < end and file.high["offset"] >= at for at, end in lost)
        if file.path.startswith(f"{folder}/") and file.path not in names and near:
            offsets = read_file(tables.root, "log", file.path).column("offset").to_pylist()
            held += union((offset, offset + 1) for offset in offsets)
    return [part for at, end in union(lost) for part in uncovered(union(held), at, end)]


def without_ranges(
    spans: Iterable[EpochSpan], lost: Sequence[tuple[int, int]]
) -> Iterable[EpochSpan]:
    """The spans without these ranges; a cut end has no checksum."""
    for span in spans:
        for start, end in uncovered(lost, span.start, span.end):
            yield span._replace(
                start=start,
                end=end,
                first_crc=span.first_crc if start == span.start else None,
                last_crc=span.last_crc if end == span.end else None,
            )


def _without_state(
    tables: TableFiles, plan: RunPlan, folder: str, known: ClusterProgress
) -> ClusterProgress:
    """Remove a cluster's silver and gold, which will be derived again."""
    for table in STATE:
        mine = [file.path for file in tables.files(table) if folder in file.path.split("/")]
        plan.remove(table, mine)
    return replace(
        known, applied_end=None, applied_time=0, open_transaction=None, unknown=(), problem=None
    )
