"""The audit of three replicas, and the ingest of one: time, and the memory of every process.

Memory is what the kernel says each process held at most (VmHWM), sampled while they live; so the
figures are those of Linux.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.report import Goal, Report

RECORDS = 10_000_000
SAMPLE_S = 0.2
MIB = 1 << 20
BOUND_MIB = 512
"""What docs/spark.md states for a Python worker."""
WORKER = "a Python worker"
KINDS = ("the driver's Python", "the JVM", WORKER)


@dataclass
class Watch:
    """The largest resident memory of each kind of process below this one, and their CPU time."""

    peaks: dict[str, int] = field(default_factory=dict)
    """By kind: bytes, of the largest one."""
    cpu: dict[tuple[str, int], float] = field(default_factory=dict)
    """By kind and process id: seconds of processor at the last look."""

    def look(self) -> None:
        for pid in _descendants(os.getpid()):
            kind = _kind(pid)
            if kind is not None:
                self.peaks[kind] = max(self.peaks.get(kind, 0), _high_water(pid))
                self.cpu[kind, pid] = max(self.cpu.get((kind, pid), 0.0), _cpu_s(pid))

    def spent(self, *kinds: str) -> float:
        """Seconds of processor of all processes of these kinds."""
        return sum(seconds for (kind, _), seconds in self.cpu.items() if kind in kinds)

    def during(self, run: Callable[[], Any]) -> Any:
        """What `run` gives; looked at all the while."""
        over = threading.Event()

        def follow() -> None:
            while not over.wait(SAMPLE_S):
                self.look()

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            return run()
        finally:
            over.set()
            thread.join()
            self.look()


def spark_audit(quick: bool) -> Report:
    """Three replicas, all sound, audited on two cores, then one taken in; smaller ones before.

    QUORATE_BENCH_RECORDS=a,b,... names other sizes.
    """
    sizes = (100_000, 300_000) if quick else (RECORDS // 10, RECORDS)
    wanted = os.environ.get("QUORATE_BENCH_RECORDS")
    report = Report()
    for records in map(int, wanted.split(",")) if wanted else sizes:
        _measure(report, records)
    return report


def _measure(report: Report, records: int) -> None:
    from quorate.spark.generate import Fleet, generate

    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder:
        home = Path(folder) / "fleet"
        fleet = Fleet(records=records, replicas=3, segment_bytes=64 * MIB)
        written = generate(home, fleet)
        system = f"{records / 1e6:g} M records"
        report.add("size of one replica", system, written.size / 3 / MIB, "MiB")
        conf = ["--conf", f"spark.local.dir={folder}", "--conf", "spark.driver.memory=1g"]
        jobs = {
            "audit of 3 replicas": ["audit", str(home)],
            "ingest of 1 replica": [
                "ingest",
                *map(str, home.glob("*/node-1")),
                "-w",
                f"{folder}/w",
            ],
        }
        for name, words in jobs.items():
            _run(report, name, system, [*words, "--quiet", "--master", "local[2]", *conf])


def _run(report: Report, name: str, system: str, words: list[str]) -> None:
    command = [sys.executable, "-m", "quorate.cli.main", "pipeline", *words]
    watch = Watch()
    began = time.perf_counter()
    done = watch.during(lambda: subprocess.run(command, capture_output=True, text=True))
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")
    report.add(f"{name}: wall time", system, time.perf_counter() - began, "s")
    report.add(f"{name}: processor time", system, watch.spent(*KINDS), "s")
    for kind in KINDS:
        report.add(f"{name}: peak of {kind}", system, watch.peaks[kind] / MIB, "MiB")
    goal = Goal(f"{name}, {system}: a Python worker, MiB", watch.peaks[WORKER] / MIB, BOUND_MIB)
    report.goals.append(goal)


def _descendants(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(_stat(int(entry.name))[1])
            except (OSError, IndexError):
                continue  # it has just ended
    found, waiting = [], [root]
    while waiting:
        parent = waiting.pop()
        below = [pid for pid, above in parents.items() if above == parent]
        found += below
        waiting += below
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the program's name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _kind(pid: int) -> str | None:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    if b"java" in os.path.basename(words[0]):
        return KINDS[1]
    if b"pyspark.daemon" in words or b"pyspark.worker" in words:
        return WORKER
    return KINDS[0] if b"quorate.cli.main" in words else None


def _high_water(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def _cpu_s(pid: int) -> float:
    try:
        told = _stat(pid)
    except OSError:
        return 0.0
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")
