"""Surveys the input by its batch headers, before any record is decoded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from quorate.spark.tables.lineage import EpochGroup, chunk_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


HEADER_COLUMNS: Final = (
    *("cluster_id", "node_id", "file", "kind", "snapshot_offset", "snapshot_epoch"),
    *("offset", "epoch", "timestamp", "is_control", "crc_ok", "position", "batch_length"),
)
REPLICA: Final = r"^(.*)[/!][^/!]*$"
"""Matches the directory of a file, which names its replica."""
NOTE: Final = "offset IS NULL AND position = 0 AND batch_length = 0"
"""The SQL condition for a row about a whole log, not a piece of a file."""
_SOUND: Final = "crc_ok AND offset IS NOT NULL"


class SourceRows(Protocol):
    """Gives rows of the source `quorate-metadata` with these columns; `where` as its option."""

    def __call__(self, columns: Sequence[str], where: str = "") -> DataFrame: ...


class SnapshotFile(NamedTuple):
    """A whole snapshot in the input."""

    cluster_id: str
    offset: int
    epoch: int
    file: str


@dataclass
class InputSurvey:
    """The batch headers of the input, summed up."""

    groups: dict[str, list[EpochGroup]] = field(default_factory=dict)
    """By cluster; an empty list for a cluster with snapshots only."""
    snapshots: list[SnapshotFile] = field(default_factory=list)
    damaged: int = 0
    """The number of pieces that cannot be read."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """(cluster, first file) of logs with a problem as a whole; also counted in `damaged`."""
    clusters: set[str] = field(default_factory=set)
    """Every cluster of the input, also one that has only damaged pieces."""
    replicas: set[str] = field(default_factory=set)
    """The directories of logs and the files of snapshots, also those that have only damage."""


def survey_input(rows: DataFrame) -> InputSurvey:
    """Survey the input; the driver gets a row for each replica, epoch and chunk."""
    from pyspark.sql import functions as F

    place = F.when(F.col("kind") == "log", F.regexp_extract("file", REPLICA, 1))
    found = (
        rows.withColumn("sound", F.expr(_SOUND))
        .withColumn("replica", place.otherwise(F.col("file")))
        .withColumn("chunk", F.expr(chunk_of("offset")))
        .groupBy(
            *("cluster_id", "kind", "snapshot_offset", "snapshot_epoch", "replica", "epoch"),
            *("chunk", "sound"),
        )
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count(F.lit(1)).alias("count"),
            F.max(F.unix_micros("timestamp")).alias("latest"),
            F.max_by("is_control", "offset").alias("control"),
            F.max("node_id").alias("node"),
            F.max(F.when(F.expr(NOTE), F.col("file"))).alias("note"),
        )
        .collect()
    )
    survey = InputSurvey(
        clusters={row.cluster_id for row in found}, replicas={row.replica for row in found}
    )
    snapshots: dict[SnapshotFile, list[Any]] = {}
    for row in found:
        if not row.sound:
            survey.damaged += row["count"]
            survey.notes += [] if row.note is None else [(row.cluster_id, row.note)]
        elif row.kind == "log":
            where = (row.replica, row.epoch, row.chunk, row.first, row.last, row.latest)
            group = EpochGroup(*where, row.node)
            survey.groups.setdefault(row.cluster_id, []).append(group)
        if row.kind == "snapshot":
            key = (row.cluster_id, row.snapshot_offset, row.snapshot_epoch, row.replica)
            snapshots.setdefault(SnapshotFile(*key), []).append(row)
    survey.snapshots = sorted(key for key, parts in snapshots.items() if _whole(parts))
    for snapshot in survey.snapshots:
        survey.groups.setdefault(snapshot.cluster_id, [])
    return survey


def replica_of(file: str) -> str:
    """The replica of a file, as EpochGroup names it."""
    found = re.match(REPLICA, file)
    return "" if found is None else found[1]


def _whole(parts: Sequence[Any]) -> bool:
    """Whether the offsets of a snapshot begin at 0, have no gap, and end with a control record."""
    if not all(part.sound for part in parts):
        return False
    ordered = sorted(parts, key=lambda part: part.first)
    counted = all(part["count"] == part.last - part.first + 1 for part in parts)
    linked = all(one.last + 1 == two.first for one, two in pairwise(ordered))
    return counted and linked and ordered[0].first == 0 and bool(ordered[-1].control)
