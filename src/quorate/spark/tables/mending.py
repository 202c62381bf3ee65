"""Making a Delta warehouse's lost commits again: look first, then write what is missing.

What a run did to a table is told by its plan, and by nothing else once the commit is gone. A commit
that is lost between sound ones is written again in its place; sound ones are never moved, so that
one that comes back from a backup is all that is needed. Where no plan tells what was lost, a table
that can be told anew is marked (`DeltaStore.robbed`); for any other nothing is changed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow.parquet as pq

from quorate.spark.tables.delta import DeltaStore
from quorate.spark.tables.delta_log import ASIDE, RUNS, RUNS_PATH, Log, commit_text, creation_text
from quorate.spark.tables.files import DataFile, found_file, run_of
from quorate.spark.tables.layout import CONTROL, STATE, TABLES, table_path
from quorate.spark.tables.store import Plan, Store, WarehouseError

_TOLD_ANEW: Final = (*STATE, "log")
REPAIR: Final = "repair"
_BACKUP: Final = "put it back from a backup, or take the logs into a new warehouse"


def mend(store: Store) -> list[str]:
    """Put right what `Store.recover` refuses; what was done, in words.

    Raises WarehouseError, with all sound commits in place.
    """
    if not isinstance(store, DeltaStore):
        return []
    done = _Mender(store).mend()
    if store.recover_mended():
        done.append("commits that were lost are made again, by the plans of their runs")
    return done


class _Mender:
    def __init__(self, store: DeltaStore) -> None:
        self._store = store
        self._names = store.plan_names()

    def mend(self) -> list[str]:
        done = list(self._mend_runs())
        logs = {table: self._log(table_path(table)) for table in TABLES}
        newest = max(log.reached for log in logs.values())
        recorded = self._log(RUNS_PATH).reached
        again = range(recorded + 1, newest + 1)
        for run in again:
            self._store.plan_name(run)  # or it is refused
        last = max(newest, recorded)
        due = self._store.plan_of(last).last_runs if last else {}
        gaps = {table: list(self._gaps(table, logs[table], due)) for table in TABLES}
        for table in CONTROL:
            gaps[table] = [self._replaced(gap, logs[table]) for gap in gaps[table]]
        unknown = [gap for found in gaps.values() for gap in found if gap.plans is None]
        hopeless = [gap.words(self._store) for gap in unknown if gap.table not in _TOLD_ANEW]
        if hopeless:
            raise WarehouseError("; ".join(hopeless))
        if unknown:
            self._store.mark_robbed({gap.table for gap in unknown} | self._store.robbed())
        for table in TABLES:
            done += self._mend_table(table, logs[table], gaps[table])
        for run in again:
            self._store.record_again(run)
            done.append(f"{RUNS_PATH}: run {run} is recorded again")
        return done

    def _log(self, path: str) -> Log:
        return Log(self._store.fs, self._store.path(path, "_delta_log"))

    def _gaps(self, table: str, log: Log, due: dict[str, int]) -> Iterator[Gap]:
        """Where the log of a table lacks something, and the plans that tell it."""
        for hole in log.holes:
            lost = self._lost(table, log, hole, due)
            if lost or not log.empty.issuperset(hole):
                yield Gap(table, hole, lost)
        reached, last = log.reached, due.get(table, 0)
        if last > reached:
            tail = range(log.top + 1, max(log.top + 2, 2))
            yield Gap(table, tail, self._chain(table, reached, last), last)

    def _replaced(self, gap: Gap, log: Log) -> Gap:
        """The same of a table whose every run replaces all of it: it has the files of the last."""
        if gap.plans is not None:
            return gap
        plan = Plan(gap.last or log.run_before(gap.versions.start), REPAIR)
        plan.remove(gap.table, log.live(gap.versions.start))
        if gap.last:
            base = self._store.path(table_path(gap.table))
            places = (posixpath.relpath(info.path, base) for info in self._store.listing(base))
            found = [path for path in places if run_of(path) == gap.last]
            if len(found) != 1:
                return gap
            plan.add(found_file(self._store.root, gap.table, found[0]))
        return replace(gap, plans=[plan], last=0)

    def _lost(self, table: str, log: Log, hole: range, due: dict[str, int]) -> list[Plan] | None:
        """The plans, in order, of the runs of a hole; None where one is gone."""
        reached, after = log.run_before(hole.start), log.run_after(hole.stop)
        end = due.get(table, 0) + 1 if after is None else after
        between = (run for run in sorted(self._names) if reached < run < end)
        mine = [p for run in between for p in self._plans(run) if table in p.tables]
        versions = len(hole) - (hole.start == 0)
        if len(mine) == versions:  # a run is one version at most: there was no other
            return mine
        last = due.get(table, 0)
        if after is not None:
            following = self._plans(after)
            if not following:
                return None
            last = following[0].before.get(table, 0)
        found = self._chain(table, reached, last)
        return None if found is None or len(found) > versions else found

    def _chain(self, table: str, reached: int, run: int) -> list[Plan] | None:
        """The plans of the runs that changed the table, back from one; None where one is gone."""
        found: list[Plan] = []
        while run > reached:
            plans = self._plans(run)
            if len(plans) != 1:
                return None
            found.append(plans[0])
            run = plans[0].before.get(table, 0)
        return found[::-1]

    def _plans(self, run: int) -> list[Plan]:
        """The plan of a run; none where it is gone or cannot be read."""
        if run not in self._names:
            return []
        try:
            return [self._store.plan_of(run)]
        except WarehouseError:
            return []

    def _mend_table(self, table: str, log: Log, gaps: Sequence[Gap]) -> Iterator[str]:
        path = table_path(table)
        yield from self._set_right(path, log)
        for gap in gaps:
            if gap.plans is not None and gap.last:
                continue  # `recover` makes the last commits again
            for version, text in gap.commits():
                self._write(path, version, text)
            how = "its rows are told anew" if gap.plans is None else "by the plan of its run"
            yield f"{path}: version {gap.versions.start} was lost or torn: made again, {how}"

    def _set_right(self, path: str, log: Log) -> Iterator[str]:
        """Let what is sound count, and what is torn be out of the way."""
        for version, commit in sorted(log.back.items()):
            self._move(path, commit.name, f"{version:020}.json")
        if log.back:
            yield f"{path}: commits that were set aside count again, from version {min(log.back)}"
        torn = [*log.torn_checkpoints, *(f"{version:020}.json" for version in log.torn)]
        for name in torn:
            self._move(path, name, name + ASIDE)
            yield f"{path}: {name} is torn, and set aside"

    def _mend_runs(self) -> Iterator[str]:
        """Runs are told by their data files, one for each."""
        log = self._log(RUNS_PATH)
        files = self._run_files(log) if log.holes else {}
        yield from self._set_right(RUNS_PATH, log)
        for hole in log.holes:
            runs = iter(range(log.run_before(hole.start) + 1, log.run_after(hole.stop) or 0))
            for version in hole:
                run = next(runs, 0) if version else 0
                one = files.get(run, [])
                text = commit_text(REPAIR, run, one if len(one) == 1 else [])
                self._write(RUNS_PATH, version, text if version else creation_text(RUNS))
            yield f"{RUNS_PATH}: version {hole.start} was lost or torn and is made again"

    def _run_files(self, log: Log) -> dict[int, list[DataFile]]:
        """By run the data file that no commit names."""
        found: dict[int, list[DataFile]] = {}
        base = self._store.path(RUNS_PATH)
        for info in self._store.listing(base):
            name = posixpath.relpath(info.path, base)
            if name.endswith(".parquet") and "/" not in name and name not in log.adds:
                rows = pq.read_table(info.path, filesystem=self._store.fs, columns=["run"])
                for run in rows.column("run").to_pylist():
                    file = DataFile("runs", name, info.size, rows.num_rows, '{"numRecords":1}')
                    found.setdefault(run, []).append(file)
        return found

    def _write(self, path: str, version: int, text: str) -> None:
        self._store.write_text(self._store.path(path, "_delta_log", f"{version:020}.json"), text)

    def _move(self, path: str, name: str, to: str) -> None:
        folder = self._store.path(path, "_delta_log")
        self._store.fs.move(posixpath.join(folder, name), posixpath.join(folder, to))


@dataclass(frozen=True)
class Gap:
    """Versions of a table's log that are lost."""

    table: str
    versions: range
    plans: Sequence[Plan] | None
    """Of the runs that wrote them; None where they are not known."""
    last: int = 0
    """Of the end of a log the run that it should have come to."""

    def words(self, store: DeltaStore) -> str:
        """What is missing, and what to do."""
        log = f"{store.place(self.table)}/_delta_log"
        version = f"{self.versions.start:020}.json"
        return (
            f"{log}/{version} is lost or torn, and control/_plans has no plan that tells what it "
            f"said: {_BACKUP}; nothing has been changed"
        )

    def commits(self) -> Iterator[tuple[int, str]]:
        """What is written in their places."""
        plans = list(self.plans or ())
        for version in self.versions:
            if version == 0:
                yield version, creation_text(TABLES[self.table])
            elif plans:
                plan = plans.pop(0)
                adds, removes = plan.adds.get(self.table, ()), plan.removes.get(self.table, ())
                yield version, commit_text(plan.job, plan.run, adds, removes)
            else:
                yield version, commit_text(REPAIR, self.last)
