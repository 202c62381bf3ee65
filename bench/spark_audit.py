"""The audit of three replicas, and the ingest of one: time, and the memory of every process.

Not all is well with the replicas: the second has a flipped byte, the third a tail that lost.

Memory is what the kernel says each process held at most (VmHWM), sampled while they live; so the
figures are those of Linux.
"""

from __future__ import annotations

import json
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
    """Three replicas audited on two cores; before that fewer records, of which one is taken in.

    QUORATE_BENCH_RECORDS=a,b,... names other sizes.
    """
    wanted = os.environ.get("QUORATE_BENCH_RECORDS")
    few, many = (100_000, 300_000) if quick else (RECORDS // 10, RECORDS)
    sizes = [int(text) for text in wanted.split(",")] if wanted else [few, many]
    report = Report()
    for records in sizes:
        _measure(report, records, ingest=records <= few)
    return report


def _measure(report: Report, records: int, *, ingest: bool) -> None:
    from quorate.spark.generate import FleetSpec, generate

    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder:
        home, out = Path(folder) / "fleet", Path(folder) / "verdict"
        system = f"{records / 1e6:g} M records"
        began = time.perf_counter()
        written = generate(home, FleetSpec(records=records, replicas=3, segment_bytes=64 * MIB))
        report.add("writing three replicas", system, time.perf_counter() - began, "s")
        report.add("size of one replica", system, written.size / 3 / MIB, "MiB")
        flipped = _part_ways(home / "cluster-0", records)
        conf = ["--conf", f"spark.local.dir={folder}", "--conf", "spark.driver.memory=1g"]
        conf += ["--quiet", "--master", "local[2]"]
        wall = _run(report, "audit of 3 replicas", system, ["audit", str(home), *conf], out)
        report.add("audit of 3 replicas: records", system, 3 * records / wall, "records/s")
        _check(json.loads((out / "report.json").read_text()), records, flipped)
        if ingest:
            one = str(home / "cluster-0" / "node-1")
            words = ["ingest", one, "-w", f"{folder}/w", *conf]
            _run(report, "ingest of 1 replica", system, words)


def _part_ways(cluster: Path, end: int) -> int:
    """Damage the second replica, let the third end with a tail that lost; where the byte is."""
    from quorate.formats.files import QUORUM_STATE, encode_quorum_state
    from quorate.raft.values import ElectionState

    logs = {node: sorted(cluster.glob(f"node-{node}/*/*.log")) for node in (1, 2, 3)}
    epoch = _last_epoch(logs[1][-1])
    position = logs[2][-1].stat().st_size // 2
    for node, leader, its_epoch in ((1, 1, epoch + 2), (2, 1, epoch + 2), (3, 3, epoch + 1)):
        with logs[node][-1].open("ab") as log:
            log.write(_elected(end, its_epoch, leader))
        state = encode_quorum_state(ElectionState(its_epoch, leader, None), 1)
        (logs[node][-1].parent / QUORUM_STATE).write_bytes(state)
    with logs[2][-1].open("r+b") as log:
        log.seek(position)
        (byte,) = log.read(1)
        log.seek(position)
        log.write(bytes([byte ^ 0xFF]))
    return position


def _last_epoch(log: Path) -> int:
    from quorate.spark.files.scan import BatchRun, runs

    data = log.read_bytes()
    found = runs(lambda position, size: data[position : position + size], len(data))
    return int(max(run.heads["epoch"][-1] for run in found if isinstance(run, BatchRun)))


def _elected(offset: int, epoch: int, leader: int) -> bytes:
    """What a leader begins its epoch with."""
    from quorate.formats.batch import encode_control_batch
    from quorate.raft.values import LeaderChange
    from quorate.spark.generate import START_MS

    change = LeaderChange(leader, (1, 2, 3), (leader, 2))
    return encode_control_batch(offset, epoch, START_MS, [change])


def _check(report: dict[str, Any], records: int, flipped: int) -> None:
    """The audit must say what was done to the replicas, and where."""
    (cluster,) = report["clusters"]
    found = {
        one["node_id"]: (one["state"], [finding["spot"] for finding in one["findings"]])
        for one in cluster["replicas"]
    }
    (damage,), (tail,) = found[2][1], found[3][1]
    near = 0 <= flipped - damage["position"] < MIB
    states = [found[node][0] for node in (1, 2, 3)]
    right = states == ["sound", "damaged", "uncommitted-tail"] and tail["offset"] == records
    if not (right and near and cluster["committed_end"] == records):
        raise RuntimeError(f"the audit says: {cluster}")


def _run(
    report: Report, name: str, system: str, words: list[str], out: Path | None = None
) -> float:
    """Seconds that a job took; with `out` it may find damage, and reports it there."""
    words = words if out is None else [*words, "--out", str(out)]
    command = [sys.executable, "-m", "quorate", "pipeline", *words]
    watch = Watch()
    began = time.perf_counter()
    done = watch.during(lambda: subprocess.run(command, capture_output=True, text=True))
    if done.returncode not in ((0,) if out is None else (0, 1)):
        raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")
    wall = report.add(f"{name}: wall time", system, time.perf_counter() - began, "s")
    print(f"{name}, {system}: {wall:.0f} s", file=sys.stderr, flush=True)
    report.add(f"{name}: processor time", system, watch.spent(*KINDS), "s")
    for kind in KINDS:
        report.add(f"{name}: peak of {kind}", system, watch.peaks[kind] / MIB, "MiB")
    goal = Goal(f"{name}, {system}: a Python worker, MiB", watch.peaks[WORKER] / MIB, BOUND_MIB)
    report.goals.append(goal)
    return wall


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
    return KINDS[0] if b"quorate" in words else None


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
        fields = _stat(pid)
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
