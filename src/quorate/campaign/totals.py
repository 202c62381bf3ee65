"""The sums over all rows of a campaign. Spark adds; the driver gets a row for each coverage point."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS, RENAMED, not_reached
from quorate.sim.run.campaign import CampaignError, Code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PERCENTILES: Final = (0.5, 0.9, 0.99, 1.0)
"""Percentiles of the recovery times."""


@dataclass(frozen=True, slots=True)
class CoverageCount:
    """The number of seeds that reached a coverage point, and how often they did in total."""

    seeds: int
    times: int


@dataclass(frozen=True, slots=True)
class CampaignTotals:
    """The sums of a campaign.

    recovery_ms: recovery times in the order of PERCENTILES; checks: failed seeds by failed check;
    coverage: by coverage point. The names are columns of the results and keys of the JSON.
    """

    code: Code
    seeds: int
    events: int
    simulated_ms: int
    cpu_s: float
    recovery_ms: tuple[float, ...]
    checks: dict[str, int]
    coverage: dict[str, CoverageCount]

    @property
    def failed(self) -> int:
        return sum(self.checks.values())

    @property
    def not_reached(self) -> list[str]:
        """The coverage points that no seed reached."""
        return not_reached({name: met.times for name, met in self.coverage.items()})

    @property
    def reached(self) -> int:
        return len(ALL_COVERAGE_POINTS) - len(self.not_reached)

    @property
    def events_per_cpu_s(self) -> float:
        return self.events / max(self.cpu_s, 1e-9)

    @property
    def cpu_us_per_event(self) -> float:
        return self.cpu_s * 1e6 / max(self.events, 1)

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self.code),
            "seeds": self.seeds,
            "events": self.events,
            "simulated_ms": self.simulated_ms,
            "cpu_seconds": round(self.cpu_s, 3),
            "events_per_cpu_second": round(self.events_per_cpu_s),
            "cpu_us_per_event": round(self.cpu_us_per_event, 3),
            "recovery_ms": {
                f"p{share * 100:g}": value
                for share, value in zip(PERCENTILES, self.recovery_ms, strict=True)
            },
            "failed": self.failed,
            "failed_checks": self.checks,
            "cold": self.not_reached,
            "coverage": {name: asdict(met) for name, met in self.coverage.items()},
        }


def add_up(rows: DataFrame, code: Code, where: str) -> CampaignTotals:
    """The totals of rows that `code` made; where: the directory, for messages.

    Raises CampaignError where a seed has two rows.
    """
    from pyspark.sql import functions as F

    shares = F.array(*map(F.lit, PERCENTILES))
    sums = rows.agg(
        F.count("*").alias("seeds"),
        F.count_distinct("seed").alias("distinct"),
        F.coalesce(F.sum("events"), F.lit(0)).alias("events"),
        F.coalesce(F.sum("simulated_ms"), F.lit(0)).alias("simulated_ms"),
        F.coalesce(F.sum("seconds"), F.lit(0.0)).alias("cpu_s"),
        F.percentile("recovery_ms", shares).alias("recovery_ms"),
    ).first()
    assert sums is not None
    if sums["seeds"] != sums["distinct"]:
        raise _twice(rows, where)
    coverage = (
        rows.select(F.explode("coverage").alias("point", "times"))
        .groupBy("point")
        .agg(F.count("*").alias("seeds"), F.sum("times").alias("times"))
    )
    checks = rows.where("failure_check is not null").groupBy("failure_check").count()
    return CampaignTotals(
        code,
        sums["seeds"],
        sums["events"],
        sums["simulated_ms"],
        sums["cpu_s"],
        tuple(round(value, 1) for value in sums["recovery_ms"] or [0.0] * len(PERCENTILES)),
        {row["failure_check"]: row["count"] for row in checks.orderBy("failure_check").collect()},
        {
            RENAMED.get(row["point"], row["point"]): CoverageCount(row["seeds"], row["times"])
            for row in coverage.orderBy("point").collect()
        },
    )


def _twice(rows: DataFrame, where: str) -> CampaignError:
    from pyspark.sql import functions as F

    counted = rows.withColumn("file", F.input_file_name()).groupBy("seed")
    found = counted.agg(F.collect_set("file").alias("files"), F.count("*").alias("times"))
    row = found.where("times > 1").orderBy("seed").first()
    assert row is not None
    return CampaignError(
        f"{where}: seed {row['seed']} is there twice, in {' and '.join(sorted(row['files']))}: two "
        "campaigns have run here at once. Delete one of the files and go on with --resume"
    )
