"""Each check of the consensus fires on the wrong that it is there for, and not before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.batch import encode_batch
from quorate.raft.inputs import SendFailed, SendFailure
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    BeginQuorumEpochRequest,
    FetchResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.progress import ProgressTracker
from quorate.raft.ready import InstallSnapshot
from quorate.raft.roles import NEVER, Follower, Leader, Resigned
from quorate.raft.values import ControlState, ElectionState, KRaftVersion, LeaderChange, Voters
from quorate.raft.voters import VoterSet
from quorate.replica.disk_jobs import AppendBatches, Installed, WriteSnapshot
from quorate.replica.replica import Committed
from quorate.sim.world.observer import ViolationError
from quorate.storage.api import AppendedBatch
from sim.fake import Fake, Node, key, voters

pytestmark = pytest.mark.interpreted

RAW = re.compile(
    r"\bb['\"]|\b(ReplicaKey|Voter|ElectionState|ControlState|Leadership|LeaderAndEpoch|Committed)\("
)
"""What no person can read, or compare with what logs and tools say."""
A_LEADER = Leader(0, ProgressTracker(key(1), VoterSet(voters(1))), NEVER, NEVER)


@contextmanager
def broken(check: str, words: str = "") -> Iterator[None]:
    with pytest.raises(ViolationError) as found:
        yield
    assert found.value.check == check, found.value
    assert words in found.value.message
    assert not RAW.search(found.value.message), found.value


def a_quorum() -> tuple[Fake, Node]:
    """Node 1 leads epoch 1 of three; its first batch, offsets 0 to 2, is committed."""
    fake = Fake()
    leader = fake.elect(1, 1, 2)
    fake.replicate(leader, 2)
    leader.commit(3)
    return fake, leader


def test_a_well_behaved_quorum_passes() -> None:
    fake, leader = a_quorum()
    for _ in range(3):
        fake.write(leader, 2, 3)
    fake[2].commit(leader.end)
    second = fake.elect(2, 2, 3)
    fake.replicate(second, 1, 3)
    second.commit(second.end)
    fake[1].start()
    fake[1].fetch()
    assert fake.checks.history.committed.end == second.end


# -- elections ---------------------------------------------------------------------------------
def test_two_leaders_in_an_epoch() -> None:
    fake, _ = a_quorum()
    three = fake[3]
    three.save(1, 3)
    with broken("election safety", "epoch 1 has two leaders"):
        three.persist()


def test_a_leader_in_two_incarnations() -> None:
    _, leader = a_quorum()
    leader.start()
    leader.state.election = ElectionState(1, 1)
    leader.write()
    with broken("only the leader acts", "incarnation 1"):
        leader.append(leader.made())


def test_a_leader_without_a_majority_of_durable_votes() -> None:
    fake = Fake(5)
    one = fake[1]
    fake[2].grant(1, 0, pre_vote=True)
    fake[3].grant(1, 0, pre_vote=True)
    one.save(1, -1, 1)
    one.persist()
    fake[2].grant(1, 1)
    one.save(1, 1)
    with broken("election safety", "by 2 durable votes"):
        one.persist()


def test_a_vote_of_another_directory_does_not_count() -> None:
    fake = Fake()
    fake[2].grant(1, 0, pre_vote=True)
    two = fake[2]
    two.directory_id = Uuid(bytes(15) + b"\x99")
    two.batches, two.disk_election = [], None
    two.start()
    one = fake[1]
    one.save(1, -1, 1)
    one.persist()
    two.save(1, -1, 1)
    two.persist()
    one.save(1, 1)
    with broken("election safety", "by 1 durable votes"):
        one.persist()


def test_a_leader_that_no_node_elected() -> None:
    fake, _ = a_quorum()
    with broken("election safety", "takes node 3"):
        fake[2].save(2, 3)


def test_two_votes_in_an_epoch() -> None:
    fake, _ = a_quorum()
    fake[3].grant(2, 5)
    with broken("one vote an epoch"):
        fake[3].save(5, -1, 1)


def test_a_vote_lost_in_a_restart() -> None:
    fake, _ = a_quorum()
    fake[3].grant(2, 5)
    fake[3].disk_election = ElectionState(5)
    with broken("durable state survives a restart"):
        fake[3].start()


def test_an_epoch_that_falls() -> None:
    _, leader = a_quorum()
    with broken("epoch is monotonic"):
        leader.save(0)


def test_a_candidate_without_pre_votes() -> None:
    fake, _ = a_quorum()
    with broken("pre-vote", "granted it a pre-vote"):
        fake[2].save(2, -1, 2)


@pytest.mark.parametrize("failure", SendFailure)
def test_a_candidate_of_a_peer_that_knows_no_pre_votes(failure: SendFailure) -> None:
    """What the replica says of it is no excuse: only what it received is."""
    fake, _ = a_quorum()
    fake[2].state.election = ElectionState(2, -1, key(2))
    failed = SendFailed(1, failure)
    if failure is SendFailure.UNSUPPORTED_VERSION:
        fake[2].step([failed], notes=["epoch 2: candidate (1 knows no pre-vote)"])
        return
    with broken("pre-vote", "granted it a pre-vote"):
        fake[2].step([failed], notes=["epoch 2: candidate (1 knows no pre-vote)"])


def test_an_observer_that_starts_an_election() -> None:
    fake = Fake(4, (1, 2, 3))
    with broken("observers do not start elections"):
        fake[4].save(1, -1, 4)


def remove_the_third(fake: Fake, leader: Node) -> None:
    """Committed by the leader and node 2; node 3 does not know it."""
    fake.rule(leader, 1, 2)
    leader.append(leader.control(Voters(voters(1, 2))))
    leader.persist()
    fake.rule(fake[2], 1, 2)
    fake.replicate(leader, 2)
    leader.commit(leader.end)


def a_removal_arrives(electable: bool | None, *, committed: bool = False) -> None:
    """Node 3 changes its own entry, and then reports whether it is electable."""
    fake, leader = a_quorum()
    fake.replicate(leader, 3)
    remove_the_third(fake, leader)
    fake.rule(fake[3], 1, 2)
    fake[3].state.electable = electable
    fake.replicate(leader, 3)
    if committed:
        fake[3].commit(leader.end)


def test_a_removed_voter_is_electable_until_it_knows_its_removal_is_committed() -> None:
    a_removal_arrives(None)
    a_removal_arrives(None, committed=True)
    with broken(
        "election eligibility",
        "node 3 (incarnation 1) is electable, but never starts an election; the voters {1-",
    ):
        a_removal_arrives(False)
    with broken("election eligibility", "is not electable, but would start an election"):
        a_removal_arrives(True, committed=True)


@pytest.mark.parametrize("node_id", [1, 4])
def test_a_voter_and_an_observer_with_the_wrong_role(node_id: int) -> None:
    fake = Fake(4, (1, 2, 3))
    fake[node_id].state.electable = node_id == 4
    with broken("election eligibility"):
        fake[node_id].step()


def test_another_directory_of_a_voter_is_not_electable() -> None:
    """Votes are counted by node id."""
    fake, _ = a_quorum()
    model = fake.checks.models[3]
    model.key = ReplicaKey(3, key(4).directory_id)
    with broken("election eligibility", "is not electable, but would start an election"):
        fake[3].state.electable = True
        fake[3].step()


def test_a_removed_voter_that_raises_the_epoch() -> None:
    fake, leader = a_quorum()
    fake.replicate(leader, 3)
    remove_the_third(fake, leader)
    fake[2].grant(3, 1, pre_vote=True)
    with broken("a removed voter does not disturb", "having been removed"):
        fake[3].save(2, -1, 3)


def test_a_removed_voter_that_learns_late_of_the_epoch_of_its_removal() -> None:
    """Seed 6002158 of plan format 5: two had pre-votes of a majority, and the other one won."""
    fake = Fake()
    fake[2].grant(3, 0, pre_vote=True)
    leader = fake.elect(1, 1, 2)
    fake.replicate(leader, 2)
    leader.commit(3)
    remove_the_third(fake, leader)
    fake[3].save(1, -1, 3)


def test_a_removed_voter_that_learns_late_of_an_epoch_with_a_leader() -> None:
    """Seed 7500883 of plan format 5: a pre-vote of the epoch before was long on its way."""
    fake, leader = a_quorum()
    fake.replicate(leader, 3)
    remove_the_third(fake, leader)
    fake[2].grant(3, 1, pre_vote=True)
    fake.first = (1, 2)
    fake.elect(1, 2, 2)
    fake[3].save(2, -1, 3)


def test_a_removed_voter_that_was_granted_a_pre_vote_before_its_removal() -> None:
    """Seed 7731721 of plan format 5: another removed one granted the rest of its majority."""
    fake, leader = a_quorum()
    fake.replicate(leader, 3)
    fake[2].grant(3, 1, pre_vote=True)
    remove_the_third(fake, leader)
    fake[2].grant(3, 1, pre_vote=True)
    fake[3].save(2, -1, 3)


def test_a_pre_vote_against_a_live_leader() -> None:
    fake, _ = a_quorum()
    fake[2].state.role = Follower((), 500, 0, has_fetched=True)
    fake[2].step()
    fake[2].state.now = 499
    with broken("a removed voter does not disturb", "leads or hears"):
        fake[2].grant(3, 1, pre_vote=True)


def test_a_replica_past_its_fetch_timeout_may_grant_a_pre_vote_before_its_leaders_answer() -> None:
    """Seed 3002062: the answer to its Fetch had come, too, and was taken in the same step."""
    fake, _ = a_quorum()
    fake[2].state.role = Follower((), 500, 0, has_fetched=True)
    fake[2].step()
    fake[2].state.now = 500
    fake[2].grant(3, 1, pre_vote=True)


def test_leader_completeness_at_the_election() -> None:
    fake, _ = a_quorum()
    with broken("leader completeness", "without the committed"):
        fake.elect(3, 2, 2)


def test_leader_completeness_when_an_old_leader_commits() -> None:
    fake, leader = a_quorum()
    fake.replicate(leader, 3)
    leader.append(leader.made())
    leader.persist()
    fake.replicate(leader, 2)
    fake.elect(3, 2, 2)
    with broken("leader completeness", "which the leader of epoch 2"):
        leader.commit(leader.end)


# -- the log -----------------------------------------------------------------------------------
def test_a_batch_with_two_contents() -> None:
    fake, leader = a_quorum()
    fake.write(leader, 2)
    fake[3].save(1, 1)
    fake[3].append(*leader.batches[:1])
    with broken("log matching", "two contents"):
        fake[3].append(fake[3].made(b"other", epoch=1))


def test_a_batch_in_two_places() -> None:
    fake, leader = a_quorum()
    leader.append(leader.made())
    second = fake.elect(2, 2, 3)
    moved = second.made()
    second.append(moved)
    fake[3].save(2, 2)
    fake[3].append(*leader.batches[:2])
    with broken("log matching", "elsewhere it follows"):
        fake[3].append(moved)


def test_a_batch_written_before_its_epoch() -> None:
    fake, leader = a_quorum()
    with broken("durable before sent", "before that epoch"):
        fake[3].append(*leader.batches)


def test_a_follower_that_makes_batches() -> None:
    fake, _ = a_quorum()
    with broken("only the leader acts", "the leader of that epoch is node 1"):
        fake[2].append(fake[2].made())


def test_a_follower_that_cuts_what_is_committed() -> None:
    fake, _ = a_quorum()
    with broken("committed prefix", "truncates"):
        fake[2].truncate(0)


def test_a_snapshot_in_the_place_of_a_longer_log() -> None:
    fake, leader = a_quorum()
    fake.write(leader, 2)
    fake[2].commit(3)
    with broken("committed prefix", "dropped"):
        fake[2].install(OffsetAndEpoch(3, 1))


def test_a_disk_that_loses_what_was_durable() -> None:
    fake, _ = a_quorum()
    fake[2].batches.clear()
    with broken("durable state survives a restart"):
        fake[2].start()


def test_an_old_copy_of_a_disk_may_have_less() -> None:
    fake, leader = a_quorum()
    fake[2].batches.clear()
    fake.watch("restored", fake[2])
    fake[2].start()
    leader.append(leader.made())
    leader.persist()
    with broken("durable majority", "only [1]"):
        leader.commit(4)


def test_what_was_not_durable_may_be_lost() -> None:
    fake, leader = a_quorum()
    leader.append(leader.made())
    fake[2].append(leader.batches[-1])
    fake[2].batches.pop()
    fake[2].start()
    fake[2].fetch()
    fake[2].append(leader.batches[-1])
    fake[2].persist()
    fake[2].fetch(4)


def test_recovery_that_makes_up_batches() -> None:
    fake, _ = a_quorum()
    fake[3].batches.append(AppendedBatch(0, 0, 1, encode_batch(0, 7, 0, [b"never written"])))
    with broken("log matching", "no leader appended"):
        fake[3].start()


# -- checks ------------------------------------------------------------------------------------
AUDIBLE = "durable before sent"


def test_a_fetch_acknowledges_what_is_not_durable() -> None:
    fake, leader = a_quorum()
    leader.append(leader.made())
    fake[2].append(leader.batches[-1])
    with broken(AUDIBLE, "acknowledges 4"):
        fake[2].fetch()
    fake[2].persist()
    fake[2].fetch()


def test_a_fetch_names_another_epoch_than_the_log_has() -> None:
    fake, _ = a_quorum()
    fake[2].batches[-1] = AppendedBatch(0, 2, 0, b"")
    with broken(AUDIBLE, "of epoch 0"):
        fake[2].fetch()


def test_a_request_in_an_epoch_that_is_not_durable() -> None:
    fake, _ = a_quorum()
    fake[2].save(2)
    with broken(AUDIBLE, "sends in epoch 2"):
        fake[2].fetch()


def test_an_answer_in_an_epoch_that_is_not_durable() -> None:
    fake, _ = a_quorum()
    fake[2].save(2)
    with broken(AUDIBLE, "sends in epoch 2"):
        fake[2].answer(FetchResponse(ErrorCode.NONE, LeaderAndEpoch(-1, 2)))


def test_a_vote_asked_for_before_the_own_is_durable() -> None:
    fake, _ = a_quorum()
    with broken(AUDIBLE, "asks for votes"):
        fake[2].ask(VoteRequest(None, key(3), 1, key(2), 0, 0, False))


def test_a_candidate_that_claims_more_than_is_durable() -> None:
    fake, _ = a_quorum()
    with broken(AUDIBLE, "claims a log"):
        fake[2].ask(VoteRequest(None, key(3), 1, key(2), 1, 9, True))


def test_a_vote_granted_before_it_is_durable() -> None:
    fake, _ = a_quorum()
    three = fake[3]
    reply_to = three.receive(VoteRequest(None, key(3), 1, key(2), 0, 0, False))
    three.save(1, -1, 2)
    three.fake.watch("durable", three, 0)
    granted = VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, 0), True)
    with broken(AUDIBLE, "grants its vote"):
        three.answer(granted, reply_to)


def test_a_vote_may_be_granted_once_a_later_epoch_is_durable_too() -> None:
    """Both were saved under one sync; the answer that waited for the vote leaves after it."""
    fake, _ = a_quorum()
    three = fake[3]
    reply_to = three.receive(VoteRequest(None, key(3), 2, key(2), 0, 0, False))
    three.save(2, -1, 2)
    three.save(3)
    three.persist()
    three.answer(VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, 2), True), reply_to)


def test_a_leader_that_sends_before_its_election_is_durable() -> None:
    fake = Fake(1)
    one = fake[1]
    one.save(1, -1, 1)
    one.persist()
    one.save(1, 1)
    with broken(AUDIBLE, "sends as leader"):
        one.ask(BeginQuorumEpochRequest(None, None, LeaderAndEpoch(1, 1)))


def test_a_fetch_answered_in_the_name_of_a_leader_that_it_is_not() -> None:
    """In an epoch that it knows, which another leads."""
    fake, leader = a_quorum()
    fake.replicate(leader, 3)
    with broken(AUDIBLE, "sends as leader"):
        fake[3].answer(FetchResponse(ErrorCode.NONE, LeaderAndEpoch(3, 1)))


def test_a_replica_that_answers_as_another_leader() -> None:
    fake, _ = a_quorum()
    with broken("only the leader acts", "another leader"):
        fake[2].ask(BeginQuorumEpochRequest(None, None, LeaderAndEpoch(1, 1)))


# -- commits -----------------------------------------------------------------------------------
def test_a_high_watermark_that_falls() -> None:
    _, leader = a_quorum()
    with broken("high watermark is monotonic"):
        leader.commit(0)


def test_a_high_watermark_beyond_the_log() -> None:
    _, leader = a_quorum()
    with broken("high watermark within the log"):
        leader.commit(9)


def test_a_high_watermark_inside_a_batch() -> None:
    _, leader = a_quorum()
    leader.append(leader.made(b"a", b"b"))
    with broken("high watermark within the log"):
        leader.commit(4)


def test_a_high_watermark_above_the_majority_end() -> None:
    fake, leader = a_quorum()
    leader.append(leader.made())
    leader.persist()
    fake[2].append(leader.batches[-1])
    with broken("durable majority", "only [1]"):
        leader.commit(4)


def test_a_leader_that_counts_its_own_log_before_the_sync() -> None:
    fake, leader = a_quorum()
    leader.append(leader.made())
    fake.replicate(leader, 2)
    with broken("durable majority", "only [2]"):
        leader.commit(4)


def test_an_observer_does_not_count_for_the_high_watermark() -> None:
    fake = Fake(4, (1, 2, 3))
    leader = fake.elect(1, 1, 2)
    fake.replicate(leader, 4)
    with broken("durable majority", "only [1]"):
        leader.commit(3)


def test_a_replaced_disk_does_not_count_under_the_directory_of_the_old_one() -> None:
    fake = Fake()
    leader = fake.elect(1, 1, 2)
    three = fake[3]
    three.directory_id = Uuid(bytes(15) + b"\x99")
    three.disk_election, three.batches = None, []
    three.start()
    fake.replicate(leader, 3)
    with broken("durable majority", "only [1]"):
        leader.commit(3)


def test_an_entry_of_an_older_epoch_is_not_counted() -> None:
    """Raft, figure 8."""
    fake, leader = a_quorum()
    leader.append(leader.made())
    leader.persist()
    fake.replicate(leader, 2)
    second = fake.elect(2, 2, 3)
    with broken("durable majority", "figure 8"):
        second.commit(4)


def test_a_follower_that_commits_by_itself() -> None:
    fake, leader = a_quorum()
    leader.append(leader.made())
    leader.persist()
    fake.replicate(leader, 2, 3)
    with broken("durable majority", "does not lead that epoch"):
        fake[2].commit(4)


def test_a_high_watermark_that_a_fetch_answer_makes_up() -> None:
    _, leader = a_quorum()
    with broken("durable majority", "sends the high watermark 9"):
        leader.answer(FetchResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), 9))


def test_two_committed_logs() -> None:
    """As if two quorums had run side by side: node 3 was formatted as a quorum of its own."""
    fake, leader = a_quorum()
    history = fake.checks.history
    fake.replicate(leader, 3)
    other = fake.elect(3, 2, 2)
    fork = history.entries[(3, 2)]
    fake.replicate(leader, 2) if not fake[2].batches else None
    history.leaderships.pop(2)
    leader.state.election = ElectionState(1, 1)
    leader.append(leader.made())
    leader.persist()
    kept = history.entries[(3, 1)]
    history.commit(fork, other.id)
    with broken("committed prefix", "leaves the committed one"):
        history.commit(kept, leader.id)


# -- machines ----------------------------------------------------------------------------------
def test_machines_that_differ_at_an_offset() -> None:
    fake, leader = a_quorum()
    leader.apply(3, 1, 1)
    fake[2].commit(3)
    with broken("applied state", "the state it makes"):
        fake[2].apply(3, 1, 2)


def test_a_snapshot_that_is_not_what_a_replay_makes() -> None:
    fake, leader = a_quorum()
    leader.apply(3, 1, 1)
    fake.replicate(leader, 2)
    fake[3].save(1, 1)
    fake[3].install(OffsetAndEpoch(3, 1))
    with broken("applied state", "what was applied"):
        fake[3].apply(3, 2, 1)


def test_a_machine_that_applies_what_is_not_committed() -> None:
    _, leader = a_quorum()
    leader.append(leader.made())
    with broken("applied is committed"):
        leader.apply(4)


def test_a_machine_above_its_replicas_high_watermark() -> None:
    fake, _ = a_quorum()
    with broken("applied is committed", "high watermark -1"):
        fake[2].apply(3)


def test_a_machine_that_leads_before_it_has_applied_all() -> None:
    fake, leader = a_quorum()
    leader.replica.leading_epoch = 1
    leader.state.role = A_LEADER
    with broken("only the leader acts", "applied up to"):
        leader.step()
    leader.replica.applied = OffsetAndEpoch(3, 1)
    fake.checks.models[1].machine_epoch = None
    leader.step()


def test_a_machine_that_leads_after_its_leader_resigned() -> None:
    _, leader = a_quorum()
    leader.replica.leading_epoch = 1
    leader.replica.applied = OffsetAndEpoch(3, 1)
    leader.state.role = A_LEADER
    leader.step()
    leader.state.role = Resigned(0, set())
    with broken("only the leader acts", "resigned, its machine leads epoch 1"):
        leader.step()


def test_a_machine_that_leads_an_older_epoch() -> None:
    _, leader = a_quorum()
    leader.save(2)
    leader.replica.leading_epoch = 1
    leader.state.role = A_LEADER
    with broken("only the leader acts", "in epoch 2 (no leader)"):
        leader.step()


def test_a_leader_that_grants_a_pre_vote() -> None:
    _, leader = a_quorum()
    leader.state.role = A_LEADER
    leader.step()
    with broken("a removed voter does not disturb", "leads or hears"):
        leader.grant(3, 1, pre_vote=True)


def test_a_candidate_that_grants_a_pre_vote_and_then_leads_in_one_step() -> None:
    _, leader = a_quorum()
    leader.state.role = A_LEADER
    leader.grant(3, 1, pre_vote=True)


def test_a_snapshot_of_what_is_not_committed() -> None:
    _, leader = a_quorum()
    leader.append(leader.made())
    job = WriteSnapshot(OffsetAndEpoch(4, 1), 0, ControlState(1, voters(1, 2, 3)), (), 0)
    with broken("snapshot of what is committed"):
        leader.step(jobs=[job])


def test_a_snapshot_with_other_voters_than_the_log() -> None:
    _, leader = a_quorum()
    job = WriteSnapshot(OffsetAndEpoch(3, 1), 0, ControlState(1, voters(1, 2)), (), 0)
    with broken("snapshot of what is committed", f": {key(3)} is missing"):
        leader.step(jobs=[job])


def test_a_snapshot_of_another_version_than_the_log() -> None:
    _, leader = a_quorum()
    job = WriteSnapshot(OffsetAndEpoch(3, 1), 0, ControlState(0, voters(1, 2, 3)), (), 0)
    with broken("snapshot of what is committed", "has kraft.version 0"):
        leader.step(jobs=[job])


@pytest.mark.parametrize("control", [ControlState(1, None), ControlState(0, voters(1, 2, 3))])
def test_a_snapshot_of_an_upgrade_that_the_log_does_not_have(control: ControlState) -> None:
    fake = Fake()
    leader = fake.elect(1, 1, 2, bare=True)
    fake.replicate(leader, 2)
    leader.commit(1)
    leader.step(jobs=[WriteSnapshot(OffsetAndEpoch(1, 1), 0, ControlState(0, None), (), 0)])
    with broken("snapshot of what is committed", "the log has kraft.version 0 and the voters {}"):
        leader.step(jobs=[WriteSnapshot(OffsetAndEpoch(1, 1), 0, control, (), 0)])


# -- voters ------------------------------------------------------------------------------------
def a_quorum_of_five() -> tuple[Fake, Node]:
    fake = Fake(5)
    leader = fake.elect(1, 1, 2, 3)
    fake.replicate(leader, 2, 3)
    leader.commit(3)
    return fake, leader


def lost_and_found() -> tuple[Fake, Node]:
    """What the leader of epoch 1 wrote only on node 5 beside itself, that of epoch 2 lacks, and the
    first one commits it in epoch 3 without node 5, which still knows the second."""
    fake, leader = a_quorum_of_five()
    fake.replicate(leader, 4)
    leader.append(leader.made())
    leader.persist()
    fake.replicate(leader, 5)
    fake.elect(2, 2, 3, 4)
    fake[5].save(2, 2)
    fake[5].persist()
    fake.elect(1, 3, 3, 4)
    fake.replicate(leader, 3, 4)
    leader.commit(leader.end)
    return fake, fake[5]


def test_the_leader_of_an_older_epoch_has_cut_off_what_is_committed_since() -> None:
    fake, node = lost_and_found()
    node.truncate(3)
    node.persist()
    fake.replicate(fake[1], 5)


def test_a_snapshot_of_an_older_epoch_replaces_later_committed_records() -> None:
    _, node = lost_and_found()
    node.write(InstallSnapshot(OffsetAndEpoch(3, 1)))
    node.save(3, 1)
    node.batches, node.start_offset = [], 3
    node.state.high_watermark, node.snapshot = 3, OffsetAndEpoch(3, 1)
    node.state.log.start_offset, node.state.log.snapshots = 3, [node.snapshot]
    node.step([Installed(node.seq, node.snapshot, ControlState(1, ()))])


def test_a_replica_that_knows_the_later_epoch_truncates_none_of_it() -> None:
    _, node = lost_and_found()
    node.save(3, 1)
    with broken("committed prefix", "truncates"):
        node.truncate(3)


def test_a_second_voter_change_before_the_first_is_committed() -> None:
    fake, leader = a_quorum_of_five()
    fake.rule(leader, 1, 2, 3, 4)
    leader.append(leader.control(Voters(voters(1, 2, 3, 4))))
    fake.rule(leader, 1, 2, 3)
    with broken("single voter change", "not known to be committed"):
        leader.append(leader.control(Voters(voters(1, 2, 3))))


def test_a_voter_change_before_the_epoch_has_committed_anything() -> None:
    """Ongaro's bug of 2015."""
    fake, _ = a_quorum_of_five()
    second = fake.elect(2, 2, 3, 4)
    fake[2].commit(3)
    fake.rule(second, 1, 2, 3, 4)
    with broken("single voter change", "before anything of its epoch"):
        second.append(second.control(Voters(voters(1, 2, 3, 4))))


