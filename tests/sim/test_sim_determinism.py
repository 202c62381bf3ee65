"""One seed determines the whole run, in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from quorate.sim.plan.draw import draw
from quorate.sim.plan.draw_controllers import CONTROLLERS
from quorate.sim.plan.plan import LEADER, FaultEvent, Plan
from quorate.sim.render.text import TraceText
from quorate.sim.run.run import checked, run_plan, run_seed
from quorate.sim.world.observer import Observer

SEEDS = (3, 17, 31)
DRAWN = (*((seed, None) for seed in SEEDS), *((seed, CONTROLLERS) for seed in (2, 5, 15)))
PRINT = (
    "from quorate.sim.run.run import run_seed\nfor s, f in %r: print(run_seed(s, (), f).trace_hash)"
)


def hashes_elsewhere(**environment: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", PRINT % (DRAWN,)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [{"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "4242", "QUORATE_PURE_PYTHON": "1"}],
    ids=["another hash seed", "no compiled parts"],
)
def test_the_same_trace_in_another_process(environment: dict[str, str]) -> None:
    here = [run_seed(seed, (), family).trace_hash for seed, family in DRAWN]
    assert hashes_elsewhere(**environment) == here


def test_an_observer_does_not_change_a_run() -> None:
    lines: list[str] = []
    alone = run_seed(SEEDS[0])
    watched = run_seed(SEEDS[0], [*checked(), TraceText(lines.append)])
    assert (watched.trace_hash, watched.events) == (alone.trace_hash, alone.events)
    assert len(lines) > alone.events // 4


def test_another_seed_is_another_world() -> None:
    assert len({run_seed(seed).trace_hash for seed in SEEDS}) == len(SEEDS)


class Faults(Observer):
    def __init__(self) -> None:
        self.seen: list[tuple[str, tuple[object, ...]]] = []

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        self.seen.append((kind, details))


def test_without_one_fault_event_the_others_draw_the_same() -> None:
    """So that a plan can be made smaller without becoming another one."""
    fault_events = (
        FaultEvent(2500, "jump", (1, 1000)),
        FaultEvent(3000, "power", (LEADER, 500)),
        FaultEvent(6000, "rot", (LEADER, 500)),
    )
    seen_faults = []
    for kept in (fault_events, fault_events[1:]):
        faults = Faults()
        run_plan(Plan(seed=9, duration_ms=8000, fault_events=kept), [faults])
        seen_faults.append([seen for seen in faults.seen if seen[0] != "jump"])
    assert seen_faults[0] == seen_faults[1]
    assert any(kind == "damaged" for kind, _ in seen_faults[0])


def test_a_saved_plan_runs_as_its_seed() -> None:
    from quorate.sim.plan.text import parse_plan, plan_text

    plan = parse_plan(plan_text(draw(SEEDS[1])))
    assert run_plan(plan).trace_hash == run_seed(SEEDS[1]).trace_hash
