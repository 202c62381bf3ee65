"""What operators get wrong in a world without faults, and nodes that run other software."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quorate.base.errors import ErrorCode
from quorate.raft.messages import AddVoterResponse, RemoveVoterResponse
from quorate.raft.ready import Refused
from quorate.replica.replica import Committed, Effects, Input
from quorate.sim.coverage.coverage import Coverage
from quorate.sim.plan.plan import INVALID_REQUESTS, ClientPlan, FaultEvent, Plan, PlanError
from quorate.sim.plan.text import parse_plan, plan_text
from quorate.sim.run.run import checked, run_plan
from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import Observer

E = ErrorCode
pytestmark = pytest.mark.interpreted


class Answers(Observer):
    """What was said to operators, and what became of upgrades."""

    def __init__(self) -> None:
        self.errors: list[tuple[int, ErrorCode]] = []
        self.outcomes: list[Committed | Refused] = []

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        for answer in effects.answers:
            if isinstance(answer.response, AddVoterResponse | RemoveVoterResponse):
                self.errors.append((process.id, answer.response.error))
        self.outcomes += effects.outcomes


def mistaken(how: str, node: int, **more: object) -> tuple[Answers, Plan]:
    fault_event = FaultEvent(4000, "err", (node, INVALID_REQUESTS.index(how)))
    upgrade = (FaultEvent(7000, "upgrade"),) if more.pop("upgrade", False) else ()
    plan = Plan(
        seed=3,
        observers=1,
        duration_ms=9000,
        fault_events=(*upgrade, fault_event),
        clients=ClientPlan(count=0),
        thorough=True,
        **more,  # type: ignore[arg-type]
    )
    answers = Answers()
    outcome = run_plan(plan, [*checked(), answers])
    assert outcome.failure is None, outcome.failure
    return answers, plan


@pytest.mark.parametrize(
    ("how", "node", "static", "error"),
    [
        ("add-stale", 4, False, E.REQUEST_TIMED_OUT),
        ("add-stale", 2, False, E.DUPLICATE_VOTER),
        ("add-again", 2, False, E.DUPLICATE_VOTER),
        ("add-elsewhere", 4, False, E.NONE),
        ("add-nowhere", 4, False, E.REQUEST_TIMED_OUT),
        ("add-unnamed", 4, False, E.INVALID_REQUEST),
        ("add-nameless", 4, False, E.INVALID_REQUEST),
        ("remove-stale", 2, False, E.VOTER_NOT_FOUND),
        ("remove-unknown", 2, False, E.VOTER_NOT_FOUND),
        ("remove-nameless", 2, False, E.INVALID_REQUEST),
        ("another-cluster", 2, False, E.INCONSISTENT_CLUSTER_ID),
        ("not-the-leader", 4, False, E.NOT_LEADER_OR_FOLLOWER),
        ("too-early", 2, True, E.UNSUPPORTED_VERSION),
        ("add-again", 4, True, E.UNSUPPORTED_VERSION),
    ],
)
def test_a_mistake_is_answered_as_kafka_answers_it(
    how: str, node: int, static: bool, error: ErrorCode
) -> None:
    answers, _ = mistaken(how, node, static=static)
    assert [found for _, found in answers.errors] == [error]


def test_a_node_that_does_not_support_the_version_in_force_is_not_added() -> None:
    answers, _ = mistaken("add-again", 4, old=1 << 4)
    assert [error for _, error in answers.errors] == [E.INVALID_REQUEST]


def test_such_a_node_let_in_under_the_address_of_another_cannot_correct_that() -> None:
    """The ranges of the other are asked; its own update is refused, and the world ends all the
    same."""
    answers, _ = mistaken("add-elsewhere", 4, old=1 << 4)
    assert [error for _, error in answers.errors] == [E.NONE]


@pytest.mark.parametrize(("old", "is_done"), [(0, True), (1 << 4, True), (1 << 2, False)])
def test_an_upgrade_needs_all_voters(old: int, is_done: bool) -> None:
    answers, _ = mistaken("another-cluster", 1, static=True, upgrade=True, old=old)
    assert [isinstance(outcome, Committed) for outcome in answers.outcomes] == [is_done]


def test_voters_with_newer_software_report_their_versions() -> None:
    """Else the world does not end: their ranges stand in the voter set."""
    mistaken("another-cluster", 1, young=1 << 1 | 1 << 3)


def test_masks_and_mistakes_are_read_back() -> None:
    _, plan = mistaken("remove-stale", 1, old=1 << 4, young=1 << 1 | 1 << 2)
    text = plan_text(plan, short=True)
    assert "old 4\nyoung 1,2\n" in text
    assert "at 4000 err node=1 how=remove-stale\n" in text
    assert parse_plan(text) == plan
    with pytest.raises(PlanError, match="there is no mistake 'x', but add-stale"):
        parse_plan("at 1 err node=1 how=x")


def test_mistakes_are_marked() -> None:
    coverage = Coverage()
    plan = Plan(seed=3, fault_events=(FaultEvent(4000, "err", (1, 0)),), duration_ms=6000)
    run_plan(plan, [coverage])
    assert coverage.coverage["mistake: add-stale"] == 1
