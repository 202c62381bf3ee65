"""The job that takes logs into the warehouse: bronze, silver, gold.

It works in runs, each of which happens as a whole or not at all: one that takes records into
bronze, one that applies them to the state. A job that was killed anywhere is simply started again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from quorate.base.errors import QuorateError
from quorate.spark.source import read_metadata
from quorate.spark.tables.bronze import (
    _CREATIONS,
    _MARKS,
    BODY,
    HEADER,
    Place,
    Rows,
    SnapshotFile,
    Survey,
    Taken,
    plan_intakes,
    survey,
    take,
)
from quorate.spark.tables.control import Progress, load_progress, plan_progress
from quorate.spark.tables.files import DataFile, safe_name
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.lineage import (
    Group,
    Intake,
    Stretch,
    covered,
    lineage,
    overlap,
    stretches,
    superseded,
    union,
    without,
)
from quorate.spark.tables.proof import (
    END,
    MAJORITY,
    SNAPSHOT,
    VOTER_COLUMNS,
    Evidence,
    Named,
    Ranges,
    named_voters,
    proven_spans,
    unproven,
)
from quorate.spark.tables.read import at_least, read_table
from quorate.spark.tables.rewind import rewind, rewind_state
from quorate.spark.tables.slices import CURRENT
from quorate.spark.tables.state import ClusterWork, apply, slices_for, transactions
from quorate.spark.tables.store import Plan, Store, Stored, open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BYTES_A_ROW: Final = 60
_RECORDS_A_THING: Final = 8

Told = Callable[[str], None]
"""Hears what is being done."""


class BadInput(QuorateError):
    """With fail_fast: a part of the input cannot be taken."""


@dataclass
class ClusterSummary:
    """What a job did for one cluster; offsets are ends (exclusive)."""

    records: int = 0
    events: int = 0
    log_end_offset: int = 0
    applied_end_offset: int | None = None
    committed_end_offset: int = 0
    """All of the log before it is known to be committed."""
    unproven: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of the log that nothing shows to be committed; a later log may take them back."""
    left_out: list[tuple[int, int]] = field(default_factory=list)
    """Ranges that were not taken for that reason."""
    quarantined: dict[str, int] = field(default_factory=dict)
    """New rows in quarantine by reason."""
    examples: dict[str, str] = field(default_factory=dict)
    """Of each reason a row: its file, position and problem."""
    problem: str | None = None
    """Why the state does not follow the log to its end."""


@dataclass
class Summary:
    """What a job did."""

    warehouse: str
    clusters: dict[str, ClusterSummary] = field(default_factory=dict)
    damaged_pieces: int = 0
    """Pieces of the input that cannot be read, known before or not."""
    seconds: float = 0.0

    @property
    def bad(self) -> bool:
        """Whether anything was put into quarantine, or a cluster's state cannot go on."""
        clusters = self.clusters.values()
        return bool(self.damaged_pieces) or any(c.quarantined or c.problem for c in clusters)

    @property
    def records(self) -> int:
        return sum(cluster.records for cluster in self.clusters.values())

    @property
    def events(self) -> int:
        return sum(cluster.events for cluster in self.clusters.values())

    def to_json(self) -> dict[str, Any]:
        totals = {"records": self.records, "events": self.events, "bad": self.bad}
        return {**asdict(self), **totals}


def ingest(  # noqa: PLR0913 - settings by their names, one call for a program to make
    spark: SparkSession,
    paths: Sequence[str],
    warehouse: str,
    *,
    table_format: str = "delta",
    fail_fast: bool = False,
    options: Mapping[str, str] | None = None,
    up_to: str = END,
    tell: Told = lambda text: None,
) -> Summary:
    """Take the logs and snapshots at these paths into the warehouse.

    options: of the source `quorate-metadata`
    up_to: `end` takes all of the log, and tells what of it nothing shows to be committed;
        `majority` leaves that out; `snapshot` takes as committed only what snapshots confirm
    fail_fast: raise BadInput, with nothing taken, instead of putting bad input aside; of records
        that do not fit the state the log is taken, the state stays as it was

    Raises SourceError for paths that are not there, WarehouseError, ConcurrentRun.
    """

    def rows(columns: Sequence[str]) -> DataFrame:
        return read_metadata(spark, *paths, columns=",".join(columns), **(options or {}))

    store = open_store(warehouse, table_format)
    return ingest_rows(spark, rows, store, fail_fast=fail_fast, up_to=up_to, tell=tell)


