"""One test for each sentence about votes (reference 5.3; KIP-595, KIP-853, KIP-996)."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, ReplicaKey
from quorate.raft.core import RaftCore
from quorate.raft.inputs import Answered, ConnectionLost, Persisted, SendFailed, SendFailure
from quorate.raft.messages import FetchRequest, FetchResponse, VoteRequest, VoteResponse
from quorate.raft.ready import SaveElection
from quorate.raft.values import Batch, ControlState, ElectionState, KRaftVersion, Voters
from quorate.sim.scenario.names import key, listeners, voter
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    ROLES,
    VOTERS,
    Single,
    begin,
    candidate,
    fetched,
    follower,
    granted,
    leader,
    prospective,
    recovered,
    unattached,
    vote,
    voted,
)

REJECT, GRANT = False, True


@kafka_scenario(
    "KafkaRaftClientTest",
    "handleValidVoteRequestAsFollower",
    "handleVoteRequestAsFollowerWithElectedLeader",
    "handleVoteRequestAsFollowerWithVotedCandidate",
    "handleVoteRequestAsProspective",
    "leaderIgnoreVoteRequestOnSameEpoch",
    "candidateIgnoreVoteRequestOnSameEpoch",
)
@pytest.mark.parametrize(
    ("role", "standard", "pre_vote"),
    [
        ("leader", REJECT, REJECT),
        ("follower", REJECT, GRANT),
        ("fetched", REJECT, REJECT),
        ("candidate", REJECT, GRANT),
        ("resigned", REJECT, GRANT),
        ("unattached", GRANT, GRANT),
        ("voted", REJECT, GRANT),
        ("knows leader", REJECT, GRANT),
        ("prospective", GRANT, GRANT),
    ],
)
def test_decision_table(role: str, standard: bool, pre_vote: bool) -> None:
    for asked, expected in ((False, standard), (True, pre_vote)):
        single = ROLES[role]()
        epoch = single.core.epoch
        end = single.core.log_end
        request = vote(epoch, pre_vote=asked, end=end.offset, last_epoch=min(end.epoch, epoch - 1))
        if asked:
            request = vote(epoch, pre_vote=True, end=end.offset, last_epoch=end.epoch)
        before = single.core.election
        answer = single.ask(request)
        assert isinstance(answer, VoteResponse)
        assert (answer.error, answer.granted) == (ErrorCode.NONE, expected), asked
        assert answer.leader == LeaderAndEpoch(before.leader_id, before.epoch)
        vote_now = key(2) if expected and not asked else before.voted
        assert single.core.election == ElectionState(before.epoch, before.leader_id, vote_now)


@pytest.mark.parametrize("version", [0, 1])
def test_a_vote_is_saved_at_the_version_in_force(version: int) -> None:
    """quorum-state of version 0 has no place for the candidate's directory id (KAFKA-16526)."""
    log = recovered(snapshot_control=ControlState(version, VOTERS if version else None))
    single = Single(log=log, static_voters=() if version else VOTERS, slow=True)
    single.ask(vote(candidate=3))
    (saved,) = single.last.writes
    assert isinstance(saved, SaveElection) and saved.state.voted == key(3)
    assert (saved.kraft_version, saved.voter_ids) == (version, (1, 2, 3))


@pytest.mark.parametrize("role", ["unattached", "prospective", "follower", "candidate"])
@pytest.mark.parametrize(
    ("end", "last_epoch", "up_to_date"),
    [
        (END, LAST_EPOCH, True),
        (END + 1, LAST_EPOCH, True),
        (END - 1, LAST_EPOCH, False),
        (END + 9, LAST_EPOCH - 1, False),
    ],
)
def test_pre_vote_is_granted_to_logs_at_least_as_long(
    role: str, end: int, last_epoch: int, up_to_date: bool
) -> None:
    single = ROLES[role]()
    request = vote(single.core.epoch, pre_vote=True, end=end, last_epoch=last_epoch)
    assert single.ask(request).granted is up_to_date  # type: ignore[union-attr]


