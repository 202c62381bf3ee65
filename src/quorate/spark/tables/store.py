"""The interface of a warehouse, its runs and their plans.

A run changes several tables, as a whole or not at all. The commit protocol:

1. Tasks write new data files. A file belongs to no table until a plan names it.
2. The driver writes the plan of the run: the files to add and to remove, table by table. It checks
   that all new files are there.
3. It records the run. From this moment the run has happened. Only the next run number can be
   recorded, so of two jobs that plan the same run one gets ConcurrentRunError.
4. It applies the plan to each table. To apply a plan twice changes nothing.
5. A job that dies between 3 and the end of 4 leaves tables behind: each next run begins with
   `version`, which applies the last plan again.

A job reads the tables through `WarehouseVersion`, which has them as one run left them. Module
`read_version` checks a run against the version that it read.
"""

from __future__ import annotations

import json
import posixpath
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa
from pyarrow import fs

from quorate.base.errors import QuorateError
from quorate.spark.tables.files import DataFile, hidden_name, open_root, with_safe_bounds
from quorate.spark.tables.layout import TABLES, table_path
from quorate.spark.write_errors import cannot_write

COMPACT: Final = "compact"
"""The name of the job that changes files but no rows."""


class WarehouseError(QuorateError):
    """The warehouse cannot be read or written in its present state."""

    exit_code = 2


class NoWarehouseError(WarehouseError):
    """There is no warehouse at the path."""

    def __init__(self, root: str) -> None:
        super().__init__(
            f"{root}: there is no warehouse here: create one with `quorate pipeline ingest`"
        )


class LostCommitError(WarehouseError):
    """A table of the warehouse has lost a commit."""

    def __init__(self, what: str, root: str) -> None:
        super().__init__(f"{what}: quorate pipeline repair -w {root}")


class ConcurrentRunError(WarehouseError):
    """Another job has recorded a run meanwhile."""

    exit_code = 70

    def __init__(self, root: str, what: str = "the warehouse") -> None:
        self.root, self.what = root, what
        super().__init__(
            f"{root}: another job has changed {what} meanwhile: start this job again; it does "
            "not take the same records twice"
        )


class FilesGoneError(WarehouseError):
    """Data files of a run were deleted before the run was recorded."""

    exit_code = 70

    def __init__(self, paths: Sequence[str]) -> None:
        many = "is gone" if len(paths) == 1 else f"and {len(paths) - 1} more files are gone"
        super().__init__(
            f"{paths[0]} {many}, which this job wrote: its run is not recorded; start it again, and "
            "let only `compact` delete files of the warehouse"
        )


class WarehouseWriteError(WarehouseError):
    """The disk or object store refuses to write: it is full, read-only or gone."""

    exit_code = 70

    def __init__(self, path: str, error: Exception) -> None:
        super().__init__(cannot_write(path, error))


@dataclass(frozen=True)
class StoredFile:
    """A live file of a table."""

    path: str
    rows: int
    low: Mapping[str, Any]
    high: Mapping[str, Any]
    """The least and greatest value of columns, where they are known."""
    size: int = 0
    """Bytes."""


@dataclass
class RunPlan:
    """The plan of a run: what it does to each table."""

    run: int
    job: str
    adds: dict[str, list[DataFile]] = field(default_factory=dict)
    removes: dict[str, list[str]] = field(default_factory=dict)
    """By table, the paths of live files."""
    summary: dict[str, Any] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    """By table, the last run before this one that changed it."""
    clusters: list[str] | None = None
    """The folder names of the clusters whose rows or progress it changes; None: not known."""

    def add(self, file: DataFile | None) -> None:
        if file is not None:
            self.adds.setdefault(file.table, []).append(file)

    def remove(self, table: str, paths: Iterable[str]) -> None:
        found = list(paths)
        if found:
            self.removes.setdefault(table, []).extend(found)

    @property
    def tables(self) -> list[str]:
        """The changed tables, in the order of TABLES: `epochs` and `clusters` come last.

        So a reader that sees the progress of a run also sees its rows.
        """
        changed = set(self.adds) | set(self.removes)
        return [table for table in TABLES if table in changed]

    @property
    def changes_rows(self) -> bool:
        """Whether it changes rows, and not only the files that hold them."""
        return self.job != COMPACT

    @property
    def last_runs(self) -> dict[str, int]:
        """The last run that changed each table, this one included."""
        return {**self.before, **dict.fromkeys(self.tables, self.run)}

    def to_json(self) -> str:
        adds = {table: [file.to_json() for file in files] for table, files in self.adds.items()}
        return json.dumps(
            {
                "run": self.run,
                "job": self.job,
                "adds": adds,
                "removes": self.removes,
                "summary": self.summary,
                "before": self.before,
                "clusters": self.clusters,
            }
        )


