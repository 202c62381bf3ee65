"""The run that applies the log in bronze to the state in silver and gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quorate.spark.tables.bronze import CREATING_RECORDS, TRANSACTION_MARKERS, BronzeResult
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.files import DataFile, WriteTarget, safe_name
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.lineage import covered, offsets_after_gaps, uncovered
from quorate.spark.tables.offset_ranges import OffsetRange, before_open_transaction, ranges_to_apply
from quorate.spark.tables.read import may_reach, read_table
from quorate.spark.tables.read_version import ReadVersion, check_version, commit_run
from quorate.spark.tables.resolved import plan_misfits
from quorate.spark.tables.state import ClusterWork, apply_steps, slices_for
from quorate.spark.tables.store import StoredFile, TableFiles
from quorate.spark.tables.summary import (
    IngestSummary,
    InvalidInputError,
    at_commit,
    describe_findings,
    note_resolved,
    of_cluster,
)
from quorate.spark.tables.transactions import transactions
from quorate.spark.tables.versions import CURRENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BYTES_A_ROW: Final = 60
_RECORDS_A_THING: Final = 8


def apply_log(
    spark: SparkSession,
    read: ReadVersion,
    taken: Mapping[str, BronzeResult],
    summary: IngestSummary,
    fail_fast: bool,
) -> dict[str, ClusterProgress]:
    """Apply to silver and gold what bronze has. Returns the new progress of each cluster.

    read: the version of the warehouse, and the clusters to apply
    taken: what this job took into bronze; it spares a look at what records the log has

    1. Find the ranges of each cluster to apply (`offset_ranges`); stop when there is nothing new.
    2. Cut them before a metadata transaction that has not ended.
    3. Decide the number of slices of each state, and reslice a state that has grown.
    4. Apply the steps (`state`), and commit files and progress as one run.

    With fail_fast raises InvalidInputError when records do not fit the state. Raises
    ConcurrentRunError.
    """
    tables, progress = read.tables, read.progress
    stored = stored_snapshots(tables)
    pending = {
        id: ranges_to_apply(
            one.applied_end, covered(one.spans), sorted(stored.get(safe_name(id), ()))
        )
        for id, one in progress.items()
    }
    pending = {id: way for id, way in pending.items() if way[0] or way[1] != progress[id].problem}
    if not pending:
        return progress
    log = _log_from(spark, tables, progress, pending)
    pending, opened = _up_to_open_transactions(log, progress, taken, pending)
    work = _work(tables, progress, taken, pending)
    plan = read.plan("state")
    counts: Mapping[str, Counter[str]] = {}
    misfits: Mapping[str, str] = {}
    if any(one.ranges for one in work):
        topics = read_table(spark, tables, "topics", lambda file: file.path.startswith(CURRENT))
        snapshots = read_table(spark, tables, "snapshots")
        target = WriteTarget(tables.root, plan.run, tables.hidden)
        done = apply_steps(log, snapshots, topics, work, target)
        counts, misfits = done.counts, done.misfits
        for file in done.files:
            plan.add(DataFile(**file))
        for table, path in done.replaced:
            plan.remove(table, [path])
        for one in work:
            if one.resliced:
                for (_, kind), path in one.files.items():
                    plan.remove(kind, [path])
    found = dict(progress)
    for one in work:
        found[one.cluster_id] = _progress_after(progress[one.cluster_id], one, pending, opened)
    for cluster_id, count in counts.items():
        cluster_summary = of_cluster(summary, cluster_id)
        cluster_summary.events += count["events"]
        if count["misfits"]:
            cluster_summary.quarantined["misfit"] = count["misfits"]
            cluster_summary.examples["misfit"] = misfits[cluster_id]
    ranges = {one.cluster_id: [(r.start, r.end) for r in one.ranges] for one in work if one.ranges}
    note_resolved(summary, plan_misfits(tables, plan, ranges))
    if fail_fast and misfits:
        check_version(read)
        raise InvalidInputError(
            "the log was taken, the state left as it was: records do not fit it in cluster "
            + describe_findings(summary)
        )
    plan.summary = at_commit(summary, found)
    commit_run(read, plan, found)
    return found


def _log_from(
    spark: SparkSession,
    tables: TableFiles,
    progress: Mapping[str, ClusterProgress],
    pending: Mapping[str, tuple[list[OffsetRange], str | None]],
) -> DataFrame:
    """The table `log` without files that lie before all ranges."""
    since = {safe_name(id): progress[id].applied_end or 0 for id in pending}

    def wanted(file: Any) -> bool:
        cluster = file.path.partition("/")[0]
        return cluster in since and may_reach(file, "offset", since[cluster])

    return read_table(spark, tables, "log", wanted)


def _up_to_open_transactions(
    log: DataFrame,
    progress: Mapping[str, ClusterProgress],
    taken: Mapping[str, BronzeResult],
    pending: Mapping[str, tuple[list[OffsetRange], str | None]],
) -> tuple[dict[str, tuple[list[OffsetRange], str | None]], dict[str, int]]:
    """The ranges cut before a transaction that has not ended, and where it begins, by cluster."""
    if not any(
        _has(TRANSACTION_MARKERS, found, taken.get(id)) for id, (found, _) in pending.items()
    ):
        return dict(pending), {}
    holes = {id: offsets_after_gaps(progress[id].spans) for id in pending}
    begun: dict[str, list[int]] = {}
    for row in transactions(log, holes).where("finish IS NULL").collect():
        begun.setdefault(row.cluster_id, []).append(row.start)
    cut, opened = {}, {}
    for id, (found, problem) in pending.items():
        short, bound = before_open_transaction(found, begun.get(id, ()))
        cut[id] = (short, problem)
        if bound is not None:
            opened[id] = bound
    return cut, opened


def _has(types: Iterable[str], found: Sequence[OffsetRange], taken: BronzeResult | None) -> bool:
    """Whether the ranges may have records of these types; a job knows only what it took itself."""
    if taken is None or not _all_of(found, taken):
        return bool(found)
    return any(taken.types[name] for name in types)


def _all_of(found: Sequence[OffsetRange], taken: BronzeResult) -> bool:
    """Whether this job has taken every record of the ranges."""
    ours = covered(taken.spans)
    return not any(uncovered(ours, part.start, part.end) for part in found)


def _work(
    tables: TableFiles,
    progress: Mapping[str, ClusterProgress],
    taken: Mapping[str, BronzeResult],
    pending: Mapping[str, tuple[list[OffsetRange], str | None]],
) -> list[ClusterWork]:
    current: dict[str, dict[tuple[int, str], str]] = {}
    things: Counter[str] = Counter()
    for kind in KINDS:
        for file in tables.files(kind):
            folder, *rest = file.path.split("/")
            if folder == CURRENT:
                cluster, name = rest
                current.setdefault(cluster, {})[int(name.partition("-")[0]), kind] = file.path
                things[cluster] += _rows(file)
    work = []
    for id in sorted(pending):
        known, new = progress[id], taken.get(id, BronzeResult())
        found = tuple(pending[id][0])
        made, steps = _estimate(tables, id, found, new)
        slices = slices_for(things[safe_name(id)] + made, steps, known.slices)
        files = current.get(safe_name(id), {})
        cut = bool(files) and bool(found) and slices > known.slices
        work.append(
            ClusterWork(
                id,
                found,
                slices if cut or not files else known.slices,
                cut,
                files,
                known.slices,
                _has(TRANSACTION_MARKERS, found, taken.get(id)),
                _has(("RemoveTopicRecord",), found, taken.get(id)),
                known.spans,
            )
        )
    return work


def _estimate(
    tables: TableFiles, id: str, found: Sequence[OffsetRange], new: BronzeResult
) -> tuple[int, int]:
    """An estimate of how many things the ranges create, and the number of their records."""
    steps = sum(part.end - part.start for part in found)
    made = sum(new.types[name] for name in CREATING_RECORDS)
    if not _all_of(found, new):
        made = max(made, steps // _RECORDS_A_THING)  # earlier jobs took them and kept no counts
    for part in found:
        if part.baseline is not None:
            folder = "{}/{}-{}/".format(safe_name(id), *part.baseline)
            files = [f for f in tables.files("snapshots") if f.path.startswith(folder)]
            rows = sum(_rows(file) for file in files)
            made, steps = made + rows, steps + rows
    return made, steps


def _rows(file: StoredFile) -> int:
    """The rows of a file; an estimate where the format has no row counts (Parquet)."""
    return file.rows if file.rows >= 0 else file.size // _BYTES_A_ROW


def _progress_after(
    known: ClusterProgress,
    work: ClusterWork,
    pending: Mapping[str, tuple[list[OffsetRange], str | None]],
    opened: Mapping[str, int],
) -> ClusterProgress:
    found, problem = pending[known.cluster_id]
    at, unknown = known.applied_end or 0, list(known.unknown)
    for part in found:
        if part.baseline is not None and part.start - 1 > at:
            unknown.append((at, part.start - 1))
        at = part.end
    end = max([s.end for s in found], default=known.applied_end)
    return replace(
        known,
        applied_end=end,
        applied_time=max([s.last_time for s in known.spans if end and s.start < end], default=0),
        open_transaction=opened.get(known.cluster_id),
        slices=work.slices,
        unknown=tuple(unknown),
        problem=problem,
    )


def stored_snapshots(tables: TableFiles) -> dict[str, set[tuple[int, int]]]:
    """(end offset, epoch) of the snapshots in bronze, by the folder name of their cluster."""
    found: dict[str, set[tuple[int, int]]] = {}
    for file in tables.files("snapshots"):
        cluster, id, _ = file.path.split("/")
        offset, epoch = id.split("-")
        found.setdefault(cluster, set()).add((int(offset), int(epoch)))
    return found