def ingest_rows(
    spark: SparkSession,
    rows: Rows,
    store: Store,
    *,
    fail_fast: bool = False,
    up_to: str = END,
    committed: bool = False,
    tell: Told = lambda text: None,
) -> Summary:
    """The same for rows of the source however they came; `rows` is asked for more than once.

    committed: a quorum gave all of them as that
    """
    began = time.monotonic()
    summary = Summary(store.root)
    run = store.next_run()
    tell("looking over the input")
    told = survey(rows(HEADER))
    named = Named() if committed else named_voters(rows(VOTER_COLUMNS))
    summary.damaged_pieces = told.damaged
    progress = load_progress(store)
    for cluster_id, offset in _superseded(told, progress).items():
        tell(f"taking back {cluster_id} from offset {offset}")
        rewind(spark, store, cluster_id, offset, run)
        run = store.next_run()
        progress = load_progress(store)
    open_ends = _unproven(told, progress, named, committed)
    skip = {
        MAJORITY: open_ends,
        SNAPSHOT: _unproven(told, progress, Named(), committed),
        END: {},
    }[up_to]
    tell("taking records (bronze)")
    taken = _take(spark, rows, store, told, progress, run, skip)
    _note_taken(summary, taken.clusters)
    if fail_fast and summary.bad:
        raise BadInput("nothing was taken; bad input in cluster " + _worst(summary))
    before = progress
    progress = _with_proof(_with_taken(progress, taken, run), open_ends)
    if taken.plan.adds or progress != before:
        plan_progress(store, taken.plan, progress)
        taken.plan.summary = summary.to_json()
        store.commit(taken.plan)
    progress = _leap(spark, rows, store, told, progress, taken)
    for cluster_id, end in _filled(progress).items():
        tell(f"telling {cluster_id} anew from offset {end}: its missing part has come")
        rewind_state(spark, store, cluster_id, end, store.next_run())
        progress = load_progress(store)
    tell("applying them to the state (silver, gold)")
    progress = _apply(spark, store, progress, taken.clusters, summary, fail_fast)
    for cluster_id in set(told.groups) | set(summary.clusters):
        one, now = _of(summary, cluster_id), progress.get(cluster_id)
        if now is not None:
            one.log_end_offset, one.applied_end_offset = now.log_end, now.applied_end
            one.problem = now.problem
            one.committed_end_offset, one.unproven = now.committed_end, list(now.unproven)
        log = [] if now is None else covered(now.spans)
        one.left_out = [
            piece for start, end in skip.get(cluster_id, ()) for piece in without(log, start, end)
        ]
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


def catch_up(spark: SparkSession, store: Store, summary: Summary) -> None:
    """Bring silver and gold up to what bronze has, with no new input."""
    _apply(spark, store, load_progress(store), {}, summary, False)


def _of(summary: Summary, cluster_id: str) -> ClusterSummary:
    return summary.clusters.setdefault(cluster_id, ClusterSummary())


def _superseded(told: Survey, progress: Mapping[str, Progress]) -> dict[str, int]:
    """Clusters of which bronze has a tail that was never committed, and where it begins."""
    found = {}
    for cluster_id, groups in told.groups.items():
        known = progress.get(cluster_id)
        if known is not None:
            ruling = plan_intakes(Survey({cluster_id: groups}), {cluster_id: known.spans})
            offset = superseded(known.spans, ruling[cluster_id].ruling)
            if offset is not None:
                found[cluster_id] = offset
    return found


def _filled(progress: Mapping[str, Progress]) -> dict[str, int]:
    """Clusters of which bronze now has what the state had to leave out, and where that begins."""
    found: dict[str, int] = {}
    for cluster_id, known in progress.items():
        ranges = covered(known.spans)
        for start, end in known.unknown:
            if not without(ranges, start, end + 1):
                found[cluster_id] = min(start, found.get(cluster_id, start))
    return found


