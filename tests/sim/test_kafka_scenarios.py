"""RaftEventSimulationTest: Kafka's simulation scenarios by name, each as a family of worlds.

The date (UTC) picks the seeds. QUORATE_SEEDS=A..B runs those, of every scenario.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from conformance.marker import kafka_scenario
from quorate.sim.plan.plan import Plan, PlanError
from quorate.sim.plan.text import parse_plan, plan_text
from quorate.sim.run.campaign import seeds_of_day
from quorate.sim.run.kafka_scenarios import SCENARIOS
from quorate.sim.run.run import checked, drawn, run_plan, run_seed
from time_budget import TODAY, TURN, share

TURNS = 3
"""The scenarios take turns by the date: one third of them runs more seeds."""


def wanted(number: int) -> range:
    """The seeds of the scenario with this number in SCENARIOS."""
    daily = 300 if number % TURNS == TURN % TURNS else 30
    given = os.environ.get("QUORATE_SEEDS")
    if given is None:
        return seeds_of_day(TODAY, share(1000, quick=2, daily=daily))
    first, dots, last = given.partition("..")
    return range(int(first), int(last) if dots else int(first) + 1)


@kafka_scenario(
    "RaftEventSimulationTest",
    "canElectInitialLeader",
    "canElectNewLeaderAfterOldLeaderFailure",
    "canRecoverAfterAllNodesKilled",
    "canElectNewLeaderAfterOldLeaderPartitionedAway",
    "canMakeProgressIfMajorityIsReachable",
    "leadershipAssignedOnlyOnceWithNetworkPartitionIfThereExistsMajority",
    "leadershipWillNotChangeDuringNetworkPartitionIfMajorityStillReachable",
    "canMakeProgressAfterBackToBackLeaderFailures",
    "canRecoverFromSingleNodeCommittedDataLoss",
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_it_succeeds_with_every_seed(name: str) -> None:
    for seed in wanted(list(SCENARIOS).index(name)):
        failure = run_seed(seed, checked(), name).failure
        assert failure is None, (
            f"quorate sim run --scenario {name} --seeds {seed}: {failure.check}: {failure.message}"
        )


def test_a_scenario_is_text_and_repeats_the_same_run() -> None:
    for name in SCENARIOS:
        plan = drawn(3, name)
        assert f"\nscenario {name}\n" in plan_text(plan, short=True)
        assert parse_plan(plan_text(plan)) == plan
    plan = drawn(3, "canElectInitialLeader")
    assert run_plan(plan).trace_hash == run_plan(parse_plan(plan_text(plan))).trace_hash


def test_seeds_draw_quorums_of_every_size_that_kafka_tries() -> None:
    for name, (_, voters, observers, _) in SCENARIOS.items():
        drawn_here = [drawn(seed, name) for seed in range(300)]
        least, most = voters
        assert {plan.voters for plan in drawn_here} == set(range(least, most + 1))
        assert {plan.observers for plan in drawn_here} <= set(range(observers[1] + 1))
        assert {plan.static for plan in drawn_here} == {True, False}


def test_a_missed_expectation_is_named() -> None:
    plan = replace(drawn(3, "canElectInitialLeader"), duration_ms=50)
    failure = run_plan(plan).failure
    assert failure is not None and failure.check == "canElectInitialLeader"
    assert failure.message == "not within 50 ms: 10 is committed at all of the running nodes"


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan(scenario="x"), "there is no scenario 'x'; there are: canElectInitialLeader, can"),
        (Plan(scenario="canMakeProgressIfMajorityIsReachable"), "is played by 5 to 5 voters"),
    ],
)
def test_a_plan_that_cannot_be_played_is_refused(plan: Plan, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        run_plan(plan)


@pytest.mark.slow
def test_without_pre_votes_leadership_changes() -> None:
    """The planted bug is in a process of its own."""
    name = "leadershipWillNotChangeDuringNetworkPartitionIfMajorityStillReachable"
    code = f"""
import mutants
mutants.plant("no-pre-vote")
from quorate.sim.run.run import run_seed
failures = (run_seed(seed, (), "{name}").failure for seed in range(40))
print(next(failure for failure in failures if failure))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"check='{name}', message='leadership changed: node " in ran.stdout, ran.stderr
