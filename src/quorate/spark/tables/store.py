"""Where the tables are kept: Delta Lake, or plain Parquet folders.

Every run changes several tables. Its plan (files to add and files to remove, table by table) is
written down first; when the plan is recorded the run has happened, and whatever died before the
last table was changed, the next run begins by finishing it. Changing a table twice by the same
plan changes nothing.
"""

from __future__ import annotations

import json
import posixpath
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from quorate.base.errors import QuorateError
from quorate.spark.tables.files import DataFile, hidden_name, open_root
from quorate.spark.tables.layout import TABLES, table_path

PLANS: Final = "control/_runs"
_DELTA_PLANS: Final = "control/_plans"
_APP: Final = "quorate"
COMPACT: Final = "compact"
"""The job that changes files and no rows."""


class WarehouseError(QuorateError):
    """The warehouse cannot be read or written as it is."""


class ConcurrentRun(WarehouseError):
    """Another run has changed the warehouse meanwhile."""


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

    def to_json(self) -> str:
        adds = {table: [file.to_json() for file in files] for table, files in self.adds.items()}
        return json.dumps(
            {
                "run": self.run,
                "job": self.job,
                "adds": adds,
                "removes": self.removes,
                "summary": self.summary,
            }
        )


def parse_plan(text: str) -> Plan:
    """The plan of to_json."""
    told = json.loads(text)
    adds = {table: [DataFile(**file) for file in files] for table, files in told["adds"].items()}
    return Plan(told["run"], told["job"], adds, told["removes"], told["summary"])


