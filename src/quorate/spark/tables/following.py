"""The state follows the log: runs that apply what bronze has, to silver and gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quorate.spark.tables.bronze import CREATIONS, MARKS, Place, Taken
from quorate.spark.tables.control import Progress, plan_progress
from quorate.spark.tables.files import DataFile, safe_name
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.lineage import after_holes, covered, without
from quorate.spark.tables.read import at_least, read_table
from quorate.spark.tables.state import ClusterWork, apply, slices_for
from quorate.spark.tables.store import Plan, Store, Stored
from quorate.spark.tables.stretches import Stretch, stretches, up_to_open
from quorate.spark.tables.summary import BadInput, Summary, of_cluster, worst
from quorate.spark.tables.transactions import transactions
from quorate.spark.tables.versions import CURRENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BYTES_A_ROW: Final = 60
_RECORDS_A_THING: Final = 8


def apply_log(
    spark: SparkSession,
    store: Store,
    progress: dict[str, Progress],
    taken: Mapping[str, Taken],
    summary: Summary,
    fail_fast: bool,
) -> dict[str, Progress]:
    """Bring silver and gold up to what bronze has; with fail_fast raises BadInput of misfits."""
    stored = stored_snapshots(store)
    ways = {
        id: stretches(one.applied_end, covered(one.spans), sorted(stored.get(safe_name(id), ())))
        for id, one in progress.items()
    }
    ways = {id: way for id, way in ways.items() if way[0] or way[1] != progress[id].problem}
    if not ways:
        return progress
    run = store.next_run()
    log = _log_from(spark, store, progress, ways)
    ways, opened = _settled(log, progress, taken, ways)
    work = _work(store, progress, taken, ways)
    plan = Plan(run, "state")
    counts: Mapping[str, Counter[str]] = {}
    misfits: Mapping[str, str] = {}
    if any(one.stretches for one in work):
        topics = read_table(spark, store, "topics", lambda file: file.path.startswith(CURRENT))
        snapshots = read_table(spark, store, "snapshots")
        done = apply(log, snapshots, topics, work, Place(store.root, run, store.hidden))
        counts, misfits = done.counts, done.misfits
        for file in done.files:
            plan.add(DataFile(**file))
        for table, path in done.replaced:
            plan.remove(table, [path])
        for one in work:
            if one.cut:
                for (_, kind), path in one.files.items():
                    plan.remove(kind, [path])
    found = dict(progress)
    for one in work:
        found[one.cluster_id] = _after(progress[one.cluster_id], one, ways, opened, run)
    for cluster_id, count in counts.items():
        told = of_cluster(summary, cluster_id)
        told.events += count["events"]
        if count["misfits"]:
            told.quarantined["misfit"] = count["misfits"]
            told.examples["misfit"] = misfits[cluster_id]
    if fail_fast and misfits:
        raise BadInput(
            "the log was taken, the state left as it was: records do not fit it in cluster "
            + worst(summary)
        )
    plan_progress(store, plan, found)
    plan.summary = summary.to_json()
    store.commit(plan)
    return found


def _log_from(
    spark: SparkSession,
    store: Store,
    progress: Mapping[str, Progress],
    ways: Mapping[str, tuple[list[Stretch], str | None]],
) -> DataFrame:
    """Bronze without the files that no stretch needs."""
    since = {safe_name(id): progress[id].applied_end or 0 for id in ways}

    def wanted(file: Any) -> bool:
        cluster = file.path.partition("/")[0]
        return cluster in since and at_least(file, "offset", since[cluster])

    return read_table(spark, store, "log", wanted)


def _settled(
    log: DataFrame,
    progress: Mapping[str, Progress],
    taken: Mapping[str, Taken],
    ways: Mapping[str, tuple[list[Stretch], str | None]],
) -> tuple[dict[str, tuple[list[Stretch], str | None]], dict[str, int]]:
    """The stretches up to a transaction that has not ended, and where that begins."""
    if not any(_has(MARKS, found, taken.get(id)) for id, (found, _) in ways.items()):
        return dict(ways), {}
    holes = {id: after_holes(progress[id].spans) for id in ways}
    begun: dict[str, list[int]] = {}
    for row in transactions(log, holes).where("finish IS NULL").collect():
        begun.setdefault(row.cluster_id, []).append(row.start)
    cut, opened = {}, {}
    for id, (found, problem) in ways.items():
        short, bound = up_to_open(found, begun.get(id, ()))
        cut[id] = (short, problem)
        if bound is not None:
            opened[id] = bound
    return cut, opened


def _has(types: Iterable[str], found: Sequence[Stretch], taken: Taken | None) -> bool:
    """Whether records of these types may be in the stretches; only of its own a job knows."""
    if taken is None or not _all_of(found, taken):
        return bool(found)
    return any(taken.types[name] for name in types)


def _all_of(found: Sequence[Stretch], taken: Taken) -> bool:
    """Whether this job has taken every record of the stretches."""
    ours = covered(taken.spans)
    return not any(without(ours, stretch.start, stretch.end) for stretch in found)


def _work(
    store: Store,
    progress: Mapping[str, Progress],
    taken: Mapping[str, Taken],
    ways: Mapping[str, tuple[list[Stretch], str | None]],
) -> list[ClusterWork]:
    current: dict[str, dict[tuple[int, str], str]] = {}
    things: Counter[str] = Counter()
    for kind in KINDS:
        for file in store.files(kind):
            folder, *rest = file.path.split("/")
            if folder == CURRENT:
                cluster, name = rest
                current.setdefault(cluster, {})[int(name.partition("-")[0]), kind] = file.path
                things[cluster] += _rows(file)
    work = []
    for id in sorted(ways):
        known, new = progress[id], taken.get(id, Taken())
        found = tuple(ways[id][0])
        made, steps = _made(store, id, found, new)
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
                _has(MARKS, found, taken.get(id)),
                _has(("RemoveTopicRecord",), found, taken.get(id)),
                known.spans,
            )
        )
    return work


def _made(store: Store, id: str, found: Sequence[Stretch], new: Taken) -> tuple[int, int]:
    """About how many things the stretches make, and how many records they have."""
    steps = sum(stretch.end - stretch.start for stretch in found)
    made = sum(new.types[name] for name in CREATIONS)
    if not _all_of(found, new):
        made = max(made, steps // _RECORDS_A_THING)  # taken by earlier jobs: nobody has counted
    for stretch in found:
        if stretch.baseline is not None:
            folder = "{}/{}-{}/".format(safe_name(id), *stretch.baseline)
            files = [f for f in store.files("snapshots") if f.path.startswith(folder)]
            rows = sum(_rows(file) for file in files)
            made, steps = made + rows, steps + rows
    return made, steps


def _rows(file: Stored) -> int:
    """The rows of a file; where the table does not tell, about so many."""
    return file.rows if file.rows >= 0 else file.size // _BYTES_A_ROW


def _after(
    known: Progress,
    work: ClusterWork,
    ways: Mapping[str, tuple[list[Stretch], str | None]],
    opened: Mapping[str, int],
    run: int,
) -> Progress:
    found, problem = ways[known.cluster_id]
    at, unknown = known.applied_end or 0, list(known.unknown)
    for stretch in found:
        if stretch.baseline is not None and stretch.start - 1 > at:
            unknown.append((at, stretch.start - 1))
        at = stretch.end
    end = max([s.end for s in found], default=known.applied_end)
    return replace(
        known,
        applied_end=end,
        applied_time=max([s.last_time for s in known.spans if end and s.start < end], default=0),
        open_transaction=opened.get(known.cluster_id),
        slices=work.slices,
        unknown=tuple(unknown),
        problem=problem,
        run=run,
    )


def stored_snapshots(store: Store) -> dict[str, set[tuple[int, int]]]:
    """(end offset, epoch) of the snapshots in bronze, by the folder name of their cluster."""
    found: dict[str, set[tuple[int, int]]] = {}
    for file in store.files("snapshots"):
        cluster, id, _ = file.path.split("/")
        offset, epoch = id.split("-")
        found.setdefault(cluster, set()).add((int(offset), int(epoch)))
    return found
