"""The final checks of clients' histories, and the checks in a whole world."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.raft import following
from quorate.raft.messages import AddVoterRequest
from quorate.sim.checks.all_checks import Checks
from quorate.sim.checks.auto_join import AutoJoinCheck
from quorate.sim.plan.plan import Plan
from quorate.sim.run.run import checked, run_plan, run_seed
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.network import Network
from quorate.sim.world.observer import ViolationError
from sim.fake import Fake

pytestmark = pytest.mark.interpreted


def a_finished_world() -> tuple[Fake, Any]:
    fake = Fake(1)
    leader = fake.elect(1, 1)
    leader.commit(3)
    leader.replica.applied = OffsetAndEpoch(3, 1)
    leader.machine.values[7] = 1
    return fake, SimpleNamespace(nodes=fake.nodes, now_us=100)


def put(value: int, begin: int, end: int) -> ClientOp:
    return ClientOp(1, value, "put", 7, value, None, begin, end, "ok")


def test_a_history_that_adds_up() -> None:
    fake, world = a_finished_world()
    fake.checks.invoked(put(1, 0, 10))
    fake.checks.finished(world)


def test_an_acknowledged_write_that_is_lost() -> None:
    fake, world = a_finished_world()
    fake.checks.invoked(put(1, 0, 10))
    fake.checks.invoked(put(2, 20, 30))
    with pytest.raises(ViolationError) as found:
        fake.checks.finished(world)
    assert found.value.check == "linearizable"


def test_a_write_that_no_node_made() -> None:
    fake, world = a_finished_world()
    fake.checks.invoked(ClientOp(1, 1, "get", 7, None, None, 0, 10, "ok", None))
    with pytest.raises(ViolationError):
        fake.checks.finished(world)


def test_no_node_has_applied_what_is_committed() -> None:
    fake, world = a_finished_world()
    fake[1].replica.applied = OffsetAndEpoch(0, 0)
    with pytest.raises(ViolationError) as found:
        fake.checks.finished(world)
    assert found.value.check == "liveness"


def test_at_the_end_a_majority_has_what_is_committed() -> None:
    fake, world = a_finished_world()
    fake.checks.history.committed.durable_disks = 0
    with pytest.raises(ViolationError) as found:
        fake.checks.finished(world)
    assert found.value.check == "durable majority"


@pytest.mark.parametrize("seed", [0, 7, 56, 131])
def test_a_world_passes_every_check(seed: int) -> None:
    """Seeds on which a first version of the checks was wrong."""
    checks = Checks()
    outcome = run_seed(seed, [checks])
    assert outcome.failure is None
    assert checks.history.committed.end > 0


@pytest.mark.parametrize("seed", [7, 40001])
def test_observers_do_not_change_a_run(seed: int) -> None:
    """In the second one a first version of `check_done` used up rng of the node that it asked."""
    assert run_seed(seed, [Checks()]).trace_hash == run_seed(seed).trace_hash


def test_a_world_in_which_no_node_reports_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """At kraft.version 0 a voter stands in no log with its range and its directory id."""
    plan = Plan(static=True, thorough=True, duration_ms=500)
    assert run_plan(plan, checked()).failure is None
    monkeypatch.setattr(following, "voter_request", lambda *_: None)
    failure = run_plan(plan, checked()).failure
    assert failure is not None
    assert failure.check == "liveness"
    assert "is known to the leader as Voter(" in failure.message


def test_a_world_in_which_no_node_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(observers=1, auto_join=True, thorough=True, duration_ms=500)
    assert run_plan(plan, checked()).failure is None
    wire = replace(plan, wire=True)
    assert run_plan(wire, checked()).failure is None
    asked = following.voter_request  # type: ignore[attr-defined]
    monkeypatch.setattr(
        following,
        "voter_request",
        lambda s, role: None if isinstance(asked(s, role), AddVoterRequest) else asked(s, role),
    )
    monkeypatch.setattr(AutoJoinCheck, "after_step", lambda *_: None)
    failure = run_plan(plan, checked()).failure
    assert failure is not None
    assert (failure.check, failure.message) == (
        "liveness",
        "node 4 is to join by itself, and is no voter",
    )
    monkeypatch.setattr(Network, "can_say", lambda *_: False)
    assert run_plan(plan, checked()).failure is None