@pytest.mark.parametrize("role", ["unattached", "prospective"])
def test_vote_is_refused_to_shorter_logs(role: str) -> None:
    assert ROLES[role]().ask(vote(end=END - 1)).granted is False  # type: ignore[union-attr]


@kafka_scenario(
    "KafkaRaftClientTest",
    "handleInvalidVoteRequestWithOlderEpoch",
    "invalidVoterReplicaVoteRequest",
    "invalidVoteRequest",
)
@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote(cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (vote(cluster_id=None), ErrorCode.NONE),
        (vote(end=-1), ErrorCode.INVALID_REQUEST),
        (vote(last_epoch=-1), ErrorCode.INVALID_REQUEST),
        (vote(last_epoch=EPOCH), ErrorCode.INVALID_REQUEST),
        (vote(last_epoch=EPOCH, pre_vote=True), ErrorCode.NONE),
        (vote(last_epoch=EPOCH + 1, pre_vote=True), ErrorCode.INVALID_REQUEST),
        (vote(EPOCH - 1, last_epoch=2), ErrorCode.FENCED_LEADER_EPOCH),
        (vote(receiver=key(2)), ErrorCode.INVALID_VOTER_KEY),
        (vote(receiver=key(1, 1)), ErrorCode.INVALID_VOTER_KEY),
        (vote(receiver=key(1)), ErrorCode.NONE),
        (vote(receiver=ReplicaKey(1)), ErrorCode.NONE),
    ],
)
def test_checks_in_order(request_: VoteRequest, error: ErrorCode) -> None:
    for make in (unattached, prospective):
        single = make()
        answer = single.ask(request_)
        assert isinstance(answer, VoteResponse)
        assert (answer.error, answer.granted) == (error, error == ErrorCode.NONE)
        epoch = -1 if error == ErrorCode.INCONSISTENT_CLUSTER_ID else EPOCH
        assert answer.leader == LeaderAndEpoch(-1, epoch)
        vote_now = key(2) if error == ErrorCode.NONE and not request_.pre_vote else None
        assert single.core.election == ElectionState(EPOCH, -1, vote_now)


@kafka_scenario("KafkaRaftClientTest", "invalidVoteRequest")
@pytest.mark.parametrize(("last_epoch", "end"), [(0, -5), (-1, 0), (EPOCH + 1, 0)])
def test_an_invalid_request_of_a_higher_epoch_changes_nothing(last_epoch: int, end: int) -> None:
    """invalidVoteRequest: of a follower, whose leader the answer names."""
    single = follower()
    answer = single.ask(vote(EPOCH + 1, last_epoch=last_epoch, end=end))
    assert isinstance(answer, VoteResponse)
    assert (answer.error, answer.granted) == (ErrorCode.INVALID_REQUEST, False)
    assert answer.leader == LeaderAndEpoch(2, EPOCH)
    assert (single.core.role, single.core.election) == ("follower", ElectionState(EPOCH, 2))


def test_a_negative_candidate_is_invalid() -> None:
    request = VoteRequest(None, None, EPOCH, ReplicaKey(-1), LAST_EPOCH, END, False)
    answer = unattached().ask(request)
    assert answer is not None and answer.error == ErrorCode.INVALID_REQUEST


@kafka_scenario("KafkaRaftClientTest", "handleVoteRequestAsProspective")
@kafka_scenario("KafkaRaftClientPreVoteTest", "handlePreVoteRequestAsCandidate")
@pytest.mark.parametrize("role", [name for name in ROLES if name != "observer"])
@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_pre_vote_of_a_higher_epoch_raises_the_epoch(role: str, pre_vote: bool) -> None:
    single = ROLES[role]()
    epoch = single.core.epoch + 3
    answer = single.ask(vote(epoch, pre_vote=pre_vote, end=END + 5, last_epoch=epoch - 1))
    assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, epoch), True)
    assert (single.core.role, single.core.epoch) == ("unattached", epoch)
    assert single.core.election.voted == (None if pre_vote else key(2))


