"""What the driver of a cluster runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.campaign.job import CampaignSettings, run
from spark.campaign.results import SEEDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def campaign(spark: SparkSession, out: str) -> tuple[int, int, int]:
    """A seed a task: (seeds that were run, rows, archives that were sent)."""
    summary = run(spark, SEEDS, out, settings=CampaignSettings(batch=1))
    return summary.ran, summary.totals.seeds, len(spark.sparkContext.listArchives)