@dataclass
class _Take:
    plan: Plan
    clusters: dict[str, Taken]
    snapshots: list[SnapshotFile] = field(default_factory=list)


def _take(
    spark: SparkSession,
    rows: Rows,
    store: Store,
    told: Survey,
    progress: Mapping[str, Progress],
    run: int,
    skip: Mapping[str, Ranges],
) -> _Take:
    plan = Plan(run, "bronze")
    intakes = plan_intakes(told, {id: known.spans for id, known in progress.items()}, skip)
    ranges = {
        id: union([*one.known, *_ranges(one, told.groups[id])]) for id, one in intakes.items()
    }
    snapshots = _wanted_snapshots(store, told, progress, ranges)
    if not (told.damaged or snapshots or any(one.chunks for one in intakes.values())):
        return _Take(plan, {})
    return _taken(spark, rows, store, plan, intakes, snapshots)


def _leap(
    spark: SparkSession,
    rows: Rows,
    store: Store,
    told: Survey,
    progress: Mapping[str, Progress],
    taken: _Take,
) -> dict[str, Progress]:
    """Take the snapshots that stand in for what looked whole, but had damage inside."""
    found = dict(progress)
    ranges = {id: covered(found[id].spans) for id in told.groups if id in found}
    snapshots = _wanted_snapshots(store, told, progress, ranges)
    if snapshots:
        plan = Plan(store.next_run(), "bronze")
        more = _taken(spark, rows, store, plan, {}, snapshots)
        taken.snapshots += more.snapshots
        plan_progress(store, plan, found)
        store.commit(plan)
    return found


def _taken(
    spark: SparkSession,
    rows: Rows,
    store: Store,
    plan: Plan,
    intakes: Mapping[str, Intake],
    snapshots: list[SnapshotFile],
) -> _Take:
    known_bad = read_table(spark, store, "quarantine") if store.files("quarantine") else None
    place = Place(store.root, plan.run, store.hidden)
    files, clusters = take(rows(BODY), known_bad, intakes, snapshots, place)
    for file in files:
        plan.add(DataFile(**file))
    return _Take(plan, clusters, snapshots)


def _wanted_snapshots(
    store: Store,
    told: Survey,
    progress: Mapping[str, Progress],
    ranges: Mapping[str, Sequence[tuple[int, int]]],
) -> list[SnapshotFile]:
    """The snapshots of the input that stand in for what a log lacks, one file of each.

    ranges: by cluster the offsets that are at hand
    """
    wanted = []
    for cluster_id, here in ranges.items():
        known = progress.get(cluster_id, Progress(cluster_id))
        offered = {
            (file.offset, file.epoch): file
            for file in reversed(told.snapshots)
            if file.cluster_id == cluster_id
        }
        stored = stored_snapshots(store).get(safe_name(cluster_id), set())
        usable = sorted(set(offered) | stored)
        for stretch in stretches(known.applied_end, here, usable)[0]:
            if stretch.baseline is not None and stretch.baseline not in stored:
                wanted.append(offered[stretch.baseline])
    return wanted


def _ranges(one: Intake, groups: Iterable[Group]) -> list[tuple[int, int]]:
    parts = (one.ruling.part(group.epoch, group.first, group.last + 1) for group in groups)
    return [piece for start, end in parts if start < end for piece in without(one.skip, start, end)]


def stored_snapshots(store: Store) -> dict[str, set[tuple[int, int]]]:
    """(end offset, epoch) of the snapshots in bronze, by the folder name of their cluster."""
    found: dict[str, set[tuple[int, int]]] = {}
    for file in store.files("snapshots"):
        cluster, id, _ = file.path.split("/")
        offset, epoch = id.split("-")
        found.setdefault(cluster, set()).add((int(offset), int(epoch)))
    return found


def _note_taken(summary: Summary, clusters: Mapping[str, Taken]) -> None:
    for cluster_id, taken in clusters.items():
        one = _of(summary, cluster_id)
        one.records = sum(span.end - span.start for span in taken.spans)
        one.quarantined, one.examples = dict(taken.reasons), dict(taken.examples)


