"""A campaign on a standalone cluster of which a worker is killed in the middle."""

from __future__ import annotations

import pytest

from spark.campaign.jobs import campaign
from spark.campaign.results import SEEDS, table
from time_budget import one_day_in

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.xdist_group("spark-cluster")]


@one_day_in(3, 0)
def test_a_killed_worker_loses_and_doubles_no_row(driver, local, tmp_path):
    out = tmp_path / "out"
    result = driver.run_and_lose_a_worker(
        *(campaign, str(out)), when=lambda: list(out.glob("part-*"))
    )
    assert result == (len(SEEDS), len(SEEDS), 1)
    assert len(list(out.glob("part-*"))) == len(SEEDS)
    assert table(out) == table(local)
