"""The outcomes of submissions and upgrades: each check fails once by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import Listener
from quorate.raft.inputs import UpgradeKRaftVersion
from quorate.raft.messages import UpdateVoterRequest, UpdateVoterResponse
from quorate.raft.ready import Refused
from quorate.raft.roles import Resigned
from quorate.raft.values import ControlState, KRaftVersion, RaftLimits, Voters
from quorate.replica.replica import Committed, Submit
from quorate.sim.world.observable import LISTENER
from sim.fake import Fake, Node, key, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_leader_duties import leading

pytestmark = pytest.mark.interpreted


def submitted(*values: bytes, token: int = 1) -> Node:
    """A leader was asked to append, and did; the batch is committed and applied."""
    fake, leader = leading()
    leader.step([Submit(token, values)])
    if values:
        leader.append(leader.made(*values))
        leader.persist()
        fake.replicate(leader, 2, 3)
        leader.commit(leader.end)
    leader.apply(leader.end)
    return leader


def reported(leader: Node, *outcomes: Any) -> None:
    leader.step(outcomes=list(outcomes))


def test_records_at_their_reported_offsets() -> None:
    leader = submitted(b"a", b"b")
    reported(leader, Committed(1, leader.end - 2, leader.end))


@pytest.mark.parametrize("shift", [(0, -1), (1, 0), (-1, 0)])
def test_records_that_are_elsewhere(shift: tuple[int, int]) -> None:
    leader = submitted(b"a", b"b")
    base, end = leader.end - 2 + shift[0], leader.end + shift[1]
    with broken("proposal outcome", "2 records are"):
        reported(leader, Committed(1, base, end))


def test_a_submission_that_is_answered_before_it_is_applied() -> None:
    leader = submitted(b"a", b"b")
    leader.replica.applied = leader.replica.applied._replace(offset=leader.end - 1)
    with broken("proposal outcome", "and has applied"):
        reported(leader, Committed(1, leader.end - 2, leader.end))


def test_one_that_only_waits_waits_for_what_there_was() -> None:
    leader = submitted()
    reported(leader, Committed(1, leader.end, leader.end))
    leader = submitted()
    with broken("proposal outcome", "to a barrier at 3"):
        reported(leader, Committed(1, 0, 0))


def test_a_submission_that_is_passed_over() -> None:
    leader = submitted()
    leader.step([Submit(2, ())])
    with broken("proposal outcome", "has not answered 1"):
        reported(leader, Committed(2, leader.end, leader.end))


def test_a_submission_that_is_answered_twice() -> None:
    leader = submitted()
    done = Committed(1, leader.end, leader.end)
    with broken("proposal outcome", "answers 1, which is not open"):
        reported(leader, done, done)


def test_an_upgrade_is_answered_once_too() -> None:
    _, leader = leading()
    leader.step([UpgradeKRaftVersion(7, 1)])
    reported(leader, Refused(7, ErrorCode.INVALID_UPDATE_VERSION, ""))
    with broken("proposal outcome", "answers 7, which is not open"):
        reported(leader, Refused(7, ErrorCode.INVALID_UPDATE_VERSION, ""))


def test_a_refusal_may_overtake() -> None:
    leader = submitted()
    leader.step([Submit(2, ())])
    reported(leader, Refused(2, ErrorCode.NOT_CONTROLLER, ""), Committed(1, leader.end, leader.end))


def with_a_submission() -> Node:
    """An active leader with a submission that could be appended since 2 ms."""
    _, leader = leading()
    leader.apply(leader.end)
    leader.replica.leading_epoch = 1
    leader.step([Submit(1, (b"a",))], wake_at_ms=leader.state.now + 2)
    leader.state.now += 1
    leader.step([Submit(2, (b"b",))], wake_at_ms=leader.state.now + 1)
    return leader


def test_a_submission_may_wait_two_ms_for_others_of_its_batch() -> None:
    leader = with_a_submission()
    leader.state.now += 1
    leader.append(leader.made(b"a", b"b"))
    leader.state.now += 100
    leader.persist()
    leader.fake.replicate(leader, 2, 3)
    leader.commit(leader.end)
    leader.apply(leader.end)
    reported(
        leader,
        Committed(1, leader.end - 2, leader.end - 1),
        Committed(2, leader.end - 1, leader.end),
    )
    leader.step([Submit(3, ())], wake_at_ms=leader.state.now + 2)


def test_a_submission_that_waits_beyond_the_batching_delay() -> None:
    leader = with_a_submission()
    leader.state.now += 2
    with broken("proposal batching delay", "has delayed 1 for 3 ms"):
        leader.step()


def test_a_leader_whose_timer_ignores_the_batching_delay() -> None:
    leader = with_a_submission()
    with broken("proposal batching delay", "sleeps for 3 ms"):
        leader.step(wake_at_ms=leader.state.now + 3)


def test_a_submission_that_is_never_answered() -> None:
    fake, leader = leading()
    leader.step([Submit(1, ())])
    leader.apply(leader.end)
    world = SimpleNamespace(nodes=fake.nodes, now_us=0)
    leader.state.now = 2000
    fake.checks.finished(world)  # type: ignore[arg-type]
    leader.state.now = 2001
    with broken("proposal outcome", "never answers 1"):
        fake.checks.finished(world)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [61 + 24 + 10, 61 + 24 + 9])
def test_a_submission_that_fits_is_not_too_large(most: int) -> None:
    _, leader = leading()
    leader.state.config.limits = RaftLimits(batch_bytes=most)
    leader.step([Submit(1, (bytes(10),))])
    refused = Refused(1, ErrorCode.RECORD_LIST_TOO_LARGE, "")
    if most < 61 + 24 + 10:
        leader.step(outcomes=[refused])
        return
    with broken("proposal outcome", "too large for a batch of 95 bytes"):
        leader.step(outcomes=[refused])


# -- refused for good, in doubt, for no reason -----------------------------------------------------
FOR_GOOD = "refused means never appended"


def refused(token: int = 1, *, in_doubt: bool = False) -> Refused:
    return Refused(token, ErrorCode.NOT_CONTROLLER, "", in_doubt)


def test_what_was_appended_is_in_doubt() -> None:
    reported(submitted(b"a", b"b"), refused(in_doubt=True))
    with broken(FOR_GOOD, "refuses 1 for good, and has appended [61, 62]"):
        reported(submitted(b"a", b"b"), refused())


def test_a_submission_appended_among_other_records() -> None:
    _, leader = leading()
    leader.step([Submit(1, (b"b",))])
    leader.append(leader.made(b"a", b"b", b"c"))
    with broken(FOR_GOOD, "has appended [62]"):
        reported(leader, refused())


def test_what_was_never_appended_is_not_in_doubt() -> None:
    _, leader = leading()
    leader.append(leader.made(b"a"))
    leader.step([Submit(1, (b"a",))])
    with broken(FOR_GOOD, "has never appended [61]"):
        reported(leader, refused(in_doubt=True))


def test_the_same_twice_of_which_one_was_appended() -> None:
    leader = submitted(b"a")
    leader.step([Submit(2, (b"a",))])
    reported(leader, refused(2), refused(1, in_doubt=True))
    leader = submitted(b"a")
    leader.step([Submit(2, (b"a",))])
    with broken(FOR_GOOD, "refuses 1 for good"):
        reported(leader, refused(2), refused(1))


def test_records_of_another_leader_do_not_contradict_a_refusal() -> None:
    """A client was refused here and asked there; it comes back in the log."""
    fake, leader = leading()
    fake[2].step([Submit(1, (b"a",))])
    leader.append(leader.made(b"a"))
    leader.persist()
    fake.replicate(leader, 2)
    reported(fake[2], refused())


def test_one_that_only_waits_is_refused_either_way() -> None:
    reported(submitted(), refused())
    reported(submitted(), refused(in_doubt=True))


@pytest.mark.parametrize("before", [None, 1])
@pytest.mark.parametrize("after", [None, 1, 3])
def test_a_leader_refuses_nothing_without_a_reason(before: int | None, after: int | None) -> None:
    _, leader = leading()
    leader.step([Submit(1, (b"a",))])
    model = leader.fake.checks.models[1]
    model.machine_epoch, leader.replica.leading_epoch = before, after
    if before == after == 1:
        with broken("leader accepts valid proposals", "refuses 1: NOT_CONTROLLER"):
            leader.fake.checks.proposals.outcomes_reported(model, [refused()], leader.replica)
    else:
        leader.fake.checks.proposals.outcomes_reported(model, [refused()], leader.replica)


def test_a_leader_that_stops_in_the_step_in_which_it_would_resign_refuses_too() -> None:
    """Seed 8317901: the only voter is asked to resign, to append and to stop while it is paused."""
    _, leader = leading()
    leader.step([Submit(1, (b"a",))])
    model = leader.fake.checks.models[1]
    model.machine_epoch = leader.replica.leading_epoch = 1
    leader.step(outcomes=[refused()], stopped=True)


# -- upgrades of kraft.version ---------------------------------------------------------------------
HERE = (Listener(LISTENER, "host", 9093),)
DESERVED = "kraft.version upgrade response"
UNFIT = Refused(7, ErrorCode.INVALID_UPDATE_VERSION, "")


def static(*reporting: int, able: int = 1) -> Node:
    """Node 1 leads voters 1 to 3 at kraft.version 0, to which these have reported the versions they support;
    it is asked for kraft.version 1."""
    fake = Fake()
    leader = fake.elect(1, 1, 2, bare=True)
    fake.replicate(leader, 2, 3)
    leader.commit(leader.end)
    leader.state.role = A_LEADER
    leader.apply(leader.end)
    for voter in reporting:
        request = UpdateVoterRequest(None, 1, key(voter), HERE, 0, able)
        leader.answer(UpdateVoterResponse(ErrorCode.NONE), leader.receive(request))
    leader.step([UpgradeKRaftVersion(7, 1)])
    return leader


def upgrade(leader: Node, *, committed: bool = True) -> None:
    one, *others = voters(1, 2, 3)
    reported = (one, *(replace(voter, listeners=HERE) for voter in others))
    for node in leader.fake.nodes.values():
        node.state.controls.state = ControlState(1, reported)
    leader.append(leader.control(KRaftVersion(1), Voters(reported)))
    leader.persist()
    if committed:
        leader.fake.replicate(leader, 2, 3)
        leader.commit(leader.end)
        leader.apply(leader.end)


def test_an_upgrade_that_is_done() -> None:
    leader = static(2, 3)
    upgrade(leader)
    reported(leader, Committed(7, leader.end - 2, leader.end))
    leader.step([UpgradeKRaftVersion(8, 1)])
    reported(leader, Committed(8, 0, 0))


@pytest.mark.parametrize("applied", [2, 3])
def test_an_upgrade_reported_at_another_offset(applied: int) -> None:
    leader = static(2, 3)
    upgrade(leader)
    leader.replica.applied = leader.replica.applied._replace(offset=applied)
    problem = "at [2, 3) there is no upgrade" if applied == 3 else "it has applied 2"
    with broken(DESERVED, f"with done at [2, 3): {problem}"):
        reported(leader, Committed(7, 2, 3))


def test_an_upgrade_that_is_not_done() -> None:
    with broken(DESERVED, "committed is kraft.version 0"):
        reported(static(2, 3), Committed(7, 0, 0))


@pytest.mark.parametrize(
    ("reporting", "able", "is_fine"),
    [((), 1, True), ((2,), 1, True), ((2, 3), 0, True), ((2, 3), 1, False)],
)
def test_an_upgrade_that_is_refused(reporting: tuple[int, ...], able: int, is_fine: bool) -> None:
    leader = static(*reporting, able=able)
    if is_fine:
        reported(leader, UNFIT)
        return
    with broken(DESERVED, "every voter has reported that it supports the version"):
        reported(leader, UNFIT)


def test_an_upgrade_that_is_refused_and_done() -> None:
    leader = static()
    upgrade(leader)
    with broken(DESERVED, "it has appended it"):
        reported(leader, UNFIT)


def test_of_two_upgrades_one_may_be_too_early() -> None:
    leader = static()
    leader.step([UpgradeKRaftVersion(8, 1)])
    upgrade(leader)
    reported(leader, UNFIT)


@pytest.mark.parametrize(
    "error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_SERVER_ERROR]
)
@pytest.mark.parametrize("leads", [True, False])
def test_an_upgrade_that_is_refused_for_another_reason(error: ErrorCode, leads: bool) -> None:
    leader = static(2, 3)
    if not leads:
        leader.state.role = Resigned(9000, set())
    why = "it leads" if error is ErrorCode.NOT_LEADER_OR_FOLLOWER else "this error has no reason"
    if not leads and why == "it leads":
        reported(leader, Refused(7, error, ""))
        return
    with broken(DESERVED, why):
        reported(leader, Refused(7, error, ""))


@pytest.mark.parametrize("leads", [True, False])
def test_an_upgrade_is_in_doubt_when_its_leader_leads_no_more(leads: bool) -> None:
    leader = static(2, 3)
    upgrade(leader, committed=False)
    if leads:
        with broken(DESERVED, "it still leads"):
            reported(leader, refused(7, in_doubt=True))
        return
    leader.state.role = Resigned(9000, set())
    reported(leader, refused(7, in_doubt=True))


def test_an_upgrade_that_is_never_answered() -> None:
    leader = static()
    world = SimpleNamespace(nodes=leader.fake.nodes, now_us=0)
    leader.state.now = 2001
    with broken(DESERVED, "never answers 7"):
        leader.fake.checks.finished(world)  # type: ignore[arg-type]
