"""Repairs the lost commits of a Delta warehouse: first finds them all, then writes them again.

A commit that is gone can only be written again from the plan of its run. Valid commits are never
moved or changed, so a commit restored from a backup always fits. Where no plan is left:

- a table that can be rebuilt from bronze is marked (`DeltaStore.tables_to_rebuild`);
- a control table, which each run writes as a whole, gets the file of its last run;
- for any other table, the repair is refused before it changes anything.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow.parquet as pq

from quorate.spark.tables.delta import DeltaStore
from quorate.spark.tables.delta_log import (
    RUNS_PATH,
    SET_ASIDE_SUFFIX,
    DeltaLog,
    commit_text,
)
from quorate.spark.tables.delta_texts import creation_text
from quorate.spark.tables.files import DataFile, existing_file, run_of
from quorate.spark.tables.layout import CONTROL, STATE, TABLES, table_path
from quorate.spark.tables.store import RunPlan, TableStore, WarehouseError

_REBUILDABLE: Final = (*STATE, "log")
REPAIR: Final = "repair"
_BACKUP: Final = "restore it from a backup, or ingest the logs into a new warehouse"


def repair_commits(store: TableStore) -> list[str]:
    """Repair what `TableStore.recover` refuses. Returns texts of what was done.

    Raises WarehouseError; all valid commits are in place then.
    """
    if not isinstance(store, DeltaStore):
        return []
    done = _CommitRepair(store).repair()
    if store.recover_after_repair():
        done.append("lost commits are written again, from the plans of their runs")
    return done


class _CommitRepair:
    """The repair of one warehouse."""

    def __init__(self, store: DeltaStore) -> None:
        self._store = store
        self._names: dict[int, list[str]] = {}

    def repair(self) -> list[str]:
        """Returns texts of what was done. Raises WarehouseError.

        1. Repair the table of runs: its data files name the runs, so it needs no plans.
        2. Read the log of each table, and find the runs that are not recorded but that tables have.
        3. Find the gaps of each table and the plans that fill them. The last plan names the run
           that each table should have.
        4. Refuse if a gap has no plan and its table cannot be rebuilt. Nothing has changed yet,
           except in the table of runs.
        5. Mark the tables to rebuild, before the first commit that would make them readable.
        6. Write the missing commits, then record the runs again. The end of a log is left to
           `recover`, which applies the last plans as after any crash.
        """
        done = list(self._repair_runs())
        logs = {table: self._log(table_path(table)) for table in TABLES}
        newest = max(log.last_run for log in logs.values())
        recorded = self._log(RUNS_PATH).last_run
        # other jobs may be at work: each run that the logs above have had its plan before
        self._names = self._store.plan_names()
        again = range(recorded + 1, newest + 1)
        for run in again:
            self._store.plan_name(run)  # raises when there is none
        last = max(newest, recorded)
        due = self._store.plan_of(last).last_runs if last else {}
        gaps = {table: list(self._gaps(table, logs[table], due)) for table in TABLES}
        for table in CONTROL:
            gaps[table] = [self._replaced(gap, logs[table]) for gap in gaps[table]]
        unknown = [gap for found in gaps.values() for gap in found if gap.plans is None]
        hopeless = [gap.describe(self._store) for gap in unknown if gap.table not in _REBUILDABLE]
        if hopeless:
            raise WarehouseError("; ".join(hopeless))
        if unknown:
            self._store.mark_for_rebuild(
                {gap.table for gap in unknown} | self._store.tables_to_rebuild()
            )
        for table in TABLES:
            done += self._repair_table(table, logs[table], gaps[table])
        for run in again:
            self._store.record_again(run)
            done.append(f"{RUNS_PATH}: run {run} is recorded again")
        return done

    def _log(self, path: str) -> DeltaLog:
        return DeltaLog(self._store.fs, self._store.path(path, "_delta_log"))

    def _gaps(self, table: str, log: DeltaLog, due: dict[str, int]) -> Iterator[LogGap]:
        """The gaps in the log of a table, and the plans that fill them.

        due: by table, the last run that changed it
        """
        for hole in log.holes:
            lost = self._lost(table, log, hole, due)
            if lost or not log.empty.issuperset(hole):
                yield LogGap(table, hole, lost)
        last_run, last = log.last_run, due.get(table, 0)
        if last > last_run:
            tail = range(log.last_version + 1, max(log.last_version + 2, 2))
            yield LogGap(table, tail, self._chain(table, last_run, last), last)

    def _replaced(self, gap: LogGap, log: DeltaLog) -> LogGap:
        """The gap of a control table: without a plan, its last file replaces all others."""
        if gap.plans is not None:
            return gap
        plan = RunPlan(gap.last or log.run_before(gap.versions.start), REPAIR)
        plan.remove(gap.table, log.live(gap.versions.start))
        if gap.last:
            base = self._store.path(table_path(gap.table))
            places = (posixpath.relpath(info.path, base) for info in self._store.listing(base))
            found = [path for path in places if run_of(path) == gap.last]
            if len(found) != 1:
                return gap
            plan.add(existing_file(self._store.root, gap.table, found[0]))
        return replace(gap, plans=[plan], last=0)

    def _lost(
        self, table: str, log: DeltaLog, hole: range, due: dict[str, int]
    ) -> list[RunPlan] | None:
        """The plans, in order, of the runs in a gap; None when one is missing.

        1. If as many plans between the neighbours name the table as versions are missing, these
           are the plans: a run is one version of a table at most.
        2. Otherwise follow `before` back from the run after the gap. Other versions of the gap
           belong to no run.
        """
        last_run, after = log.run_before(hole.start), log.run_after(hole.stop)
        end = due.get(table, 0) + 1 if after is None else after
        between = (run for run in sorted(self._names) if last_run < run < end)
        mine = [p for run in between for p in self._plans(run) if table in p.tables]
        versions = len(hole) - (hole.start == 0)
        if len(mine) == versions:
            return mine
        last = due.get(table, 0)
        if after is not None:
            following = self._plans(after)
            if not following:
                return None
            last = following[0].before.get(table, 0)
        found = self._chain(table, last_run, last)
        return None if found is None or len(found) > versions else found

    def _chain(self, table: str, last_run: int, run: int) -> list[RunPlan] | None:
        """The plans of runs that changed the table after `last_run`, up to `run`; None: one is gone."""
        found: list[RunPlan] = []
        while run > last_run:
            plans = self._plans(run)
            if len(plans) != 1:
                return None
            found.append(plans[0])
            run = plans[0].before.get(table, 0)
        return found[::-1]

    def _plans(self, run: int) -> list[RunPlan]:
        """The plan of a run; an empty list when it is gone or cannot be read."""
        if run not in self._names:
            return []
        try:
            return [self._store.plan_of(run)]
        except WarehouseError:
            return []

    def _repair_table(self, table: str, log: DeltaLog, gaps: Sequence[LogGap]) -> Iterator[str]:
        path = table_path(table)
        yield from self._set_right(path, log)
        for gap in gaps:
            if gap.plans is not None and gap.last:
                continue  # `recover` writes the last commits again
            for version, text in gap.commits():
                self._write(path, version, text)
            how = "its rows are rebuilt" if gap.plans is None else "from the plan of its run"
            yield f"{path}: version {gap.versions.start} was lost or torn: written again, {how}"

    def _set_right(self, path: str, log: DeltaLog) -> Iterator[str]:
        """Rename commits that count again to their names, and torn files out of the way."""
        for version, commit in sorted(log.restored.items()):
            self._move(path, commit.name, f"{version:020}.json")
        if log.restored:
            yield f"{path}: commits that were set aside count again, from version {min(log.restored)}"
        torn = [*log.torn_checkpoints, *(f"{version:020}.json" for version in log.torn)]
        for name in torn:
            self._move(path, name, name + SET_ASIDE_SUFFIX)
            yield f"{path}: {name} is torn, and set aside"

    def _repair_runs(self) -> Iterator[str]:
        """Repair the table of runs from its data files: there is one for each run."""
        log = self._log(RUNS_PATH)
        files = self._run_files(log) if log.holes else {}
        yield from self._set_right(RUNS_PATH, log)
        for hole in log.holes:
            runs = iter(range(log.run_before(hole.start) + 1, log.run_after(hole.stop) or 0))
            for version in hole:
                run = next(runs, 0) if version else 0
                one = files.get(run, [])
                text = commit_text(REPAIR, run, one if len(one) == 1 else [])
                self._write(RUNS_PATH, version, text if version else creation_text(RUNS_PATH))
            yield f"{RUNS_PATH}: version {hole.start} was lost or torn and is written again"

    def _run_files(self, log: DeltaLog) -> dict[int, list[DataFile]]:
        """Return, by run, the data files that no commit names."""
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
class LogGap:
    """Lost versions in the log of a table."""

    table: str
    versions: range
    plans: Sequence[RunPlan] | None
    """The plans of the runs that wrote them; None: not known."""
    last: int = 0
    """At the end of a log, the run that the table should have."""

    def describe(self, store: DeltaStore) -> str:
        """The text of what is missing, and what to do."""
        log = f"{store.place(self.table)}/_delta_log"
        version = f"{self.versions.start:020}.json"
        return (
            f"{log}/{version} is lost or torn, and control/_plans has no plan of its run: {_BACKUP}; "
            "nothing has been changed"
        )

    def commits(self) -> Iterator[tuple[int, str]]:
        """(version, text) of the commits to write."""
        plans = list(self.plans or ())
        for version in self.versions:
            if version == 0:
                yield version, creation_text(table_path(self.table))
            elif plans:
                plan = plans.pop(0)
                adds, removes = plan.adds.get(self.table, ()), plan.removes.get(self.table, ())
                yield version, commit_text(plan.job, plan.run, adds, removes)
            else:
                yield version, commit_text(REPAIR, self.last)
