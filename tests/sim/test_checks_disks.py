"""What a disk gives back, and what a replica writes to it, against what the world knows of it."""

from __future__ import annotations

import pytest

from quorate.base.ids import ZERO_UUID, OffsetAndEpoch, ReplicaKey
from quorate.raft.ready import SaveElection
from quorate.raft.values import ElectionState, KRaftVersion, LeaderChange, Voter, Voters
from quorate.storage.api import AppendedBatch
from sim.fake import Fake, key, voters
from sim.test_checks_core import A_LEADER, a_quorum, broken

pytestmark = pytest.mark.interpreted


# -- what it gives back ------------------------------------------------------------------------
def test_a_log_that_begins_above_the_committed_records() -> None:
    fake, _ = a_quorum()
    fake[2].batches, fake[2].start_offset = [], 2
    with broken("durable state survives a restart", "its log starts at 2"):
        fake[2].start()


def test_a_log_that_ends_before_its_reported_end() -> None:
    fake, _ = a_quorum()
    kept = fake[2].batches.pop()
    fake[2].start_offset = kept.last_offset + 2
    fake[2].snapshot = OffsetAndEpoch(0, 0)
    fake.checks.history.committed_at[fake[2].start_offset] = fake.checks.history.committed
    with broken("durable state survives a restart", "is the last of a log to 4"):
        fake[2].start()


def test_a_recovered_snapshot_that_the_log_does_not_reach() -> None:
    fake, leader = a_quorum()
    fake.replicate(leader, 3)
    end = fake.write(leader, 2)
    fake[3].snapshot = OffsetAndEpoch(end, 1)
    with broken("snapshot of what is committed", "but the log up to [0, 3)"):
        fake[3].start()


@pytest.mark.parametrize("version", [0, 1])
def test_a_vote_that_returns_without_its_directory(version: int) -> None:
    """quorum-state has no place for a directory id at kraft.version 0, and only there."""
    fake, _ = a_quorum()
    fake.checks.models[3].initial_kraft_version = version
    fake[3].state.election = ElectionState(5, -1, key(1))
    fake[3].write(SaveElection(fake[3].state.election, version))
    fake[3].persist()
    fake[3].disk_election = ElectionState(5, -1, ReplicaKey(1, ZERO_UUID))
    if version:
        with broken("durable state survives a restart", "vote for 1"):
            fake[3].start()
    else:
        fake[3].start()


# -- what is written ---------------------------------------------------------------------------
def test_a_second_vote_that_only_the_disk_has() -> None:
    fake, _ = a_quorum()
    fake[3].grant(2, 5)
    fake[3].write(SaveElection(ElectionState(5, -1, key(1)), 1))
    with broken("one vote an epoch", "and voted for"):
        fake[3].persist()


def test_a_vote_saved_at_a_version_that_does_not_rule() -> None:
    fake, _ = a_quorum()
    with broken("quorum-state version", "at kraft.version 0; in force"):
        fake[3].write(SaveElection(ElectionState(5, -1, key(1)), 0))


def test_a_replica_that_follows_two_leaders_in_an_epoch() -> None:
    fake, leader = a_quorum()
    fake.replicate(leader, 3)
    with broken("election safety", "two leaders in an epoch"):
        fake[3].save(1, 3)


def test_a_batch_that_leaves_a_gap() -> None:
    _, leader = a_quorum()
    after = leader.made()
    gone = AppendedBatch(after.base_offset + 1, after.last_offset + 1, 1, after.data)
    with broken("log matching", "follows"):
        leader.append(gone)


def test_a_batch_of_an_older_epoch_than_the_one_before() -> None:
    fake, _ = a_quorum()
    second = fake.elect(2, 2, 3)
    with broken("log matching", "of epoch 1 follows"):
        second.append(second.made(epoch=1))


def test_a_log_that_is_cut_inside_a_batch() -> None:
    _, leader = a_quorum()
    leader.append(leader.made(b"a", b"b"))
    with broken("log matching", "inside a batch"):
        leader.truncate(4)


def test_a_leader_that_writes_over_its_own_log() -> None:
    """Before its election is durable no node sees the first batch, but both claim one place."""
    fake = Fake(1)
    one = fake[1]
    one.save(1, -1, 1)
    one.persist()
    one.save(1, 1)
    version = KRaftVersion(1), Voters(voters(1))
    one.append(one.control(LeaderChange(1, (1,), (1,)), *version))
    one.truncate(0)
    one.append(one.control(LeaderChange(1, (1,), (1,)), *version, KRaftVersion(1)))
    with broken("log matching", "was made twice"):
        one.persist()


# -- voter sets --------------------------------------------------------------------------------
def test_a_kraft_version_that_falls() -> None:
    _, leader = a_quorum()
    with broken("single voter change", "kraft.version decreases"):
        leader.append(leader.control(KRaftVersion(0)))


@pytest.mark.parametrize("ids", [(), (1, 2, 2)])
def test_a_voter_set_that_is_empty_or_names_one_twice(ids: tuple[int, ...]) -> None:
    _, leader = a_quorum()
    with broken("voter set", "has the voters"):
        leader.append(leader.control(Voters(voters(*ids))))


def test_a_voter_without_directory_id() -> None:
    _, leader = a_quorum()
    named = (*voters(1, 2), Voter(ReplicaKey(3, ZERO_UUID), (), 0, 1))
    with broken("voter set", "without directory id"):
        leader.append(leader.control(Voters(named)))


# -- machines ----------------------------------------------------------------------------------
def test_a_machine_that_applies_half_a_batch() -> None:
    _, leader = a_quorum()
    with broken("applied is committed"):
        leader.apply(2)


def test_a_machine_that_leads_the_epoch_of_another() -> None:
    fake, leader = a_quorum()
    fake.elect(2, 2, 3)
    leader.replica.leading_epoch = 2
    leader.state.role = A_LEADER
    with broken("only the leader acts", "which is of node 2"):
        leader.step()