def parse_plan(text: str) -> RunPlan:
    """The plan that `to_json` wrote. Raises ValueError."""
    fields = json.loads(text)
    adds = {
        table: [DataFile(**{**file, "stats": with_safe_bounds(file["stats"])}) for file in files]
        for table, files in fields["adds"].items()
    }
    return RunPlan(
        fields["run"],
        fields["job"],
        adds,
        fields["removes"],
        fields["summary"],
        fields.get("before", {}),
        fields.get("clusters"),
    )


class TableFiles(Protocol):
    """The files of tables, now (`TableStore`) or as one run left them (`WarehouseVersion`)."""

    @property
    def root(self) -> str: ...

    @property
    def hidden(self) -> bool: ...

    def files(self, table: str) -> list[StoredFile]:
        """The live files of a table; none when it does not exist yet."""

    def place(self, table: str) -> str:
        """The folder of a table, as Spark names it."""

    def path(self, *parts: str) -> str:
        """A path on the file system `fs`."""

    def listing(self, path: str) -> list[fs.FileInfo]:
        """All files below a folder; none when it does not exist."""

    @property
    def fs(self) -> fs.FileSystem: ...


class TableStore(ABC):
    """The tables of a warehouse; `root` is a folder, or a URI that PyArrow and Spark both know."""

    hidden = False
    """Whether tasks write new files under a hidden name, which the run renames."""

    def __init__(self, root: str) -> None:
        self.fs, self._base = open_root(root.rstrip("/"))
        local = isinstance(self.fs, fs.LocalFileSystem)
        self.root = self._base if local else root.rstrip("/")

    def place(self, table: str) -> str:
        """The folder of a table, as Spark names it."""
        return f"{self.root}/{table_path(table)}"

    @abstractmethod
    def files(self, table: str) -> list[StoredFile]:
        """The live files of a table; none when it does not exist yet."""

    @abstractmethod
    def last_run(self) -> int:
        """The number of the last recorded run; 0 before the first."""

    @abstractmethod
    def commit(self, plan: RunPlan) -> None:
        """Record the run, then apply its plan to the tables.

        Raises ConcurrentRunError when it is not the next run; FilesGoneError; WarehouseWriteError.
        """

    @abstractmethod
    def recover(self) -> bool:
        """Finish the last recorded run. Returns whether there was something to do."""

    @abstractmethod
    def version(self) -> WarehouseVersion:
        """Finish the last recorded run. Returns the tables as it left them, all of one run."""

    @abstractmethod
    def plan_of(self, run: int) -> RunPlan:
        """The plan of a recorded run. Raises WarehouseError when it is gone."""

    @abstractmethod
    def runs(self) -> pa.Table:
        """The recorded runs in order, with the columns RUNS. Raises WarehouseError."""

    def tables_to_rebuild(self) -> set[str]:
        """Tables whose content a repair could not restore; they are to be rebuilt from bronze."""
        return set()

    def mark_rebuilt(self) -> None:  # noqa: B027 - a store without logs has no such tables
        """Note that the tables to rebuild are empty now: the next runs fill them from bronze."""

    def sweep(self, keep_hours: int) -> int:
        """Delete files that no table has named for this long. Returns how many.

        1. Note the last recorded run: files of later runs stay, because a job may be writing them.
        2. Finish that run (`recover`), so that the tables name all files of runs up to it.
        3. Delete what they do not name.
        """
        happened = self.last_run()
        self.recover()
        old = self._unused(keep_hours, happened)
        for path in old:
            with suppress(FileNotFoundError):  # another job deleted it first
                self.fs.delete_file(path)
        return len(old)

    @abstractmethod
    def _unused(self, keep_hours: int, happened: int) -> list[str]:
        """Paths of files of runs up to `happened` that no table has named for this long."""

    def next_run(self) -> int:
        """Finish the last run, and return the number of the next one."""
        return self.version().run + 1

    def _check_files(self, plan: RunPlan) -> None:
        """Raise FilesGoneError unless all new files are there: before the run is recorded."""
        places = [
            posixpath.join(self.path(table_path(table)), file.path)
            for table, files in plan.adds.items()
            for file in files
        ]
        written = [hidden_name(place) for place in places] if self.hidden else places
        found = self.fs.get_file_info(written) if written else []
        gone = [
            place
            for place, info in zip(places, found, strict=True)
            if info.type != fs.FileType.File
        ]
        if gone:
            raise FilesGoneError(gone)

    def path(self, *parts: str) -> str:
        """A path on the file system `fs`."""
        return posixpath.join(self._base, *parts)

    def write_text(self, path: str, text: str) -> None:
        """Write a file, and create the folders that it needs. Raises WarehouseWriteError."""
        try:
            self.fs.create_dir(posixpath.dirname(path), recursive=True)
            with self.fs.open_output_stream(path) as out:
                out.write(text.encode())
        except OSError as error:
            raise WarehouseWriteError(path, error) from None

    def read_text(self, path: str) -> str:
        with self.fs.open_input_stream(path) as source:
            data: bytes = source.read()
            return data.decode()

    def listing(self, path: str) -> list[fs.FileInfo]:
        """All files below a folder; none when it does not exist."""
        selector = fs.FileSelector(path, recursive=True, allow_not_found=True)
        found: list[fs.FileInfo] = self.fs.get_file_info(selector)
        return [info for info in found if info.type == fs.FileType.File]


