"""One seed decides everything: whoever runs it, in whatever process, sees the same happen."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from quorate.sim.draw import draw
from quorate.sim.observe import Observer
from quorate.sim.plan import LEADER, Deed, Plan
from quorate.sim.run import checked, run_plan, run_seed
from quorate.sim.text import TraceText

SEEDS = (3, 17, 31)
PRINT = "from quorate.sim.run import run_seed\nfor s in %r: print(run_seed(s).trace_hash)"


def hashes_elsewhere(**environment: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", PRINT % (SEEDS,)],
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
    assert hashes_elsewhere(**environment) == [run_seed(seed).trace_hash for seed in SEEDS]


def test_who_looks_on_changes_nothing() -> None:
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


def test_a_deed_that_is_left_out_leaves_the_luck_of_the_others() -> None:
    """So that a plan can be made smaller without becoming another one."""
    deeds = (
        Deed(2500, "jump", (1, 1000)),
        Deed(3000, "power", (LEADER, 500)),
        Deed(6000, "rot", (LEADER, 500)),
    )
    told = []
    for kept in (deeds, deeds[1:]):
        faults = Faults()
        run_plan(Plan(seed=9, duration_ms=8000, deeds=kept), [faults])
        told.append([seen for seen in faults.seen if seen[0] != "jump"])
    assert told[0] == told[1]
    assert any(kind == "spoiled" for kind, _ in told[0])


def test_a_plan_that_was_written_down_runs_as_its_seed() -> None:
    from quorate.sim.plan_text import parse_plan, plan_text

    plan = parse_plan(plan_text(draw(SEEDS[1])))
    assert run_plan(plan).trace_hash == run_seed(SEEDS[1]).trace_hash