@kafka_scenario("KafkaRaftClientTest", "invalidVoterReplicaVoteRequest")
def test_the_epoch_rises_before_the_receiver_is_checked() -> None:
    """invalidVoterReplicaVoteRequest: a leader leads no more, and has voted for no node."""
    single = leader()
    for epoch, receiver in ((EPOCH + 2, key(9)), (EPOCH + 3, key(1, 1))):
        answer = single.ask(vote(epoch, receiver=receiver, last_epoch=EPOCH + 1, end=100))
        unknown = LeaderAndEpoch(-1, epoch)
        assert answer == VoteResponse(ErrorCode.INVALID_VOTER_KEY, unknown, False)
        assert (single.core.role, single.core.election) == ("unattached", ElectionState(epoch))


@pytest.mark.parametrize(
    ("again", "expected"), [(vote(candidate=3), GRANT), (vote(candidate=2), REJECT)]
)
def test_one_vote_an_epoch_and_the_same_vote_again(again: VoteRequest, expected: bool) -> None:
    assert voted().ask(again).granted is expected  # type: ignore[union-attr]


def test_a_vote_for_a_directory_is_not_for_another_directory() -> None:
    assert voted().ask(vote(candidate=3, disk=1)).granted is REJECT  # type: ignore[union-attr]


def test_a_vote_read_without_a_directory_matches_any() -> None:
    single = Single(election=ElectionState(EPOCH, -1, ReplicaKey(3)))
    assert single.ask(vote(candidate=3, disk=1)).granted is GRANT  # type: ignore[union-attr]


def test_the_candidate_need_not_be_a_voter() -> None:
    assert unattached().ask(vote(candidate=8)).granted is GRANT  # type: ignore[union-attr]


@pytest.mark.parametrize("role", [unattached, prospective])
def test_a_granted_vote_restarts_the_election_timer(role) -> None:
    single = role()
    single.wait(400)
    single.ask(vote())
    seen = len(single.notes)
    single.wait(1499)
    assert single.notes[seen:] == []
    single.wait(1)
    assert "time" in single.notes[seen]


def test_an_answer_waits_until_the_vote_is_durable() -> None:
    single = Single(slow=True)
    assert single.ask(vote()) is None
    single.persist()
    assert single.replies[1] == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH), True)


@kafka_scenario("KafkaRaftClientTest", "handleBeginQuorumRequest")
def test_the_vote_is_kept_by_a_follower() -> None:
    single = voted()
    single.ask(begin(leader=2))
    assert single.core.election == ElectionState(EPOCH, 2, key(3))


# -- asking ------------------------------------------------------------------------------------
def test_requests_go_to_all_other_voters_and_name_them() -> None:
    single = prospective()
    votes = [s for s in single.sends if isinstance(s.request, VoteRequest)]
    assert [s.to for s in votes] == [2, 3]
    expected = VoteRequest("cluster", key(2), EPOCH, key(1), LAST_EPOCH, END, True)
    assert votes[0].request == expected


def test_a_candidate_votes_for_itself_in_the_next_epoch() -> None:
    single = candidate()
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(1))
    sent = single.sent(VoteRequest)
    assert sent is not None and isinstance(sent.request, VoteRequest)
    assert (sent.request.epoch, sent.request.pre_vote) == (EPOCH + 1, False)


def test_a_candidate_asks_no_node_before_its_vote_is_durable() -> None:
    single = prospective(slow=True)
    single.answer(VoteRequest, granted(), to=2)
    assert single.core.role == "candidate"
    assert [s.request.pre_vote for s in single.sends if isinstance(s.request, VoteRequest)] == [
        True,
        True,
    ]
    single.persist()
    assert single.sent(VoteRequest).request.pre_vote is False  # type: ignore[union-attr]


def test_no_node_is_asked_before_the_log_that_is_claimed_is_durable() -> None:
    single = follower()
    single.slow = True
    more = Batch(END, END, EPOCH, 10, (), "x")
    taken = FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), 0, batches=(more,))
    single.answer(FetchRequest, taken)
    single.wait(2100)
    assert single.core.role == "prospective"
    assert single.sent(VoteRequest) is None
    single.persist()
    sent = single.sent(VoteRequest)
    assert sent is not None and isinstance(sent.request, VoteRequest)
    assert (sent.request.last_epoch, sent.request.last_offset) == (EPOCH, END + 1)


