"""Decides what bronze and the state must take back; `rewind` carries it out.

Bronze may hold records that were never committed: the end of a log that was copied before a later
leader truncated it. When a log of a later epoch contradicts them, they go to the quarantine
(`superseded`), and the state is rewound to before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.findings import TakenBackRange, taken_back
from quorate.spark.tables.lineage import committed_lineage, covered, superseded_range, uncovered
from quorate.spark.tables.read_version import ReadVersion, check_version, read_again
from quorate.spark.tables.rewind import rewind
from quorate.spark.tables.store import ConcurrentRunError
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
from quorate.spark.tables.survey import InputSurvey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ranges_to_take_back(
    survey: InputSurvey, progress: Mapping[str, ClusterProgress]
) -> dict[str, TakenBackRange]:
    """By cluster, the range of bronze that was never committed, and the log that contradicts it."""
    return {
        id: taken_back(progress[id].spans, survey.groups[id], start, end)
        for id, (start, end) in superseded_ranges(survey, progress).items()
    }


def superseded_ranges(
    survey: InputSurvey, progress: Mapping[str, ClusterProgress]
) -> dict[str, tuple[int, int]]:
    """By cluster, the range [start, end) of bronze that the input contradicts."""
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
            run = rewind(spark, read, cluster_id, part.start, part.end)
            note_taken_back(of_cluster(summary, cluster_id), part)
            read = read_again(read, run)
        except ConcurrentRunError as error:
            raise OvertakenError(error, committed_part(summary)) from None
    return read


def filled_gaps(progress: Mapping[str, ClusterProgress]) -> dict[str, int]:
    """By cluster, the first offset that the state had to skip and that bronze has now."""
    found: dict[str, int] = {}
    for cluster_id, known in progress.items():
        ranges = covered(known.spans)
        for start, end in known.unknown:
            if not uncovered(ranges, start, end + 1):
                found[cluster_id] = min(start, found.get(cluster_id, start))
    return found
