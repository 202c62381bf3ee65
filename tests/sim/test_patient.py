"""Worlds of hours: what only takes place in them, and what they may cost."""

from __future__ import annotations

from dataclasses import replace

from quorate.sim.draw import draw
from quorate.sim.hours import APART, CAME_BACK, DROPPED, LED, MARKS, SNAPSHOT
from quorate.sim.marks import Marks
from quorate.sim.plan import ClientPlan, ClockPlan, Deed, DiskPlan, Plan, TimingPlan
from quorate.sim.run import checked, run_plan

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
SLOW = TimingPlan(
    fetch_timeout_ms=60_000,
    request_timeout_ms=40_000,
    retry_backoff_ms=2000,
    fetch_max_wait_ms=20_000,
)
WORLD = Plan(
    voters=1,
    observers=1,
    duration_ms=5 * HOUR_MS,
    timing=SLOW,
    clock=ClockPlan(20_000),
    disk=DiskPlan(retention_ms=HOUR_MS),
    clients=ClientPlan(count=1, think_ms=5 * MINUTE_MS, timeout_ms=40_000),
    deeds=(Deed(4 * HOUR_MS - 5 * MINUTE_MS, "kill", (2, 62 * MINUTE_MS)),),
)


def hours(plan: Plan) -> dict[str, int]:
    outcome = run_plan(plan, [*checked(), Marks()])
    assert outcome.failure is None, outcome.failure
    return {name: outcome.marks.get(name, 0) for name in MARKS}


def test_what_takes_an_hour_takes_place() -> None:
    found = hours(WORLD)
    assert found[LED] >= 3 and found[SNAPSHOT] >= 4 and found[DROPPED] >= 1, found
    assert found[CAME_BACK] == 1 and found[APART] == 1, found


def test_what_does_not_take_an_hour_has_no_mark() -> None:
    disk = DiskPlan(snapshot_ms=HOUR_MS // 2, retention_ms=HOUR_MS // 2)
    deeds = (Deed(HOUR_MS, "kill", (2, HOUR_MS - MINUTE_MS)), Deed(HOUR_MS, "kill", (1, 1)))
    plan = replace(WORLD, duration_ms=2 * HOUR_MS - MINUTE_MS, clock=ClockPlan(), disk=disk)
    assert hours(replace(plan, deeds=deeds)) == dict.fromkeys(MARKS, 0)


def test_one_seed_in_forty_is_patient() -> None:
    plans = [draw(seed) for seed in range(1000)]
    patient = [plan for plan in plans if plan.duration_ms >= HOUR_MS]
    assert 15 <= len(patient) <= 35
    assert all(plan.duration_ms <= 6 * HOUR_MS for plan in patient)
    assert all(deed.at_ms < plan.duration_ms for plan in patient for deed in plan.deeds)
    assert all(plan.duration_ms < 2 * MINUTE_MS for plan in plans if plan not in patient)
