"""A campaign on a standalone cluster of which a worker is killed in the middle."""

from __future__ import annotations

import pytest

from quorate.campaign.job import Settings, run
from spark.campaign.results import SEEDS, table
from spark.cluster import started

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


def campaign(spark, out):
    """What the driver's process runs; the code is sent to the workers."""
    summary = run(spark, SEEDS, out, settings=Settings(batch=1))
    return summary.ran, summary.totals.seeds, len(spark.sparkContext.listArchives)


def test_a_killed_worker_loses_and_doubles_no_row(local, tmp_path):
    out = tmp_path / "out"
    with started(tmp_path) as (_, driver):
        told = driver.run_and_lose_a_worker(
            *(campaign, str(out)), when=lambda: list(out.glob("part-*"))
        )
    assert told == (len(SEEDS), len(SEEDS), 1)
    assert len(list(out.glob("part-*"))) == len(SEEDS)
    assert table(out) == table(local)
