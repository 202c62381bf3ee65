"""Results of campaigns, real and made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyarrow import parquet

from quorate.campaign.results import write_part
from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS, RENAMED
from quorate.sim.plan.plan import Plan
from quorate.sim.run.campaign import EARLIER_COLUMNS, Code, row_of
from quorate.sim.run.run import Failure, WorldOutcome

SEEDS = range(3, 13)
"""The seeds of real campaigns."""
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
    missed: tuple[str, ...] = (),
    trace: str = "ab",
    *,
    earlier: bool = False,
) -> Path:
    """Write made-up results: for each seed 100 events, `seed` ms of recovery time, and 0.5 s.

    With `earlier` columns and coverage points have the names that an earlier release gave them.
    """
    former = {new: old for old, new in RENAMED.items()} if earlier else {}
    reached = set(ALL_COVERAGE_POINTS) - set(missed)
    coverage = {former.get(name, name): 2 for name in reached}
    rows = []
    for seed in seeds:
        failure = Failure("liveness", "nobody leads", 9000, 100) if seed in failing else None
        plan = Plan(code.plan_format, seed)
        outcome = WorldOutcome(seed, plan, 100, 9000, trace * 16, failure, 0.5, seed, coverage)
        rows.append(row_of(outcome, code))
    write_part(str(out), rows)
    if earlier:
        [part] = out.glob("part-*.parquet")
        table = parquet.read_table(part)
        columns = {new: old for old, new in EARLIER_COLUMNS.items()}
        names = [columns.get(name, name) for name in table.column_names]
        parquet.write_table(table.rename_columns(names), part)
    return out
