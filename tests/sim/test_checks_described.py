"""What a leader tells of its quorum, each line of it wrong once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft.progress import Progress, Row
from quorate.raft.values import Limits
from quorate.raft.voters import VoterSet
from quorate.sim.checks.described import TRUE
from sim.fake import Node, key, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_duties import leading

pytestmark = pytest.mark.interpreted
ALL = VoterSet(voters(1, 2, 3))


def described(high_watermark: int = 3, rules: VoterSet = ALL) -> tuple[Node, Progress]:
    """Node 1 leads epoch 1 with the log up to 3, is to tell of it in its next step, and will tell
    this high watermark and voter set."""
    fake, leader = leading()
    for waiting in fake.checks.fetches._waiting.values():
        waiting.clear()
    state, progress = leader.state, Progress(key(1), rules, Limits())
    state.durable.election = True
    state.me, state.epoch, state.voters, state.log.end_offset = key(1), 1, rules, leader.end
    state.role = replace(A_LEADER, progress=progress, high_watermark=high_watermark)
    fake.checks.described._steps[1] = 63
    return leader, progress


def test_a_leader_that_tells_what_is_so() -> None:
    leader, progress = described()
    progress.voters[2].end_offset = 3
    progress.observers[key(4)] = Row(key(4), 3, 0)
    leader.step()


def test_a_leader_is_asked_now_and_then() -> None:
    leader, _ = described(high_watermark=2)
    leader.fake.checks.described._steps[1] = 0
    leader.step()
    leader.fake.checks.described._steps[1] = 63
    with broken(TRUE, "leads epoch 1, high watermark 3, and tells of (1, 1, 2)"):
        leader.step()


def test_a_voter_that_is_left_out() -> None:
    leader, _ = described(rules=VoterSet(voters(1, 2)))
    with broken(TRUE, "tells of the voters {1-"):
        leader.step()


def test_a_replica_that_does_not_stand_there() -> None:
    leader, progress = described()
    progress.voters[2].end_offset = 2
    with broken(TRUE, "stands at 2, not at [-1, 3]"):
        leader.step()


def test_who_has_not_fetched_stands_nowhere() -> None:
    leader, progress = described()
    leader.fake.checks.twins[1].heard_in = 0
    progress.voters[2].end_offset = 3
    with broken(TRUE, "stands at 3, not at [-1]"):
        leader.step()


def test_a_voter_that_is_told_as_an_observer() -> None:
    leader, progress = described()
    progress.observers[key(2)] = Row(key(2), 3, 0)
    with broken(TRUE, "a voter, is an observer"):
        leader.step()


def test_a_question_makes_no_leader_forget() -> None:
    leader, progress = described(high_watermark=2)
    progress.observers[key(4)] = Row(key(4), 3, 0)
    leader.state.config.limits = replace(Limits(), observer_session_ms=100)
    leader.state.now = 100
    leader.step()
    assert progress.observers
