"""The results of `sim campaign`, with which campaigns on Spark are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.sim.run.campaign import Campaign
from spark.campaign.results import SEEDS


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local")
    list(Campaign(out).run(SEEDS, 1))
    return out
