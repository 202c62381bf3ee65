"""Versions held against each other, by the results of their campaigns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from quorate.campaign.job import results_of
from quorate.campaign.totals import PERCENTILES, Totals, add_up
from quorate.sim.marks import ALL_MARKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMED: Final = 20
"""So many seeds are named where more have failed."""


@dataclass(frozen=True, slots=True)
class Change:
    """A version against the first one; `common` seeds were run by both.

    `traces`: the common seeds whose traces differ. `broken`: those that fail now and did not, the
    first of them in `broken_seeds`; `mended`: the other way round. `gained`, `lost`: marks.
    """

    common: int
    traces: int
    broken: int
    broken_seeds: list[int]
    mended: int
    gained: list[str]
    lost: list[str]


@dataclass(frozen=True, slots=True)
class Version:
    """The results in one directory; `change` None: the others are held against this one."""

    directory: str
    totals: Totals
    change: Change | None

    @property
    def is_worse(self) -> bool:
        """Does a seed fail, or is a mark cold, that was well with the first version?"""
        return self.change is not None and bool(self.change.broken or self.change.lost)

    def to_json(self) -> dict[str, Any]:
        change = None if self.change is None else asdict(self.change)
        return {"directory": self.directory, **self.totals.to_json(), "change": change}


def compare(
    spark: SparkSession,
    directories: Sequence[str],
    tell: Callable[[str], None] = lambda _: None,
) -> list[Version]:
    """What the campaigns in these directories (one or more) came to, and what has changed.

    All are held against the first. Raises CampaignError where one has no results, or results of
    several versions.
    """
    found: list[Version] = []
    first: DataFrame | None = None
    for directory in directories:
        tell(f"adding up {directory}")
        rows, code = results_of(spark, directory)
        totals = add_up(rows, code, directory)
        change = None if first is None else _change(first, rows, found[0].totals, totals)
        first = rows if first is None else first
        found.append(Version(directory, totals, change))
    return found


def _change(before: DataFrame, now: DataFrame, old: Totals, new: Totals) -> Change:
    from pyspark.sql import functions as F

    pairs = _outcomes(before, "old").join(_outcomes(now, "new"), "seed")
    broken = F.col("new_failed") & ~F.col("old_failed")
    mended = F.col("old_failed") & ~F.col("new_failed")
    sums = pairs.agg(
        F.count("*").alias("common"),
        F.count_if(F.col("old_trace") != F.col("new_trace")).alias("traces"),
        F.count_if(broken).alias("broken"),
        F.count_if(mended).alias("mended"),
    ).first()
    assert sums is not None
    named = pairs.where(broken).orderBy("seed").limit(NAMED) if sums["broken"] else None
    return Change(
        sums["common"],
        sums["traces"],
        sums["broken"],
        [] if named is None else [row["seed"] for row in named.select("seed").collect()],
        sums["mended"],
        sorted(set(old.cold) - set(new.cold)),
        sorted(set(new.cold) - set(old.cold)),
    )


def _outcomes(rows: DataFrame, name: str) -> DataFrame:
    return rows.selectExpr(
        "seed", f"trace_hash AS {name}_trace", f"failure_check IS NOT NULL AS {name}_failed"
    )


# -- in words --------------------------------------------------------------------------------------
HEADS: Final = (
    "results",
    "version",
    "seeds",
    "events",
    "hours",
    "events/cpu s",
    "cpu us/event",
    "failed",
    "marks warm",
    *(f"healing p{share * 100:g}" for share in PERCENTILES),
)
"""Of the table of versions; healing times in ms, hours of the simulated clusters."""


def cells(one: Version) -> tuple[str, ...]:
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
        f"{totals.warm} of {len(ALL_MARKS)}",
        *(f"{value:,.0f}" for value in totals.healing_ms),
    )


def told(change: Change, one: Version, first: Version) -> list[str]:
    """What has changed from the first version to this one, in lines."""
    lines = []
    if one.totals.code.plan_format != first.totals.code.plan_format:
        lines.append(
            f"its plans are of format {one.totals.code.plan_format}, not "
            f"{first.totals.code.plan_format}: the same seeds are other worlds"
        )
    if not change.common:
        return [*lines, "no seed was run by both", *_marks(change)]
    lines.append(f"{change.traces:,} of {change.common:,} common seeds have another trace")
    if change.broken:
        more = change.broken - len(change.broken_seeds)
        named = ", ".join(map(str, change.broken_seeds)) + (f" and {more} more" if more else "")
        lines.append(f"{change.broken:,} seeds fail that did not: {named}")
    if change.mended:
        lines.append(f"{change.mended:,} seeds fail no more")
    return [*lines, *_marks(change)]


def _marks(change: Change) -> list[str]:
    gained = [f"warm now, cold before: {name}" for name in change.gained]
    return [*gained, *(f"COLD now, warm before: {name}" for name in change.lost)]
