"""Rebuilds the bronze table `log` from the data files in its folder.

The table `epochs` says which epoch wrote which offsets, and two records of one epoch and offset are
equal. So each file with such a record is as good as another. Files that the table still names come
first; of the others, only what these lack.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.file_tasks import write_rows
from quorate.spark.tables.files import (
    DataFile,
    WriteTarget,
    existing_file,
    file_name,
    read_file,
    run_of,
    safe_name,
)
from quorate.spark.tables.layout import table_path
from quorate.spark.tables.lineage import EpochSpan, uncovered, union
from quorate.spark.tables.store import RunPlan, TableFiles

Ranges = list[tuple[int, int]]
LOG: Final = "log"


def plan_log_rebuild(
    tables: TableFiles, plan: RunPlan, progress: Mapping[str, ClusterProgress]
) -> dict[str, Ranges]:
    """Plan that the table names each record that a file has.

    Returns by cluster the offsets that no file has, as ranges [start, end).
    """
    live = {file.path for file in tables.files(LOG)}
    there = set(_there(tables, plan.run))
    plan.remove(LOG, sorted(live - there))
    lost = {}
    for cluster_id, known in progress.items():
        mine = [path for path in there if path.startswith(f"{safe_name(cluster_id)}/")]
        held: Ranges = []
        for path in sorted(mine, key=lambda path: (path not in live, path)):
            held = _take(tables, plan, path, path in live, known.spans, held)
        lost[cluster_id] = [p for s in known.spans for p in uncovered(held, s.start, s.end)]
    return lost


def _there(tables: TableFiles, run: int) -> Iterator[str]:
    """The paths of files of earlier runs in the folder of the table."""
    base = tables.path(table_path(LOG))
    for info in tables.listing(base):
        path = posixpath.relpath(info.path, base)
        if path.endswith(".parquet") and 0 < run_of(path) < run:
            yield path


def _take(
    tables: TableFiles,
    plan: RunPlan,
    path: str,
    is_live: bool,
    spans: Sequence[EpochSpan],
    held: Ranges,
) -> Ranges:
    """Plan that the table has the records of a file that are in the log and not in `held` yet.

    1. A file with only such records is named as it is.
    2. Otherwise those records are written to a new file.

    Returns what the table has then.
    """
    found = list(_ranges(tables, path))
    right = [
        piece
        for span in spans
        for epoch, start, end in found
        if epoch == span.epoch and max(start, span.start) < min(end, span.end)
        for piece in uncovered(held, max(start, span.start), min(end, span.end))
    ]
    if _count(right) == _count((start, end) for _, start, end in found):
        if not is_live:
            plan.add(existing_file(tables.root, LOG, path))
        return union([*held, *right])
    if is_live:
        plan.remove(LOG, [path])
    if right:
        rows = read_file(tables.root, LOG, path)
        offsets = rows.column("offset").to_numpy()
        kept = rows.filter(pa.array(_within(offsets, right)))
        place = WriteTarget(tables.root, plan.run, tables.hidden)
        folder = path.rpartition("/")[0]
        for file in write_rows(place, LOG, f"{folder}/{file_name('held', plan.run)}", kept):
            plan.add(DataFile(**file))
    return union([*held, *right])


def _ranges(tables: TableFiles, path: str) -> Iterator[tuple[int, int, int]]:
    """(epoch, start, end) of each part of a file without a gap; end exclusive."""
    full = posixpath.join(tables.path(table_path(LOG)), path)
    rows = pq.read_table(full, filesystem=tables.fs, columns=["offset", "epoch"], partitioning=None)
    if not rows.num_rows:
        return
    rows = rows.sort_by("offset")
    offsets, epochs = (rows.column(name).to_numpy() for name in ("offset", "epoch"))
    breaks = np.flatnonzero((np.diff(offsets) != 1) | (np.diff(epochs) != 0)) + 1
    firsts = [0, *breaks.tolist()]
    for first, last in zip(firsts, [*firsts[1:], len(offsets)], strict=True):
        yield int(epochs[first]), int(offsets[first]), int(offsets[last - 1]) + 1


def _within(offsets: np.ndarray, ranges: Ranges) -> np.ndarray:
    found = np.zeros(len(offsets), np.bool_)
    for start, end in ranges:
        found |= (offsets >= start) & (offsets < end)
    return found


def _count(ranges: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in ranges)
