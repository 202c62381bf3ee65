"""Silver and gold: distributes the committed log to slices, and applies it to their state.

1. Select the records of the ranges to apply (`_log_steps`), and move records of a metadata
   transaction to its end.
2. Add the records of snapshots from which a state starts again (`_snapshot_steps`).
3. Send each record to the slice of its group (`_with_slices`). A record that concerns all slices
   goes to each.
4. A task gets the steps of its slices in order and applies them (`slices.StateSlice`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from quorate.spark.decode.arrays import microseconds
from quorate.spark.session import parallelism
from quorate.spark.tables.files import WriteTarget
from quorate.spark.tables.lineage import EpochSpan, least_times, offsets_after_gaps
from quorate.spark.tables.offset_ranges import OffsetRange, time_bounds
from quorate.spark.tables.orphans import ORPHANED, mark_orphaned
from quorate.spark.tables.slices import (
    BASELINE,
    BASELINE_END,
    RESLICE,
    TOPIC_CONFIGS,
    SliceStep,
    StateSlice,
)
from quorate.spark.tables.transactions import in_transactions
from quorate.spark.tables.versions import SliceTarget

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SLICE_ROWS: Final = 1 << 13
"""How many things a slice should hold at most: its task reads and writes files of that size."""
SLICE_STEPS: Final = 1 << 21
"""How many records a slice should get at most in one run."""

STEP: Final = (
    "cluster_id string, slice int, phase int, effective_offset bigint, effective_time bigint, "
    "offset bigint, epoch int, time bigint, type string, record string, topic_name string, "
    "file string, position bigint, node_id int"
)
_NAMES: Final = tuple(word.split()[0] for word in STEP.split(", "))
_ORDER: Final = ("cluster_id", "slice", "effective_offset", "phase", "offset")
_SILENT: Final = (
    *("NoOpRecord", "ZkMigrationStateRecord", "SnapshotHeader", "SnapshotFooter"),
    *("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"),
)
_BY_TOPIC: Final = (
    *("TopicRecord", "PartitionRecord", "PartitionChangeRecord", "RemoveTopicRecord"),
)
_BY_ID: Final = ("AccessControlEntryRecord", "RemoveAccessControlEntryRecord")


@dataclass(frozen=True)
class ClusterWork:
    """The work on one cluster; `slices` is the number of slices of its state from now on."""

    cluster_id: str
    ranges: tuple[OffsetRange, ...]
    slices: int
    resliced: bool = False
    """Whether there were fewer slices before."""
    files: Mapping[tuple[int, str], str] = field(default_factory=dict)
    """The current file of each (slice, kind), in the slices of before."""
    old_slices: int = 1
    has_transactions: bool = False
    """Whether the ranges may have transactions."""
    has_topic_removals: bool = True
    """Whether the ranges may remove topics."""
    spans: tuple[EpochSpan, ...] = ()
    """All of the log that bronze has."""


def slices_for(things: int, steps: int, now: int) -> int:
    """The number of slices of a state: a power of two, and never less than now."""
    wanted = max(-(-things // SLICE_ROWS), -(-steps // SLICE_STEPS), 1)
    return max(now, 1 << (wanted - 1).bit_length())


@dataclass
class AppliedSteps:
    """The result of the tasks: new files (as JSON of DataFile), the files they replace, counts."""

    files: list[dict[str, Any]]
    replaced: list[tuple[str, str]]
    counts: dict[str, Counter[str]]
    """By cluster: the number of events and misfits."""
    misfits: dict[str, str]
    """By cluster: the text of a record that did not fit."""


def apply_steps(
    log: DataFrame,
    snapshots: DataFrame,
    topics: DataFrame,
    work: Sequence[ClusterWork],
    target: WriteTarget,
) -> AppliedSteps:
    """Apply the offset ranges of every cluster.

    log, snapshots: of bronze, at least the rows of the ranges; topics: gold's topics that are
    there now.
    """
    from pyspark.sql import functions as F

    steps = _log_steps(log, work)
    if any(one.has_transactions for one in work):
        holes = {one.cluster_id: offsets_after_gaps(one.spans) for one in work}
        steps = in_transactions(steps, log, holes)
    steps = _with_ascending_times(steps, work)
    baselines = _baselines(snapshots, work)
    if baselines:
        held = mark_orphaned(_snapshot_steps(snapshots, baselines))
        steps = steps.unionByName(held, allowMissingColumns=True)
    steps = steps.where(~steps.type.isin(*_SILENT))
    if any(one.has_topic_removals for one in work):
        steps = steps.unionByName(_removed_configs(steps, topics), allowMissingColumns=True)
    steps = _with_slices(steps, work).select(*_NAMES)
    extra = _extra_steps(work, baselines)
    if extra:
        spark = log.sparkSession
        steps = steps.unionByName(spark.createDataFrame(extra, STEP))
    pairs = sum(one.slices for one in work)
    parts = max(1, min(pairs, 4 * parallelism(log.sparkSession)))
    results = (
        steps.repartition(parts, "cluster_id", "slice")
        .sortWithinPartitions(*_ORDER, F.col("type") == TOPIC_CONFIGS)  # behind its own record
        .mapInArrow(_applier({one.cluster_id: one for one in work}, target), "result string")
    )
    # the driver gets a row for each slice that changed, with the names of its files
    return _gather(row.result for row in results.collect())


def _log_steps(log: DataFrame, work: Sequence[ClusterWork]) -> DataFrame:
    from pyspark.sql import functions as F

    ranges = [(one.cluster_id, s.start, s.end) for one in work for s in one.ranges]
    wanted = log.sparkSession.createDataFrame(ranges, "of string, low bigint, high bigint")
    on = (
        (log.cluster_id == wanted.of)
        & (log["offset"] >= wanted.low)
        & (log["offset"] < wanted.high)
    )
    rows = log.where(F.col("problem").isNull()).join(F.broadcast(wanted), on)
    return rows.select(
        "cluster_id",
        F.lit(0).alias("phase"),
        F.col("offset").alias("effective_offset"),
        F.unix_micros("time").alias("effective_time"),
        *("offset", "epoch"),
        F.unix_micros("timestamp").alias("time"),
        *("type", "record", "topic_id", "topic_name", "file", "position", "node_id"),
    )


def _with_ascending_times(steps: DataFrame, work: Sequence[ClusterWork]) -> DataFrame:
    """The steps with effective times that never decrease along the log.

    The clock of a new leader may be behind. `bronze` sees to ascending times in what it takes
    together; parts of the log that were ingested later need the latest time of what lies before them.
    """
    from pyspark.sql import functions as F

    at = F.col("effective_offset")
    cases = [
        F.when(
            (F.col("cluster_id") == one.cluster_id) & (at >= start) & (at < end), F.lit(least_time)
        )
        for one in work
        for start, end, least_time in least_times(one.spans)
    ]
    if not cases:
        return steps
    least_time = F.coalesce(*cases, F.lit(0))
    return steps.withColumn("effective_time", F.greatest("effective_time", least_time))


class Baseline(NamedTuple):
    """A snapshot from which the state of a cluster starts again; `time`: of its last record, us."""

    cluster_id: str
    end: int
    epoch: int
    time: int


def _baselines(snapshots: DataFrame, work: Sequence[ClusterWork]) -> list[Baseline]:
    from pyspark.sql import functions as F

    wanted = {(one.cluster_id, *s.baseline) for one in work for s in one.ranges if s.baseline}
    if not wanted:
        return []
    headers = snapshots.where("type = 'SnapshotHeader'").select(
        *("cluster_id", "snapshot_offset", "snapshot_epoch"),
        F.get_json_object("record", "$.lastContainedLogTimestamp").cast("long"),
    )
    spans = {one.cluster_id: one.spans for one in work}
    found = []
    for id, end, by, at in headers.collect():  # one of each snapshot in bronze
        if (id, end, by) in wanted:
            earliest, latest = time_bounds(end, spans[id])
            shown = microseconds(np.array(at)).item()
            found.append(Baseline(id, end, by, min(max(shown, earliest), latest)))
    return found


def _snapshot_steps(snapshots: DataFrame, baselines: Sequence[Baseline]) -> DataFrame:
    """The records of snapshots; they take effect at the last offset that the snapshot covers."""
    from pyspark.sql import functions as F

    spark = snapshots.sparkSession
    wanted = spark.createDataFrame(baselines, "of string, ends bigint, by int, at bigint")
    on = (
        (snapshots.cluster_id == wanted.of)
        & (snapshots.snapshot_offset == wanted.ends)
        & (snapshots.snapshot_epoch == wanted.by)
    )
    rows = snapshots.where(F.col("problem").isNull()).join(F.broadcast(wanted), on)
    return rows.select(
        "cluster_id",
        F.lit(2).alias("phase"),
        (F.col("ends") - 1).alias("effective_offset"),
        F.col("at").alias("effective_time"),
        *("offset", "epoch"),
        F.col("at").alias("time"),
        *("type", "record", "topic_id", "topic_name", "file", "position", "node_id"),
    )


def _removed_configs(steps: DataFrame, topics: DataFrame) -> DataFrame:
    """A step for each removed topic, for the slice that has its configs.

    RemoveTopicRecord has the topic id only, but configs are grouped by the topic's name.
    """
    from pyspark.sql import functions as F

    gone = steps.where("type = 'RemoveTopicRecord'").drop("topic_name")
    created = steps.where("type = 'TopicRecord'").select("cluster_id", "topic_id", "topic_name")
    names = created.unionByName(topics.select("cluster_id", "topic_id", "topic_name")).distinct()
    named = gone.join(names, ["cluster_id", "topic_id"])
    return named.withColumn("type", F.lit(TOPIC_CONFIGS))


def _with_slices(steps: DataFrame, work: Sequence[ClusterWork]) -> DataFrame:
    """The steps with their slice: that of their group; ClearElrRecord goes to every slice."""
    from pyspark.sql import functions as F

    spark = steps.sparkSession
    if all(one.slices == 1 for one in work):
        return steps.withColumn("slice", F.lit(0))
    counts = spark.createDataFrame(
        [(one.cluster_id, one.slices) for one in work], "of string, slices int"
    )
    steps = steps.join(F.broadcast(counts), steps.cluster_id == counts.of)
    one = F.array(F.pmod(F.crc32(_group()), F.col("slices")).cast("int"))
    every = F.sequence(F.lit(0), F.col("slices") - 1)
    where = F.when(F.col("type") == "ClearElrRecord", every).otherwise(one)
    return steps.withColumn("slice", F.explode(where))


def _group() -> Column:
    """The group of a step, equal to `ThingKind.group` of its things."""
    from pyspark.sql import functions as F

    kind = F.col("type")
    resource = F.get_json_object("record", "$.resourceType").cast("int")
    words = F.coalesce(
        *(F.when(resource == code, F.lit(text)) for code, text in _config_types().items()),
        resource.cast("string"),
    )
    name = F.get_json_object("record", "$.resourceName")
    return (
        F.when(kind.isin(*_BY_TOPIC), F.col("topic_id"))
        .when(kind.isin("ConfigRecord", ORPHANED), F.concat(words, F.lit("/"), name))
        .when(kind == TOPIC_CONFIGS, F.concat(F.lit("topic/"), F.col("topic_name")))
        .when(kind.isin(*_BY_ID), F.get_json_object("record", "$.id"))
        .otherwise(F.lit(""))
    )


def _config_types() -> Mapping[int, str]:
    from quorate.spark.decode.facts import CONFIG_RESOURCES

    return CONFIG_RESOURCES


def _extra_steps(
    work: Sequence[ClusterWork], baselines: Sequence[Baseline]
) -> list[tuple[Any, ...]]:
    """Steps that are no records, for every slice: reslicing, begin and end of a baseline."""
    slices = {one.cluster_id: one.slices for one in work}
    nothing = [None] * 5
    found: list[tuple[Any, ...]] = []
    for one in work:
        if one.resliced:
            found += [
                (one.cluster_id, n, -1, -1, 0, -1, -1, 0, RESLICE, *nothing)
                for n in range(one.slices)
            ]
    for cluster_id, end, epoch, time in baselines:
        for phase, offset, kind in ((2, -1, BASELINE), (3, end - 1, BASELINE_END)):
            found += [
                (cluster_id, n, phase, end - 1, time, offset, epoch, time, kind, *nothing)
                for n in range(slices[cluster_id])
            ]
    return found


def _applier(
    work: Mapping[str, ClusterWork], target: WriteTarget
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that the tasks run."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        results = [json.dumps(one) for one in _run(batches, work, target)]
        if results:
            yield pa.record_batch([pa.array(results, pa.string())], ["result"])

    return run


def _run(
    batches: Iterable[pa.RecordBatch], work: Mapping[str, ClusterWork], target: WriteTarget
) -> Iterator[dict[str, Any]]:
    current: StateSlice | None = None
    key: tuple[str, int] | None = None
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        for cluster_id, number, _, *cells in zip(*columns, strict=True):
            if (cluster_id, number) != key:
                if current is not None and key is not None:
                    yield _result(key, current)
                key = (cluster_id, number)
                current = StateSlice(_slice_target(work[cluster_id], number, target))
            if current is not None:
                current.feed(SliceStep._make(cells))
    if current is not None and key is not None:
        yield _result(key, current)


def _result(key: tuple[str, int], done: StateSlice) -> dict[str, Any]:
    replaced = list(done.replaced())
    files = [file.to_json() for file in done.finish()]
    return {
        "cluster_id": key[0],
        "files": files,
        "replaced": replaced,
        "counts": done.counts,
        "misfit": done.misfit,
    }


def _slice_target(work: ClusterWork, number: int, target: WriteTarget) -> SliceTarget:
    source = number % work.old_slices
    files = {kind: path for (slice, kind), path in dict(work.files).items() if slice == source}
    return SliceTarget(
        target.root,
        target.run,
        target.hidden,
        work.cluster_id,
        number,
        work.slices,
        files,
        work.resliced,
    )


def _gather(results: Iterable[str]) -> AppliedSteps:
    done = AppliedSteps([], [], {}, {})
    for text in results:
        one = json.loads(text)
        done.files += one["files"]
        done.replaced += [tuple(pair) for pair in one["replaced"]]
        done.counts.setdefault(one["cluster_id"], Counter()).update(one["counts"])
        if one["misfit"] is not None:
            done.misfits.setdefault(one["cluster_id"], one["misfit"])
    return done
