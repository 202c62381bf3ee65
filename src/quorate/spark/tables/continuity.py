"""Whether the logs of the input continue the log that the warehouse has of their cluster.

Two logs of one cluster that have the same epoch at an offset are equal up to there (Raft, log
matching). But a cluster that was formatted again under its old id starts its epochs again, so that
rule does not hold across the two. Two checks find such foreign replicas:

1. The first and the last record that bronze has of each epoch must be equal in the input.
2. The input must have room for every offset that is known to be committed: a log that would
   truncate committed records is of another cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.files import safe_name
from quorate.spark.tables.lineage import EpochGroup, committed_lineage, missing_from
from quorate.spark.tables.proof import proven_spans
from quorate.spark.tables.read import read_table
from quorate.spark.tables.store import StoredFile, TableFiles
from quorate.spark.tables.survey import InputSurvey, SourceRows, replica_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS: Final = ("cluster_id", "file", "kind", "offset", "epoch", "type", "record")
_SECRET_FIELDS: Final = frozenset({"value", "salt", "storedKey", "serverKey"})
_TWO_CLUSTERS: Final = (
    "two clusters under one id, or one that was formatted again? Use a warehouse of its own"
)
_MAX_EPOCHS: Final = 32
"""How many epochs of a cluster are compared, the latest ones."""


class EpochBoundary(NamedTuple):
    """The first or the last record of an epoch in bronze."""

    cluster_id: str
    epoch: int
    offset: int


ForeignReplicas = dict[str, dict[str, str]]
"""By cluster: the foreign replicas (directories), and why they are foreign."""


def foreign_replicas(
    spark: SparkSession,
    tables: TableFiles,
    rows: SourceRows,
    survey: InputSurvey,
    progress: Mapping[str, ClusterProgress],
) -> ForeignReplicas:
    """The replicas of the input whose log is not the log that the warehouse has.

    rows: the input; survey: what its batch headers say
    """
    found = _of_other_contents(spark, tables, rows, survey, progress)
    for cluster_id, replica, why in contradicting_replicas(survey, progress):
        found.setdefault(cluster_id, {}).setdefault(replica, why)
    return found


def contradicting_replicas(
    survey: InputSurvey, progress: Mapping[str, ClusterProgress]
) -> Iterable[tuple[str, str, str]]:
    """(cluster, replica, reason) of logs that contradict offsets known to be committed."""
    for cluster_id, groups in survey.groups.items():
        if cluster_id not in progress:
            continue
        known = progress[cluster_id]
        proven = proven_spans(known.spans, known.unproven)
        for replica in sorted({group.replica for group in groups}):
            own = [group for group in groups if group.replica == replica]
            lineage = committed_lineage(known.spans, own)
            lost = [piece for span in proven for piece in missing_from(span, lineage)]
            if lost:
                first = min(own, key=lambda group: group.first)
                yield (
                    cluster_id,
                    replica,
                    f"its log begins at offset {first.first} in epoch {first.epoch} and contradicts "
                    f"offsets {lost[0][0]} to {lost[-1][1] - 1}, which were taken before and are "
                    f"committed: {_TWO_CLUSTERS}",
                )


def _of_other_contents(
    spark: SparkSession,
    tables: TableFiles,
    rows: SourceRows,
    survey: InputSurvey,
    progress: Mapping[str, ClusterProgress],
) -> ForeignReplicas:
    """The replicas with another record than bronze at an offset of the same epoch."""
    boundaries = {
        boundary
        for cluster_id, groups in survey.groups.items()
        if cluster_id in progress
        for boundary in _epoch_boundaries(progress[cluster_id], groups)
    }
    if not boundaries:
        return {}
    taken = {
        boundary: _content(row)
        for boundary, row in _at(_known(spark, tables, boundaries), boundaries)
    }
    found: ForeignReplicas = {}
    offsets = ", ".join(map(str, sorted({boundary.offset for boundary in boundaries})))
    here = rows((*_COLUMNS, "timestamp", "crc_ok"), f"kind = 'log' AND offset IN ({offsets})")
    for boundary, row in _at(here, boundaries):
        ours, theirs = taken.get(boundary), _content(row)
        if row.crc_ok and ours is not None and ours != theirs:
            why = (
                f"at offset {boundary.offset} (epoch {boundary.epoch}) it has {_describe(theirs)}, but "
                f"{_describe(ours)} was taken before: {_TWO_CLUSTERS}"
            )
            found.setdefault(boundary.cluster_id, {}).setdefault(replica_of(row.file), why)
    return found


def without_foreign_replicas(
    rows: SourceRows, survey: InputSurvey, others: ForeignReplicas
) -> tuple[SourceRows, InputSurvey]:
    """The rows and their survey without these replicas."""
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
        for cluster_id, found in survey.groups.items()
    }
    snapshots = [
        one for one in survey.snapshots if not is_other(one.cluster_id, replica_of(one.file))
    ]
    return remaining, replace(survey, groups=groups, snapshots=snapshots)


def _is_in(file: Any, directory: str) -> Any:
    return file.startswith(directory) & file.substr(len(directory) + 1, 1).isin("/", "!")


def _epoch_boundaries(
    known: ClusterProgress, groups: Iterable[EpochGroup]
) -> Iterable[EpochBoundary]:
    for span in known.spans[-_MAX_EPOCHS:]:
        for offset in (span.start, span.end - 1):
            if any(g.epoch == span.epoch and g.first <= offset <= g.last for g in groups):
                yield EpochBoundary(known.cluster_id, span.epoch, offset)


def _known(
    spark: SparkSession, tables: TableFiles, boundaries: Iterable[EpochBoundary]
) -> DataFrame:
    places = {(safe_name(boundary.cluster_id), boundary.offset) for boundary in boundaries}

    def wanted(file: StoredFile) -> bool:
        low, high = file.low.get("offset", 0), file.high.get("offset", 1 << 63)
        cluster = file.path.split("/")[0]
        return any(cluster == of and low <= offset <= high for of, offset in places)

    return read_table(spark, tables, "log", wanted)


def _at(rows: DataFrame, boundaries: set[EpochBoundary]) -> list[tuple[EpochBoundary, Any]]:
    """The rows at these epoch boundaries."""
    from pyspark.sql import functions as F

    offsets = sorted({boundary.offset for boundary in boundaries})
    found = rows.where(F.col("offset").isin(offsets))
    found = found.withColumn("at", F.unix_micros("timestamp"))
    places = (
        (EpochBoundary(row.cluster_id, row.epoch, row.offset), row) for row in found.collect()
    )
    return [(boundary, row) for boundary, row in places if boundary in boundaries]


def _content(row: Any) -> tuple[Any, ...]:
    """What is compared of a record: without fields that one release hides and another does not."""
    fields = json.loads(row.record or "{}")
    return row.at, row.type, {name: fields[name] for name in fields.keys() - _SECRET_FIELDS}


def _describe(content: tuple[Any, ...]) -> str:
    at, kind, fields = content
    written = datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    return f"{kind} {json.dumps(fields, sort_keys=True)[:200]} of {written}"
