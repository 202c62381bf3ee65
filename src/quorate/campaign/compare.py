"""A comparison of versions by the results of their campaigns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from quorate.campaign.job import results_of
from quorate.campaign.totals import PERCENTILES, CampaignTotals, add_up
from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMED: Final = 20
"""The largest number of newly failing seeds that are named."""


@dataclass(frozen=True, slots=True)
class VersionChange:
    """How a version differs from the first one; `common` seeds were run by both.

    traces: common seeds whose traces differ
    broken: common seeds that fail only with this version; `broken_seeds` has the first of them
    fixed: common seeds that fail only with the first version
    gained, lost: coverage points that only this version, or only the first one, has reached

    The names are keys of the command's JSON.
    """

    common: int
    traces: int
    broken: int
    broken_seeds: list[int]
    fixed: int
    gained: list[str]
    lost: list[str]


@dataclass(frozen=True, slots=True)
class CampaignVersion:
    """The results in one directory; `change` is None for the first, with which others compare."""

    directory: str
    totals: CampaignTotals
    change: VersionChange | None

    @property
    def is_worse(self) -> bool:
        """Whether a seed fails or a coverage point is missed that was fine with the first version."""
        return self.change is not None and bool(self.change.broken or self.change.lost)

    def to_json(self) -> dict[str, Any]:
        change = None if self.change is None else asdict(self.change)
        return {"directory": self.directory, **self.totals.to_json(), "change": change}


def compare_versions(
    spark: SparkSession,
    directories: Sequence[str],
    notify: Callable[[str], None] = lambda _: None,
) -> list[CampaignVersion]:
    """The results of the campaigns in these directories (one or more), and how they differ.

    All are compared with the first. Raises CampaignError where one has no results, or results of
    several versions.
    """
    found: list[CampaignVersion] = []
    first: DataFrame | None = None
    for directory in directories:
        notify(f"adding up {directory}")
        rows, code = results_of(spark, directory)
        totals = add_up(rows, code, directory)
        change = None if first is None else _change(first, rows, found[0].totals, totals)
        first = rows if first is None else first
        found.append(CampaignVersion(directory, totals, change))
    return found


def _change(
    before: DataFrame, now: DataFrame, old: CampaignTotals, new: CampaignTotals
) -> VersionChange:
    from pyspark.sql import functions as F

    pairs = _outcomes(before, "old").join(_outcomes(now, "new"), "seed")
    broken = F.col("new_failed") & ~F.col("old_failed")
    fixed = F.col("old_failed") & ~F.col("new_failed")
    sums = pairs.agg(
        F.count("*").alias("common"),
        F.count_if(F.col("old_trace") != F.col("new_trace")).alias("traces"),
        F.count_if(broken).alias("broken"),
        F.count_if(fixed).alias("fixed"),
    ).first()
    assert sums is not None
    named = pairs.where(broken).orderBy("seed").limit(NAMED) if sums["broken"] else None
    return VersionChange(
        sums["common"],
        sums["traces"],
        sums["broken"],
        [] if named is None else [row["seed"] for row in named.select("seed").collect()],
        sums["fixed"],
        sorted(set(old.not_reached) - set(new.not_reached)),
        sorted(set(new.not_reached) - set(old.not_reached)),
    )


def _outcomes(rows: DataFrame, name: str) -> DataFrame:
    return rows.selectExpr(
        "seed", f"trace_hash AS {name}_trace", f"failure_check IS NOT NULL AS {name}_failed"
    )


# -- as text --------------------------------------------------------------------------------------
HEADS: Final = (
    "results",
    "version",
    "seeds",
    "events",
    "hours",
    "events/cpu s",
    "cpu us/event",
    "failed",
    "coverage",
    *(f"recovery p{share * 100:g}" for share in PERCENTILES),
)
"""Columns of the table of versions: recovery times in ms, hours of the simulated clusters."""


def cells(one: CampaignVersion) -> tuple[str, ...]:
    """The row of a version under HEADS."""
    totals = one.totals
    return (
        one.directory,
        totals.code.version,
        f"{totals.seeds:,}",
        f"{totals.events:,}",
        f"{totals.simulated_ms / 3_600_000:.1f}",
        f"{totals.events_per_cpu_s:,.0f}",
        f"{totals.cpu_us_per_event:.1f}",
        f"{totals.failed:,}",
        f"{totals.reached} of {len(ALL_COVERAGE_POINTS)}",
        *(f"{value:,.0f}" for value in totals.recovery_ms),
    )


def change_lines(change: VersionChange, one: CampaignVersion, first: CampaignVersion) -> list[str]:
    """The differences between the first version and this one, as lines of text."""
    lines = []
    if one.totals.code.plan_format != first.totals.code.plan_format:
        lines.append(
            f"its plans are of format {one.totals.code.plan_format}, not "
            f"{first.totals.code.plan_format}: the same seeds give other plans"
        )
    if not change.common:
        return [*lines, "no seed was run by both", *_coverage_lines(change)]
    lines.append(f"{change.traces:,} of {change.common:,} common seeds have another trace")
    if change.broken:
        more = change.broken - len(change.broken_seeds)
        named = ", ".join(map(str, change.broken_seeds)) + (f" and {more} more" if more else "")
        lines.append(f"{change.broken:,} seeds fail that did not: {named}")
    if change.fixed:
        lines.append(f"{change.fixed:,} seeds no longer fail")
    return [*lines, *_coverage_lines(change)]


def _coverage_lines(change: VersionChange) -> list[str]:
    gained = [f"newly covered: {name}" for name in change.gained]
    return [*gained, *(f"NO LONGER covered: {name}" for name in change.lost)]
