"""Runs the world of one plan or one seed, and returns its outcome."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quorate.sim.checks.all_checks import Checks
from quorate.sim.checks.broker_metadata import BrokerMetadataCheck
from quorate.sim.checks.controller_head import ControllerHeadCheck
from quorate.sim.checks.log_on_medium import LogOnMediumCheck
from quorate.sim.checks.metadata_transactions import MetadataTransactionCheck
from quorate.sim.checks.rolled_back import RolledBackCheck
from quorate.sim.checks.security_metadata import SecurityMetadataCheck
from quorate.sim.plan.draw import draw
from quorate.sim.plan.draw_controllers import CONTROLLERS, draw_controllers
from quorate.sim.plan.plan import Plan
from quorate.sim.run.kafka_scenarios import check_scenario, draw_scenario, play
from quorate.sim.run.liveness import LivenessPhase
from quorate.sim.run.oversize_probe import probe_oversized_append
from quorate.sim.world.interrupt import deferred
from quorate.sim.world.observer import Observer, ViolationError
from quorate.sim.world.world import World


@dataclass(frozen=True, slots=True)
class Failure:
    """The violated invariant, and the time of the violation: ms of the world, number of the event.

    Where the code under test raised an exception, `check` has its name and `details` its traceback.
    """

    check: str
    message: str
    at_ms: int
    event: int
    details: str = ""


@dataclass(frozen=True, slots=True)
class WorldOutcome:
    """The outcome of a plan. `seconds` is the CPU time of the run."""

    seed: int
    plan: Plan
    events: int
    simulated_ms: int
    trace_hash: str
    failure: Failure | None
    seconds: float
    liveness_ms: int = 0
    coverage: dict[str, int] = field(default_factory=dict)


def checked() -> list[Observer]:
    """New observers for one world: every check."""
    return [
        Checks(),
        LogOnMediumCheck(),
        ControllerHeadCheck(),
        MetadataTransactionCheck(),
        BrokerMetadataCheck(),
        SecurityMetadataCheck(),
        RolledBackCheck(),
    ]


def run_world(world: World) -> None:
    """Run a world from its start to the end of the liveness phase, once.

    Raises ViolationError where a check or the world itself finds a violation.
    """
    world.begin()
    if world.plan.scenario:
        play(world)
    else:
        world.run_until(world.plan.duration_ms * 1000)
    LivenessPhase(world).run()
    world.finished()
    # The probe submits past the write queue, and its checks do not see a loss.
    if not world.plan.controllers and not world.is_rolled_back:
        probe_oversized_append(world)


def run_plan(plan: Plan, observers: Sequence[Observer] = ()) -> WorldOutcome:
    """Run a world of this plan to its end, or to the first violation.

    Raises KeyboardInterrupt between two events.
    """
    began = time.process_time()
    if plan.scenario:
        check_scenario(plan)
    world = World(plan, observers)
    failure = None
    try:
        with deferred(), _uncollected():
            run_world(world)
    except ViolationError as violation:
        failure = _failure(world, violation.check, violation.message)
    except Exception as error:  # every exception of the code under test is a finding
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{error} ({Path(where.filename).name}, line {where.lineno})"
        details = "".join(traceback.format_exception(error))
        failure = _failure(world, f"exception: {type(error).__name__}", said, details)
    coverage: dict[str, int] = {}
    for observer in observers:
        coverage.update(getattr(observer, "coverage", None) or {})
    return WorldOutcome(
        plan.seed,
        plan,
        world.events,
        world.now_us // 1000,
        world.trace.hexdigest(),
        failure,
        time.process_time() - began,
        world.liveness_us // 1000,
        coverage,
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the garbage collector: a running world makes few cycles, so collections free little."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _failure(world: World, check: str, message: str, details: str = "") -> Failure:
    return Failure(check, message, world.now_us // 1000, world.events, details)


def run_seed(
    seed: int, observers: Sequence[Observer] = (), scenario: str | None = None
) -> WorldOutcome:
    """Run the world that this seed draws."""
    return run_plan(drawn(seed, scenario), observers)


def drawn(seed: int, scenario: str | None = None) -> Plan:
    """The plan of a seed: of the default family, of controllers, or of a scenario."""
    if scenario == CONTROLLERS:
        return draw_controllers(seed)
    return draw(seed) if scenario is None else draw_scenario(scenario, seed)
