"""The job that ingests logs into the warehouse: bronze, silver, gold.

It consists of runs, each of which happens as a whole or not at all (see `store`). One run takes
records into bronze, one applies them to the state. A job that was killed at any point is started
again: it continues from the last recorded run, and takes no record twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quorate.spark.files.histories import split_name
from quorate.spark.frame import check_paths, frame_of
from quorate.spark.source.options import parse_options
from quorate.spark.stream.options import END, MAJORITY, SNAPSHOT
from quorate.spark.tables.apply_log import apply_log
from quorate.spark.tables.bronze_run import BronzeRun, take_late_snapshots, take_records
from quorate.spark.tables.continuity import foreign_replicas, without_foreign_replicas
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.findings import SUPERSEDED, find_known, without_resolved
from quorate.spark.tables.identity import Resolution, clusters_with_id, names_in
from quorate.spark.tables.lineage import (
    committed_lineage,
    covered,
    overlap,
    uncovered,
)
from quorate.spark.tables.log_starts import without_known_starts
from quorate.spark.tables.proof import (
    MAY_NAME_VOTERS,
    VOTER_COLUMNS,
    CommitEvidence,
    NamedVoters,
    Ranges,
    named_voters,
    proven_spans,
    unproven,
)
from quorate.spark.tables.read_version import (
    ReadVersion,
    check_version,
    commit_run,
    read_again,
    read_version,
)
from quorate.spark.tables.resolved import count_misfits
from quorate.spark.tables.rewind import rewind_state
from quorate.spark.tables.soundness import resolve_places
from quorate.spark.tables.store import ConcurrentRunError, TableStore
from quorate.spark.tables.summary import (
    IngestSummary,
    InvalidInputError,
    Notify,
    OvertakenError,
    at_commit,
    committed_part,
    describe_findings,
    note_checked_again,
    note_known,
    note_progress,
    note_resolved,
    note_taken,
    of_cluster,
    retry_while_overtaken,
)
from quorate.spark.tables.survey import (
    HEADER_COLUMNS,
    InputSurvey,
    SourceRows,
    survey_input,
)
from quorate.spark.tables.take_back import (
    filled_gaps,
    mixed_ranges,
    ranges_to_take_back,
    take_back,
)
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
    notify: Notify = lambda text: None,
) -> IngestSummary:
    """Ingest the logs and snapshots at these paths into the warehouse.

    options: of the source `quorate-metadata`
    up_to: `end` takes the whole log, and reports which offsets are not known to be committed;
        `majority` leaves those out; `snapshot` counts only what snapshots confirm as committed
    fail_fast: instead of quarantining anything, raise InvalidInputError and take nothing (nor take
        anything back); if only the state refuses records, the log is taken and the state stays

    Other jobs may write to the warehouse at the same time. When one of them changes a cluster of
    this input, the job reads the warehouse again, and repeats what it had not committed.

    Raises SourceError for missing paths, WarehouseError, ConcurrentRunError.
    """
    check_paths(paths, options or {})
    store = open_store(warehouse, table_format)

    def once() -> IngestSummary:
        store.recover()
        parsed = parse_options({**(options or {}), "paths": json.dumps(paths)})
        identity = names_in(store, parsed)
        given = {name: list(of) for name, of in parsed.clusters} | identity.given
        known = {**(options or {}), **({"clusters": json.dumps(given)} if given else {})}

        def rows(columns: Sequence[str], where: str = "") -> DataFrame:
            return frame_of(spark, paths, {"columns": ",".join(columns), "where": where, **known})

        settings = IngestSettings(fail_fast, up_to, identity=identity)
        return ingest_rows(spark, rows, store, settings, notify)

    before: list[IngestSummary] = []
    summary = retry_while_overtaken(once, notify, before.append)
    for taken in before:
        summary.add(taken)
    return summary


@dataclass(frozen=True)
class IngestSettings:
    """The settings of `ingest_rows`; see `ingest` for the first two."""

    fail_fast: bool = False
    up_to: str = END
    committed: bool = False
    """Whether the rows come from a running quorum, which returns committed records only."""
    whole: bool = True
    """Whether the rows are of whole files; a stream reads a file in parts."""
    identity: Resolution | None = None
    """How the names of the rows' clusters were found."""


