"""What is said to submissions and upgrades: each promise broken once by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.node.replica import Committed, Effects, Submit
from quorate.raft.inputs import UpgradeKRaftVersion
from quorate.raft.ready import Refused
from quorate.raft.values import Limits
from sim.fake import Node
from sim.test_checks_core import broken
from sim.test_checks_duties import leading

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


def told(leader: Node, *outcomes: Any) -> None:
    leader.step(outcomes=list(outcomes))


def test_records_that_are_where_they_are_said_to_be() -> None:
    leader = submitted(b"a", b"b")
    told(leader, Committed(1, leader.end - 2, leader.end))


@pytest.mark.parametrize("shift", [(0, -1), (1, 0), (-1, 0)])
def test_records_that_are_elsewhere(shift: tuple[int, int]) -> None:
    leader = submitted(b"a", b"b")
    base, end = leader.end - 2 + shift[0], leader.end + shift[1]
    with broken("a submission is answered", "2 records are"):
        told(leader, Committed(1, base, end))


def test_a_submission_that_is_answered_before_it_is_applied() -> None:
    leader = submitted(b"a", b"b")
    leader.replica.applied = leader.replica.applied._replace(offset=leader.end - 1)
    with broken("a submission is answered", "and has applied"):
        told(leader, Committed(1, leader.end - 2, leader.end))


def test_one_that_only_waits_waits_for_what_there_was() -> None:
    leader = submitted()
    told(leader, Committed(1, leader.end, leader.end))
    leader = submitted()
    with broken("a submission is answered", "waits for all up to 3"):
        told(leader, Committed(1, 0, 0))


def test_a_submission_that_is_passed_over() -> None:
    leader = submitted()
    leader.step([Submit(2, ())])
    with broken("a submission is answered", "has not answered 1"):
        told(leader, Committed(2, leader.end, leader.end))


def test_a_submission_that_is_answered_twice() -> None:
    leader = submitted()
    done = Committed(1, leader.end, leader.end)
    with broken("a submission is answered", "answers 1, which asks nothing"):
        told(leader, done, done)


def test_an_upgrade_is_answered_once_too() -> None:
    _, leader = leading()
    leader.step([UpgradeKRaftVersion(7, 1)])
    told(leader, Refused(7, ErrorCode.INVALID_UPDATE_VERSION, ""))
    with broken("a submission is answered", "answers 7, which asks nothing"):
        told(leader, Refused(7, ErrorCode.INVALID_UPDATE_VERSION, ""))


def test_a_refusal_may_overtake() -> None:
    leader = submitted()
    leader.step([Submit(2, ())])
    told(leader, Refused(2, ErrorCode.NOT_CONTROLLER, ""), Committed(1, leader.end, leader.end))


def test_a_submission_that_is_never_answered() -> None:
    fake, leader = leading()
    leader.step([Submit(1, ())])
    leader.apply(leader.end)
    world = SimpleNamespace(processes=fake.nodes, now_us=0)
    leader.state.now = 2000
    fake.checks.finished(world)  # type: ignore[arg-type]
    leader.state.now = 2001
    with broken("a submission is answered", "never answers 1"):
        fake.checks.finished(world)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [61 + 24 + 10, 61 + 24 + 9])
def test_a_submission_that_fits_is_not_too_large(most: int) -> None:
    _, leader = leading()
    leader.state.config.limits = Limits(batch_bytes=most)
    leader.step([Submit(1, (bytes(10),))])
    refused = Refused(1, ErrorCode.RECORD_LIST_TOO_LARGE, "")
    if most < 61 + 24 + 10:
        leader.step(outcomes=[refused])
        return
    with broken("a submission is answered", "too large for a batch of 95 bytes"):
        leader.step(outcomes=[refused])


# -- refused for good, in doubt, for no reason -----------------------------------------------------
FOR_GOOD = "refused means never done"


def refused(token: int = 1, *, in_doubt: bool = False) -> Refused:
    return Refused(token, ErrorCode.NOT_CONTROLLER, "", in_doubt)


def test_what_was_appended_is_in_doubt() -> None:
    told(submitted(b"a", b"b"), refused(in_doubt=True))
    with broken(FOR_GOOD, "refuses 1 for good, and has appended [61, 62]"):
        told(submitted(b"a", b"b"), refused())


def test_what_was_appended_among_other_records() -> None:
    _, leader = leading()
    leader.step([Submit(1, (b"b",))])
    leader.append(leader.made(b"a", b"b", b"c"))
    with broken(FOR_GOOD, "has appended [62]"):
        told(leader, refused())


def test_what_was_never_appended_is_not_in_doubt() -> None:
    _, leader = leading()
    leader.append(leader.made(b"a"))
    leader.step([Submit(1, (b"a",))])
    with broken(FOR_GOOD, "has never appended [61]"):
        told(leader, refused(in_doubt=True))


def test_the_same_twice_of_which_one_was_appended() -> None:
    leader = submitted(b"a")
    leader.step([Submit(2, (b"a",))])
    told(leader, refused(2), refused(1, in_doubt=True))
    leader = submitted(b"a")
    leader.step([Submit(2, (b"a",))])
    with broken(FOR_GOOD, "refuses 1 for good"):
        told(leader, refused(2), refused(1))


def test_what_another_leader_appended_says_nothing_of_a_refusal() -> None:
    """A client was refused here and asked there; it comes back in the log."""
    fake, leader = leading()
    fake[2].step([Submit(1, (b"a",))])
    leader.append(leader.made(b"a"))
    leader.persist()
    fake.replicate(leader, 2)
    told(fake[2], refused())


def test_one_that_only_waits_is_refused_either_way() -> None:
    told(submitted(), refused())
    told(submitted(), refused(in_doubt=True))


@pytest.mark.parametrize("before", [None, 1])
@pytest.mark.parametrize("after", [None, 1, 3])
def test_a_leader_refuses_nothing_without_a_reason(before: int | None, after: int | None) -> None:
    _, leader = leading()
    leader.step([Submit(1, (b"a",))])
    twin, effects = leader.fake.checks.twins[1], Effects(outcomes=[refused()])
    twin.leading, leader.replica.leading_epoch = before, after
    if before == after == 1:
        with broken("a leader takes what it is given", "refuses 1: NOT_CONTROLLER"):
            leader.fake.checks.submits.told(twin, effects, leader.replica)
    else:
        leader.fake.checks.submits.told(twin, effects, leader.replica)
