"""The job that takes logs into the warehouse: bronze, silver, gold.

It works in runs, each of which happens as a whole or not at all: one that takes records into
bronze, one that applies them to the state. A job that was killed anywhere is simply started again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from quorate.spark.frame import check_paths, frame_of
from quorate.spark.stream.options import END, MAJORITY, SNAPSHOT
from quorate.spark.tables.bronze import BODY, Place, Taken, plan_intakes, take
from quorate.spark.tables.control import Progress, load_progress, plan_progress
from quorate.spark.tables.files import DataFile, safe_name
from quorate.spark.tables.following import apply_log, stored_snapshots
from quorate.spark.tables.founded import without_founded
from quorate.spark.tables.lineage import (
    Group,
    Intake,
    covered,
    lineage,
    overlap,
    superseded,
    union,
    without,
)
from quorate.spark.tables.proof import (
    NAMES_VOTERS,
    VOTER_COLUMNS,
    Evidence,
    Named,
    Ranges,
    named_voters,
    proven_spans,
    unproven,
)
from quorate.spark.tables.read import read_table
from quorate.spark.tables.rewind import rewind, rewind_state
from quorate.spark.tables.seam import strangers, without_strangers
from quorate.spark.tables.store import ConcurrentRun, Plan, Store
from quorate.spark.tables.stretches import ahead, stretches
from quorate.spark.tables.summary import (
    BadInput,
    Overtaken,
    Summary,
    Told,
    again_while_overtaken,
    note_known,
    note_progress,
    note_taken,
    note_taken_back,
    of_cluster,
    so_far,
    worst,
)
from quorate.spark.tables.survey import HEADER, Rows, SnapshotFile, Survey, survey
from quorate.spark.tables.verdict import SUPERSEDED, TakenBack, known_before, taken_back
from quorate.spark.tables.warehouse import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    fail_fast: raise BadInput, with nothing taken or taken back, instead of putting anything aside;
        of records that do not fit the state the log is taken, the state stays as it was

    Other jobs may fill the warehouse meanwhile: what one of them overtakes is done again.

    Raises SourceError for paths that are not there, WarehouseError, ConcurrentRun.
    """

    def rows(columns: Sequence[str], where: str = "") -> DataFrame:
        told = {"columns": ",".join(columns), "where": where, **(options or {})}
        return frame_of(spark, paths, told)

    check_paths(paths, options or {})
    store = open_store(warehouse, table_format)
    before: list[Summary] = []
    summary = again_while_overtaken(
        lambda: ingest_rows(spark, rows, store, fail_fast=fail_fast, up_to=up_to, tell=tell),
        tell,
        before.append,
    )
    for taken in before:
        summary.add(taken)
    return summary


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

    Raises Overtaken where the records are in and another run was quicker to apply them.
    """
    began = time.monotonic()
    summary = Summary(store.root)
    run = store.next_run()
    tell("looking over the input")
    told = survey(rows(HEADER))
    named = Named() if committed else named_voters(rows(VOTER_COLUMNS, NAMES_VOTERS))
    progress = load_progress(store)
    rows, told = without_founded(rows, told, progress)
    summary.damaged_pieces = told.damaged
    others = strangers(spark, store, rows, told, progress)
    if others:
        rows, told = without_strangers(rows, told, others)
    for cluster_id, replicas in others.items():
        of_cluster(summary, cluster_id).strangers = replicas
    if fail_fast and others:
        raise BadInput("nothing was taken; bad input in cluster " + worst(summary))
    known = known_before(spark, store, told)
    back = _to_take_back(told, progress)
    if back:
        _take_back(spark, store, back, summary, tell, fail_fast)
        run, progress = store.next_run(), load_progress(store)
        # what did not fit the state is judged again
        known = [one for one in known if one.cluster_id not in back or one.reason != "misfit"]
    done = so_far(summary)
    note_known(summary, [one for one in known if one.reason != SUPERSEDED])
    open_ends = _unproven(told, progress, named, committed)
    skip: dict[str, Ranges] = {}
    if up_to == MAJORITY:
        skip = open_ends
    elif up_to == SNAPSHOT:
        skip = _unproven(told, progress, Named(), committed)
    tell("taking records (bronze)")
    taken = _take(spark, rows, store, told, progress, run, skip)
    note_taken(summary, taken.clusters)
    if fail_fast and summary.bad:
        raise BadInput("nothing was taken; bad input in cluster " + worst(summary))
    if not fail_fast:  # what was taken back is done: it stands against nothing of the input
        note_known(summary, [one for one in known if one.reason == SUPERSEDED])
    before = progress
    progress = _with_proof(_with_taken(progress, taken, run), open_ends)
    if taken.plan.adds or progress != before:
        plan_progress(store, taken.plan, progress)
        taken.plan.summary = summary.to_json()
        _commit(store, taken.plan, done)
    done = so_far(summary)
    try:
        _leap(spark, rows, store, told, progress, taken)
        for cluster_id, end in _filled(progress).items():
            tell(f"telling {cluster_id} anew from offset {end}: its missing part has come")
            rewind_state(spark, store, cluster_id, end, store.next_run())
            progress = load_progress(store)
        tell("applying them to the state (silver, gold)")
        progress = apply_log(spark, store, progress, taken.clusters, summary, fail_fast)
    except ConcurrentRun:
        raise Overtaken(store.root, done) from None
    _note_ends(summary, set(told.groups), progress, skip)
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


def _note_ends(
    summary: Summary,
    given: Collection[str],
    progress: Mapping[str, Progress],
    skip: Mapping[str, Ranges],
) -> None:
    """How far each cluster has come of the input or of the summary."""
    for cluster_id in {*given, *summary.clusters}:
        one, now = of_cluster(summary, cluster_id), progress.get(cluster_id)
        if now is not None:
            note_progress(one, now)
        log = [] if now is None else covered(now.spans)
        one.left_out = [
            piece for start, end in skip.get(cluster_id, ()) for piece in without(log, start, end)
        ]


def catch_up(spark: SparkSession, store: Store, summary: Summary) -> None:
    """Bring silver and gold up to what bronze has, with no new input."""
    apply_log(spark, store, load_progress(store), {}, summary, False)


def _commit(store: Store, plan: Plan, done: Summary) -> None:
    """Raises Overtaken with what was done before."""
    try:
        store.commit(plan)
    except ConcurrentRun:
        raise Overtaken(store.root, done) from None


def _to_take_back(told: Survey, progress: Mapping[str, Progress]) -> dict[str, TakenBack]:
    """By cluster what bronze has that was never committed, and what says so."""
    return {
        id: taken_back(progress[id].spans, told.groups[id], start, end)
        for id, (start, end) in _superseded(told, progress).items()
    }


def _take_back(
    spark: SparkSession,
    store: Store,
    back: Mapping[str, TakenBack],
    summary: Summary,
    tell: Told,
    fail_fast: bool,
) -> None:
    """Raises Overtaken with what was taken back before; with fail_fast BadInput."""
    if fail_fast:
        for cluster_id, part in back.items():
            note_taken_back(of_cluster(summary, cluster_id), part)
        raise BadInput("nothing was taken, nor taken back; in cluster " + worst(summary))
    for cluster_id, part in back.items():
        tell(f"taking back {cluster_id} from offset {part.start} to {part.end - 1}")
        try:
            rewind(spark, store, cluster_id, part.start, part.end, store.next_run())
        except ConcurrentRun:
            raise Overtaken(store.root, so_far(summary)) from None
        note_taken_back(of_cluster(summary, cluster_id), part)


def _superseded(told: Survey, progress: Mapping[str, Progress]) -> dict[str, tuple[int, int]]:
    """Clusters of which bronze has a tail that was never committed, and from where to where."""
    found = {}
    for cluster_id, groups in told.groups.items():
        known = progress.get(cluster_id)
        if known is not None:
            ruling = plan_intakes(Survey({cluster_id: groups}), {cluster_id: known.spans})
            wrong = superseded(known.spans, ruling[cluster_id].ruling)
            if wrong is not None:
                found[cluster_id] = wrong
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
) -> None:
    """Take the snapshots that stand in for what looked whole, but had damage inside."""
    ranges = {id: covered(progress[id].spans) for id in told.groups if id in progress}
    snapshots = _wanted_snapshots(store, told, progress, ranges)
    if snapshots:
        plan = Plan(store.next_run(), "bronze")
        more = _taken(spark, rows, store, plan, {}, snapshots)
        taken.snapshots += more.snapshots
        plan_progress(store, plan, progress)
        store.commit(plan)


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
    """The snapshots of the input that stand in for what a log lacks, now or when more of it has
    come; one file of each.

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
        way = stretches(known.applied_end, here, usable)[0]
        needed = {stretch.baseline for stretch in way}
        needed.add(ahead(known.applied_end, here, usable))
        wanted += [offered[id] for id in sorted(filter(None, needed)) if id not in stored]
    return wanted


def _ranges(one: Intake, groups: Iterable[Group]) -> list[tuple[int, int]]:
    parts = (one.ruling.part(group.epoch, group.first, group.last + 1) for group in groups)
    return [piece for start, end in parts if start < end for piece in without(one.skip, start, end)]


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
