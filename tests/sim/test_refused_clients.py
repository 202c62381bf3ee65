"""Clients that are refused, and go on to something else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from quorate.base.errors import ErrorCode
from quorate.raft.ready import Refused
from quorate.replica.replica import Effects
from quorate.sim.plan.plan import ClientPlan, FaultEvent, NetworkPlan, Plan
from quorate.sim.run.run import checked, run_plan
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import Observer

WORLD = Plan(
    seed=3,
    duration_ms=6000,
    clients=ClientPlan(count=3, think_ms=50, timeout_ms=500, turn_away=1.0),
    fault_events=(FaultEvent(3000, "isolate", (0, 5000)),),
)


class Outcomes(Observer):
    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.too_large = 0

    def answered(self, op: ClientOp) -> None:
        self.outcomes[op.outcome] += 1

    def stepped(self, process: SimulatedNode, happened: object, effects: Effects) -> None:
        self.too_large += sum(
            isinstance(one, Refused) and one.error == ErrorCode.RECORD_LIST_TOO_LARGE
            for one in effects.outcomes
        )


def run(plan: Plan) -> Outcomes:
    seen = Outcomes()
    outcome = run_plan(plan, [*checked(), seen])
    assert outcome.failure is None, outcome.failure
    return seen


def test_a_refused_client_knows_that_nothing_was_written() -> None:
    outcomes = run(WORLD).outcomes
    assert outcomes["ok"] > 50 and outcomes["refused"] > 5, outcomes


def test_in_doubt_it_does_not_know() -> None:
    """The leader that was cut off has what its clients asked for in its log."""
    assert run(WORLD).outcomes["unknown"] > 0


def test_with_duplicated_messages_no_refusal_is_final() -> None:
    """The other one may be on its way yet."""
    outcomes = run(replace(WORLD, network=NetworkPlan(duplicate=0.01))).outcomes
    assert outcomes["refused"] == 0 and outcomes["unknown"] > 5, outcomes


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_what_is_too_large_is_refused_in_worlds_too(rate: float) -> None:
    clients = replace(WORLD.clients, oversized=rate)
    limits = replace(WORLD.limits, batch_bytes=1000)
    assert (run(replace(WORLD, clients=clients, limits=limits)).too_large > 10) is (rate > 0)
