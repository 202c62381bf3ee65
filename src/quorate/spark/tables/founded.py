"""Logs that begin where the warehouse has come to: what came before them is known, so no fault."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.spark.files.layout import UNFOUNDED
from quorate.spark.tables.control import Progress
from quorate.spark.tables.lineage import covered
from quorate.spark.tables.survey import NOTE, Rows, SnapshotFile, Survey, replica_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BASE: Final = re.compile(r"(\d{20})\.log$")


def without_founded(
    rows: Rows, told: Survey, progress: Mapping[str, Progress]
) -> tuple[Rows, Survey]:
    """The rows, and what their headers tell, without a word on starts that the warehouse knows."""
    notes = [
        (cluster_id, file)
        for cluster_id, file in told.notes
        if _is_founded(file, progress.get(cluster_id), told.snapshots)
    ]
    if not notes:
        return rows, told
    files = [file for _, file in notes]

    def others(columns: Sequence[str], where: str = "") -> DataFrame:
        from pyspark.sql import functions as F

        found = rows(columns, where)
        if "problem" not in columns:
            return found
        about = F.expr(NOTE) & F.col("file").isin(files) & F.col("problem").startswith(UNFOUNDED)
        return found.where(~F.coalesce(about, F.lit(False)))

    left = [note for note in told.notes if note not in notes]
    return others, replace(told, damaged=told.damaged - len(notes), notes=left)


def _is_founded(file: str, known: Progress | None, snapshots: Iterable[SnapshotFile]) -> bool:
    """Whether the state at the beginning of this file is known, or all of the log before it.

    With a snapshot beside it the note is about something else.
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