class Store(ABC):
    """A warehouse's tables; `root` is a folder or a URI that PyArrow and Spark both know."""

    hidden = False
    """Whether tasks write new files under a hidden name, to be renamed by the run."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self._fs, self._base = open_root(self.root)

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
        """Record the run, then change the tables. Raises ConcurrentRun when it is not the next."""

    @abstractmethod
    def recover(self) -> bool:
        """Finish the last recorded run; true when there was something to do."""

    @abstractmethod
    def sweep(self, keep_hours: int) -> int:
        """Delete files that no table has had for so long; how many. Call after recover."""

    def next_run(self) -> int:
        """Finish what was left behind, and give the number of the next run."""
        self.recover()
        return self.last_run() + 1

    def _path(self, *parts: str) -> str:
        return posixpath.join(self._base, *parts)

    def _write_text(self, path: str, text: str) -> None:
        self._fs.create_dir(posixpath.dirname(path), recursive=True)
        with self._fs.open_output_stream(path) as out:
            out.write(text.encode())

    def _read_text(self, path: str) -> str:
        with self._fs.open_input_stream(path) as source:
            data: bytes = source.read()
            return data.decode()

    def _listing(self, path: str) -> list[fs.FileInfo]:
        selector = fs.FileSelector(path, recursive=True, allow_not_found=True)
        found: list[fs.FileInfo] = self._fs.get_file_info(selector)
        return [info for info in found if info.type == fs.FileType.File]


RUNS: Final = pa.schema(
    [
        ("run", pa.int64()),
        ("job", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("plan", pa.string()),
        ("summary", pa.string()),
    ]
)
"""The runs that have happened; `plan` is the file in control/_plans that tells what they did."""


class DeltaStore(Store):
    """Delta Lake tables: the files are written by the tasks, delta-rs commits their names."""

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        super().__init__(root)
        self._options = dict(storage_options or {})

    def files(self, table: str) -> list[Stored]:
        opened = self._open(table_path(table))
        if opened is None:
            return []
        actions = pa.table(opened.get_add_actions(flatten=False)).to_pylist()
        return [
            Stored(
                unquote(action["path"]),
                action["num_records"] or 0,
                action.get("min") or {},
                action.get("max") or {},
                action["size_bytes"],
            )
            for action in actions
        ]

    def last_run(self) -> int:
        runs = self._open("control/runs")
        return 0 if runs is None else runs.transaction_version(_APP) or 0

    def commit(self, plan: Plan) -> None:
        name = f"{plan.run:08d}-{uuid4().hex}.json"
        self._write_text(self._path(_DELTA_PLANS, name), plan.to_json())
        self._record(plan, name)
        self._apply(plan)

    def recover(self) -> bool:
        runs = self._open("control/runs")
        if runs is None:
            return False
        last = runs.transaction_version(_APP)
        told = runs.to_pyarrow_table(columns=["run", "plan"], filters=[("run", "=", last)])
        path = self._path(_DELTA_PLANS, told["plan"][0].as_py())
        if self._fs.get_file_info(path).type == fs.FileType.NotFound:
            raise WarehouseError(
                f"{path}: the plan of run {last} is missing: the warehouse was not copied whole"
            )
        return self._apply(parse_plan(self._read_text(path)))

    def sweep(self, keep_hours: int) -> int:
        gone = 0
        for table in TABLES:
            opened = self._open(table_path(table))
            if opened is not None:
                gone += len(
                    opened.vacuum(
                        keep_hours, dry_run=False, enforce_retention_duration=False, full=True
                    )
                )
        return gone + self._sweep_plans(keep_hours)

    def _sweep_plans(self, keep_hours: int) -> int:
        """Plans are of use until their run is finished: all but the last are."""
        plans = sorted(self._listing(self._path(_DELTA_PLANS)), key=lambda info: info.path)
        last = f"{self.last_run():08d}-"
        old = [i for i in plans if not _name(i).startswith(last) and _age(i) > keep_hours]
        for info in old:
            self._fs.delete_file(info.path)
        return len(old)

    def _record(self, plan: Plan, name: str) -> None:
        """The moment from which on the run has happened."""
        from deltalake import CommitProperties, Transaction, write_deltalake
        from deltalake.exceptions import DeltaError

        at = pa.scalar(time.time_ns() // 1000, pa.timestamp("us", "UTC"))
        columns = [[plan.run], [plan.job], [at.as_py()], [name], [json.dumps(plan.summary)]]
        runs = self._opened("control/runs", RUNS)
        if plan.run != (runs.transaction_version(_APP) or 0) + 1:
            raise ConcurrentRun(f"run {plan.run} of {self.root} has happened already")
        properties = CommitProperties(app_transactions=[Transaction(_APP, plan.run)])
        try:
            write_deltalake(
                runs,
                pa.Table.from_pydict(dict(zip(RUNS.names, columns, strict=True)), schema=RUNS),
                mode="append",
                commit_properties=properties,
            )
        except DeltaError as error:
            raise ConcurrentRun(
                f"another run has changed {self.root} at the same time; start again ({error})"
            ) from None

    def _apply(self, plan: Plan) -> bool:
        applied = [self._apply_to(table, plan) for table in plan.tables]
        return any(applied)

    def _apply_to(self, table: str, plan: Plan) -> bool:
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        opened = self._opened(table_path(table), TABLES[table])
        if (opened.transaction_version(_APP) or 0) >= plan.run:
            return False
        now, change = int(time.time() * 1000), plan.job != COMPACT
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
                {"job": plan.job}, app_transactions=[Transaction(_APP, plan.run)]
            ),
        )
        return True

    def _open(self, path: str) -> Any | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self._uri(path), storage_options=self._options or None)
        except TableNotFoundError:
            return None

    def _opened(self, path: str, schema: pa.Schema) -> Any:
        """The table, made where there is none."""
        from deltalake import DeltaTable

        found = self._open(path)
        if found is not None:
            return found
        self._fs.create_dir(self._path(path), recursive=True)
        return DeltaTable.create(
            self._uri(path), schema, mode="ignore", storage_options=self._options or None
        )

    def _uri(self, path: str) -> str:
        return f"{self.root}/{path}"


class ParquetStore(Store):
    """Folders of Parquet files and nothing else; one writer at a time.

    A reader may see a run half done while it changes the tables; Delta has no such moment.
    """

    hidden = True

    def files(self, table: str) -> list[Stored]:
        base = self._path(table_path(table))
        found = []
        for info in self._listing(base):
            path = posixpath.relpath(info.path, base)
            if path.endswith(".parquet") and not posixpath.basename(path).startswith("."):
                found.append(Stored(path, -1, {}, {}, info.size))
        return sorted(found, key=lambda file: file.path)

    def last_run(self) -> int:
        return max((run for run, _ in self._plans()), default=0)

    def commit(self, plan: Plan) -> None:
        if plan.run != self.last_run() + 1:
            raise ConcurrentRun(f"run {plan.run} of {self.root} has happened already")
        final = self._path(PLANS, f"{plan.run:08d}.json")
        self._write_text(final + ".part", plan.to_json())
        self._fs.move(final + ".part", final)
        self._apply(plan, final)

    def recover(self) -> bool:
        pending = [path for _, path in self._plans() if not path.endswith(".done.json")]
        for path in sorted(pending):
            self._apply(parse_plan(self._read_text(path)), path)
        return bool(pending)

    def sweep(self, keep_hours: int) -> int:
        old = [
            info.path
            for table in TABLES
            for info in self._listing(self._path(table_path(table)))
            if _name(info).startswith(".") and _age(info) > keep_hours
        ]
        for path in old:
            self._fs.delete_file(path)
        return len(old)

    def _plans(self) -> list[tuple[int, str]]:
        return [
            (int(posixpath.basename(info.path).partition(".")[0]), info.path)
            for info in self._listing(self._path(PLANS))
            if info.path.endswith(".json")
        ]

    def _apply(self, plan: Plan, path: str) -> None:
        for table in plan.tables:
            self._apply_to(table, plan)
        self._fs.move(path, path.removesuffix(".json") + ".done.json")

    def _apply_to(self, table: str, plan: Plan) -> None:
        base = self._path(table_path(table))
        for file in plan.adds.get(table, []):
            final = posixpath.join(base, file.path)
            hidden = hidden_name(final)
            if self._fs.get_file_info(hidden).type == fs.FileType.File:
                self._fs.move(hidden, final)
        for gone in plan.removes.get(table, []):
            full = posixpath.join(base, gone)
            if self._fs.get_file_info(full).type == fs.FileType.File:
                self._fs.delete_file(full)


def _name(info: fs.FileInfo) -> str:
    return str(info.base_name)


def _age(info: fs.FileInfo) -> float:
    """Hours since the file was written."""
    return (time.time_ns() - (info.mtime_ns or 0)) / 3.6e12


def open_store(
    root: str, table_format: str = "delta", storage_options: Mapping[str, str] | None = None
) -> Store:
    """The warehouse at `root`, made by its first run. Raises WarehouseError.

    table_format: 'delta' or 'parquet'; an existing warehouse must be of that format.
    """
    system, base = open_root(root.rstrip("/"))
    told = posixpath.join(base, "control", "runs", "_delta_log")
    plans = posixpath.join(base, PLANS)
    is_delta = system.get_file_info(told).type == fs.FileType.Directory
    has_plans = system.get_file_info(plans).type == fs.FileType.Directory
    existing = "delta" if is_delta else "parquet" if has_plans else table_format
    if existing != table_format:
        raise WarehouseError(f"{root}: the warehouse is {existing}, not {table_format}")
    if table_format == "delta":
        return DeltaStore(root, storage_options)
    if table_format == "parquet":
        return ParquetStore(root)
    raise WarehouseError(f"'{table_format}' is no table format: delta or parquet")