def test_one_step_may_commit_and_then_change_the_voters() -> None:
    fake, leader = a_quorum_of_five()
    second = fake.elect(2, 2, 3, 4)
    fake.replicate(second, 3, 4)
    fake.rule(second, 1, 2, 3, 4)
    second.state.high_watermark = second.end
    second.append(second.control(Voters(voters(1, 2, 3, 4))))
    assert fake.checks.history.committed.epoch == 2
    assert leader.epoch == 1


def test_voter_sets_without_overlapping_majorities() -> None:
    fake, leader = a_quorum_of_five()
    fake.rule(leader, 1, 2, 3)
    with broken("overlapping majorities"):
        leader.append(leader.control(Voters(voters(1, 2, 3))))


def test_one_voter_for_another_at_once_does_not_overlap() -> None:
    _, leader = a_quorum()
    with broken("overlapping majorities"):
        leader.append(leader.control(Voters(voters(1, 2, 4))))


def test_an_epoch_that_begins_without_leader_change() -> None:
    fake, _ = a_quorum()
    two = fake[2]
    fake[3].grant(2, 1, pre_vote=True)
    two.save(2, -1, 2)
    two.persist()
    two.save(2, 2)
    with broken("only the leader acts", "begins with None"):
        two.append(two.made())


@pytest.mark.parametrize("granting", [(2,), (2, 9)])
def test_a_leader_change_without_a_majority_of_its_voters(granting: tuple[int, ...]) -> None:
    fake, _ = a_quorum()
    two = fake[2]
    fake[3].grant(2, 1, pre_vote=True)
    two.save(2, -1, 2)
    two.persist()
    two.save(2, 2)
    with broken("election safety", "the voters in force"):
        two.append(two.control(LeaderChange(2, (1, 2, 3), granting)))


