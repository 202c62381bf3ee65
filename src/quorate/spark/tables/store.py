"""Where the tables are kept: Delta Lake, or plain Parquet folders.

Every run changes several tables. Its plan (files to add and files to remove, table by table) is
written down first; when the plan is recorded the run has happened, and whatever died before the
last table was changed, the next run begins by finishing it. Changing a table twice by the same
plan changes nothing.
"""

from __future__ import annotations

import json
import posixpath
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pyarrow import fs

from quorate.base.errors import QuorateError
from quorate.spark.tables.files import DataFile, hidden_name, open_root, run_of, told_stats
from quorate.spark.tables.layout import TABLES, table_path

PLANS: Final = "control/_runs"
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
COMPACT: Final = "compact"
"""The job that changes files and no rows."""


class WarehouseError(QuorateError):
    """The warehouse cannot be read or written as it is."""

    exit_code = 2


class NoWarehouse(WarehouseError):
    """Nothing was ever taken in here."""

    def __init__(self, root: str) -> None:
        super().__init__(f"{root}: there is no warehouse here: `quorate pipeline ingest`")


class LostCommit(WarehouseError):
    """A table of the warehouse has lost a commit."""

    def __init__(self, what: str, root: str) -> None:
        super().__init__(f"{what}: quorate pipeline repair -w {root}")


class ConcurrentRun(WarehouseError):
    """Another run has changed the warehouse meanwhile."""

    exit_code = 70

    def __init__(self, root: str) -> None:
        super().__init__(
            f"{root}: another job has changed this warehouse meanwhile: start this one again; what "
            "it had taken before that is not taken twice"
        )


class FilesGone(WarehouseError):
    """Files that a run has written were taken away before it could name them."""

    exit_code = 70

    def __init__(self, paths: Sequence[str]) -> None:
        many = "is gone" if len(paths) == 1 else f"and {len(paths) - 1} more files are gone"
        super().__init__(
            f"{paths[0]} {many}, which this job wrote: what it took counts for nothing; start it "
            "again, and let nothing delete files of the warehouse but `compact`"
        )


class CannotWrite(WarehouseError):
    """The disk or the store has refused: full, read-only, gone."""

    exit_code = 70

    def __init__(self, root: str, error: Exception) -> None:
        super().__init__(f"{root}: cannot be written: {plain_reason(error)}")


def plain_reason(error: Exception) -> str:
    """What an error of a library says, on one line and without colours."""
    lines = (line.strip(" \u21b3") for line in _COLOURS.sub("", str(error)).splitlines())
    return ": ".join(line for line in lines if line)


@dataclass(frozen=True)
class Stored:
    """A live file of a table."""

    path: str
    rows: int
    low: Mapping[str, Any]
    high: Mapping[str, Any]
    """Least and greatest value of columns, where they are known."""
    size: int = 0


@dataclass
class Plan:
    """What a run does to the tables."""

    run: int
    job: str
    adds: dict[str, list[DataFile]] = field(default_factory=dict)
    removes: dict[str, list[str]] = field(default_factory=dict)
    """Paths of live files, by table."""
    summary: dict[str, Any] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    """The run that changed each table last before this one."""

    def add(self, file: DataFile | None) -> None:
        if file is not None:
            self.adds.setdefault(file.table, []).append(file)

    def remove(self, table: str, paths: Iterable[str]) -> None:
        found = list(paths)
        if found:
            self.removes.setdefault(table, []).extend(found)

    @property
    def tables(self) -> list[str]:
        """Changed tables; progress is told last."""
        changed = set(self.adds) | set(self.removes)
        return [table for table in TABLES if table in changed]

    @property
    def last_runs(self) -> dict[str, int]:
        """The run that changed each table last, this one included."""
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
            }
        )


def parse_plan(text: str) -> Plan:
    """The plan of to_json."""
    told = json.loads(text)
    adds = {
        table: [DataFile(**{**file, "stats": told_stats(file["stats"])}) for file in files]
        for table, files in told["adds"].items()
    }
    return Plan(
        told["run"], told["job"], adds, told["removes"], told["summary"], told.get("before", {})
    )