def ingest_rows(
    spark: SparkSession,
    rows: SourceRows,
    store: TableStore,
    settings: IngestSettings = IngestSettings(),
    notify: Notify = lambda text: None,
) -> IngestSummary:
    """Ingest rows of the source; `rows` is called more than once.

    1. Finish the last run, survey the batch headers of the input, read the version of the
       warehouse. What follows applies to the clusters of the input only. Take back what an older
       release took of another cluster with the same id.
    2. Leave out foreign replicas (`continuity`).
    3. Take back what bronze has but the input shows to be uncommitted (`take_back`).
    4. Find what is known to be committed (`proof`); with `up_to` leave out the rest.
    5. Take new records into bronze, one run. It also marks the rows of the quarantine that are
       resolved (`soundness`).
    6. Take snapshots for gaps that step 5 found: damage inside a log shows only when it is read.
    7. Rewind the state of clusters whose gap in the log was filled.
    8. Apply the log to the state, one run.

    Raises OvertakenError when another job changed one of these clusters first; it says what this
    job has done.
    """
    began, fail_fast, committed = time.monotonic(), settings.fail_fast, settings.committed
    summary = IngestSummary(store.root)
    # 1. Survey the input.
    store.recover()
    notify("looking over the input")
    survey = survey_input(rows(HEADER_COLUMNS))
    named = NamedVoters() if committed else named_voters(rows(VOTER_COLUMNS, MAY_NAME_VOTERS))
    mixed = frozenset(settings.identity.mixed if settings.identity is not None else ())
    read = read_version(store, mixed.union(survey.clusters))
    if settings.identity is not None:
        summary.unreadable = settings.identity.unreadable
        read = _separate(spark, read, settings.identity, summary, notify, fail_fast)
    progress = read.progress
    rows, survey = without_known_starts(rows, survey, progress)
    summary.damaged_pieces = survey.damaged
    # 2. Leave out foreign replicas.
    rows, survey = _without_foreign(spark, read, rows, survey, summary)
    if fail_fast and any(
        one.foreign_replicas or one.undecided for one in summary.clusters.values()
    ):
        raise _refused(read, summary)
    # 3. Take back uncommitted records.
    known = find_known(spark, read.tables, survey, progress)
    back = ranges_to_take_back(survey, progress)
    if back:
        read = take_back(spark, read, back, summary, notify, fail_fast)
        progress = read.progress
        # The state is rewound too, so records that did not fit it get another chance.
        known = [one for one in known if one.cluster_id not in back or one.reason != "misfit"]
    done = committed_part(summary)
    # 4. Find what is known to be committed.
    open_ends = _unproven(survey, progress, named, committed)
    skip: dict[str, Ranges] = {}
    if settings.up_to == MAJORITY:
        skip = open_ends
    elif settings.up_to == SNAPSHOT:
        skip = _unproven(survey, progress, NamedVoters(), committed)
    # 5. Take records into bronze.
    notify("taking records (bronze)")
    taken = take_records(spark, rows, read, survey, skip)
    note_taken(summary, taken.clusters)
    after = _with_proof(_with_taken(progress, taken), open_ends)
    resolved = resolve_places(spark, rows, read, survey, taken.plan, after, whole=settings.whole)
    known = without_resolved(known, resolved, survey)
    note_known(summary, [one for one in known if one.reason != SUPERSEDED])
    if fail_fast and summary.bad:
        raise _refused(read, summary)
    # With fail_fast, rows that an earlier job took back are no reason to refuse this input.
    if not fail_fast:
        note_known(summary, [one for one in known if one.reason == SUPERSEDED])
    note_resolved(summary, resolved)
    progress = after
    try:
        if taken.plan.adds or progress != read.progress:
            taken.plan.summary = at_commit(summary, progress)
            commit_run(read, taken.plan, progress)
            done = committed_part(summary)
            read = read_again(read, taken.plan.run)
        # 6. Take snapshots for gaps by damage.
        read = take_late_snapshots(spark, rows, read, survey, taken)
        # 7. Rewind the state where a gap was filled.
        for cluster_id, end in filled_gaps(read.progress).items():
            notify(f"applying {cluster_id} again from offset {end}: its missing part is there now")
            read = read_again(read, rewind_state(spark, read, cluster_id, end))
            misfits = count_misfits(read.tables, cluster_id, end)
            note_checked_again(of_cluster(summary, cluster_id), misfits)
        # 8. Apply the log to the state.
        notify("applying them to the state (silver, gold)")
        progress = apply_log(spark, read, taken.clusters, summary, fail_fast)
    except ConcurrentRunError as error:
        raise OvertakenError(error, done) from None
    _note_progress(summary, set(survey.groups), progress, skip)
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