def test_a_leader_change_that_names_a_voter_without_a_vote() -> None:
    fake, _ = a_quorum()
    two = fake[2]
    fake[3].grant(2, 1, pre_vote=True)
    two.save(2, -1, 2)
    two.persist()
    fake[3].grant(2, 2)
    two.save(2, 2)
    with broken("LeaderChange names granting voters", "in epoch 2 nodes [1] have not"):
        two.append(two.control(LeaderChange(2, (1, 2, 3), (1, 2, 3))))


def test_voters_at_kraft_version_0() -> None:
    fake = Fake(1)
    one = fake[1]
    one.save(1, -1, 1)
    one.persist()
    one.save(1, 1)
    with broken("voter set", "at kraft.version 0"):
        one.append(one.control(LeaderChange(1, (1,), (1,)), Voters(voters(1))))


def test_an_empty_voter_set() -> None:
    fake = Fake(1)
    leader = fake.elect(1, 1)
    leader.commit(3)
    with broken("voter set"):
        leader.append(leader.control(Voters(())))


def test_a_voter_set_that_truncation_does_not_restore() -> None:
    fake, leader = a_quorum()
    fake.replicate(leader, 3)
    fake.rule(leader, 1, 2)
    leader.append(leader.control(Voters(voters(1, 2))))
    fake.elect(2, 2, 3)
    with broken("voter set", "in force are"):
        leader.truncate(3)


