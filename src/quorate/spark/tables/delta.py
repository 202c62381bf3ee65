"""The warehouse as Delta Lake tables: tasks write the data files, delta-rs commits their names.

How the commit protocol of `store` maps to Delta Lake:

1. The plan of run N is `control/_plans/<N>-<unique>.json`. Two jobs may write a plan for one N.
2. One commit to the table `control/runs` records the run. It names the plan, and carries
   `txn` (APP, N). Concurrent commits with a `txn` of one application conflict, so delta-rs accepts
   only one of two jobs; the other raises ConcurrentRunError.
3. Each changed table gets one commit, with the same `txn`. A table whose `txn` is N or later has
   the run already, so applying a plan twice changes nothing.

A lost or torn commit (power failure, incomplete copy) is never skipped in silence: a plan names the
last run that changed each table, and the `txn` of each table says which run it has.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from quorate.base.sentences import sentence
from quorate.spark.tables.delta_log import APP, RUNS_PATH
from quorate.spark.tables.delta_texts import create_table, describe, is_described
from quorate.spark.tables.files import arrow_rows, run_of
from quorate.spark.tables.layout import RUNS, TABLES, table_path
from quorate.spark.tables.store import (
    ConcurrentRunError,
    LostCommitError,
    RunPlan,
    StoredFile,
    TableStore,
    WarehouseError,
    WarehouseVersion,
    WarehouseWriteError,
    age_hours,
    parse_plan,
)

_PLANS: Final = "control/_plans"
_ODD: Final = re.compile(r"%[0-9A-Fa-f]{2}|[\[\]\\^|\x00-\x1f]")
"""Characters in a path that delta-rs 1.6 misreads: it decodes a path once too often, and takes a part of
some paths for a host name."""
_TRIES: Final = 3
"""How often to commit to a table: another process may change its texts meanwhile."""
_REBUILD_MARKER: Final = "control/_robbed.json"
"""The file with the tables that a repair is about to rebuild; it exists until they are."""


class DeltaStore(TableStore):
    """The tables in Delta Lake format."""

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        super().__init__(root)
        odd = _ODD.search(self.root)
        if odd is not None:
            raise WarehouseError(
                f"{root}: Delta Lake misreads {odd[0]!r} in the path of a warehouse: rename the "
                "folder, or use plain files (--format parquet)"
            )
        self._options = dict(storage_options or {})
        self._repairing = False
        self._complete = False

    def files(self, table: str) -> list[StoredFile]:
        return _stored_files(self._open(table_path(table)))

    def last_run(self) -> int:
        runs = self._open(RUNS_PATH)
        return 0 if runs is None else runs.transaction_version(APP) or 0

    def commit(self, plan: RunPlan) -> None:
        last = self._last_plan()
        if plan.run != (0 if last is None else last.run) + 1:
            raise ConcurrentRunError(self.root)
        plan.before = {} if last is None else last.last_runs
        self._check_files(plan)
        self._complete_tables()
        name = f"{plan.run:08d}-{uuid4().hex}.json"
        self.write_text(self.path(_PLANS, name), plan.to_json())
        self._record(plan, name)
        for table in plan.tables:
            self._apply_to(table, plan)

    def _complete_tables(self) -> None:
        """Let every table exist, with the columns and texts of this release, also an empty one."""
        if not self._complete:
            for path in (RUNS_PATH, *map(table_path, TABLES)):
                self._opened(path)
            self._complete = True

    def recover(self) -> bool:
        return self._finish()[0]

    def version(self) -> WarehouseVersion:
        _, run, tables = self._finish()
        return WarehouseVersion(self, run, lambda table: _stored_files(tables[table]))

    def _finish(self) -> tuple[bool, int, dict[str, Any | None]]:
        """Finish the last run. Returns whether there was something to do, the number of the run,
        and the tables as it left them; None for a table that does not exist.

        1. Open the tables first, then read the record of runs: a job that commits between the two
           makes the record newer, never the tables. In the other order its commit would look like
           a loss.
        2. Apply what the tables lack, and open them again. When they lack nothing, they are those
           of the last run: no later one was recorded when they were opened.
        """
        if not self._repairing and self.tables_to_rebuild():
            raise LostCommitError(
                f"{self.root}/{_REBUILD_MARKER}: a repair was not finished", self.root
            )
        changed = False
        while True:
            tables = self._tables()
            reached = {
                table: opened.transaction_version(APP) or 0
                for table, opened in tables.items()
                if opened is not None
            }
            last = self._last_plan()
            self._check_recorded(max(reached.values(), default=0), 0 if last is None else last.run)
            if last is None:
                return changed, 0, tables
            lacking = [
                (table, plan)
                for table in last.last_runs
                for plan in self._not_applied(table, last, reached.get(table, 0))
            ]
            for table, plan in lacking:
                changed = self._apply_to(table, plan) or changed
            if not lacking:
                return changed, last.run, tables

    def _check_recorded(self, newest: int, recorded: int) -> None:
        """Raise LostCommitError when a table has a later run than the record of runs."""
        if newest > recorded:
            what = (
                f"its last commit is lost: tables have run {newest}, but it has only run {recorded}"
            )
            raise LostCommitError(f"{self._uri(RUNS_PATH)}: {what}", self.root)

    def recover_after_repair(self) -> bool:
        """Recover, for the repair that has marked tables to rebuild itself."""
        self._repairing = True
        return self.recover()

    def tables_to_rebuild(self) -> set[str]:
        try:
            return set(json.loads(self.read_text(self.path(_REBUILD_MARKER))))
        except FileNotFoundError:
            return set()

    def mark_for_rebuild(self, tables: Iterable[str]) -> None:
        """Mark tables as incomplete until `mark_rebuilt`, also if this process is killed."""
        self.write_text(self.path(_REBUILD_MARKER), json.dumps(sorted(tables)))

    def mark_rebuilt(self) -> None:
        with suppress(FileNotFoundError):
            self.fs.delete_file(self.path(_REBUILD_MARKER))

    def _unused(self, keep_hours: int, happened: int) -> list[str]:
        found = []
        for table in TABLES:
            opened = self._open(table_path(table))
            if opened is not None:
                old = map(
                    unquote, opened.vacuum(keep_hours, enforce_retention_duration=False, full=True)
                )
                found += [
                    self.path(table_path(table), path)
                    for path in old
                    if path.endswith(".parquet") and run_of(path) <= happened
                ]
        return found + self._old_plans(keep_hours, happened)

    def _old_plans(self, keep_hours: int, happened: int) -> list[str]:
        """Paths of old plans: a plan is needed until its run is finished, so those of earlier runs.

        Repair needs plans too, for lost commits; checkpoints make them unnecessary.
        """
        older = {name for run, n in self.plan_names().items() if run < happened for name in n}
        plans = self.listing(self.path(_PLANS))
        old = [i.path for i in plans if i.base_name in older and age_hours(i) > keep_hours]
        if old:
            self._make_checkpoints()
        return old

    def _make_checkpoints(self) -> None:
        """Write a checkpoint of each table: a lost commit before it needs no plan to be repaired."""
        from deltalake.exceptions import DeltaError

        for path in (RUNS_PATH, *map(table_path, TABLES)):
            opened = self._open(path)
            if opened is not None:
                try:
                    opened.create_checkpoint()
                except (DeltaError, OSError) as error:
                    raise WarehouseWriteError(self._uri(path), error) from None

    def _record(self, plan: RunPlan, name: str) -> None:
        """Record the run: from this commit on it has happened."""
        from deltalake import CommitProperties, Transaction
        from deltalake.exceptions import DeltaError

        now = int(time.time() * 1000)
        row = (plan.run, plan.job, now * 1000, name, json.dumps(plan.summary))
        runs = self._opened(RUNS_PATH)
        if plan.run != (runs.transaction_version(APP) or 0) + 1:
            raise ConcurrentRunError(self.root)
        properties = CommitProperties(app_transactions=[Transaction(APP, plan.run)])
        # Written here: without room for it, delta-rs would print traces of its threads.
        add = self._write_run(f"{name.removesuffix('.json')}.parquet", row)
        for left in reversed(range(_TRIES)):
            try:
                runs.create_write_transaction([add], "append", RUNS, commit_properties=properties)
                return
            except (DeltaError, OSError) as error:
                if self.last_run() >= plan.run:
                    if self._recorded_plan_name(plan.run) == name:
                        return  # the commit counts: only its answer was lost
                    raise ConcurrentRunError(self.root) from None
                if not left:
                    raise WarehouseWriteError(self._uri(RUNS_PATH), error) from None
                runs = self._opened(RUNS_PATH)

    def _write_run(self, name: str, row: tuple[Any, ...]) -> Any:
        """Write the row of a run to a data file. Returns the action that adds it to the table."""
        from deltalake.transaction import AddAction

        path = self.path(RUNS_PATH, name)
        try:
            pq.write_table(arrow_rows([row], RUNS), path, filesystem=self.fs, compression="zstd")
        except OSError as error:
            raise WarehouseWriteError(path, error) from None
        bounds = {"run": row[0]}
        stats = {"numRecords": 1, "minValues": bounds, "maxValues": bounds, "nullCount": {"run": 0}}
        size = self.fs.get_file_info(path).size
        return AddAction(name, size, {}, row[2] // 1000, True, json.dumps(stats))

    def _tables(self) -> dict[str, Any | None]:
        """Each table as it is now; None when it does not exist."""
        return {table: self._open(table_path(table)) for table in TABLES}

    def _last_plan(self) -> RunPlan | None:
        run = self.last_run()
        return None if run == 0 else self.plan_of(run)

    def runs(self) -> pa.Table:
        opened = self._open(RUNS_PATH)
        if opened is None:
            return RUNS.empty_table()
        try:
            rows = opened.to_pyarrow_table(columns=RUNS.names)
        except FileNotFoundError as error:
            raise self._lost_runs(error) from None
        return rows.cast(RUNS).sort_by("run")

    def plan_of(self, run: int) -> RunPlan:
        """The plan of a run. Raises WarehouseError."""
        path = self.path(_PLANS, self.plan_name(run))
        try:
            return parse_plan(self.read_text(path))
        except FileNotFoundError:
            raise WarehouseError(
                f"{path}: the plan of run {run} is missing: the warehouse was not copied whole. "
                "Put it back, or take the logs into a new warehouse"
            ) from None
        except ValueError as error:
            raise WarehouseError(
                f"{path}: the plan of run {run} cannot be read: {sentence(str(error))} Put it back, or "
                "take the logs into a new warehouse"
            ) from None

    def _not_applied(self, table: str, last: RunPlan, reached: int) -> list[RunPlan]:
        """The plans, in order, that are not applied to the table yet.

        Each plan names the run before it that changed the table (`before`).
        """
        found: list[RunPlan] = []
        run = last.last_runs[table]
        while run > reached:
            plan = last if run == last.run else self.plan_of(run)
            found.append(plan)
            run = plan.before.get(table, 0)
        return found[::-1]

    def record_again(self, run: int) -> None:
        """Record a run whose record is lost."""
        name = self.plan_name(run)
        self._record(parse_plan(self.read_text(self.path(_PLANS, name))), name)

    def plan_names(self) -> dict[int, list[str]]:
        """The names of plans by run, also of jobs that lost against another."""
        found: dict[int, list[str]] = {}
        for info in self.listing(self.path(_PLANS)):
            number = info.base_name.partition("-")[0]
            if number.isdigit():
                found.setdefault(int(number), []).append(info.base_name)
        return found

    def plan_name(self, run: int) -> str:
        """The name of the plan of a run. Raises WarehouseError when it is not known."""
        recorded = self._recorded_plan_name(run)
        if recorded is not None:
            return recorded
        found = self.plan_names().get(run, [])
        if len(found) != 1:
            raise WarehouseError(
                f"{self.path(_PLANS)}: there are {len(found)} plans of run {run}, so what it did is "
                "not known: restore the folder, or ingest the logs into a new warehouse"
            )
        return found[0]

    def _recorded_plan_name(self, run: int) -> str | None:
        """The name in the table of runs; None when the run is not recorded."""
        runs = self._open(RUNS_PATH)
        if runs is None:
            return None
        try:
            rows = runs.to_pyarrow_table(columns=["run", "plan"], filters=[("run", "=", run)])
        except FileNotFoundError as error:
            raise self._lost_runs(error) from None
        return rows["plan"][0].as_py() if rows.num_rows else None

    def _lost_runs(self, error: Exception) -> WarehouseError:
        return WarehouseError(
            f"{self._uri(RUNS_PATH)}: a data file is missing: put it back, or take the logs into a "
            f"new warehouse ({_first_line(error)})"
        )

    def _apply_to(self, table: str, plan: RunPlan) -> bool:
        """Apply a plan to a table. Returns whether that was still to be done."""
        from deltalake.exceptions import DeltaError

        for left in reversed(range(_TRIES)):
            try:
                return self._apply_once(table, plan)
            except (DeltaError, OSError) as error:
                opened = self._open(table_path(table))
                if opened is not None and (opened.transaction_version(APP) or 0) >= plan.run:
                    # Another process that finishes the same run was faster.
                    return False
                if not left:
                    raise WarehouseWriteError(self._uri(table_path(table)), error) from None
        return False

    def _apply_once(self, table: str, plan: RunPlan) -> bool:
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        opened = self._opened(table_path(table))
        if (opened.transaction_version(APP) or 0) >= plan.run:
            return False
        now, change = int(time.time() * 1000), plan.changes_rows
        adds = [
            AddAction(file.path, file.size, {}, now, change, file.stats)
            for file in plan.adds.get(table, [])
        ]
        removes = [RemoveAction(path, change, now) for path in plan.removes.get(table, [])]
        opened.create_write_transaction(
            [*adds, *removes],
            "append",
            TABLES[table],
            commit_properties=CommitProperties(
                {"job": plan.job}, app_transactions=[Transaction(APP, plan.run)]
            ),
        )
        return True

    def _open(self, path: str) -> Any | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            return DeltaTable(self._uri(path), storage_options=self._options or None)
        except TableNotFoundError:
            return None
        except DeltaError as error:
            what = f"a commit of this table is lost or torn ({_first_line(error)[:90]})"
            raise LostCommitError(f"{self._uri(path)}/_delta_log: {what}", self.root) from None

    def _opened(self, path: str) -> Any:
        """The table; created if missing, and with the columns and texts that are new since."""
        from deltalake.exceptions import DeltaError

        found = self._open(path)
        if found is not None and is_described(found, path):
            return found
        try:
            if found is None:
                self.fs.create_dir(self.path(path), recursive=True)
                return create_table(self._uri(path), path, self._options)
            describe(found, path)
        except (DeltaError, OSError) as error:
            found = self._open(path)
            if found is None or not is_described(found, path):  # no other process has done it
                raise WarehouseWriteError(self._uri(path), error) from None
        return self._open(path)

    def _uri(self, path: str) -> str:
        return f"{self.root}/{path}"


def _stored_files(opened: Any | None) -> list[StoredFile]:
    """The live files of an open table; none when it does not exist."""
    if opened is None:
        return []
    actions = pa.table(opened.get_add_actions(flatten=False)).to_pylist()
    return [
        StoredFile(
            unquote(action["path"]),
            action["num_records"] or 0,
            action.get("min") or {},
            action.get("max") or {},
            action["size_bytes"],
        )
        for action in actions
    ]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
