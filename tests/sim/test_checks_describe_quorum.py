"""What a leader describes of its quorum, each line of it wrong once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft.progress import ProgressTracker, ReplicaProgress
from quorate.raft.values import RaftLimits
from quorate.raft.voters import VoterSet
from quorate.sim.checks.describe_quorum import TRUE
from sim.fake import Node, key, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_leader_duties import leading

pytestmark = pytest.mark.interpreted
ALL = VoterSet(voters(1, 2, 3))


def described(high_watermark: int = 3, rules: VoterSet = ALL) -> tuple[Node, ProgressTracker]:
    """Node 1 leads epoch 1 with the log up to 3, is to describe it in its next step, and will describe
    this high watermark and voter set."""
    fake, leader = leading()
    for waiting in fake.checks.fetch_responses._waiting.values():
        waiting.clear()
    state, progress = leader.state, ProgressTracker(key(1), rules, RaftLimits())
    state.durable.election_is_durable = True
    state.me, state.epoch, state.voters, state.log.end_offset = key(1), 1, rules, leader.end
    state.role = replace(A_LEADER, progress=progress, high_watermark=high_watermark)
    fake.checks.describe_quorum._steps[1] = 63
    return leader, progress


def test_a_leader_that_describes_its_quorum_correctly() -> None:
    leader, progress = described()
    progress.voters[2].end_offset = 3
    progress.observers[key(4)] = ReplicaProgress(key(4), 3, 0)
    leader.step()


def test_a_leader_is_asked_now_and_then() -> None:
    leader, _ = described(high_watermark=2)
    leader.fake.checks.describe_quorum._steps[1] = 0
    leader.step()
    leader.fake.checks.describe_quorum._steps[1] = 63
    with broken(TRUE, "leads epoch 1, high watermark 3, and describes (1, 1, 2)"):
        leader.step()


def test_a_voter_that_is_left_out() -> None:
    leader, _ = described(rules=VoterSet(voters(1, 2)))
    with broken(TRUE, "describes the voters {1-"):
        leader.step()


def test_a_replica_with_another_log_end() -> None:
    leader, progress = described()
    progress.voters[2].end_offset = 2
    with broken(TRUE, "with log end offset 2, not [-1, 3]"):
        leader.step()


def test_a_replica_without_a_fetch_has_no_log_end() -> None:
    leader, progress = described()
    leader.fake.checks.models[1].received.epoch = 0
    progress.voters[2].end_offset = 3
    with broken(TRUE, "with log end offset 3, not [-1]"):
        leader.step()


def test_a_voter_that_is_described_as_an_observer() -> None:
    leader, progress = described()
    progress.observers[key(2)] = ReplicaProgress(key(2), 3, 0)
    with broken(TRUE, "a voter, as an observer"):
        leader.step()


def test_a_request_does_not_reset_the_leader() -> None:
    leader, progress = described(high_watermark=2)
    progress.observers[key(4)] = ReplicaProgress(key(4), 3, 0)
    leader.state.config.limits = replace(RaftLimits(), observer_session_ms=100)
    leader.state.now = 100
    leader.step()
    assert progress.observers
