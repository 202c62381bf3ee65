"""The version of the warehouse that a job has read, and the commit of runs that rest on it.

Jobs are optimistic: they lock nothing. A job reads one version of the tables, and says which
clusters it works on. A run counts only if no other job has changed these clusters since that
version. Runs of other clusters do not matter: the run gets the next free number, and keeps their
progress. Otherwise it raises ConcurrentRunError, and the job reads again.

    read = read_version(store, ["cluster-a"])
    plan = read.plan("state")
    ...                                     # decide from read.tables and read.progress only
    commit_run(read, plan, progress)
    read = read_again(read, plan.run)
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from quorate.spark.tables.control import ClusterProgress, load_progress, plan_progress
from quorate.spark.tables.file_tasks import write_rows
from quorate.spark.tables.files import (
    DataFile,
    WriteTarget,
    file_name,
    hidden_name,
    named_by,
    read_file,
    run_of,
    safe_name,
)
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import CONTROL, table_path
from quorate.spark.tables.resolved import of_run
from quorate.spark.tables.store import (
    ConcurrentRunError,
    FilesGoneError,
    RunPlan,
    TableFiles,
    TableStore,
    WarehouseError,
    WarehouseVersion,
)


@dataclass(frozen=True)
class ReadVersion:
    """What the decisions of a job rest on."""

    tables: WarehouseVersion
    clusters: frozenset[str] | None
    """The clusters that the job works on; None: all."""
    warehouse_progress: Mapping[str, ClusterProgress]
    """The progress of every cluster in the warehouse."""

    @property
    def run(self) -> int:
        """The last run that was read; 0: none."""
        return self.tables.run

    @property
    def progress(self) -> dict[str, ClusterProgress]:
        """The progress of the clusters that the job works on."""
        return {
            id: one
            for id, one in self.warehouse_progress.items()
            if self.clusters is None or id in self.clusters
        }

    def plan(self, job: str) -> RunPlan:
        """A plan for the next run; `commit_run` gives it a later number when others come first."""
        return RunPlan(self.run + 1, job)

    @property
    def folders(self) -> frozenset[str] | None:
        """The folder names of `clusters`."""
        return None if self.clusters is None else frozenset(map(safe_name, self.clusters))


def read_version(store: TableStore, clusters: Collection[str] | None = None) -> ReadVersion:
    """Finish the last run, and read the version of the warehouse that it left.

    clusters: those that the job works on; None: all
    """
    tables = store.version()
    own = None if clusters is None else frozenset(clusters)
    return ReadVersion(tables, own, load_progress(tables))


def read_again(read: ReadVersion, run: int) -> ReadVersion:
    """The warehouse after `run`, which this job has committed from what it read.

    Raises ConcurrentRunError when another job has changed the job's clusters since.
    """
    tables = read.tables.store.version()
    _check(read.tables.store, run, tables.run, read.folders)
    return replace(read, tables=tables, warehouse_progress=load_progress(tables))


def check_version(read: ReadVersion) -> None:
    """Raise ConcurrentRunError when another job has changed the job's clusters since the version.

    For a job that reports what it read without a commit.
    """
    store = read.tables.store
    _check(store, read.run, store.last_run(), read.folders)


def commit_run(
    read: ReadVersion, plan: RunPlan, progress: Mapping[str, ClusterProgress] | None = None
) -> None:
    """Commit a run whose plan depends on the version that was read.

    progress: of the job's clusters after the run, where it changes; its `run` is set here

    1. Commit the plan as the next run.
    2. If another job was first, check that its runs left alone what this one depends on: the job's
       clusters, the clusters that the plan changes, and the files that it removes.
    3. Give the plan the next number and the present progress of other clusters, and commit again.

    Raises ConcurrentRunError when the check fails; FilesGoneError; WarehouseWriteError.
    """
    store = read.tables.store
    known = read.warehouse_progress
    changed = {id: one for id, one in (progress or {}).items() if one != known.get(id)}
    plan.clusters = sorted({*map(safe_name, changed), *_folders_of(plan)})
    own = None if read.folders is None else read.folders | set(plan.clusters)
    now = read.tables
    while True:
        _give_number(plan, now)
        if changed:
            new = {id: replace(one, run=plan.run) for id, one in changed.items()}
            plan_progress(now, plan, {**known, **new})
        try:
            store.commit(plan)
            return
        except FilesGoneError:
            _discard(store, plan, CONTROL)
            if store.last_run() > read.run:  # `compact` took them for those of an earlier run
                raise ConcurrentRunError(store.root, "files of this run") from None
            raise
        except ConcurrentRunError:
            _discard(store, plan, CONTROL)
            now = store.version()
            _check(store, read.run, now.run, own)
            _check_removes(plan, now)
            known = load_progress(now)


def _folders_of(plan: RunPlan) -> Iterator[str]:
    """The folder names of the clusters whose rows a plan changes.

    Compaction changes no rows. An answer in the table `who` is no part of a cluster's history, so
    it counts apart.
    """
    for table in plan.tables:
        if table in CONTROL or not plan.changes_rows:
            continue
        paths = [*(file.path for file in plan.adds.get(table, ())), *plan.removes.get(table, ())]
        for path in paths:
            folder = path.split("/")[1 if table in KINDS else 0]
            yield f"who/{folder}" if table == "who" else folder


def _check(store: TableStore, since: int, last: int, own: frozenset[str] | None) -> None:
    """Raise ConcurrentRunError when a run after `since`, up to `last`, changed one of the clusters.

    own: folder names; None: all
    """
    for run in range(since + 1, last + 1):
        try:
            plan = store.plan_of(run)
        except WarehouseError:
            raise ConcurrentRunError(store.root) from None  # deleted: what it did is not known
        if plan.clusters is None:
            raise ConcurrentRunError(store.root)  # a run of an earlier release
        for folder in plan.clusters:
            if not folder.startswith("who/") if own is None else folder in own:
                cluster_id = named_by(folder.removeprefix("who/"))
                what = f"cluster {cluster_id} (run {run}, {plan.job})"
                raise ConcurrentRunError(store.root, what)


def _check_removes(plan: RunPlan, now: WarehouseVersion) -> None:
    """Raise ConcurrentRunError when a file that the plan removes has been replaced."""
    for table, paths in plan.removes.items():
        if table not in CONTROL and not {file.path for file in now.files(table)}.issuperset(paths):
            raise ConcurrentRunError(now.root, f"files of the table {table}")


def _give_number(plan: RunPlan, now: WarehouseVersion) -> None:
    """Make it the plan of the run after `now`.

    The new files get names with that number: a sweep deletes unnamed files of runs up to the last
    recorded one. Rows of the quarantine name their run, so they are written again. Raises
    ConcurrentRunError when a sweep was faster.
    """
    old, plan.run = plan.run, now.run + 1
    if old == plan.run:
        return
    place = WriteTarget(now.root, plan.run, now.hidden)
    adds, plan.adds = plan.adds, {}
    for file in (file for files in adds.values() for file in files):
        if run_of(file.path) != old:  # of an earlier run, named again
            plan.add(file)
            continue
        path = posixpath.join(posixpath.dirname(file.path), _prefix(file.path, old))
        path = file_name(path, plan.run)
        try:
            if file.table == "quarantine":
                rows = read_file(now.root, "quarantine", _written_name(now, file.path))
                for written in write_rows(place, "quarantine", path, of_run(rows, old, plan.run)):
                    plan.add(DataFile(**written))
                _delete(now.store, file)
            else:
                now.fs.move(_stored(now, file.table, file.path), _stored(now, file.table, path))
                plan.add(replace(file, path=path))
        except FileNotFoundError:
            raise ConcurrentRunError(now.root, "files of this run") from None


def _prefix(path: str, run: int) -> str:
    return posixpath.basename(path).rsplit(f"-{run:08d}-", 1)[0]


def _written_name(now: WarehouseVersion, path: str) -> str:
    return hidden_name(path) if now.hidden else path


def _stored(tables: TableFiles, table: str, path: str) -> str:
    """Return where the file system has a new file."""
    full = posixpath.join(tables.path(table_path(table)), path)
    return hidden_name(full) if tables.hidden else full


def _discard(store: TableStore, plan: RunPlan, tables: Collection[str]) -> None:
    """Delete the new files of tables that the plan writes again for each number."""
    for table in tables:
        for file in plan.adds.pop(table, []):
            _delete(store, file)
        plan.removes.pop(table, None)


def _delete(store: TableStore, file: DataFile) -> None:
    with suppress(OSError):  # `compact` deletes what is left
        store.fs.delete_file(_stored(store, file.table, file.path))
