"""Worlds of hours: what only takes place in them, and what they may cost."""

from __future__ import annotations

from dataclasses import replace

from quorate.sim.coverage.coverage import Coverage
from quorate.sim.coverage.coverage_of_long_runs import (
    APART,
    CAME_BACK,
    COVERAGE_POINTS,
    DROPPED,
    LED,
    SNAPSHOT,
)
from quorate.sim.plan.draw import draw
from quorate.sim.plan.plan import ClientPlan, ClockPlan, DiskPlan, FaultEvent, Plan, TimingPlan
from quorate.sim.run.run import checked, run_plan

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
    fault_events=(FaultEvent(4 * HOUR_MS - 5 * MINUTE_MS, "kill", (2, 62 * MINUTE_MS)),),
)


def hours(plan: Plan) -> dict[str, int]:
    outcome = run_plan(plan, [*checked(), Coverage()])
    assert outcome.failure is None, outcome.failure
    return {name: outcome.coverage.get(name, 0) for name in COVERAGE_POINTS}


def test_events_of_an_hour_occur() -> None:
    found = hours(WORLD)
    assert found[LED] >= 3 and found[SNAPSHOT] >= 4 and found[DROPPED] >= 1, found
    assert found[CAME_BACK] == 1 and found[APART] == 1, found


def test_shorter_events_have_no_long_running_coverage_point() -> None:
    disk = DiskPlan(snapshot_ms=HOUR_MS // 2, retention_ms=HOUR_MS // 2)
    fault_events = (
        FaultEvent(HOUR_MS, "kill", (2, HOUR_MS - MINUTE_MS)),
        FaultEvent(HOUR_MS, "kill", (1, 1)),
    )
    plan = replace(WORLD, duration_ms=2 * HOUR_MS - MINUTE_MS, clock=ClockPlan(), disk=disk)
    assert hours(replace(plan, fault_events=fault_events)) == dict.fromkeys(COVERAGE_POINTS, 0)


def test_one_seed_in_forty_is_long_running() -> None:
    plans = [draw(seed) for seed in range(1000)]
    long_running = [plan for plan in plans if plan.duration_ms >= HOUR_MS]
    assert 15 <= len(long_running) <= 35
    assert all(plan.duration_ms <= 6 * HOUR_MS for plan in long_running)
    assert all(
        fault_event.at_ms < plan.duration_ms
        for plan in long_running
        for fault_event in plan.fault_events
    )
    assert all(plan.duration_ms < 2 * MINUTE_MS for plan in plans if plan not in long_running)
