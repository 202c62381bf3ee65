"""Fresh seeds: the date (UTC) picks them, so that every day's run of the tests sees new worlds.

QUORATE_SEEDS=A..B runs those seeds instead, all of them, however long it takes.
"""

from __future__ import annotations

import os
import time

import pytest

from quorate.sim.run.campaign import seeds_of_day
from quorate.sim.run.run import checked, run_seed
from time_budget import TODAY, share

SHARES = 4
SECONDS = share(60, quick=5, daily=4)
"""Of each share: begin no world after that."""
LEAST = 5
"""Worlds of each share, however slow the machine."""


def wanted() -> tuple[range, bool]:
    """The seeds of all shares, and whether time is limited."""
    given = os.environ.get("QUORATE_SEEDS")
    if given is None:
        return seeds_of_day(TODAY, 20_000), True
    first, dots, last = given.partition("..")
    seeds = range(int(first), int(last) if dots else int(first) + 1)
    assert seeds, f"QUORATE_SEEDS={given} has no seeds: it should be A..B, B not included"
    return seeds, False


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_fresh_seeds_pass_every_check(share: int) -> None:
    seeds, limited = wanted()
    until = time.monotonic() + SECONDS
    for tried, seed in enumerate(seeds[share::SHARES], 1):
        outcome = run_seed(seed, checked())
        if outcome.failure is not None:
            failure = outcome.failure
            pytest.fail(
                f"seed {seed} failed at {failure.at_ms} ms: {failure.check}: {failure.message}\n"
                f"  quorate sim replay {seed}\n  quorate sim shrink {seed}\n"
                f"  QUORATE_SEEDS={seed} pytest {__file__}"
            )
        if limited and tried >= LEAST and time.monotonic() > until:
            break
