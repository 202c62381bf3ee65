"""Runs of the bronze stage: which records and snapshots of the input bronze takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.spark.tables.apply_log import stored_snapshots
from quorate.spark.tables.bronze import BODY_COLUMNS, BronzeResult, plan_intakes, write_bronze
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.files import DataFile, WriteTarget, safe_name
from quorate.spark.tables.lineage import EpochGroup, Intake, covered, uncovered, union
from quorate.spark.tables.offset_ranges import ranges_to_apply, snapshot_to_keep
from quorate.spark.tables.proof import Ranges
from quorate.spark.tables.read import read_table
from quorate.spark.tables.read_version import ReadVersion, commit_run, read_again
from quorate.spark.tables.resolved import is_open
from quorate.spark.tables.store import RunPlan, TableFiles
from quorate.spark.tables.survey import InputSurvey, SnapshotFile, SourceRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class BronzeRun:
    """A run of the bronze stage, and what it took."""

    plan: RunPlan
    clusters: dict[str, BronzeResult]
    snapshots: list[SnapshotFile] = field(default_factory=list)


def take_records(
    spark: SparkSession,
    rows: SourceRows,
    read: ReadVersion,
    survey: InputSurvey,
    skip: Mapping[str, Ranges],
) -> BronzeRun:
    plan, progress = read.plan("bronze"), read.progress
    intakes = plan_intakes(survey, {id: known.spans for id, known in progress.items()}, skip)
    ranges = {
        id: union([*one.known, *_ranges(one, survey.groups[id])]) for id, one in intakes.items()
    }
    snapshots = wanted_snapshots(read.tables, survey, progress, ranges)
    if not (survey.damaged or snapshots or any(one.chunks for one in intakes.values())):
        return BronzeRun(plan, {})
    return _bronze_run(spark, rows, read.tables, plan, intakes, snapshots)


def take_late_snapshots(
    spark: SparkSession,
    rows: SourceRows,
    read: ReadVersion,
    survey: InputSurvey,
    taken: BronzeRun,
) -> ReadVersion:
    """Take, in a run of their own, snapshots for gaps that only the taken records show.

    The survey sees the first and last offset of an epoch in a chunk. A damaged batch between them
    shows when the chunk is read. Returns the warehouse after that run.
    """
    progress = read.progress
    ranges = {id: covered(progress[id].spans) for id in survey.groups if id in progress}
    snapshots = wanted_snapshots(read.tables, survey, progress, ranges)
    if not snapshots:
        return read
    more = _bronze_run(spark, rows, read.tables, read.plan("bronze"), {}, snapshots)
    commit_run(read, more.plan)
    taken.snapshots += more.snapshots
    return read_again(read, more.plan.run)


def _bronze_run(
    spark: SparkSession,
    rows: SourceRows,
    tables: TableFiles,
    plan: RunPlan,
    intakes: Mapping[str, Intake],
    snapshots: list[SnapshotFile],
) -> BronzeRun:
    there = any(is_open(file) for file in tables.files("quarantine"))
    known_bad = read_table(spark, tables, "quarantine", is_open) if there else None
    target = WriteTarget(tables.root, plan.run, tables.hidden)
    files, clusters = write_bronze(rows(BODY_COLUMNS), known_bad, intakes, snapshots, target)
    for file in files:
        plan.add(DataFile(**file))
    return BronzeRun(plan, clusters, snapshots)


def wanted_snapshots(
    tables: TableFiles,
    survey: InputSurvey,
    progress: Mapping[str, ClusterProgress],
    ranges: Mapping[str, Sequence[tuple[int, int]]],
) -> list[SnapshotFile]:
    """The snapshots of the input that replace a gap in a log, now or later; one file of each.

    ranges: by cluster, the offsets that are available
    """
    wanted = []
    for cluster_id, here in ranges.items():
        known = progress.get(cluster_id, ClusterProgress(cluster_id))
        offered = {
            (file.offset, file.epoch): file
            for file in reversed(survey.snapshots)
            if file.cluster_id == cluster_id
        }
        stored = stored_snapshots(tables).get(safe_name(cluster_id), set())
        usable = sorted(set(offered) | stored)
        next_ranges = ranges_to_apply(known.applied_end, here, usable)[0]
        needed = {part.baseline for part in next_ranges}
        needed.add(snapshot_to_keep(known.applied_end, here, usable))
        wanted += [offered[id] for id in sorted(filter(None, needed)) if id not in stored]
    return wanted


def _ranges(one: Intake, groups: Iterable[EpochGroup]) -> list[tuple[int, int]]:
    parts = (one.lineage.part(group.epoch, group.first, group.last + 1) for group in groups)
    return [
        piece for start, end in parts if start < end for piece in uncovered(one.skip, start, end)
    ]
