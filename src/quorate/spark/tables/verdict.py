"""What of the input is bad although this job has nothing new to say of it.

The same input gets the same verdict each time. What was put into quarantine by an earlier job, or
by this one before it was killed, counts as long as it is offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quorate.spark.files.scan import bad_piece
from quorate.spark.tables.files import safe_name
from quorate.spark.tables.lineage import Group, Span, covered, overlap
from quorate.spark.tables.read import at_least, read_table
from quorate.spark.tables.store import Store, Stored
from quorate.spark.tables.survey import REPLICA, Survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUPERSEDED: Final = "superseded"
_OF_THE_LOG: Final = ("unknown", "misfit")
"""Reasons that a record has in whichever replica it stands."""
_OF_A_REPLICA: Final = "disagrees"
_OFFERED: Final = (
    "cluster string, replica string, written bigint, first_offset bigint, last_offset bigint"
)


class Known(NamedTuple):
    """Rows of one reason that are in quarantine already."""

    cluster_id: str
    reason: str
    rows: int
    example: str
    """One of them: file, position and problem."""


class TakenBack(NamedTuple):
    """A part of the log that was taken for committed, and is in quarantine now."""

    start: int
    end: int
    """Exclusive."""
    records: int
    epochs: tuple[int, ...]
    """That wrote it."""
    log: str
    """Directory of the replica that contradicts it."""
    reason: str


def known_before(spark: SparkSession, store: Store, told: Survey) -> list[Known]:
    """What is in quarantine of records that the input offers; of `superseded` ones, of records in
    whose place it offers those of a later epoch.

    Not what is found again each time without it: bytes that are damaged, and divergent tails.
    """
    from pyspark.sql import functions as F

    first = {
        safe_name(id): min(group.first for group in groups)
        for id, groups in told.groups.items()
        if groups
    }

    def wanted(file: Stored) -> bool:
        cluster = file.path.partition("/")[0]
        return cluster in first and at_least(file, "offset", first[cluster])

    if not any(wanted(file) for file in store.files("quarantine")):
        return []
    here = spark.createDataFrame(
        [(id, g.replica, g.epoch, g.first, g.last) for id, gs in told.groups.items() for g in gs],
        _OFFERED,
    )
    rows = read_table(spark, store, "quarantine", wanted).where(
        F.col("reason").isin(SUPERSEDED, _OF_A_REPLICA, *_OF_THE_LOG)
    )
    found = rows.join(F.broadcast(here), _is_offered(rows), "left_semi")
    place = F.struct("file", "position", "offset", "problem")
    told_of = found.groupBy("cluster_id", "reason").agg(
        F.count(F.lit(1)).alias("rows"), F.min(place).alias("one")
    )
    return [
        Known(row.cluster_id, row.reason, row["rows"], bad_piece(*row.one))
        for row in sorted(told_of.collect())
    ]


def _is_offered(rows: DataFrame) -> Any:
    from pyspark.sql import functions as F

    written, epoch = F.col("written"), F.col("epoch")
    same = written == epoch
    replica = F.regexp_extract("file", REPLICA, 1) == F.col("replica")
    ways = (
        F.col("reason").isin(*_OF_THE_LOG) & same,
        (F.col("reason") == _OF_A_REPLICA) & same & replica,
        (F.col("reason") == SUPERSEDED) & (written > epoch),
    )
    inside = F.col("offset").between(F.col("first_offset"), F.col("last_offset"))
    return (rows.cluster_id == F.col("cluster")) & inside & reduce(or_, ways)


def taken_back(known: Sequence[Span], groups: Iterable[Group], start: int, end: int) -> TakenBack:
    """What is told of the offsets from `start` to `end` (exclusive) that are taken back.

    known: the log as it was; groups: of the input, which contradicts it
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
    return TakenBack(start, end, records, epochs, by.replica, reason)
