"""Campaigns of the simulator as Spark jobs: run seeds, keep results, coverage and failing traces.

job        run a campaign: `run`
results    the directory of a campaign: a row for each seed
totals     the sums of all rows
failures   trace and shrink failing seeds
compare    compare the results of versions: `compare_versions`; `page` renders them as HTML
processes  run each piece of work in a fresh process
worker     the program of these processes

Names are imported when they are first used: a worker must be able to plant a mutant before the code
under test is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.campaign.compare import CampaignVersion, compare_versions
    from quorate.campaign.job import CampaignSettings, CampaignSummary, run
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "compare": "CampaignVersion compare_versions",
            "job": "CampaignSettings CampaignSummary run",
        },
    )

__all__ = ["CampaignSettings", "CampaignSummary", "CampaignVersion", "compare_versions", "run"]