def test_a_version_in_force_that_no_record_has() -> None:
    _, leader = a_quorum()
    leader.state.controls.state = ControlState(2, voters(1, 2))
    with broken("voter set", "in force are kraft.version 2"):
        leader.append(leader.control(Voters(voters(1, 2))))


def test_a_version_that_truncation_does_not_restore() -> None:
    """The voters are those of the bootstrap snapshot before and behind the record."""
    fake = Fake()
    leader = fake.elect(1, 1, 2, bare=True)
    fake.checks.models[1].initial_kraft_version = 0
    leader.append(leader.control(KRaftVersion(1)))
    with broken("voter set", "has kraft.version 0 and the voters"):
        leader.truncate(1)


def test_a_high_watermark_over_the_old_voters() -> None:
    """A voter is added: from then on two of three are not enough."""
    fake = Fake(4, (1, 2, 3))
    leader = fake.elect(1, 1, 2)
    fake.replicate(leader, 2)
    leader.commit(3)
    fake.rule(leader, 1, 2, 3, 4)
    leader.append(leader.control(Voters(voters(1, 2, 3, 4))))
    leader.persist()
    fake.rule(fake[2], 1, 2, 3, 4)
    fake.replicate(leader, 2)
    with broken("durable majority", "only [1, 2]"):
        leader.commit(4)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_commit_in_the_step_that_changes_the_voters(copies: int) -> None:
    """It may have been counted over the voters before, and then they are asked."""
    fake = Fake(4, (1, 2, 3))
    leader = fake.elect(1, 1, 2)
    fake.replicate(leader, 2)
    leader.commit(3)
    leader.append(leader.made())
    leader.persist()
    if copies == 2:
        fake.replicate(leader, 2)
    change = leader.control(Voters(voters(1, 2, 3, 4)))
    fake.rule(leader, 1, 2, 3, 4)
    leader.batches.append(change)
    leader.state.high_watermark = 4
    if copies == 2:
        leader.write(AppendBatches((change,)))
        return
    with broken("durable majority", "only [1]"):
        leader.write(AppendBatches((change,)))


