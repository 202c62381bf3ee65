"""A leader needs its disk: the check fails in both directions by hand."""

from __future__ import annotations

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.leading import DISK_HANGS
from quorate.raft.ready import AbandonSnapshot
from quorate.raft.roles import Resigned
from quorate.raft.values import Voters
from quorate.replica.disk_jobs import Written
from sim.fake import Fake, Node, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_leader_duties import leading

pytestmark = pytest.mark.interpreted


def hanging() -> tuple[Fake, Node]:
    """Node 1 leads, all others fetch, and its disk has been busy since 0 ms."""
    fake, leader = leading()
    leader.hangs = True
    leader.append(leader.made())
    return fake, leader


def heard_at(leader: Node, now_ms: int) -> None:
    leader.state.now = now_ms
    leader.hear(2, 3)


def resigns(leader: Node) -> None:
    leader.state.role = Resigned(9_999, set(), ())
    leader.step(notes=[f"epoch 1: resigned ({DISK_HANGS})"])


def test_a_leader_that_leads_on_beside_a_hanging_disk() -> None:
    _, leader = hanging()
    heard_at(leader, 2_999)
    with broken("disk stall ends leadership", "has stalled for 3000 of 3000 ms"):
        heard_at(leader, 3_000)


def test_a_leader_that_resigns_although_its_disk_makes_progress() -> None:
    _, leader = hanging()
    heard_at(leader, 2_000)
    leader.append(leader.made())
    leader.step([Written(leader.seq - 1)])
    heard_at(leader, 4_999)
    with broken("disk stall ends leadership", "has stalled for 2999 ms"):
        resigns(leader)


def test_an_idle_disk_does_not_hang() -> None:
    _, leader = hanging()
    leader.step([Written(leader.seq)])
    heard_at(leader, 2_000)
    heard_at(leader, 4_000)
    with broken("disk stall ends leadership", "has stalled for 0 ms"):
        resigns(leader)


def test_a_record_for_a_busy_disk_waits_from_its_append() -> None:
    _, leader = leading()
    leader.hangs = True
    leader.write(AbandonSnapshot(OffsetAndEpoch(9, 1)))
    heard_at(leader, 2_000)
    heard_at(leader, 4_000)
    leader.append(leader.made())
    heard_at(leader, 6_999)
    with broken("disk stall ends leadership", "has stalled for 3000 of 3000 ms"):
        heard_at(leader, 7_000)


def test_a_leader_that_resigns_for_a_record_that_has_not_waited() -> None:
    _, leader = leading()
    leader.hangs = True
    leader.write(AbandonSnapshot(OffsetAndEpoch(9, 1)))
    heard_at(leader, 4_000)
    with broken("disk stall ends leadership", "has stalled for 0 ms"):
        resigns(leader)


def test_the_only_voter_waits_as_long_as_it_takes() -> None:
    fake = Fake(2, (1,))
    leader = fake.elect(1, 1)
    leader.commit(3)
    leader.state.role = A_LEADER
    leader.hangs = True
    leader.append(leader.made())
    leader.state.now = 50_000
    leader.step()
    fake.rule(leader, 1, 2)
    with broken("disk stall ends leadership"):
        leader.append(leader.control(Voters(voters(1, 2))))
