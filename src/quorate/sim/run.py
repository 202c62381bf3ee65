"""One seed, one plan: run it and say what came of it."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quorate.sim.checks.watch import Checks
from quorate.sim.draw import draw
from quorate.sim.halt import deferred
from quorate.sim.observe import Observer, Violation
from quorate.sim.plan import Plan
from quorate.sim.scenarios import draw_scenario
from quorate.sim.world import World


@dataclass(frozen=True, slots=True)
class Failure:
    """The promise that was broken, in words, and when: ms of the world, number of the event.

    Where the code itself fell over, `check` is the exception's name and `details` its traceback.
    """

    check: str
    message: str
    at_ms: int
    event: int
    details: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a plan. `seconds` is the processor's time that it took here."""

    seed: int
    plan: Plan
    events: int
    simulated_ms: int
    trace_hash: str
    failure: Failure | None
    seconds: float
    healing_ms: int = 0
    marks: dict[str, int] = field(default_factory=dict)


def checked() -> list[Observer]:
    """Every check, fresh: for one world."""
    return [Checks()]


def run_plan(plan: Plan, observers: Sequence[Observer] = ()) -> Outcome:
    """Run a world of this plan to its end, or to the first broken promise.

    Raises KeyboardInterrupt between two events of it.
    """
    began = time.process_time()
    world = World(plan, observers)
    failure = None
    try:
        with deferred(), _uncollected():
            world.run()
    except Violation as violation:
        failure = _failure(world, violation.check, violation.message)
    except Exception as error:  # whatever the code under test fell over is a finding
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{error} ({Path(where.filename).name}, line {where.lineno})"
        details = "".join(traceback.format_exception(error))
        failure = _failure(world, f"exception: {type(error).__name__}", said, details)
    marks: dict[str, int] = {}
    for observer in observers:
        marks.update(getattr(observer, "marks", None) or {})
    return Outcome(
        plan.seed,
        plan,
        world.events,
        world.now_us // 1000,
        world.trace.hexdigest(),
        failure,
        time.process_time() - began,
        0 if world.healing is None else world.healing.took_us // 1000,
        marks,
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """A world leaves few cycles behind until it goes as a whole: looking for them is in vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _failure(world: World, check: str, message: str, details: str = "") -> Failure:
    return Failure(check, message, world.now_us // 1000, world.events, details)


def run_seed(seed: int, observers: Sequence[Observer] = (), scenario: str | None = None) -> Outcome:
    """Run the world that this seed draws."""
    return run_plan(drawn(seed, scenario), observers)


def drawn(seed: int, scenario: str | None = None) -> Plan:
    """The plan of a seed: from the swarm, or in the family of a scenario."""
    return draw(seed) if scenario is None else draw_scenario(scenario, seed)
