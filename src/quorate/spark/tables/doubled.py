"""Finds history that two jobs at once have written twice, as releases up to 0.1 could.

Such a job loaded its progress before the commits of another one, and committed after them. Then:

- `log` has an offset twice, or has rows outside the offsets that `epochs` names;
- `snapshots` has files of one snapshot from two runs;
- `changes` has one change twice, or changes behind the end of the state in `clusters`.

Each is impossible when runs follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.files import run_of, safe_name
from quorate.spark.tables.lineage import EpochSpan, covered, uncovered
from quorate.spark.tables.read import read_table
from quorate.spark.tables.read_version import ReadVersion
from quorate.spark.tables.store import TableFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHANGE: Final = (
    *("offset", "effective_offset", "event", "kind", "topic_id", "partition", "node_id"),
    *("resource_type", "resource_name", "name", "principal", "before", "after"),
)
"""The columns that distinguish two changes of a cluster."""


@dataclass
class DoubledHistory:
    """What is there twice, or is not known to the progress."""

    clusters: set[str] = field(default_factory=set)
    """The clusters with any of it."""
    log: set[str] = field(default_factory=set)
    """Those whose table `log` is to be rebuilt."""
    spans: dict[str, list[EpochSpan]] = field(default_factory=dict)
    """By cluster, parts of the log that its progress lacks."""
    snapshots: list[str] = field(default_factory=list)
    """Paths of second files of snapshots."""


def doubled_history(spark: SparkSession, read: ReadVersion) -> DoubledHistory:
    """Look for doubled history in all clusters of a warehouse."""
    found, progress = DoubledHistory(), read.progress
    _find_in_log(read_table(spark, read.tables, "log"), progress, found)
    _find_in_changes(read_table(spark, read.tables, "changes"), progress, found)
    folders = {safe_name(id): id for id in {*progress, *found.clusters}}
    for path in _second_snapshots(read.tables):
        id = folders.get(path.partition("/")[0])
        if id is not None:
            found.snapshots.append(path)
            found.clusters.add(id)
    for id in found.clusters - progress.keys():
        found.spans.setdefault(id, [])
    return found


def _find_in_log(
    log: DataFrame, progress: dict[str, ClusterProgress], found: DoubledHistory
) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    once = log.groupBy("cluster_id", "epoch", "offset").agg(
        F.count("*").alias("rows"), F.min(F.unix_micros("time")).alias("time")
    )
    at = Window.partitionBy("cluster_id", "epoch").orderBy("offset")
    pieces = (
        once.withColumn("piece", F.col("offset") - F.row_number().over(at))
        .groupBy("cluster_id", "epoch", "piece")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.min("time").alias("first_time"),
            F.max("time").alias("last_time"),
            F.max("rows").alias("most"),
        )
    )
    for row in pieces.orderBy("cluster_id", "first", "epoch").collect():
        id, end = row.cluster_id, row.last + 1
        known = progress.get(id, ClusterProgress(id)).spans
        held = [
            part
            for span in known
            if span.epoch == row.epoch
            for part in [(max(span.start, row.first), min(span.end, end))]
            if part[0] < part[1]
        ]
        if row.most > 1 or list(uncovered(held, row.first, end)):
            found.log.add(id)
            found.clusters.add(id)
        taken = [*covered(known), *covered(found.spans.get(id, ()))]
        for start, stop in uncovered(sorted(taken), row.first, end):
            span = EpochSpan(row.epoch, start, stop, row.first_time, row.last_time)
            found.spans.setdefault(id, []).append(span)


def _find_in_changes(
    changes: DataFrame, progress: dict[str, ClusterProgress], found: DoubledHistory
) -> None:
    from pyspark.sql import functions as F

    rows = (
        changes.groupBy("cluster_id", *_CHANGE)
        .agg(F.count("*").alias("rows"))
        .groupBy("cluster_id")
        .agg(F.max("rows").alias("most"), F.max("effective_offset").alias("last"))
    )
    for row in rows.collect():
        known = progress.get(row.cluster_id, ClusterProgress(row.cluster_id))
        if row.most > 1 or row.last >= (known.applied_end or 0):
            found.clusters.add(row.cluster_id)


def _second_snapshots(tables: TableFiles) -> list[str]:
    """Paths of files of a snapshot that an earlier run has taken already."""
    first: dict[str, int] = {}
    paths = sorted((file.path for file in tables.files("snapshots")), key=run_of)
    return [
        path
        for path in paths
        if first.setdefault(path.rpartition("/")[0], run_of(path)) != run_of(path)
    ]
