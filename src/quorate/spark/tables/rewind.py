"""Rewinds a cluster: removes a range of its log, or only the state from an offset on.

- A range of the log is removed when a later leader truncated it after it was copied. Its records
  move to the quarantine (`superseded`), and the state is rewound to before them.
- Only the state is rewound when a part of the log that it had to skip was ingested.

Silver loses the events from the offset on. Gold loses the versions that began there, and versions
that ended there hold again. All of it is one run, with a task for each slice and kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.file_tasks import FileTask, run_file_tasks, slice_number, write_rows
from quorate.spark.tables.files import DataFile, WriteTarget, file_name, read_file, safe_name
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import QUARANTINE
from quorate.spark.tables.lineage import EpochSpan, offsets_after_gaps, uncovered
from quorate.spark.tables.read import may_reach, read_table
from quorate.spark.tables.read_version import ReadVersion, commit_run
from quorate.spark.tables.store import StoredFile, TableFiles
from quorate.spark.tables.transactions import transactions
from quorate.spark.tables.versions import CLOSED, CURRENT, in_slice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class WrongRange(NamedTuple):
    """Offsets [start, end) of a log that do not belong there."""

    start: int
    end: int
    problem: str = "a log of a later epoch does not have it"


def rewind(spark: SparkSession, read: ReadVersion, cluster_id: str, wrong: WrongRange) -> int:
    """Remove a range from the log of a cluster, and rewind the state before it.

    The log behind the range stays: it came from other replicas. Returns the number of the run.
    Raises ConcurrentRunError.
    """
    spans = read.progress[cluster_id].spans
    state_end = _state_end(spark, read.tables, cluster_id, wrong.start, spans)
    return _rewind(spark, read, cluster_id, wrong, state_end)


def rewind_state(spark: SparkSession, read: ReadVersion, cluster_id: str, end: int) -> int:
    """Rewind the state of a cluster to an offset (exclusive); its log stays.

    Returns the number of the run. Raises ConcurrentRunError.
    """
    return _rewind(spark, read, cluster_id, None, end)


def _rewind(
    spark: SparkSession,
    read: ReadVersion,
    cluster_id: str,
    wrong: WrongRange | None,
    state_end: int,
) -> int:
    known, tables = read.progress, read.tables
    before = known[cluster_id]
    cut = wrong or WrongRange(before.log_end, before.log_end)
    start, end = cut.start, cut.end
    tasks = [*_log_tasks(tables, cluster_id, start, end)]
    if before.applied_end is not None and before.applied_end > state_end:
        tasks += _state_tasks(tables, cluster_id, state_end, before.slices)
    plan = read.plan("rewind")
    target = WriteTarget(tables.root, plan.run, tables.hidden)
    results = run_file_tasks(
        spark, tasks, _rewind_task(cluster_id, cut, state_end, before.slices, target)
    )
    last_time = 0
    for one in results:
        last_time = max(last_time, one["last_time"])
        for file in one["files"]:
            plan.add(DataFile(**file))
    for table, path in sorted({(one.table, path) for one in tasks for path in one.paths}):
        plan.remove(table, [path])
    known[cluster_id] = replace(
        before,
        spans=tuple(_cut_spans(before, start, end, last_time)),
        applied_end=None if before.applied_end is None else min(before.applied_end, state_end),
        unknown=tuple((low, high) for low, high in before.unknown if high < state_end),
        open_transaction=state_end if state_end < start < before.log_end else None,
        unproven=tuple(
            piece for low, high in before.unproven for piece in uncovered([(start, end)], low, high)
        ),
    )
    taken_back = None if wrong is None else (start, end)
    plan.summary = {"cluster_id": cluster_id, "taken_back": taken_back, "state_end": state_end}
    commit_run(read, plan, known)
    return plan.run


def _state_end(
    spark: SparkSession,
    tables: TableFiles,
    cluster_id: str,
    offset: int,
    spans: Iterable[EpochSpan],
) -> int:
    """Return where the state must end: at `offset`, or before a transaction whose end is removed."""
    mine = safe_name(cluster_id) + "/"
    log = read_table(spark, tables, "log", lambda file: file.path.startswith(mine))
    holes = offsets_after_gaps(spans)
    piece = max((at for at in holes if at < offset), default=0)
    open_ones = transactions(log, {cluster_id: holes}).where(
        f"start >= {piece} AND start < {offset} AND coalesce(finish, {offset}) >= {offset}"
    )
    # transactions do not overlap: one at most is open there
    starts = [int(row[0]) for row in open_ones.select("start").collect()]
    return min([offset, *starts])


def _cut_spans(known: ClusterProgress, start: int, end: int, last_time: int) -> Iterator[EpochSpan]:
    for span in known.spans:
        if span.end <= start or span.start >= end:
            yield span
            continue
        if span.start < start:
            latest = min(span.last_time, last_time)
            yield span._replace(end=start, last_time=latest, last_crc=None)
        if span.end > end:
            yield span._replace(start=end, first_crc=None)


def _log_tasks(tables: TableFiles, cluster_id: str, start: int, end: int) -> Iterator[FileTask]:
    for file in _files(tables, "log", safe_name(cluster_id) + "/"):
        if start < end and may_reach(file, "offset", start) and file.low.get("offset", 0) < end:
            yield FileTask("log", (file.path,))


def _state_tasks(tables: TableFiles, cluster_id: str, end: int, slices: int) -> Iterator[FileTask]:
    cluster = safe_name(cluster_id)
    for file in _files(tables, "changes", cluster + "/"):
        if may_reach(file, "effective_offset", end):
            yield FileTask("changes", (file.path,))
    for kind in KINDS:
        closed = _files(tables, kind, f"{CLOSED}/{cluster}/")
        touched = [file for file in closed if may_reach(file, "valid_to_offset", end)]
        yield from slice_tasks(kind, touched, _files(tables, kind, f"{CURRENT}/{cluster}/"), slices)


def slice_tasks(
    kind: str, closed: Sequence[StoredFile], current: Sequence[StoredFile], slices: int
) -> Iterator[FileTask]:
    """A task for each present slice, with each file that may have rows of it.

    A file of ended versions may be of a time with fewer slices, and then has rows of several
    present ones: the number of slices is a power of two and only grows.
    """
    for number in range(slices):
        of_it = [file.path for file in closed if _may_have(slice_number(file), number)]
        of_it += [file.path for file in current if slice_number(file) == number]
        if of_it:
            yield FileTask(kind, tuple(of_it), number)


def _may_have(file: int, number: int) -> bool:
    """Whether a file of slice number `file`, at the time it was written, may have rows of a slice.

    With fewer slices (a power of two above `file`), `number` was in slice `number % fewest`.
    """
    fewest = 1 << file.bit_length()
    return number % fewest == file


def _files(tables: TableFiles, table: str, prefix: str) -> list[StoredFile]:
    return [file for file in tables.files(table) if file.path.startswith(prefix)]


def _rewind_task(
    cluster_id: str, wrong: WrongRange, state_end: int, slices: int, target: WriteTarget
) -> Callable[[FileTask], dict[str, Any]]:
    def cut(task: FileTask) -> dict[str, Any]:
        tables = [read_file(target.root, task.table, path) for path in task.paths]
        table = pa.concat_tables(tables)
        cluster = safe_name(cluster_id)
        if task.table == "log":
            return _cut_log(table, cluster, wrong, target)
        if task.table == "changes":
            kept = table.filter(pc.less(table.column("effective_offset"), state_end))
            path = f"{cluster}/{file_name('cut', target.run)}"
            return {"files": write_rows(target, "changes", path, kept), "last_time": 0}
        mine = in_slice(KINDS[task.table], table, task.slice, slices)
        return cut_versions(task, mine, cluster, state_end, target)

    return cut


def _cut_log(table: pa.Table, cluster: str, cut: WrongRange, target: WriteTarget) -> dict[str, Any]:
    start, end = cut.start, cut.end
    offsets = table.column("offset")
    wrong = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
    kept, gone = table.filter(pc.invert(wrong)), table.filter(wrong)
    columns: dict[str, Any] = {name: gone.column(name) for name in gone.column_names}
    rows = gone.num_rows
    columns |= {
        "reason": pa.array(["superseded"] * rows, pa.string()),
        "problem": pa.array([cut.problem] * rows, pa.string()),
        "batch_length": pa.nulls(rows, pa.int32()),
        "run": pa.array([target.run] * rows, pa.int64()),
        "resolved_run": pa.nulls(rows, pa.int64()),
    }
    moved = pa.Table.from_arrays([columns[name] for name in QUARANTINE.names], schema=QUARANTINE)
    files = write_rows(target, "log", f"{cluster}/{file_name('cut', target.run)}", kept)
    files += write_rows(
        target, "quarantine", f"{cluster}/{file_name('superseded', target.run)}", moved
    )
    before = kept.filter(pc.less(kept.column("offset"), start))
    latest = pc.max(before.column("time").cast(pa.int64())).as_py()
    return {"files": files, "last_time": latest or 0}


def cut_versions(
    task: FileTask, table: pa.Table, cluster: str, end: int, target: WriteTarget
) -> dict[str, Any]:
    """Remove versions that begin at `end` or later; reopen those that ended later."""
    table = table.filter(pc.less(table.column("valid_from_offset"), end))
    ended = pc.fill_null(pc.less(table.column("valid_to_offset"), end), False)
    closed, current = table.filter(ended), table.filter(pc.invert(ended))
    for name in ("valid_to_offset", "valid_to_time"):
        index = current.schema.get_field_index(name)
        nothing = pa.nulls(current.num_rows, current.schema.field(name).type)
        current = current.set_column(index, current.schema.field(name), nothing)
    holds = pa.array([True] * current.num_rows, pa.bool_())
    index = current.schema.get_field_index("is_current")
    current = current.set_column(index, current.schema.field("is_current"), holds)
    name = file_name(f"{task.slice:05d}", target.run)
    files = write_rows(target, task.table, f"{CLOSED}/{cluster}/{name}", closed)
    files += write_rows(target, task.table, f"{CURRENT}/{cluster}/{name}", current)
    return {"files": files, "last_time": 0}
