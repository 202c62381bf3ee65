"""Decides what bronze and the state must take back; `rewind` carries it out.

Bronze may hold records that were never committed: the end of a log that was copied before a later
leader truncated it. When a log of a later epoch contradicts them, they go to the quarantine
(`superseded`), and the state is rewound to before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from quorate.spark.files.histories import split_name
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.files import safe_name
from quorate.spark.tables.findings import TakenBackRange, taken_back
from quorate.spark.tables.identity import MixedLog
from quorate.spark.tables.lineage import committed_lineage, covered, superseded_range, uncovered
from quorate.spark.tables.read import read_table
from quorate.spark.tables.read_version import ReadVersion, check_version, read_again
from quorate.spark.tables.rewind import WrongRange, rewind
from quorate.spark.tables.store import ConcurrentRunError, StoredFile
from quorate.spark.tables.summary import (
    IngestSummary,
    InvalidInputError,
    Notify,
    OvertakenError,
    committed_part,
    describe_findings,
    note_taken_back,
    of_cluster,
)
from quorate.spark.tables.survey import REPLICA, InputSurvey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ranges_to_take_back(
    survey: InputSurvey, progress: Mapping[str, ClusterProgress]
) -> dict[str, TakenBackRange]:
    """Return, by cluster, the range of bronze that was never committed, and the log that contradicts it."""
    return {
        id: taken_back(progress[id].spans, survey.groups[id], start, end)
        for id, (start, end) in superseded_ranges(survey, progress).items()
    }


def superseded_ranges(
    survey: InputSurvey, progress: Mapping[str, ClusterProgress]
) -> dict[str, tuple[int, int]]:
    """Return, by cluster, the range [start, end) of bronze that the input contradicts."""
    found = {}
    for cluster_id, groups in survey.groups.items():
        known = progress.get(cluster_id)
        if known is not None:
            lineage = committed_lineage(known.spans, groups)
            wrong = superseded_range(known.spans, lineage)
            if wrong is not None:
                found[cluster_id] = wrong
    return found


def take_back(
    spark: SparkSession,
    read: ReadVersion,
    back: Mapping[str, TakenBackRange],
    summary: IngestSummary,
    notify: Notify,
    fail_fast: bool,
) -> ReadVersion:
    """Take these ranges back, one run for each cluster. Returns the warehouse after them.

    Raises OvertakenError with what was taken back before; InvalidInputError with fail_fast.
    """
    if fail_fast:
        for cluster_id, part in back.items():
            note_taken_back(of_cluster(summary, cluster_id), part)
        check_version(read)
        raise InvalidInputError(
            "nothing was taken, nor taken back; in cluster " + describe_findings(summary)
        )
    for cluster_id, part in back.items():
        notify(f"taking back {cluster_id} from offset {part.start} to {part.end - 1}")
        try:
            run = rewind(spark, read, cluster_id, wrong_range(part))
            note_taken_back(of_cluster(summary, cluster_id), part)
            read = read_again(read, run)
        except ConcurrentRunError as error:
            raise OvertakenError(error, committed_part(summary)) from None
    return read


def wrong_range(part: TakenBackRange) -> WrongRange:
    """The range for `rewind`."""
    if part.problem is None:
        return WrongRange(part.start, part.end)
    return WrongRange(part.start, part.end, part.problem)


def mixed_ranges(
    spark: SparkSession, read: ReadVersion, mixed: Mapping[str, MixedLog]
) -> dict[str, TakenBackRange]:
    """Return, by cluster, the range of bronze that may be of another cluster with its id."""
    from pyspark.sql import functions as F

    found = {}
    for cluster_id, log in mixed.items():
        known = read.progress[cluster_id]
        rows = read_table(spark, read.tables, "log", partial(_is_below, safe_name(cluster_id)))
        replica = F.regexp_extract("file", REPLICA, 1)
        first = rows.where(replica.isin(*log.others)).agg(F.min("offset")).collect()[0][0]
        start = log.start if first is None else min(log.start, first)
        if start >= known.log_end:
            continue
        gone = [span for span in known.spans if span.end > start]
        records = sum(span.end - max(span.start, start) for span in gone)
        epochs = tuple(sorted({span.epoch for span in gone}))
        found[cluster_id] = TakenBackRange(
            *(start, known.log_end, records, epochs, log.others[0]),
            f"offsets {start} to {known.log_end - 1} may be of another cluster with the id "
            f"{split_name(cluster_id)[0]}, which an older release took for this one: its log is "
            f"{log.others[0]}",
            "another cluster with this id may have written it",
        )
    return found


def _is_below(folder: str, file: StoredFile) -> bool:
    return file.path.startswith(f"{folder}/")


def filled_gaps(progress: Mapping[str, ClusterProgress]) -> dict[str, int]:
    """Return, by cluster, the first offset that the state had to skip and that bronze has now."""
    found: dict[str, int] = {}
    for cluster_id, known in progress.items():
        ranges = covered(known.spans)
        for start, end in known.unknown:
            if not uncovered(ranges, start, end + 1):
                found[cluster_id] = min(start, found.get(cluster_id, start))
    return found