def _separate(
    spark: SparkSession,
    read: ReadVersion,
    identity: Resolution,
    summary: IngestSummary,
    notify: Notify,
    fail_fast: bool,
) -> ReadVersion:
    """Take back what may be of another cluster with the same id, and note undecided names.

    Returns the warehouse then. Raises OvertakenError when another job has added a cluster with one
    of the ids since the names were found.
    """
    outdated = identity.outdated(read.warehouse_progress)
    if outdated is not None:
        error = ConcurrentRunError(read.tables.root, f"clusters with the id {outdated}")
        raise OvertakenError(error, committed_part(summary))
    for cluster_id, why in identity.undecided.items():
        of_cluster(summary, cluster_id).undecided = why
    mixed = mixed_ranges(spark, read, identity.mixed)
    return take_back(spark, read, mixed, summary, notify, fail_fast) if mixed else read


def _without_foreign(
    spark: SparkSession,
    read: ReadVersion,
    rows: SourceRows,
    survey: InputSurvey,
    summary: IngestSummary,
) -> tuple[SourceRows, InputSurvey]:
    """The rows and their survey without foreign replicas, which are noted in the summary."""
    others = foreign_replicas(spark, read.tables, rows, survey, read.progress)
    for cluster_id, replicas in others.items():
        of_cluster(summary, cluster_id).foreign_replicas = replicas
    return without_foreign_replicas(rows, survey, others) if others else (rows, survey)


def _note_progress(
    summary: IngestSummary,
    given: Collection[str],
    progress: Mapping[str, ClusterProgress],
    skip: Mapping[str, Ranges],
) -> None:
    """Note in the summary how far each cluster of the input has come."""
    for cluster_id in {*given, *summary.clusters}:
        one, now = of_cluster(summary, cluster_id), progress.get(cluster_id)
        if now is not None:
            note_progress(one, now)
        one.same_id = sorted(clusters_with_id(split_name(cluster_id)[0], progress) - {cluster_id})
        log = [] if now is None else covered(now.spans)
        one.left_out = [
            piece for start, end in skip.get(cluster_id, ()) for piece in uncovered(log, start, end)
        ]


def catch_up(spark: SparkSession, store: TableStore, summary: IngestSummary) -> None:
    """Apply to silver and gold what bronze has, without new input. Raises ConcurrentRunError."""
    apply_log(spark, read_version(store), {}, summary, False)


def _refused(read: ReadVersion, summary: IngestSummary) -> InvalidInputError:
    """The error with fail_fast. Raises ConcurrentRunError where the findings are out of date."""
    check_version(read)
    return InvalidInputError(
        "nothing was taken; bad input in cluster " + describe_findings(summary)
    )


def _with_taken(
    progress: Mapping[str, ClusterProgress], taken: BronzeRun
) -> dict[str, ClusterProgress]:
    found = dict(progress)
    for snapshot in taken.snapshots:
        found.setdefault(snapshot.cluster_id, ClusterProgress(snapshot.cluster_id))
    for cluster_id, new in taken.clusters.items():
        if new.spans:
            known = found.get(cluster_id, ClusterProgress(cluster_id))
            found[cluster_id] = known.with_spans(new.spans)
    return found


def _unproven(
    survey: InputSurvey,
    progress: Mapping[str, ClusterProgress],
    named: NamedVoters,
    committed: bool,
) -> dict[str, Ranges]:
    """Return, by cluster of the input, the offsets that are not known to be committed."""
    found = {}
    for cluster_id, groups in survey.groups.items():
        known = progress.get(cluster_id, ClusterProgress(cluster_id))
        lineage = committed_lineage(known.spans, groups)
        evidence = CommitEvidence(
            named.at_end(cluster_id, lineage),
            frozenset((s.offset, s.epoch) for s in survey.snapshots if s.cluster_id == cluster_id),
            proven_spans(known.spans, known.unproven),
            committed,
        )
        found[cluster_id] = unproven(lineage, groups, evidence)
    return found


def _with_proof(
    progress: Mapping[str, ClusterProgress], open_ends: Mapping[str, Ranges]
) -> dict[str, ClusterProgress]:
    found = dict(progress)
    for cluster_id, ranges in open_ends.items():
        if cluster_id in found:
            log = covered(found[cluster_id].spans)
            here = (piece for start, end in ranges for piece in overlap(log, start, end))
            found[cluster_id] = replace(found[cluster_id], unproven=tuple(here))
    return found