def test_one_refusal_of_three_is_no_loss_two_are() -> None:
    refused = VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH))
    single = prospective()
    single.answer(VoteRequest, refused, to=2)
    assert single.core.role == "prospective"
    single.answer(VoteRequest, refused, to=3)
    assert single.core.role == "unattached"


def test_a_lost_pre_vote_leads_back_to_a_known_leader() -> None:
    single = fetched()
    single.wait(2100)
    assert single.core.role == "prospective"
    refused = VoteResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH))
    single.answer(VoteRequest, refused, to=2)
    single.answer(VoteRequest, refused, to=3)
    assert (single.core.role, single.core.leader.leader_id) == ("follower", 2)


@kafka_scenario("KafkaRaftClientPreVoteTest", "preVoteNotSupportedByRemote")
@pytest.mark.parametrize(
    "unsupported",
    [
        lambda single, send: single.answer(
            VoteRequest, VoteResponse(ErrorCode.UNSUPPORTED_VERSION), to=2
        ),
        lambda single, send: single.step(
            SendFailed(send.correlation, SendFailure.UNSUPPORTED_VERSION)
        ),
    ],
)
def test_a_voter_without_pre_vote_makes_a_candidate_at_once(unsupported) -> None:
    single = prospective()
    unsupported(single, single.sent(VoteRequest, to=2))
    assert (single.core.role, single.core.epoch) == ("candidate", EPOCH + 1)


def test_a_grant_from_a_non_voter_does_not_count() -> None:
    single = candidate()
    assert single.core.role == "candidate"
    single.core.state.role.ballot.record(9, True)  # type: ignore[union-attr]
    single.step()
    assert single.core.role == "candidate"


def test_votes_of_an_older_role_are_ignored() -> None:
    single = prospective()
    send = single.sent(VoteRequest, to=3)
    single.answer(VoteRequest, granted(), to=2)
    single.step()
    assert send is not None
    single.step(Answered(send.correlation, granted()))
    assert single.core.role == "candidate"


def test_a_refused_request_is_tried_again_after_the_backoff() -> None:
    single = candidate()
    send = single.sent(VoteRequest, to=3)
    assert send is not None
    single.step(SendFailed(send.correlation, SendFailure.DISCONNECTED))
    before = len(single.sends)
    single.wait(19)
    assert len(single.sends) == before
    single.wait(1)
    assert single.sends[-1].to == 3 and len(single.sends) == before + 1


def test_an_election_timeout_is_once_to_twice_the_configured() -> None:
    for chance, deadline in ((0.0, 1000), (0.5, 1500), (0.999, 1999)):
        core = RaftCore(unattached().config, None, recovered(), repeat(chance).__next__)
        core.step([], 0)
        core.step([Persisted(1)], 0)
        core.step([], deadline - 1)
        assert core.role == "unattached"
        core.step([], deadline)
        assert core.role == "prospective"


# -- better than Kafka ---------------------------------------------------------------------------
def test_a_lost_connection_starts_a_pre_vote_at_once() -> None:
    single = fetched()
    single.step(ConnectionLost(2))
    assert single.core.role == "prospective"
    assert single.core.epoch == EPOCH


def test_the_second_successor_waits_and_grants_pre_votes() -> None:
    single = Single(3)
    single.ask(begin(voter=None))
    single.step(ConnectionLost(2))
    assert single.core.role == "follower"
    request = vote(candidate=9, pre_vote=True)
    assert single.ask(request).granted is GRANT  # type: ignore[union-attr]
    single.wait(29)
    assert single.core.role == "follower"
    single.wait(1)
    assert single.core.role == "prospective"


def test_the_second_successor_leaves_the_first_time_to_win() -> None:
    single = Single(3)
    single.ask(begin(voter=None))
    single.step(ConnectionLost(2))
    assert single.ask(vote(candidate=1, pre_vote=True)).granted is GRANT  # type: ignore[union-attr]
    single.wait(74)
    assert single.core.role == "follower"
    single.wait(1)
    assert single.core.role == "prospective"


