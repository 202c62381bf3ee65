"""A voter whose disk has forgotten what it acknowledged is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft.anomalies import LOST_RECORDS, duplicate_replica
from quorate.raft.inputs import Received, Shutdown
from quorate.raft.messages import FetchRequest
from quorate.raft.progress import ProgressTracker
from quorate.raft.roles import Resigned
from quorate.raft.voters import VoterSet
from quorate.sim.checks.restored_disks import REPORTED
from sim.fake import Node, key, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_leader_duties import leading

pytestmark = pytest.mark.interpreted


def counting() -> Node:
    """A leader that counts voters 2 and 3 at offset 3."""
    _, leader = leading(count=4)
    leader.state.role = replace(
        A_LEADER, progress=ProgressTracker(key(1), VoterSet(voters(1, 2, 3)))
    )
    for other in (2, 3):
        leader.state.role.progress.voters[other].end_offset = 3
    leader.step()
    return leader


def regresses(leader: Node, other: int, offset: int, *notes: str, beside: int = 0) -> None:
    """It fetches there, and is taken at its word."""
    rows = leader.state.role.progress.voters
    if other in rows:
        rows[other].end_offset = offset
    request = FetchRequest(None, key(other), leader.epoch, offset, 1, 0, 0, -1)
    leader.replies += 1
    item = Received(leader.replies, request)
    leader.step([item, *[item] * beside], notes=list(notes))


def test_a_restored_disk_that_no_node_detects() -> None:
    leader = counting()
    with broken(REPORTED, "voter 2-AAAAAAAAAAAAAAAAAAAAAg has acknowledged 3"):
        regresses(leader, 2, 2)


def test_a_restored_disk_of_another_voter_is_separate() -> None:
    leader = counting()
    regresses(leader, 2, 2, f"{key(2)} fetches at 2, having acknowledged 3: {LOST_RECORDS}")
    with broken(REPORTED):
        regresses(leader, 3, 2)


def test_it_is_reported_once_in_a_minute() -> None:
    leader = counting()
    regresses(leader, 2, 2, duplicate_replica(key(2), "it goes to and fro"), beside=1)
    leader.state.role = replace(leader.state.role, check_deadline=1 << 40, begin_deadline=1 << 40)
    regresses(leader, 2, 1)
    leader.fake.checks.restored_disks._reported_ms[1, key(2)] = leader.state.now - 60_000
    with broken(REPORTED):
        regresses(leader, 2, 0)


def test_which_voters_need_not_be_reported() -> None:
    leader = counting()
    regresses(leader, 4, 0)  # an observer has acknowledged nothing
    regresses(leader, 2, 2, beside=1)  # what came before in the same step may have been higher
    regresses(leader, 2, 2)
    leadership = leader.state.role
    leader.state.role = Resigned(9_000, set())
    leader.step()
    leader.state.role = leadership
    regresses(leader, 2, 0)  # a new leadership has heard nothing yet


def test_a_report_in_the_step_of_a_resignation_counts() -> None:
    """Seed 17147920: it led again soon, and a Fetch was overtaken once more."""
    leader = counting()
    leadership = leader.state.role
    leader.state.role = Resigned(9_000, set())
    leader.step(
        [Shutdown(9)], notes=[f"{key(2)} fetches at 2, having acknowledged 3: {LOST_RECORDS}"]
    )
    leader.state.role = leadership
    leader.step()
    regresses(leader, 2, 2)
