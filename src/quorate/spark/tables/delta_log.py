"""Reads the log of a Delta table file by file, and writes commits: the format as repair needs it.

Delta's protocol: commit N is the file `_delta_log/<N, 20 digits>.json`, with an action (`add`,
`remove`, `txn`, ...) on each line. A checkpoint `<N>.checkpoint.parquet` replaces all commits up to
N. A reader needs each version after its checkpoint; delta-rs fails on a gap. A `txn` action keeps
the last version of an application: here APP, whose version is the number of the run.
"""

from __future__ import annotations

import json
import posixpath
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from quorate.spark.tables.files import DataFile

APP: Final = "quorate"
"""The application id of `txn` actions, whose version is the number of a run."""
SET_ASIDE_SUFFIX: Final = ".lost"
"""The suffix that repair gives to torn files of a log: it deletes nothing."""
_CHECKPOINT: Final = ".checkpoint.parquet"

RUNS_PATH: Final = "control/runs"


@dataclass(frozen=True)
class DeltaCommit:
    """A commit of a Delta table that can be read."""

    name: str
    run: int
    """0 when it belongs to no run: for example it created the table, or vacuumed it."""
    adds: frozenset[str]
    removes: frozenset[str]


class DeltaLog:
    """The log of a Delta table as its files show it; gaps are commits that are lost or torn."""

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
        self.commits: dict[int, DeltaCommit] = {}
        self.empty: set[int] = set()
        """Versions whose file is empty; delta-rs skips them."""
        self.torn: list[int] = []
        set_aside: dict[int, DeltaCommit] = {}
        for name in sorted(names):
            if not name[:20].isdigit() or int(name[:20]) <= self.checkpoint:
                continue
            if names[name].size == 0 and name[20:] == ".json" and int(name[:20]):
                self.empty.add(int(name[:20]))
                continue
            commit = (
                self._read(name) if name[20:] in (".json", ".json" + SET_ASIDE_SUFFIX) else None
            )
            if name[20:] == ".json" and commit is None:
                self.torn.append(int(name[:20]))
            elif name[20:] == ".json" and commit is not None:
                self.commits[int(name[:20])] = commit
            elif commit is not None:
                set_aside[int(name[:20])] = commit
        self.restored = self._still_good(set_aside)
        self.commits |= self.restored

    def _still_good(self, set_aside: dict[int, DeltaCommit]) -> dict[int, DeltaCommit]:
        """Commits that an earlier repair set aside, and that continue the log as it is now.

        That is so after a backup has brought back the commits before them. They count again only
        if the log knows none of their runs.
        """
        last_version, newest = self.last_version, self.last_run
        later = {version: one for version, one in set_aside.items() if version > last_version}
        return later if max((one.run for one in later.values()), default=0) > newest else {}

    @property
    def last_version(self) -> int:
        """The last version that can be read; -1: none."""
        return max(self.commits, default=self.checkpoint)

    @property
    def last_run(self) -> int:
        """The last run that the log names."""
        return self.run_before(self.last_version + 1)

    @property
    def holes(self) -> list[range]:
        """Ranges of versions that cannot be read, before one that can."""
        found, due = [], self.checkpoint + 1
        for version in sorted(self.commits):
            if version > due:
                found.append(range(due, version))
            due = version + 1
        return found

    @property
    def adds(self) -> frozenset[str]:
        """Each file that the checkpoint or a commit adds."""
        return self.checkpoint_adds.union(*(one.adds for one in self.commits.values()))

    def live(self, version: int) -> frozenset[str]:
        """The live files before a version, as far as the log can be read."""
        found = self.checkpoint_adds
        for at, one in sorted(self.commits.items()):
            if at < version:
                found = (found | one.adds) - one.removes
        return found

    def run_before(self, version: int) -> int:
        """The last run that the log names before a version."""
        runs = (one.run for at, one in self.commits.items() if at < version)
        return max([self.checkpoint_run, *runs])

    def run_after(self, version: int) -> int | None:
        """The first run in a commit of this version or later; None: none."""
        return min(
            (c.run for at, c in self.commits.items() if at >= version and c.run), default=None
        )

    def _read(self, name: str) -> DeltaCommit | None:
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
        return DeltaCommit(name, max(runs, default=0), adds, removes) if lines else None

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
    """The text of a commit; without a run it only fills a version."""
    now = time.time_ns() // 1_000_000
    about = {"timestamp": now, "operation": "WRITE", "operationParameters": {}, "job": job}
    lines: list[dict[str, Any]] = [{"commitInfo": about}]
    for file in adds:
        action = {"path": quote(file.path, safe="/~"), "partitionValues": {}, "size": file.size}
        lines.append(
            {"add": {**action, "modificationTime": now, "dataChange": True, "stats": file.stats}}
        )
    for path in removes:
        action = {"path": quote(path, safe="/~"), "dataChange": True, "deletionTimestamp": now}
        lines.append({"remove": action})
    if run:
        lines.append({"txn": {"appId": APP, "version": run}})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")  # NaN and Infinity: Python's json would accept them
