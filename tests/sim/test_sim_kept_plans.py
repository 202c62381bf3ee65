"""Worlds in which something was wrong once, in the production code, the checks or the world."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.sim.plan.text import parse_plan
from quorate.sim.run.run import checked, run_plan
from time_budget import one_in

PLANS = sorted((Path(__file__).parent / "plans").glob("*.plan"))


@pytest.mark.parametrize("path", one_in(3, PLANS), ids=lambda path: path.stem)
def test_a_kept_plan_has_no_failure(path: Path) -> None:
    outcome = run_plan(parse_plan(path.read_text(encoding="utf-8")), checked())
    assert outcome.failure is None, outcome.failure