def test_of_two_candidates_after_a_lost_leader_the_second_successor_yields() -> None:
    second = Single(3)
    second.ask(begin(voter=None))
    second.step(ConnectionLost(2))
    second.wait(30)
    assert second.core.role == "prospective"
    assert second.ask(vote(candidate=1, pre_vote=True)).granted is GRANT  # type: ignore[union-attr]
    assert second.core.role == "follower"
    second.answer(VoteRequest, granted(), to=1)
    assert second.core.role == "follower"
    second.wait(105)
    assert second.core.role == "prospective"


def test_of_two_candidates_after_a_lost_leader_the_first_successor_continues() -> None:
    first = fetched()
    first.step(ConnectionLost(2))
    assert first.core.role == "prospective"
    assert first.ask(vote(candidate=3, pre_vote=True)).granted is GRANT  # type: ignore[union-attr]
    assert first.core.role == "prospective"
    first.answer(VoteRequest, granted(), to=3)
    assert first.core.role == "candidate"


@kafka_scenario("KafkaRaftClientTest", "candidateWaitsRestOfElectionTimeoutAfterElectionLoss")
def test_a_split_vote_is_not_waited_out() -> None:
    single = candidate()
    for other in (2, 3):
        refusal = VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 1), False)
        single.answer(VoteRequest, refusal, to=other)
    before = len(single.sends)
    assert single.core.role == "candidate"
    single.wait(74)
    assert single.core.role == "candidate" and single.sends[before:] == []
    single.wait(1)
    assert single.core.role == "prospective"
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(1)), "the vote is remembered"
    asked = [send.request for send in single.sends[before:]]
    assert [r.pre_vote for r in asked if isinstance(r, VoteRequest)] == [True, True]


@pytest.mark.parametrize("other", [1, 3, 7])
def test_a_lost_connection_of_another_node_changes_nothing(other: int) -> None:
    single = fetched()
    single.step(ConnectionLost(other))
    assert single.core.role == "follower"


@pytest.mark.parametrize("role", [leader, candidate, prospective, unattached])
def test_a_lost_connection_only_matters_to_a_follower(role) -> None:
    single = role()
    before = single.core.role
    single.step(ConnectionLost(2))
    assert single.core.role == before


def test_a_successful_fetch_clears_the_suspicion() -> None:
    single = Single(3)
    single.ask(begin())
    single.step(ConnectionLost(2))
    single.wait(20)
    single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), 0))
    single.wait(30)
    assert single.core.role == "follower"
    request = vote(candidate=1, pre_vote=True)
    assert single.ask(request).granted is REJECT  # type: ignore[union-attr]


def test_an_observer_refuses_pre_votes_no_longer_than_the_fetch_timeout() -> None:
    """It may be a voter of a set that it does not know yet, and the others need its pre-vote."""
    single = Single(4)
    single.ask(begin(voter=None))
    single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), 0))
    request = vote(candidate=3, pre_vote=True, voter=None)
    assert single.ask(request).granted is REJECT  # type: ignore[union-attr]
    single.wait(4000)
    assert single.core.role == "follower"
    assert single.ask(request).granted is GRANT  # type: ignore[union-attr]


def test_a_replica_whose_id_has_another_directory_in_the_voter_set_starts_no_election() -> None:
    """The snapshot 0-0 was made anew for this disk; the log has the former one as a voter."""
    here = replace(voter(2), key=key(2, 1))
    log = recovered(
        snapshot_control=ControlState(1, (voter(1), here, voter(3))),
        control_records=((1, KRaftVersion(1)), (2, Voters(VOTERS))),
    )
    node = Single(2, log=log, election=ElectionState(EPOCH, 1), directory_id=here.key.directory_id)
    for _ in range(10):
        node.wait(10_000)
    assert node.sent(VoteRequest) is None
    assert node.core.election.epoch == EPOCH