def _worst(summary: Summary) -> str:
    """What is wrong with the input, a line for each cluster and reason."""
    lines = []
    for cluster_id, one in sorted(summary.clusters.items()):
        counts = (f"{count} {why}" for why, count in one.quarantined.items())
        if one.examples:
            lines.append(f"{cluster_id}: {', '.join(counts) or 'known before'}")
        lines += [f"  {why}: {text}" for why, text in one.examples.items()]
    return "\n".join(lines)


def _with_taken(progress: Mapping[str, Progress], taken: _Take, run: int) -> dict[str, Progress]:
    found = dict(progress)
    for snapshot in taken.snapshots:
        found.setdefault(snapshot.cluster_id, Progress(snapshot.cluster_id, run=run))
    for cluster_id, new in taken.clusters.items():
        if new.spans:
            known = found.get(cluster_id, Progress(cluster_id))
            found[cluster_id] = replace(known.with_spans(new.spans), run=run)
    return found


def _unproven(
    told: Survey, progress: Mapping[str, Progress], named: Named, committed: bool
) -> dict[str, Ranges]:
    """By cluster of the input: what of its log nothing shows to be committed."""
    found = {}
    for cluster_id, groups in told.groups.items():
        known = progress.get(cluster_id, Progress(cluster_id))
        ruling = lineage(known.spans, groups)
        evidence = Evidence(
            named.at_end(cluster_id, ruling),
            frozenset((s.offset, s.epoch) for s in told.snapshots if s.cluster_id == cluster_id),
            proven_spans(known.spans, known.unproven),
            committed,
        )
        found[cluster_id] = unproven(ruling, groups, evidence)
    return found


def _with_proof(
    progress: Mapping[str, Progress], open_ends: Mapping[str, Ranges]
) -> dict[str, Progress]:
    found = dict(progress)
    for cluster_id, ranges in open_ends.items():
        if cluster_id in found:
            log = covered(found[cluster_id].spans)
            here = (piece for start, end in ranges for piece in overlap(log, start, end))
            found[cluster_id] = replace(found[cluster_id], unproven=tuple(here))
    return found


def _apply(
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
        told = _of(summary, cluster_id)
        told.events += count["events"]
        if count["misfits"]:
            told.quarantined["misfit"] = count["misfits"]
            told.examples["misfit"] = misfits[cluster_id]
    if fail_fast and misfits:
        raise BadInput(
            "the log was taken, the state left as it was: records do not fit it in cluster "
            + _worst(summary)
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
    if not any(_has(_MARKS, progress[id], taken.get(id)) for id in ways):
        return dict(ways), {}
    rows = transactions(log).where("finish IS NULL").collect()
    opened = {row.cluster_id: row.start for row in rows if row.cluster_id in ways}
    cut = {}
    for id, (found, problem) in ways.items():
        bound = opened.get(id, 1 << 62)
        short = [s._replace(end=min(s.end, bound)) for s in found if s.start <= bound]
        cut[id] = ([s for s in short if s.start < s.end or s.baseline], problem)
    return cut, opened


def _has(types: Iterable[str], known: Progress, taken: Taken | None) -> bool:
    """Whether records of these types may be among those to apply."""
    fresh = sum(span.end - span.start for span in taken.spans) if taken else 0
    if known.open_transaction is not None or known.log_end - (known.applied_end or 0) > fresh:
        return True  # not only this job's records
    return taken is not None and any(taken.types[name] for name in types)


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
                _has(_MARKS, known, taken.get(id)),
                _has(("RemoveTopicRecord",), known, taken.get(id)),
            )
        )
    return work


def _made(store: Store, id: str, found: Sequence[Stretch], new: Taken) -> tuple[int, int]:
    """About how many things the stretches make, and how many records they have."""
    steps = sum(stretch.end - stretch.start for stretch in found)
    made = sum(new.types[name] for name in _CREATIONS)
    if steps > sum(span.end - span.start for span in new.spans):
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
