"""Compare two trees by interleaved pairs: `python -m bench pairs BEFORE AFTER --count 15`.

A machine changes its speed from minute to minute. In each pair both trees are measured one right
after the other, and which one is first alternates. The quotient of each pair then shows the trees
and not the minute.

BEFORE and AFTER are worktrees, each with its own `.venv` and its own compiled modules
(`tools/build_native.py`). Each tree is measured by its own interpreter, clients and simulator.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.progress import show

PROBE = Path(__file__).with_name("pairs_probe.py")
COMMANDS = ("--help", "--version")
STARTS = 5
PARTS = ("kv", "controllers", "simulator", "start-up")
HIGHER_IS_BETTER = "/s"
"""How the names of measures end of which more is better."""
LIMIT = 1.05

Sample = Mapping[str, float]
"""The values of one tree in one pair, by measure."""


@dataclass(frozen=True)
class Compared:
    """One measure over all pairs.

    `quotient` is the median after divided by the median before. `low` and `high` are the
    quartiles of the quotients of the single pairs.
    """

    measure: str
    before: float
    after: float
    quotient: float
    low: float
    high: float

    @property
    def worse(self) -> float:
        """How many times the cost of before: above 1 is worse, whatever the direction is."""
        return 1 / self.quotient if self.measure.endswith(HIGHER_IS_BETTER) else self.quotient


def compare(pairs: Sequence[tuple[Sample, Sample]]) -> list[Compared]:
    """Each measure of the pairs (before, after), in the order of the first pair."""
    found = []
    for measure in pairs[0][0]:
        befores = [before[measure] for before, _ in pairs]
        afters = [after[measure] for _, after in pairs]
        quotients = [after / before for before, after in zip(befores, afters, strict=True)]
        low, high = quotients[0], quotients[0]
        if len(quotients) > 1:
            low, _, high = statistics.quantiles(quotients, n=4, method="inclusive")
        before, after = statistics.median(befores), statistics.median(afters)
        found.append(Compared(measure, before, after, after / before, low, high))
    return found


def interleave(
    before: Path, after: Path, count: int, sample: Callable[[Path], Sample]
) -> list[tuple[Sample, Sample]]:
    """`count` pairs of samples, (before, after); every second pair is taken in reverse order."""
    pairs = []
    for number in range(count):
        show(f"pair {number + 1} of {count}")
        if number % 2 == 0:
            first = sample(before)
            pairs.append((first, sample(after)))
        else:
            second = sample(after)
            pairs.append((sample(before), second))
    return pairs


def start_up_ms(tree: Path) -> dict[str, float]:
    """Of each command the wall time of a whole process and its processor time, after one unmeasured.

    Both are the smallest of a few: what else the machine does only adds to them.
    """
    found = {}
    for option in COMMANDS:
        walls, processors = [], []
        for _ in range(STARTS + 1):
            used_s, began = _children_s(), time.perf_counter()
            subprocess.run([tree / ".venv/bin/quorate", option], check=True, capture_output=True)
            walls.append((time.perf_counter() - began) * 1000)
            processors.append((_children_s() - used_s) * 1000)
        found[f"quorate {option}, ms"] = min(walls[1:])
        found[f"quorate {option}, processor ms"] = min(processors[1:])
    return found


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def take_sample(tree: Path, part: str, seconds: float) -> Sample:
    """One sample of `part` of a tree, by the tree's own interpreter.

    Raises SystemExit with the end of the probe's stderr.
    """
    if part == "start-up":
        return start_up_ms(tree)
    command = [str(tree / ".venv/bin/python"), "-P", str(PROBE), part, str(seconds)]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{part} in {tree}: {run.stderr[-2000:]}")
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def build_problem(tree: Path) -> str:
    """Why the compiled modules of a tree are not those of its sources; empty when they are."""
    if not (tree / "src/quorate/_native.json").exists():
        return "not compiled"
    command = [str(tree / ".venv/bin/python"), "-c", _PROBLEM]
    return str(subprocess.run(command, cwd=tree / "tools", **_TEXT).stdout.strip())


def commit_of(tree: Path) -> str:
    """The commit that is checked out, with a "+" where files differ from it."""
    git = ["git", "-C", str(tree)]
    commit = subprocess.run([*git, "rev-parse", "--short=8", "HEAD"], **_TEXT).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "-uno", "src"], **_TEXT).stdout.strip()
    return commit + ("+" if changed else "")


_PROBLEM = "import build_native; print(build_native.problem() or '')"
_TEXT: Mapping[str, Any] = {"check": True, "capture_output": True, "text": True}


def as_text(before: str, after: str, count: int, found: Sequence[Compared]) -> str:
    """A table in Markdown."""
    lines = [
        f"{count} interleaved pairs, before {before}, after {after}",
        "",
        "| measure | before | after | after / before | quartiles of the pairs |",
        "|---|---|---|---|---|",
    ]
    for row in found:
        worse = " **worse**" if row.worse > LIMIT else ""
        lines.append(
            f"| {row.measure} | {row.before:,.4g} | {row.after:,.4g} "
            f"| {row.quotient:.3f}{worse} | {row.low:.3f} to {row.high:.3f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """The command; 1 when a median is worse by more than 5 %."""
    parser = argparse.ArgumentParser(prog="python -m bench pairs", description=__doc__)
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("after", type=Path, metavar="AFTER")
    parser.add_argument("--count", type=int, default=15, help="how many pairs (default: 15)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each load (default: 2)")
    parser.add_argument("--part", action="append", choices=PARTS, help="one of them; all without")
    parser.add_argument("--json", action="store_true", help="print JSON with every sample")
    given = parser.parse_args(arguments)
    before, after = given.before.resolve(), given.after.resolve()
    if given.count < 1:
        parser.error("--count: at least 1")
    for tree in (before, after):
        if not (tree / ".venv/bin/quorate").exists():
            parser.error(f"{tree}: no .venv/bin/quorate")
        if problem := build_problem(tree):
            parser.error(f"{tree}: {problem}; run tools/build_native.py there")

    def sample(tree: Path) -> Sample:
        found: dict[str, float] = {}
        for part in given.part or PARTS:
            found.update(take_sample(tree, part, given.seconds))
        return found

    pairs = interleave(before, after, given.count, sample)
    compared = compare(pairs)
    names = commit_of(before), commit_of(after)
    if given.json:
        rows = [asdict(row) | {"worse": row.worse} for row in compared]
        print(json.dumps({"before": names[0], "after": names[1], "rows": rows, "pairs": pairs}))
    else:
        print(as_text(*names, given.count, compared))
    return int(any(row.worse > LIMIT for row in compared))
