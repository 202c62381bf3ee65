"""The files in a Delta table's log, and how a commit is written: what repair needs of the format.

A commit is a file of JSON lines, named by its version; a checkpoint stands for all up to its own.
"""

from __future__ import annotations

import json
import posixpath
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from quorate.spark.tables.files import DataFile

APP: Final = "quorate"
"""The writer whose transactions are the numbers of runs."""
ASIDE: Final = ".lost"
"""What files of a table's log are renamed to that are no good."""
_CHECKPOINT: Final = ".checkpoint.parquet"

RUNS_PATH: Final = "control/runs"
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


@dataclass(frozen=True)
class Commit:
    """A commit that can be read."""

    name: str
    run: int
    """0 where it is of no run: the table was made or swept."""
    adds: frozenset[str]
    removes: frozenset[str]


class Log:
    """The log of a table as it lies there; holes in it are commits that are lost or torn."""

    def __init__(self, system: fs.FileSystem, folder: str) -> None:
        self._fs, self._folder = system, folder
        selector = fs.FileSelector(folder, allow_not_found=True)
        names = {info.base_name: info for info in system.get_file_info(selector)}
        marks = {int(n[:20]): n for n in names if n.endswith(_CHECKPOINT) and n[:20].isdigit()}
        self.checkpoint, self.checkpoint_run = -1, 0
        self.checkpoint_adds: frozenset[str] = frozenset()
        self.torn_checkpoints: list[str] = []
        for version in sorted(marks, reverse=True):
            if self._read_checkpoint(marks[version]):
                self.checkpoint = version
                break
            self.torn_checkpoints.append(marks[version])
        self.commits: dict[int, Commit] = {}
        self.empty: set[int] = set()
        """Versions whose file is there, with nothing in it: readers pass over that."""
        self.torn: list[int] = []
        aside: dict[int, Commit] = {}
        for name in sorted(names):
            if not name[:20].isdigit() or int(name[:20]) <= self.checkpoint:
                continue
            if names[name].size == 0 and name[20:] == ".json" and int(name[:20]):
                self.empty.add(int(name[:20]))
                continue
            commit = self._read(name) if name[20:] in (".json", ".json" + ASIDE) else None
            if name[20:] == ".json" and commit is None:
                self.torn.append(int(name[:20]))
            elif name[20:] == ".json" and commit is not None:
                self.commits[int(name[:20])] = commit
            elif commit is not None:
                aside[int(name[:20])] = commit
        self.back = self._still_good(aside)
        self.commits |= self.back

    def _still_good(self, aside: dict[int, Commit]) -> dict[int, Commit]:
        """Of the commits that were set aside, those whose runs the log has nothing of."""
        top, newest = self.top, self.reached
        later = {version: one for version, one in aside.items() if version > top}
        return later if max((one.run for one in later.values()), default=0) > newest else {}

    @property
    def top(self) -> int:
        """The last version that can be read."""
        return max(self.commits, default=self.checkpoint)

    @property
    def reached(self) -> int:
        """The last run that the table has heard of."""
        return self.run_before(self.top + 1)

    @property
    def holes(self) -> list[range]:
        """Versions between others that cannot be read."""
        found, due = [], self.checkpoint + 1
        for version in sorted(self.commits):
            if version > due:
                found.append(range(due, version))
            due = version + 1
        return found

    @property
    def adds(self) -> frozenset[str]:
        """Every file that the table has had since the checkpoint, or has in it."""
        return self.checkpoint_adds.union(*(one.adds for one in self.commits.values()))

    def live(self, version: int) -> frozenset[str]:
        """The files that the table had before a version, as far as that can be read."""
        found = self.checkpoint_adds
        for at, one in sorted(self.commits.items()):
            if at < version:
                found = (found | one.adds) - one.removes
        return found

    def run_before(self, version: int) -> int:
        """The last run that the table has heard of before a version."""
        runs = (one.run for at, one in self.commits.items() if at < version)
        return max([self.checkpoint_run, *runs])

    def run_after(self, version: int) -> int | None:
        """The first run that a commit of at least this version tells."""
        return min(
            (c.run for at, c in self.commits.items() if at >= version and c.run), default=None
        )

    def _read(self, name: str) -> Commit | None:
        try:
            with self._fs.open_input_stream(posixpath.join(self._folder, name)) as source:
                lines = [json.loads(line) for line in source.read().decode().splitlines()]
            for line in lines:
                json.loads(line.get("add", {}).get("stats") or "{}", parse_constant=_refuse)
        except (ValueError, AttributeError):
            return None
        runs = [line["txn"]["version"] for line in lines if line.get("txn", {}).get("appId") == APP]
        adds, removes = (
            frozenset(unquote(line[what]["path"]) for line in lines if what in line)
            for what in ("add", "remove")
        )
        return Commit(name, max(runs, default=0), adds, removes) if lines else None

    def _read_checkpoint(self, name: str) -> bool:
        try:
            path = posixpath.join(self._folder, name)
            rows = pq.read_table(path, filesystem=self._fs, columns=["txn", "add"]).to_pylist()
        except (pa.ArrowException, OSError, ValueError):
            return False
        runs = [row["txn"]["version"] for row in rows if row["txn"] and row["txn"]["appId"] == APP]
        self.checkpoint_run = max(runs, default=0)
        self.checkpoint_adds = frozenset(unquote(r["add"]["path"]) for r in rows if r["add"])
        return True


def commit_text(
    job: str, run: int = 0, adds: Iterable[DataFile] = (), removes: Iterable[str] = ()
) -> str:
    """A commit as Delta writes it; without a run it only fills a version."""
    now = time.time_ns() // 1_000_000
    about = {"timestamp": now, "operation": "WRITE", "operationParameters": {}, "job": job}
    lines: list[dict[str, Any]] = [{"commitInfo": about}]
    for file in adds:
        told = {"path": quote(file.path, safe="/~"), "partitionValues": {}, "size": file.size}
        lines.append(
            {"add": {**told, "modificationTime": now, "dataChange": True, "stats": file.stats}}
        )
    for path in removes:
        told = {"path": quote(path, safe="/~"), "dataChange": True, "deletionTimestamp": now}
        lines.append({"remove": told})
    if run:
        lines.append({"txn": {"appId": APP, "version": run}})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def creation_text(schema: pa.Schema) -> str:
    """The first commit of a table."""
    from deltalake import DeltaTable

    with tempfile.TemporaryDirectory() as home:
        DeltaTable.create(home, schema)
        return Path(home, "_delta_log", f"{0:020}.json").read_text(encoding="utf-8")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
