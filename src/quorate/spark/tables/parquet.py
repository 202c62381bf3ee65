"""The warehouse as folders of Parquet files, without a log of their names.

How the commit protocol of `store` maps to files: run N has happened when `control/_runs/<N>.json`,
its plan, exists. `<N>.done` says that the plan is applied. Earlier releases renamed the plan of an
applied run to `<N>.done.json`.
"""

from __future__ import annotations

import json
import os
import posixpath
from contextlib import suppress
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from quorate.spark.tables.files import hidden_name, run_of
from quorate.spark.tables.layout import RUNS, TABLES, table_path
from quorate.spark.tables.store import (
    ConcurrentRunError,
    RunPlan,
    StoredFile,
    TableStore,
    WarehouseError,
    WarehouseVersion,
    age_hours,
    parse_plan,
)

PLANS: Final = "control/_runs"


class ParquetStore(TableStore):
    """Folders of Parquet files without a log.

    Of two jobs that record the same run on a local disk, one gets ConcurrentRunError. An object
    store has no such operation: there one job at a time may write.

    Tasks write files under a hidden name, which readers skip; the run gives them their names. A
    reader may see a part of a run while it does so; Delta Lake has no such moment.
    """

    hidden = True

    def files(self, table: str) -> list[StoredFile]:
        base = self.path(table_path(table))
        found = []
        for info in self.listing(base):
            path = posixpath.relpath(info.path, base)
            if path.endswith(".parquet") and not posixpath.basename(path).startswith("."):
                found.append(StoredFile(path, -1, {}, {}, info.size))
        return sorted(found, key=lambda file: file.path)

    def last_run(self) -> int:
        return max(self._plans(), default=0)

    def commit(self, plan: RunPlan) -> None:
        if plan.run != self.last_run() + 1:
            raise ConcurrentRunError(self.root)
        self._check_files(plan)
        self._record(plan)
        self._apply(plan)

    def recover(self) -> bool:
        return self._finish()[0]

    def version(self) -> WarehouseVersion:
        while True:
            _, run = self._finish()
            found = {table: self.files(table) for table in TABLES}
            if self.last_run() == run:  # otherwise another job has moved files meanwhile
                return WarehouseVersion(self, run, found.__getitem__)

    def plan_of(self, run: int) -> RunPlan:
        path = self._plans().get(run, self.path(PLANS, f"{run:08d}.json"))
        try:
            return parse_plan(self.read_text(path))
        except (FileNotFoundError, ValueError) as error:
            raise WarehouseError(f"{path}: the plan of run {run} cannot be read: {error}") from None

    def runs(self) -> pa.Table:
        rows = []
        for run, path in sorted(self._plans().items()):
            plan, info = self.plan_of(run), self.fs.get_file_info(path)
            at = (info.mtime_ns or 0) // 1000
            rows.append((run, plan.job, at, posixpath.basename(path), json.dumps(plan.summary)))
        columns = zip(*rows, strict=True) if rows else [()] * len(RUNS)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, RUNS, strict=True)]
        return pa.Table.from_arrays(arrays, schema=RUNS)

    def _record(self, plan: RunPlan) -> None:
        """Record the run: from now on it has happened."""
        final = self.path(PLANS, f"{plan.run:08d}.json")
        part = f"{final}.{uuid4().hex}.part"
        self.write_text(part, plan.to_json())
        if isinstance(self.fs, fs.LocalFileSystem):
            with suppress(PermissionError, NotImplementedError):  # a disk without hard links
                _link(part, final, self.root)
                return
        self.fs.move(part, final)

    def _finish(self) -> tuple[bool, int]:
        """Finish all recorded runs. Returns whether there was something to do, and the last run."""
        names = {info.base_name for info in self.listing(self.path(PLANS))}
        plans = self._plans(names)
        pending = [
            run
            for run in sorted(plans)
            if not plans[run].endswith(".done.json") and f"{run:08d}.done" not in names
        ]
        for run in pending:
            self._apply(self.plan_of(run))
        return bool(pending), max(plans, default=0)

    def _unused(self, keep_hours: int, happened: int) -> list[str]:
        return [
            info.path
            for table in TABLES
            for info in self.listing(self.path(table_path(table)))
            if info.base_name.startswith(".")
            and run_of(info.path) <= happened
            and age_hours(info) > keep_hours
        ]

    def _plans(self, names: set[str] | None = None) -> dict[int, str]:
        """Return, by run, the path of its plan. `names`: of the files in the folder of plans."""
        base = self.path(PLANS)
        if names is None:
            names = {info.base_name for info in self.listing(base)}
        plans = sorted(name for name in names if name.endswith(".json"))
        return {int(name.partition(".")[0]): posixpath.join(base, name) for name in plans}

    def _apply(self, plan: RunPlan) -> None:
        for table in plan.tables:
            self._apply_to(table, plan)
        self.write_text(self.path(PLANS, f"{plan.run:08d}.done"), "")

    def _apply_to(self, table: str, plan: RunPlan) -> None:
        base = self.path(table_path(table))
        for file in plan.adds.get(table, []):
            final = posixpath.join(base, file.path)
            hidden = hidden_name(final)
            if self.fs.get_file_info(hidden).type == fs.FileType.File:
                self._move(hidden, final)
        for gone in plan.removes.get(table, []):
            full = posixpath.join(base, gone)
            if self.fs.get_file_info(full).type == fs.FileType.File:
                with suppress(FileNotFoundError):  # another process finishes the same run
                    self.fs.delete_file(full)

    def _move(self, source: str, target: str) -> None:
        """Rename a file, unless another process that finishes the same run has just done it."""
        try:
            self.fs.move(source, target)
        except FileNotFoundError:
            if self.fs.get_file_info(target).type != fs.FileType.File:
                raise


def _link(part: str, final: str, root: str) -> None:
    """Give a file its name, unless there is one: a rename would replace that."""
    try:
        os.link(part, final)
    except FileExistsError:
        os.unlink(part)
        raise ConcurrentRunError(root) from None
    os.unlink(part)
