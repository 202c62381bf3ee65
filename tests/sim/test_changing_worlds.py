"""Worlds of plan format 7: two listeners, newer software, adds that no node waits for, snapshots
that take time by their size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from quorate.base.errors import ErrorCode
from quorate.raft.inputs import Received
from quorate.raft.messages import AddVoterRequest, AddVoterResponse
from quorate.replica.replica import Effects, Input
from quorate.sim.coverage.coverage import Coverage
from quorate.sim.plan.plan import INVALID_REQUESTS, LEADER, ClientPlan, DiskPlan, FaultEvent, Plan
from quorate.sim.run.run import checked, run_plan
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer
from quorate.sim.world.world import World

pytestmark = pytest.mark.interpreted


class Looks(Observer):
    """The voters as the last leader has them at the end."""

    def finished(self, world: ObservableWorld) -> None:
        assert isinstance(world, World)
        leader = world.leader()
        assert leader is not None
        self.voters = {voter.key.id: voter for voter in leader.core.voters.voters or ()}
        self.processes = world.nodes


def run(plan: Plan) -> tuple[Looks, Counter[str]]:
    looks, coverage = Looks(), Coverage()
    outcome = run_plan(plan, [*checked(), looks, coverage])
    assert outcome.failure is None, outcome.failure
    return looks, coverage.coverage


@pytest.mark.parametrize(("kind", "moved"), [("move", True), ("move-outside", False)])
def test_all_listeners_of_a_voter_that_moved_are_known(kind: str, moved: bool) -> None:
    fault_events = (FaultEvent(4000, kind, (2, 100)),)
    plan = Plan(seed=5, listeners=2, thorough=True, duration_ms=9000, fault_events=fault_events)
    looks, coverage = run(plan)
    at = [(end.name, end.port) for end in looks.voters[2].listeners]
    assert at == [("CONTROLLER", 9102 if moved else 9002), ("EXTERNAL", 19102)]
    assert (coverage["an update was due only because of a second listener"] > 0) is not moved


def test_a_static_quorum_learns_of_the_second_listeners() -> None:
    fault_events = (FaultEvent(500, "insist", (40, 100)),)
    looks, _ = run(
        Plan(seed=5, static=True, listeners=2, duration_ms=9000, fault_events=fault_events)
    )
    assert {len(voter.listeners) for voter in looks.voters.values()} == {2}


def test_a_voter_added_with_some_endpoints_reports_all() -> None:
    how = INVALID_REQUESTS.index("add-in-part")
    fault_events = (FaultEvent(4000, "err", (4, how)),)
    plan = Plan(
        seed=5, observers=1, listeners=2, thorough=True, duration_ms=9000, fault_events=fault_events
    )
    looks, coverage = run(plan)
    assert len(looks.voters[4].listeners) == 2
    assert coverage["an update was due only because of a second listener"]


@pytest.mark.parametrize("mask", ["old", "young"])
def test_newer_software_knows_both_versions(mask: str) -> None:
    """An old voter is what the upgrade waits for."""
    fault_events = (FaultEvent(500, "insist", (90, 100)), FaultEvent(4000, "renew", (2, 300)))
    static = {"static": True} if mask == "old" else {}
    plan = Plan(
        seed=5,
        thorough=True,
        duration_ms=9500,
        fault_events=fault_events,
        **{mask: 4, **static},  # type: ignore[arg-type]
    )
    looks, coverage = run(plan)
    known = looks.voters[2]
    assert (known.min_kraft_version, known.max_kraft_version) == (0, 1)
    count = coverage["an update was due only because a voter's software knew more"]
    assert (count > 0) is (mask == "young")


def test_a_stopped_node_restarts_with_newer_software() -> None:
    fault_events = (FaultEvent(3000, "kill", (2, 2000)), FaultEvent(3500, "renew", (2, 100)))
    looks, _ = run(
        Plan(seed=5, young=4, thorough=True, duration_ms=7000, fault_events=fault_events)
    )
    assert looks.voters[2].min_kraft_version == 0


class Answers(Observer):
    """Of each AddRaftVoter: does it wait for the commit, and was it answered at the append?"""

    def __init__(self) -> None:
        self.asked: dict[int, bool] = {}
        self.early: list[tuple[bool, bool]] = []

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        for item in happened:
            if isinstance(item, Received) and isinstance(item.request, AddVoterRequest):
                self.asked[item.reply_to] = item.request.ack_when_committed
        for answer in effects.answers:
            response = answer.response
            if isinstance(response, AddVoterResponse) and response.error is ErrorCode.NONE:
                core = process.core
                offset = core.state.controls.voters_offset
                assert offset is not None
                self.early.append((self.asked[answer.reply_to], offset >= core.high_watermark))


@pytest.mark.parametrize(("kind", "waits"), [("add", True), ("add-unacked", False)])
def test_an_operator_that_does_not_wait_is_answered_at_the_append(kind: str, waits: bool) -> None:
    answers = Answers()
    plan = Plan(seed=5, observers=1, duration_ms=9000, fault_events=(FaultEvent(4000, kind, (4,)),))
    assert run_plan(plan, [*checked(), answers]).failure is None
    assert answers.early == [(waits, not waits)]


def test_a_snapshot_takes_time_by_its_size() -> None:
    """Node 3 is behind a cleaned log: its install outlasts the fetch timeout of 2 s."""
    fault_events = (
        FaultEvent(2000, "kill", (3, 5000)),
        FaultEvent(5000, "snapshot", (LEADER,)),
        FaultEvent(6500, "clean", (LEADER,)),
    )
    disk = DiskPlan(byte_us=8000, snapshot_bytes=300, retention_bytes=500, clean_ms=1000)
    clients = ClientPlan(count=3, think_ms=20)
    plan = Plan(seed=5, duration_ms=20_000, disk=disk, clients=clients, fault_events=fault_events)
    _, coverage = run(plan)
    assert coverage["fault: an install outlasts the fetch timeout"]
    _, coverage = run(Plan(seed=5, duration_ms=20_000, clients=clients, fault_events=fault_events))
    assert not coverage["fault: an install outlasts the fetch timeout"]