# -- responses to clients ---------------------------------------------------------------------
ACKNOWLEDGED = "acknowledged means committed"


def test_an_acknowledgement_before_the_commit() -> None:
    _, leader = a_quorum()
    with broken(ACKNOWLEDGED):
        leader.step(outcomes=[Committed(1, 3, 4)])


def test_a_voter_change_acknowledged_before_the_commit() -> None:
    _, leader = a_quorum()
    reply_to = leader.receive(RemoveVoterRequest(None, key(3)))
    with broken(ACKNOWLEDGED):
        leader.answer(RemoveVoterResponse(ErrorCode.NONE), reply_to)
    reply_to = leader.receive(AddVoterRequest(None, key(4), ()))
    with broken(ACKNOWLEDGED):
        leader.answer(AddVoterResponse(ErrorCode.NONE), reply_to)
    reply_to = leader.receive(AddVoterRequest(None, key(4), (), ack_when_committed=False))
    with broken("acknowledged voter change is in the log"):
        leader.answer(AddVoterResponse(ErrorCode.NONE), reply_to)


def test_a_machine_that_does_not_learn_that_it_leads_no_more() -> None:
    _, leader = a_quorum()
    leader.machine.led = 1
    leader.step()  # it leads again, perhaps
    with broken("only the leader acts", "its machine still leads epoch 1"):
        leader.save(2)
    leader.machine.led = None
    leader.step()