class WarehouseVersion:
    """The tables as one run left them, whatever other jobs commit later.

    run: the last run that they have; 0: none
    """

    def __init__(
        self, store: TableStore, run: int, files: Callable[[str], list[StoredFile]]
    ) -> None:
        self.store, self.run = store, run
        self.root, self.hidden, self.fs = store.root, store.hidden, store.fs
        self._list = files
        self._files: dict[str, list[StoredFile]] = {}

    def files(self, table: str) -> list[StoredFile]:
        """The files of a table that were live after the run."""
        if table not in self._files:
            self._files[table] = self._list(table)
        return self._files[table]

    def place(self, table: str) -> str:
        """The folder of a table, as Spark names it."""
        return self.store.place(table)

    def path(self, *parts: str) -> str:
        """A path on the file system `fs`."""
        return self.store.path(*parts)

    def listing(self, path: str) -> list[fs.FileInfo]:
        """All files below a folder, as it is now; none when it does not exist."""
        return self.store.listing(path)

    def missing(self) -> dict[str, list[StoredFile]]:
        """Return, by table, the files that are missing on the file system."""
        found: dict[str, list[StoredFile]] = {}
        for table in TABLES:
            base = self.path(table_path(table))
            live = self.files(table)  # before the listing: later runs only add files to it
            there = {info.path for info in self.listing(base)} if live else set()
            gone = [file for file in live if posixpath.join(base, file.path) not in there]
            if gone:
                found[table] = gone
        return found


def age_hours(info: fs.FileInfo) -> float:
    """Hours since the last write of the file."""
    return (time.time_ns() - (info.mtime_ns or 0)) / 3.6e12
