"""Findings about the input that an earlier job has made already.

The same input gets the same findings each time. A row that an earlier job quarantined, or this job
before it was killed, counts as long as the input has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quorate.spark.files.scan import located_problem
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.files import safe_name
from quorate.spark.tables.lineage import EpochGroup, EpochSpan, covered, overlap
from quorate.spark.tables.read import may_reach, read_table
from quorate.spark.tables.resolved import BadPlace, is_open
from quorate.spark.tables.store import StoredFile, TableFiles
from quorate.spark.tables.survey import REPLICA, InputSurvey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUPERSEDED: Final = "superseded"
_UNKNOWN: Final = "unknown"
_MISFIT: Final = "misfit"
"""These two hold for a record in any replica."""
_OF_A_REPLICA: Final = "disagrees"
_OFFERED: Final = (
    "cluster string, replica string, written bigint, first_offset bigint, last_offset bigint, "
    "applied bigint"
)


class KnownFinding(NamedTuple):
    """Rows of the input, of one reason, that are in quarantine already."""

    cluster_id: str
    reason: str
    rows: int
    example: str
    """File, position and problem of one of them."""


class TakenBackRange(NamedTuple):
    """A range of the log that was taken as committed, and is in quarantine now."""

    start: int
    end: int
    """Exclusive."""
    records: int
    epochs: tuple[int, ...]
    """The epochs that wrote it."""
    log: str
    """The directory of the replica that contradicts it."""
    reason: str
    problem: str | None = None
    """Of its rows in quarantine, where that is not the usual one."""


def find_known(
    spark: SparkSession,
    tables: TableFiles,
    survey: InputSurvey,
    progress: Mapping[str, ClusterProgress],
) -> list[KnownFinding]:
    """The open rows in quarantine that the input has again.

    A `superseded` row counts when the input has its offset from a later epoch. Damaged bytes and
    divergent ends of logs are left out: each job finds these again by itself. So are misfits behind
    the end of the state, which are checked when the log is applied.
    """
    from pyspark.sql import functions as F

    first = {
        safe_name(id): min(group.first for group in groups)
        for id, groups in survey.groups.items()
        if groups
    }

    def wanted(file: StoredFile) -> bool:
        cluster = file.path.partition("/")[0]
        return is_open(file) and cluster in first and may_reach(file, "offset", first[cluster])

    if not any(wanted(file) for file in tables.files("quarantine")):
        return []
    ends = {id: one.applied_end or 0 for id, one in progress.items()}
    here = spark.createDataFrame(
        [
            (id, g.replica, g.epoch, g.first, g.last, ends.get(id, 0))
            for id, groups in survey.groups.items()
            for g in groups
        ],
        _OFFERED,
    )
    rows = (
        read_table(spark, tables, "quarantine", wanted)
        .where(F.col("reason").isin(SUPERSEDED, _OF_A_REPLICA, _UNKNOWN, _MISFIT))
        .where("resolved_run IS NULL")
    )
    found = rows.join(F.broadcast(here), _is_offered(rows), "left_semi")
    place = F.struct("file", "position", "offset", "problem")
    counts = found.groupBy("cluster_id", "reason").agg(
        F.count(F.lit(1)).alias("rows"), F.min(place).alias("one")
    )
    return [
        KnownFinding(row.cluster_id, row.reason, row["rows"], located_problem(*row.one))
        for row in sorted(counts.collect())
    ]


def _is_offered(rows: DataFrame) -> Any:
    from pyspark.sql import functions as F

    written, epoch = F.col("written"), F.col("epoch")
    same = written == epoch
    replica = F.regexp_extract("file", REPLICA, 1) == F.col("replica")
    ways = (
        (F.col("reason") == _UNKNOWN) & same,
        (F.col("reason") == _MISFIT) & same & (F.col("offset") < F.col("applied")),
        (F.col("reason") == _OF_A_REPLICA) & same & replica,
        (F.col("reason") == SUPERSEDED) & (written > epoch),
    )
    inside = F.col("offset").between(F.col("first_offset"), F.col("last_offset"))
    return (rows.cluster_id == F.col("cluster")) & inside & reduce(or_, ways)


def without_resolved(
    known: Iterable[KnownFinding], resolved: Iterable[BadPlace], survey: InputSurvey
) -> list[KnownFinding]:
    """The findings without rows that the job has found sound."""
    gone = Counter(
        (place.cluster_id, place.reason) for place in resolved if _is_counted(place, survey)
    )
    left = [one._replace(rows=one.rows - gone[one.cluster_id, one.reason]) for one in known]
    return [one for one in left if one.rows > 0]


def _is_counted(place: BadPlace, survey: InputSurvey) -> bool:
    """Whether `find_known` counts the row of this place: as `_is_offered` does in SQL."""
    here = [
        group
        for group in survey.groups.get(place.cluster_id, ())
        if place.offset is not None and group.first <= place.offset <= group.last
    ]
    if place.reason == SUPERSEDED:
        return any(group.epoch > (place.epoch or 0) for group in here)
    return any(group.epoch == place.epoch for group in here)


def taken_back(
    known: Sequence[EpochSpan], groups: Iterable[EpochGroup], start: int, end: int
) -> TakenBackRange:
    """The report about offsets [start, end) that are taken back.

    known: the log so far; groups: of the input, which contradicts it
    """
    gone = [span for span in known if span.start < end and start < span.end]
    records = sum(high - low for low, high in overlap(covered(gone), start, end))
    epochs = tuple(sorted({span.epoch for span in gone}))
    later = [group for group in groups if group.epoch > min(epochs, default=-1)]
    there = [group for group in later if group.first < end and start <= group.last] or later
    by = min(there, key=lambda group: (-group.epoch, group.first, group.replica))
    written = f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {epochs[0]} to {epochs[-1]}"
    reason = (
        f"offsets {start} to {end - 1} of {written} were taken before, and are taken back: "
        f"{by.replica} has offset {max(by.first, start)} from epoch {by.epoch}"
    )
    return TakenBackRange(start, end, records, epochs, by.replica, reason)
