"""The deterministic simulator: a seed becomes a plan, a world runs it, observers check it.

`run_seed(7)` runs the world of a seed with every check on. `run_plan(draw(7), [*checked(), mine])`
runs a plan with observers of your own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.sim.plan.draw import draw
    from quorate.sim.plan.plan import Plan, PlanError
    from quorate.sim.plan.text import parse_plan, plan_text
    from quorate.sim.run.pool import run_seeds
    from quorate.sim.run.run import Failure, WorldOutcome, checked, run_plan, run_seed
    from quorate.sim.run.shrink import NothingToShrinkError, Shrunk, shrink
    from quorate.sim.world.observer import Observer, ViolationError
    from quorate.sim.world.world import World
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "plan.draw": "draw",
            "plan.plan": "Plan PlanError",
            "plan.text": "parse_plan plan_text",
            "run.pool": "run_seeds",
            "run.run": "Failure WorldOutcome checked run_plan run_seed",
            "run.shrink": "NothingToShrinkError Shrunk shrink",
            "world.observer": "Observer ViolationError",
            "world.world": "World",
        },
    )

__all__ = [
    "Failure",
    "NothingToShrinkError",
    "Observer",
    "Plan",
    "PlanError",
    "Shrunk",
    "ViolationError",
    "World",
    "WorldOutcome",
    "checked",
    "draw",
    "parse_plan",
    "plan_text",
    "run_plan",
    "run_seed",
    "run_seeds",
    "shrink",
]