@pytest.mark.parametrize("committed", [3, 4, 5])
def test_a_removed_voter_is_electable_until_it_knows_its_removal_is_committed(
    committed: int,
) -> None:
    """The record of its removal has the offset 4: at a high watermark of 4 it is not in yet."""
    node = follower(log=recovered(control_records=((4, Voters(VOTERS[1:])),)))
    leads = LeaderAndEpoch(2, EPOCH)
    node.answer(FetchRequest, FetchResponse(ErrorCode.NONE, leads, committed))
    node.wait(10_000)
    assert (node.sent(VoteRequest) is not None) == (committed <= 4)


@pytest.mark.parametrize("committed", [2, 3, 4, 5])
def test_a_removed_voter_is_electable_when_an_endpoint_update_follows_its_removal(
    committed: int,
) -> None:
    """A leader may have moved and led again before any follower had its record. If that leader
    stops, only the removed voter has the longest log, and no other node can be elected."""
    moved = replace(voter(2), listeners=listeners(2, moved=True))
    removal, address = (3, Voters(VOTERS[1:])), (4, Voters((moved, voter(3))))
    node = follower(log=recovered(control_records=(removal, address)))
    leads = LeaderAndEpoch(2, EPOCH)
    node.answer(FetchRequest, FetchResponse(ErrorCode.NONE, leads, committed))
    node.wait(10_000)
    assert (node.sent(VoteRequest) is not None) == (committed <= 3)


def test_a_candidate_that_knows_the_leader_of_its_epoch_is_none_after_a_restart() -> None:
    """Unlike Kafka: its log may have brought a voter set in which it wins what is won. Found by
    seed 3005416 of plan format 5."""
    log = recovered(control_records=((4, Voters(VOTERS[:1])),))
    node = Single(1, log=log, election=ElectionState(EPOCH, 2, key(1)))
    assert node.core.leader != LeaderAndEpoch(1, EPOCH)
    for _ in range(10):
        node.wait(10_000)
    assert node.core.leader == LeaderAndEpoch(1, EPOCH + 1)


@pytest.mark.parametrize("voted", [key(1), ReplicaKey(1)])
def test_a_candidate_of_an_epoch_without_a_leader_continues_after_a_restart(
    voted: ReplicaKey,
) -> None:
    assert Single(1, election=ElectionState(EPOCH, -1, voted)).core.role == "candidate"


LAST = 2**31 - 1


@pytest.mark.parametrize("role", sorted(ROLES))
@pytest.mark.parametrize("pre_vote", [False, True])
def test_an_implausible_epoch_is_refused(role: str, pre_vote: bool) -> None:
    """Taken from one garbled Vote it left the whole quorum without an epoch to elect in."""
    single = ROLES[role]()
    before = single.core.election
    for request in (vote(LAST, 7, pre_vote=pre_vote), begin(LAST, 7), begin(LAST, 1)):
        answer = single.ask(request)
        assert answer is not None and answer.error != ErrorCode.NONE
    assert (single.core.election, single.last.faulted) == (before, None)


@pytest.mark.parametrize("first", [LAST - (1 << 20), LAST - (1 << 20) - 1])
def test_two_jumps_do_not_reach_the_last_epoch(first: int) -> None:
    """The first left a million epochs, the second none: two garbled Votes ended the quorum."""
    single = unattached()
    single.ask(vote(first, 7))
    for epoch in (LAST, LAST - 1, LAST - (1 << 19)):
        answer = single.ask(vote(epoch, 7))
        assert answer is not None and answer.error == ErrorCode.INVALID_REQUEST
    assert single.core.epoch == first


def test_an_answer_with_an_implausible_epoch_is_refused() -> None:
    single = candidate()
    single.answer(VoteRequest, VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, LAST), False), to=2)
    assert single.core.epoch == EPOCH + 1


def test_elections_continue_near_the_last_epoch() -> None:
    single = Single(election=ElectionState(LAST - 9))
    assert single.ask(vote(LAST - 8)) == granted(LAST - 8)


def test_after_the_last_epoch_a_replica_stops_with_a_clear_message() -> None:
    """And quorum-state stays what every later start can read."""
    single = Single(election=ElectionState(LAST))
    single.wait(5000)
    single.answer(VoteRequest, granted(LAST), to=2)
    assert single.last.faulted == f"broken invariant: an election after the last epoch: {LAST}"
    assert single.stored == ElectionState(LAST)
