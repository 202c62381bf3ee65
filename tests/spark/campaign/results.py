"""Results of campaigns to look at, and results that are only pretended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyarrow import parquet

from quorate.campaign.results import write_part
from quorate.sim.campaign import Code, row_of
from quorate.sim.marks import ALL_MARKS
from quorate.sim.plan import Plan
from quorate.sim.run import Failure, Outcome

SEEDS = range(3, 13)
"""Of campaigns that are really run."""
CODE = Code("1.0", "aaaa", 2)


def table(directory: Path) -> list[dict[str, Any]]:
    """The rows as any reader of Parquet sees them, by seed; without the processor's time."""
    rows = parquet.read_table(directory).drop_columns("seconds").to_pylist()
    return sorted(rows, key=lambda row: int(row["seed"]))


def pretend(
    out: Path,
    seeds: range,
    code: Code = CODE,
    failing: tuple[int, ...] = (),
    cold: tuple[str, ...] = (),
    trace: str = "ab",
) -> Path:
    """Write results of worlds that were never run: 100 events, seed ms to heal, 0.5 s each."""
    marks = dict.fromkeys(set(ALL_MARKS) - set(cold), 2)
    rows = []
    for seed in seeds:
        failure = Failure("liveness", "nobody leads", 9000, 100) if seed in failing else None
        plan = Plan(code.plan_format, seed)
        outcome = Outcome(seed, plan, 100, 9000, trace * 16, failure, 0.5, seed, marks)
        rows.append(row_of(outcome, code))
    write_part(str(out), rows)
    return out
