"""Logs that begin after offset 0 without a snapshot, but whose earlier state the warehouse knows.

The source reports such a log as a problem (`LogDirectory.unknown_start`). For the warehouse it is
none when an earlier job has ingested what comes before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.spark.files.layout import UNKNOWN_START
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.lineage import EpochGroup, covered
from quorate.spark.tables.survey import NOTE, InputSurvey, SnapshotFile, SourceRows, replica_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BASE: Final = re.compile(r"(\d{20})\.log$")


def without_known_starts(
    rows: SourceRows, survey: InputSurvey, progress: Mapping[str, ClusterProgress]
) -> tuple[SourceRows, InputSurvey]:
    """The rows and their survey without problems of log starts that the warehouse knows."""
    notes = [
        (cluster_id, file)
        for cluster_id, file in survey.notes
        if not _is_about_end(file, survey.groups.get(cluster_id, ()))
        and is_known_start(file, progress.get(cluster_id), survey.snapshots)
    ]
    if not notes:
        return rows, survey
    files = [file for _, file in notes]

    def others(columns: Sequence[str], where: str = "") -> DataFrame:
        from pyspark.sql import functions as F

        found = rows(columns, where)
        if "problem" not in columns:
            return found
        about = (
            F.expr(NOTE) & F.col("file").isin(files) & F.col("problem").startswith(UNKNOWN_START)
        )
        return found.where(~F.coalesce(about, F.lit(False)))

    left = [note for note in survey.notes if note not in notes]
    return others, replace(survey, damaged=survey.damaged - len(notes), notes=left)


def _is_about_end(file: str, groups: Iterable[EpochGroup]) -> bool:
    """Whether the note is about an empty newest segment (`LogDirectory.lost_end`).

    Its replica has no record in the segment. A warehouse that knows the lost records does not make
    the log whole.
    """
    base = _BASE.search(file)
    last = max((one.last for one in groups if one.replica == replica_of(file)), default=-1)
    return base is not None and last < int(base[1])


def is_known_start(
    file: str, known: ClusterProgress | None, snapshots: Iterable[SnapshotFile]
) -> bool:
    """Whether the warehouse knows the state at the start of this segment, or all log before it.

    When a snapshot of that offset or later is in the input, the note is about another problem.
    """
    base = _BASE.search(file)
    if base is None or known is None:
        return False
    start = int(base[1])
    beside = (one.offset for one in snapshots if replica_of(one.file) == replica_of(file))
    if any(offset >= start for offset in beside):
        return False
    whole = any(first == 0 and end >= start for first, end in covered(known.spans))
    is_gap = any(low < start < high for low, high in known.unknown)
    return whole or ((known.applied_end or 0) >= start and not is_gap)