class Store(ABC):
    """A warehouse's tables; `root` is a folder or a URI that PyArrow and Spark both know."""

    hidden = False
    """Whether tasks write new files under a hidden name, to be renamed by the run."""

    def __init__(self, root: str) -> None:
        self.fs, self._base = open_root(root.rstrip("/"))
        local = isinstance(self.fs, fs.LocalFileSystem)
        self.root = self._base if local else root.rstrip("/")

    def place(self, table: str) -> str:
        """The folder of a table, for Spark."""
        return f"{self.root}/{table_path(table)}"

    @abstractmethod
    def files(self, table: str) -> list[Stored]:
        """The live files of a table, none when it does not exist yet."""

    @abstractmethod
    def last_run(self) -> int:
        """The number of the last recorded run, 0 before the first."""

    @abstractmethod
    def commit(self, plan: Plan) -> None:
        """Record the run, then change the tables.

        Raises ConcurrentRun when it is not the next, and FilesGone.
        """

    @abstractmethod
    def recover(self) -> bool:
        """Finish the last recorded run; true when there was something to do."""

    def robbed(self) -> set[str]:
        """Tables that a repair could make readable, but not what they were: to be told anew."""
        return set()

    def told_anew(self) -> None:  # noqa: B027 - a store without logs has no such tables
        """The robbed tables have been emptied: what they held will be told from bronze."""

    def missing(self) -> dict[str, list[Stored]]:
        """The live files of each table that are not there."""
        found: dict[str, list[Stored]] = {}
        for table in TABLES:
            base = self.path(table_path(table))
            there = {info.path for info in self.listing(base)}
            gone = [f for f in self.files(table) if posixpath.join(base, f.path) not in there]
            if gone:
                found[table] = gone
        return found

    def sweep(self, keep_hours: int) -> int:
        """Delete files that no table has had for so long; how many.

        Those of a run that has not happened yet stay: a job may be at work on it.
        """
        happened = self.last_run()
        self.recover()  # so the tables name all that runs up to this one have written
        old = self._unused(keep_hours, happened)
        for path in old:
            with suppress(FileNotFoundError):  # another sweep was here first
                self.fs.delete_file(path)
        return len(old)

    @abstractmethod
    def _unused(self, keep_hours: int, happened: int) -> list[str]:
        """Paths of files of runs up to this one that nobody has needed for so long."""

    def next_run(self) -> int:
        """Finish what was left behind, and give the number of the next run."""
        self.recover()
        return self.last_run() + 1

    def _check_files(self, plan: Plan) -> None:
        """See that all files are there before the run counts. Raises FilesGone."""
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
            raise FilesGone(gone)

    def path(self, *parts: str) -> str:
        """Where something is on the file system `fs`."""
        return posixpath.join(self._base, *parts)

    def write_text(self, path: str, text: str) -> None:
        """Write a file, and the folders that it needs."""
        self.fs.create_dir(posixpath.dirname(path), recursive=True)
        with self.fs.open_output_stream(path) as out:
            out.write(text.encode())

    def read_text(self, path: str) -> str:
        with self.fs.open_input_stream(path) as source:
            data: bytes = source.read()
            return data.decode()

    def listing(self, path: str) -> list[fs.FileInfo]:
        """All files below a folder, none where it is not there."""
        selector = fs.FileSelector(path, recursive=True, allow_not_found=True)
        found: list[fs.FileInfo] = self.fs.get_file_info(selector)
        return [info for info in found if info.type == fs.FileType.File]


class ParquetStore(Store):
    """Folders of Parquet files and nothing else; one writer at a time.

    A reader may see a run half done while it changes the tables; Delta has no such moment.
    """

    hidden = True

    def files(self, table: str) -> list[Stored]:
        base = self.path(table_path(table))
        found = []
        for info in self.listing(base):
            path = posixpath.relpath(info.path, base)
            if path.endswith(".parquet") and not posixpath.basename(path).startswith("."):
                found.append(Stored(path, -1, {}, {}, info.size))
        return sorted(found, key=lambda file: file.path)

    def last_run(self) -> int:
        return max((run for run, _ in self._plans()), default=0)

    def commit(self, plan: Plan) -> None:
        if plan.run != self.last_run() + 1:
            raise ConcurrentRun(self.root)
        self._check_files(plan)
        final = self.path(PLANS, f"{plan.run:08d}.json")
        self.write_text(final + ".part", plan.to_json())
        self.fs.move(final + ".part", final)
        self._apply(plan, final)

    def recover(self) -> bool:
        pending = [path for _, path in self._plans() if not path.endswith(".done.json")]
        for path in sorted(pending):
            self._apply(parse_plan(self.read_text(path)), path)
        return bool(pending)

    def _unused(self, keep_hours: int, happened: int) -> list[str]:
        return [
            info.path
            for table in TABLES
            for info in self.listing(self.path(table_path(table)))
            if _name(info).startswith(".")
            and run_of(info.path) <= happened
            and age_hours(info) > keep_hours
        ]

    def _plans(self) -> list[tuple[int, str]]:
        return [
            (int(posixpath.basename(info.path).partition(".")[0]), info.path)
            for info in self.listing(self.path(PLANS))
            if info.path.endswith(".json")
        ]

    def _apply(self, plan: Plan, path: str) -> None:
        for table in plan.tables:
            self._apply_to(table, plan)
        self._move(path, path.removesuffix(".json") + ".done.json")

    def _apply_to(self, table: str, plan: Plan) -> None:
        base = self.path(table_path(table))
        for file in plan.adds.get(table, []):
            final = posixpath.join(base, file.path)
            hidden = hidden_name(final)
            if self.fs.get_file_info(hidden).type == fs.FileType.File:
                self._move(hidden, final)
        for gone in plan.removes.get(table, []):
            full = posixpath.join(base, gone)
            if self.fs.get_file_info(full).type == fs.FileType.File:
                self.fs.delete_file(full)

    def _move(self, source: str, target: str) -> None:
        """Give a file its name, unless another process that finishes the same run just has."""
        try:
            self.fs.move(source, target)
        except FileNotFoundError:
            if self.fs.get_file_info(target).type != fs.FileType.File:
                raise


def _name(info: fs.FileInfo) -> str:
    return str(info.base_name)


def age_hours(info: fs.FileInfo) -> float:
    """Hours since the file was written."""
    return (time.time_ns() - (info.mtime_ns or 0)) / 3.6e12
