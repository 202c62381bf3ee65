"""A process that stops in good order may still find its disk failing while it closes it."""

from __future__ import annotations

import pytest

from quorate.sim.checks.all_checks import Checks
from quorate.sim.plan.plan import ClientPlan, FaultEvent, Plan
from quorate.sim.run.run import run_plan


@pytest.mark.parametrize("kind", ["crash-disk", "fail-disk"])
def test_the_disk_fails_while_it_is_closed(kind: str) -> None:
    fault_events = (FaultEvent(3000, kind, (1, 1, 500)), FaultEvent(3001, "stop", (1, 500)))
    plan = Plan(voters=1, clients=ClientPlan(count=0), fault_events=fault_events)
    assert run_plan(plan, [Checks()]).failure is None
