"""Marks rows of the quarantine as resolved: the place that a row names is sound now.

A row is resolved by a run that finds its place sound, and `resolved_run` is the number of that run.
Resolved rows lie in the folder `resolved` of their cluster, so that jobs read only the open ones.
Damage that comes back gets a new row.

How a row of each reason is resolved:

damaged     Its file was read again from before the damage, and has none there. Or its file was not
            read, and the log has all offsets now that the damage had (`covered_damage`).
divergent, superseded
            its replica was read again, and no longer has this offset from this epoch
disagrees   the same, or its replica now has the content that the log has
unknown     the log no longer has this offset from this epoch
misfit      the same, or the record fits the state when it is applied again (`apply_log`)
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.file_tasks import write_rows
from quorate.spark.tables.files import (
    DataFile,
    WriteTarget,
    file_name,
    hidden_name,
    read_file,
    safe_name,
)
from quorate.spark.tables.lineage import EpochGroup, covered, uncovered
from quorate.spark.tables.store import RunPlan, StoredFile, TableFiles
from quorate.spark.tables.survey import replica_of

QUARANTINE_TABLE: Final = "quarantine"
_RESOLVED: Final = "resolved"
MISFIT: Final = "misfit"
_OF_THE_LOG: Final = ("unknown", MISFIT)
"""Reasons of records that are in the log."""


class BadPlace(NamedTuple):
    """What a row of the quarantine names."""

    cluster_id: str
    reason: str
    file: str
    position: int
    length: int
    offset: int | None
    epoch: int | None
    problem: str


class FileReading(NamedTuple):
    """What a job read of one file."""

    start: int
    end: int
    """Exclusive."""
    damage: tuple[tuple[int, int], ...] = ()
    """(position, length) of each piece that cannot be read."""

    def is_sound(self, place: BadPlace, whole: bool) -> bool:
        """Whether the place was read and has no damage.

        whole: the job reads files to their end, so a place behind it no longer exists
        """
        first, end = place.position, place.position + max(place.length, 1)
        if first < self.start or (not whole and end > self.end):
            return False
        return not any(at < end and first < at + max(size, 1) for at, size in self.damage)


@dataclass(frozen=True)
class Findings:
    """What a job knows of the places that the quarantine names."""

    groups: Mapping[str, Iterable[EpochGroup]]
    """By cluster, the records of each replica of the input."""
    progress: Mapping[str, ClusterProgress]
    """After the job has taken its records."""
    files: Mapping[str, FileReading] = field(default_factory=dict)
    covered: Collection[BadPlace] = ()
    """Damage whose offsets the log has now."""
    agreeing: Collection[BadPlace] = ()
    """Records that now have the content of the log."""
    whole: bool = True
    """Whether the job reads files to their end; a stream does not."""

    def resolves(self, place: BadPlace) -> bool:
        """Whether the place is sound now."""
        if place.reason == "damaged":
            read = self.files.get(place.file)
            return place in self.covered if read is None else read.is_sound(place, self.whole)
        if place.offset is None or place.epoch is None:
            return False
        if place.reason in _OF_THE_LOG:
            return not self._log_has(place.cluster_id, place.offset, place.epoch)
        return place in self.agreeing or self._has_changed(place)

    def offers(self, place: BadPlace) -> bool:
        """Whether the replica of the place has its offset from its epoch."""
        return any(
            group.epoch == place.epoch and group.first <= (place.offset or 0) <= group.last
            for group in self._replica(place)
        )

    def _log_has(self, cluster_id: str, offset: int, epoch: int) -> bool:
        known = self.progress.get(cluster_id, ClusterProgress(cluster_id))
        return any(s.epoch == epoch and s.start <= offset < s.end for s in known.spans)

    def _has_changed(self, place: BadPlace) -> bool:
        groups, offset = list(self._replica(place)), place.offset or 0
        was_read = (
            min((group.first for group in groups), default=offset + 1) <= offset
            if self.whole
            else any(group.first <= offset <= group.last for group in groups)
        )
        return was_read and not self.offers(place)

    def _replica(self, place: BadPlace) -> Iterator[EpochGroup]:
        replica = replica_of(place.file)
        groups = self.groups.get(place.cluster_id, ())
        return (group for group in groups if group.replica == replica)


def is_open(file: StoredFile) -> bool:
    """Whether a file of the quarantine may have rows that are not resolved."""
    return f"/{_RESOLVED}/" not in file.path


def open_places(tables: TableFiles, clusters: Iterable[str]) -> dict[str, list[BadPlace]]:
    """Return, by file of the quarantine, the places of these clusters that are not resolved."""
    folders = set(map(safe_name, clusters))
    found = {}
    for file in tables.files(QUARANTINE_TABLE):
        if is_open(file) and file.path.partition("/")[0] in folders:
            rows = read_file(tables.root, QUARANTINE_TABLE, file.path)
            found[file.path] = _places(rows)
    return found


def count_misfits(tables: TableFiles, cluster_id: str, end: int) -> int:
    """The open misfits of a cluster before an offset."""
    every = (place for some in open_places(tables, [cluster_id]).values() for place in some)
    return sum(one.reason == MISFIT and (one.offset or 0) < end for one in every)


def plan_misfits(
    tables: TableFiles, plan: RunPlan, applied: Mapping[str, Collection[tuple[int, int]]]
) -> list[BadPlace]:
    """Plan what a run that applies records to the state does with open misfits among them.

    applied: by cluster, the ranges [start, end) of offsets that the run applies

    A record that fits now is resolved. One that does not fit again has a new row in the plan, which
    replaces the old one. Returns the resolved places.
    """
    again = {
        (place.cluster_id, place.offset)
        for file in plan.adds.get(QUARANTINE_TABLE, ())
        for place in _places(_written(tables, file))
    }
    places = {
        path: here
        for path, here in open_places(tables, applied).items()
        if any(_is_applied(place, applied) for place in here)
    }
    return plan_resolved(
        tables,
        plan,
        places,
        lambda place: _is_applied(place, applied),
        lambda place: _is_applied(place, applied) and (place.cluster_id, place.offset) in again,
    )


def _is_applied(place: BadPlace, applied: Mapping[str, Collection[tuple[int, int]]]) -> bool:
    return place.reason == MISFIT and any(
        start <= (place.offset or 0) < end for start, end in applied.get(place.cluster_id, ())
    )


def _written(tables: TableFiles, file: DataFile) -> pa.Table:
    """The rows of a new file of the plan, which is not committed yet."""
    path = hidden_name(file.path) if tables.hidden else file.path
    return read_file(tables.root, QUARANTINE_TABLE, path)


def _places(rows: pa.Table) -> list[BadPlace]:
    names = ("cluster_id", "reason", "file", "position", "batch_length", "offset", "epoch")
    columns = [rows.column(name).to_pylist() for name in (*names, "problem")]
    return [
        BadPlace(id, why, file or "", position or 0, length or 0, offset, epoch, problem or "")
        for id, why, file, position, length, offset, epoch, problem in zip(*columns, strict=True)
    ]


def plan_resolved(
    tables: TableFiles,
    plan: RunPlan,
    places: Mapping[str, list[BadPlace]],
    is_resolved: Callable[[BadPlace], bool],
    is_replaced: Callable[[BadPlace], bool] = lambda place: False,
) -> list[BadPlace]:
    """Plan that the run marks rows as resolved. Returns their places.

    places: as `open_places` gave them
    is_replaced: whether the run writes the row again, so that the old one leaves the table
    """
    resolved: list[BadPlace] = []
    marked: dict[str, list[pa.Table]] = {}
    for path, here in places.items():
        gone = [is_replaced(place) for place in here]
        sound = [not old and is_resolved(place) for place, old in zip(here, gone, strict=True)]
        if not any(sound) and not any(gone):
            continue
        rows = read_file(tables.root, QUARANTINE_TABLE, path)
        left = [not (a or b) for a, b in zip(sound, gone, strict=True)]
        folder = path.partition("/")[0]
        plan.remove(QUARANTINE_TABLE, [path])
        _write(tables, plan, f"{folder}/{file_name('open', plan.run)}", rows.filter(pa.array(left)))
        marked.setdefault(folder, []).append(_with_run(rows.filter(pa.array(sound)), plan.run))
        resolved += [place for place, yes in zip(here, sound, strict=True) if yes]
    for folder, parts in marked.items():
        path = posixpath.join(folder, _RESOLVED, file_name(_RESOLVED, plan.run))
        _write(tables, plan, path, _with_earlier(tables, plan, folder, pa.concat_tables(parts)))
    return resolved


def _with_earlier(tables: TableFiles, plan: RunPlan, folder: str, rows: pa.Table) -> pa.Table:
    """The rows and those that earlier runs resolved: one row for a place that was bad repeatedly.

    Such a row has the first run that found it bad, and the last that found it sound.
    """
    parts = [rows]
    for file in tables.files(QUARANTINE_TABLE):
        if not is_open(file) and file.path.partition("/")[0] == folder:
            parts.append(read_file(tables.root, QUARANTINE_TABLE, file.path))
            plan.remove(QUARANTINE_TABLE, [file.path])
    if len(parts) == 1:
        return rows
    every = pa.concat_tables(parts).sort_by([("run", "ascending")])
    at: dict[BadPlace, int] = {}
    first = [at.setdefault(place, row) for row, place in enumerate(_places(every))]
    last = every.column("resolved_run").to_pylist()
    newest: dict[int, int] = {}
    for row, run in zip(first, last, strict=True):
        newest[row] = max(run, newest.get(row, run))
    kept = every.take(pa.array(sorted(newest)))
    index = kept.schema.get_field_index("resolved_run")
    runs = pa.array([newest[row] for row in sorted(newest)], pa.int64())
    return kept.set_column(index, kept.schema.field(index), runs)


def _with_run(rows: pa.Table, run: int) -> pa.Table:
    index = rows.schema.get_field_index("resolved_run")
    runs = pa.array([run] * rows.num_rows, pa.int64())
    return rows.set_column(index, rows.schema.field(index), runs)


def _write(tables: TableFiles, plan: RunPlan, path: str, rows: pa.Table) -> None:
    target = WriteTarget(tables.root, plan.run, tables.hidden)
    for file in write_rows(target, QUARANTINE_TABLE, path, rows):
        plan.add(DataFile(**file))


def missing_offsets(
    progress: ClusterProgress, low: int | None, high: int | None
) -> list[tuple[int, int]]:
    """The offsets of a damage that the log lacks, as ranges [start, end).

    low: the first offset that the damage may have had; None: not known
    high: the first offset after it; None: nothing is known after it, so one record is looked for
    """
    start = 0 if low is None else low
    return uncovered(covered(progress.spans), start, start + 1 if high is None else high)


def of_run(rows: pa.Table, old: int, new: int) -> pa.Table:
    """The rows of the quarantine with another number for the run that writes them."""
    for name in ("run", "resolved_run"):
        index = rows.schema.get_field_index(name)
        column = rows.column(name)
        runs = pc.if_else(pc.fill_null(pc.equal(column, old), False), pa.scalar(new), column)
        rows = rows.set_column(index, rows.schema.field(index), runs)
    return rows
