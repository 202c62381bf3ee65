"""Is a log that comes now the one of which a part was taken before?

Where two logs have the same epoch at an offset they are the same up to there: so says Raft, of one
cluster. A cluster that was formatted anew under its old id begins its epochs anew, too. So the
first and the last record that were taken of each epoch are held against those that come. And what
is committed is never taken back: a log that would do so is of another cluster, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quorate.spark.tables.control import Progress
from quorate.spark.tables.files import safe_name
from quorate.spark.tables.lineage import Group, lacking, lineage
from quorate.spark.tables.proof import proven_spans
from quorate.spark.tables.read import read_table
from quorate.spark.tables.store import Store, Stored
from quorate.spark.tables.survey import Rows, Survey, replica_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS: Final = ("cluster_id", "file", "kind", "offset", "epoch", "type", "record")
_MAY_BE_HIDDEN: Final = frozenset({"value", "salt", "storedKey", "serverKey"})
_TWO_CLUSTERS: Final = (
    "two clusters under one id, or one that was formatted anew? Give it a warehouse of its own"
)
_MOST: Final = 32
"""Epochs of a cluster that are looked at, the latest ones."""


class Seam(NamedTuple):
    """The first or the last record of an epoch that was taken."""

    cluster_id: str
    epoch: int
    offset: int


Strangers = dict[str, dict[str, str]]
"""By cluster the replicas (directories) whose log is another one, and why."""


def strangers(
    spark: SparkSession,
    store: Store,
    rows: Rows,
    told: Survey,
    progress: Mapping[str, Progress],
) -> Strangers:
    """The replicas of the input whose log is not the one that the warehouse has.

    rows: the input, asked for the columns that are compared; told: what its headers tell
    """
    found = _of_other_contents(spark, store, rows, told, progress)
    for cluster_id, replica, why in that_take_back(told, progress):
        found.setdefault(cluster_id, {}).setdefault(replica, why)
    return found


def that_take_back(
    told: Survey, progress: Mapping[str, Progress]
) -> Iterable[tuple[str, str, str]]:
    """Cluster, replica and reason where a log has no place for what is known to be committed."""
    for cluster_id, groups in told.groups.items():
        if cluster_id not in progress:
            continue
        known = progress[cluster_id]
        proven = proven_spans(known.spans, known.unproven)
        for replica in sorted({group.replica for group in groups}):
            own = [group for group in groups if group.replica == replica]
            ruling = lineage(known.spans, own)
            lost = [piece for span in proven for piece in lacking(span, ruling)]
            if lost:
                first = min(own, key=lambda group: group.first)
                yield (
                    cluster_id,
                    replica,
                    f"its log begins at offset {first.first} in epoch {first.epoch} and has no "
                    f"place for offsets {lost[0][0]} to {lost[-1][1] - 1}, which "
                    f"were taken before and are committed: {_TWO_CLUSTERS}",
                )


def _of_other_contents(
    spark: SparkSession,
    store: Store,
    rows: Rows,
    told: Survey,
    progress: Mapping[str, Progress],
) -> Strangers:
    """The replicas that have another record where the warehouse has one of the same epoch."""
    seams = {
        seam
        for cluster_id, groups in told.groups.items()
        if cluster_id in progress
        for seam in _seams(progress[cluster_id], groups)
    }
    if not seams:
        return {}
    taken = {seam: _content(row) for seam, row in _at(_known(spark, store, seams), seams)}
    found: Strangers = {}
    offsets = ", ".join(map(str, sorted({seam.offset for seam in seams})))
    here = rows((*_COLUMNS, "timestamp", "crc_ok"), f"kind = 'log' AND offset IN ({offsets})")
    for seam, row in _at(here, seams):
        ours, theirs = taken.get(seam), _content(row)
        if row.crc_ok and ours is not None and ours != theirs:
            why = (
                f"at offset {seam.offset} (epoch {seam.epoch}) it has {_told(theirs)}, of which "
                f"{_told(ours)} was taken before: {_TWO_CLUSTERS}"
            )
            found.setdefault(seam.cluster_id, {}).setdefault(replica_of(row.file), why)
    return found


def without_strangers(rows: Rows, told: Survey, others: Strangers) -> tuple[Rows, Survey]:
    """The same rows, and what their headers tell, without these replicas."""
    from pyspark.sql import functions as F

    directories = sorted(path for replicas in others.values() for path in replicas)

    def is_other(cluster_id: str, replica: str) -> bool:
        return replica in others.get(cluster_id, {})

    def remaining(columns: Sequence[str], where: str = "") -> DataFrame:
        return rows(columns, where).where(
            ~reduce(or_, (_is_in(F.col("file"), path) for path in directories))
        )

    groups = {
        cluster_id: [group for group in found if not is_other(cluster_id, group.replica)]
        for cluster_id, found in told.groups.items()
    }
    snapshots = [
        one for one in told.snapshots if not is_other(one.cluster_id, replica_of(one.file))
    ]
    return remaining, replace(told, groups=groups, snapshots=snapshots)


def _is_in(file: Any, directory: str) -> Any:
    return file.startswith(directory) & file.substr(len(directory) + 1, 1).isin("/", "!")


def _seams(known: Progress, groups: Iterable[Group]) -> Iterable[Seam]:
    for span in known.spans[-_MOST:]:
        for offset in (span.start, span.end - 1):
            if any(g.epoch == span.epoch and g.first <= offset <= g.last for g in groups):
                yield Seam(known.cluster_id, span.epoch, offset)


def _known(spark: SparkSession, store: Store, seams: Iterable[Seam]) -> DataFrame:
    places = {(safe_name(seam.cluster_id), seam.offset) for seam in seams}

    def wanted(file: Stored) -> bool:
        low, high = file.low.get("offset", 0), file.high.get("offset", 1 << 63)
        cluster = file.path.split("/")[0]
        return any(cluster == of and low <= offset <= high for of, offset in places)

    return read_table(spark, store, "log", wanted)


def _at(rows: DataFrame, seams: set[Seam]) -> list[tuple[Seam, Any]]:
    """The rows of these places."""
    from pyspark.sql import functions as F

    offsets = sorted({seam.offset for seam in seams})
    found = rows.where(F.col("offset").isin(offsets))
    found = found.withColumn("at", F.unix_micros("timestamp"))
    places = ((Seam(row.cluster_id, row.epoch, row.offset), row) for row in found.collect())
    return [(seam, row) for seam, row in places if seam in seams]


def _content(row: Any) -> tuple[Any, ...]:
    """What is compared: not what one release may hide and the other not."""
    fields = json.loads(row.record or "{}")
    return row.at, row.type, {name: fields[name] for name in fields.keys() - _MAY_BE_HIDDEN}


def _told(content: tuple[Any, ...]) -> str:
    at, kind, fields = content
    written = datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    return f"{kind} {json.dumps(fields, sort_keys=True)[:200]} of {written}"
