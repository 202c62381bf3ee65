"""A look over the input before anything is taken: what the headers of all batches tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from quorate.spark.tables.lineage import Group, chunk_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


HEADER: Final = (
    *("cluster_id", "node_id", "file", "kind", "snapshot_offset", "snapshot_epoch"),
    *("offset", "epoch", "timestamp", "is_control", "crc_ok", "position", "batch_length"),
)
REPLICA: Final = r"^(.*)[/!][^/!]*$"
"""Of a file's name what its replica is named by: the directory it stands in."""
NOTE: Final = "offset IS NULL AND position = 0 AND batch_length = 0"
"""A row that tells no piece of a file, but something about the log."""
_SOUND: Final = "crc_ok AND offset IS NOT NULL"


class Rows(Protocol):
    """Gives the rows of the source `quorate-metadata` with these of its columns; with `where` only
    those for which that holds (as the source's option of that name)."""

    def __call__(self, columns: Sequence[str], where: str = "") -> DataFrame: ...


class SnapshotFile(NamedTuple):
    """A whole snapshot in the input."""

    cluster_id: str
    offset: int
    epoch: int
    file: str


@dataclass
class Survey:
    """What the headers of all batches tell, without a look into any record."""

    groups: dict[str, list[Group]] = field(default_factory=dict)
    """By cluster; none of one that gave snapshots alone."""
    snapshots: list[SnapshotFile] = field(default_factory=list)
    damaged: int = 0
    """Pieces that cannot be read."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """(cluster, file) where something is said of a whole log, at the beginning of its first file;
    counted as damaged."""


def survey(rows: DataFrame) -> Survey:
    """Look over the input: a row for each replica, epoch and chunk comes to the driver."""
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
    told = Survey()
    snapshots: dict[SnapshotFile, list[Any]] = {}
    for row in found:
        if not row.sound:
            told.damaged += row["count"]
            told.notes += [] if row.note is None else [(row.cluster_id, row.note)]
        elif row.kind == "log":
            where = (row.replica, row.epoch, row.chunk, row.first, row.last, row.latest)
            group = Group(*where, row.node)
            told.groups.setdefault(row.cluster_id, []).append(group)
        if row.kind == "snapshot":
            key = (row.cluster_id, row.snapshot_offset, row.snapshot_epoch, row.replica)
            snapshots.setdefault(SnapshotFile(*key), []).append(row)
    told.snapshots = sorted(key for key, parts in snapshots.items() if _whole(parts))
    for snapshot in told.snapshots:
        told.groups.setdefault(snapshot.cluster_id, [])
    return told


def replica_of(file: str) -> str:
    """The replica that a file belongs to, as it is named in a Group."""
    found = re.match(REPLICA, file)
    return "" if found is None else found[1]


def _whole(parts: Sequence[Any]) -> bool:
    """Whether a snapshot's offsets begin at 0, have no hole, and end with a control record."""
    if not all(part.sound for part in parts):
        return False
    ordered = sorted(parts, key=lambda part: part.first)
    counted = all(part["count"] == part.last - part.first + 1 for part in parts)
    linked = all(one.last + 1 == two.first for one, two in pairwise(ordered))
    return counted and linked and ordered[0].first == 0 and bool(ordered[-1].control)
