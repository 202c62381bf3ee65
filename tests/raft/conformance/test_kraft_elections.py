"""KafkaRaftClientTest: start-up, elections, finding the leader."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch
from quorate.raft.inputs import Answered, Propose, Shutdown
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Refused
from quorate.raft.values import ControlState, ElectionState, LeaderChange, RecoveredLog
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners, voter
from raft.conformance.world import (
    OWN,
    alone,
    control_records,
    empty,
    response,
    roles_since,
    sent_since,
    state,
)
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    Single,
    begin,
    candidate,
    granted,
    leader,
    recovered,
    unattached,
    vote,
)

OWN_AGAIN = LeaderAndEpoch(1, 8)


# -- start-up ------------------------------------------------------------------------------------
def newborn() -> RecoveredLog:
    """The log of the only voter, just formatted."""
    return recovered(
        end_offset=0, epochs=(), batch_ends=(), snapshot_control=ControlState(1, (voter(1),))
    )


@kafka_scenario(
    "KafkaRaftClientTest",
    "initializeSingleMemberQuorum",
    "initializeAsOnlyVoterWithEmptyElectionState",
)
def test_initialize_single_member_quorum() -> None:
    """Also: initializeAsOnlyVoterWithEmptyElectionState. The first epoch is 1."""
    single = Single(log=newborn(), election=ElectionState())
    assert state(single) == ("leader", 1, 1)
    assert single.core.log_end == (3, 1) and single.core.high_watermark == 3
    assert single.sends == []


@kafka_scenario("KafkaRaftClientTest", "initializeAsLeaderFromStateStoreSingleMemberQuorum")
def test_initialize_as_leader_from_state_store_single_member_quorum() -> None:
    """Not in the epoch that it led, whose end no node knows any more."""
    single = Single(log=newborn(), election=ElectionState(7, 1))
    assert state(single) == ("leader", 8, 1)
    assert single.core.leader == OWN_AGAIN and single.core.log_end.epoch == 8


@kafka_scenario("KafkaRaftClientTest", "initializeAsResignedAndOnlyVoter")
def test_initialize_as_resigned_and_only_voter() -> None:
    """It needs no notification that it leads no more: the next epoch is its own, on the disk too."""
    single = alone(election=ElectionState(7, 1))
    assert single.notes[0].startswith("epoch 7: starts as resigned")
    assert roles_since(single, 0) == ["prospective", "candidate", "leader"]
    assert state(single) == ("leader", 8, 1)
    assert single.stored == ElectionState(8, 1)


@kafka_scenario("KafkaRaftClientTest", "initializeAsFollowerAndOnlyVoter")
def test_initialize_as_follower_and_only_voter() -> None:
    assert state(alone(election=ElectionState(7, 2))) == ("leader", 8, 1)


@kafka_scenario("KafkaRaftClientTest", "initializeAsCandidateAndOnlyVoter")
def test_initialize_as_candidate_and_only_voter() -> None:
    assert state(alone(election=ElectionState(7, -1, key(1)))) == ("leader", 7, 1)


@kafka_scenario("KafkaRaftClientTest", "initializeAsResignedAndUnableToContactQuorum")
def test_initialize_as_resigned_and_unable_to_contact_quorum() -> None:
    single = Single(election=ElectionState(EPOCH, 1))
    assert state(single) == ("resigned", EPOCH, 1)
    single.wait(1500)
    assert state(single) == ("prospective", EPOCH + 1, -1)
    seen = len(single.notes)
    single.wait(1500)
    assert roles_since(single, seen) == ["unattached", "prospective"]
    assert single.core.epoch == EPOCH + 1


@kafka_scenario("KafkaRaftClientTest", "initializeAsResignedLeaderFromStateStore")
def test_initialize_as_resigned_leader_from_state_store() -> None:
    single = Single(election=ElectionState(EPOCH, 1))
    assert {s.to for s in sent_since(single, 0, EndQuorumEpochRequest)} == {2, 3}
    assert single.core.leader == LeaderAndEpoch(-1, EPOCH)
    (proposal,) = single.step(Propose(7, EPOCH, 1, 1, "x")).proposals
    assert isinstance(proposal, Refused) and proposal.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    done = EndQuorumEpochResponse(ErrorCode.NONE, LeaderAndEpoch(1, EPOCH))
    single.answer(EndQuorumEpochRequest, done, to=2)
    single.wait(1499)
    assert state(single) == ("resigned", EPOCH, 1)
    seen = len(single.notes)
    single.wait(1)
    assert roles_since(single, seen) == ["unattached", "prospective"]
    assert single.core.epoch == EPOCH + 1


@kafka_scenario(
    "KafkaRaftClientTest", "initializeAsFollowerEmptyLog", "initializeAsFollowerNonEmptyLog"
)
@pytest.mark.parametrize("log", [empty(), recovered()], ids=["empty", "non-empty"])
def test_initialize_as_follower(log) -> None:
    single = Single(election=ElectionState(EPOCH, 2), log=log)
    assert state(single) == ("follower", EPOCH, 2)
    send = single.sent(FetchRequest)
    assert send is not None and isinstance(send.request, FetchRequest)
    place = (send.request.offset, send.request.last_fetched_epoch, send.request.high_watermark)
    assert (send.to, place) == (2, (log.end_offset, LAST_EPOCH if log.end_offset else 0, -1))


# -- votes of one that was leader or candidate before the restart --------------------------------
BEFORE = {
    "leadership": ElectionState(EPOCH, 1),
    "candidacy": ElectionState(EPOCH, -1, key(1)),
}


@kafka_scenario(
    "KafkaRaftClientTest",
    "rejectVotesFromSameEpochAfterResigningLeadership",
    "rejectVotesFromSameEpochAfterResigningCandidacy",
)
@pytest.mark.parametrize("before", list(BEFORE))
def test_reject_votes_from_same_epoch_after_resigning(before: str) -> None:
    single = Single(election=BEFORE[before])
    answer = single.ask(vote(EPOCH, candidate=2))
    assert isinstance(answer, VoteResponse)
    assert (answer.error, answer.granted) == (ErrorCode.NONE, False)
    assert answer.leader == LeaderAndEpoch(BEFORE[before].leader_id, EPOCH)
    assert single.core.election == BEFORE[before]


@kafka_scenario(
    "KafkaRaftClientTest",
    "grantVotesFromHigherEpochAfterResigningLeadership",
    "grantVotesFromHigherEpochAfterResigningCandidacy",
)
@pytest.mark.parametrize("before", list(BEFORE))
def test_grant_votes_from_higher_epoch_after_resigning(before: str) -> None:
    single = Single(election=BEFORE[before])
    answer = single.ask(vote(EPOCH + 1, candidate=2))
    assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 1), True)
    assert single.core.role == "unattached"
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(2))


@kafka_scenario("KafkaRaftClientTest", "grantVotesWhenShuttingDown")
def test_grant_votes_when_shutting_down() -> None:
    single = leader()
    single.step(Shutdown(5000))
    answer = single.ask(vote(EPOCH + 2, end=END + 9, last_epoch=EPOCH + 1))
    assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 2), True)
    assert state(single) == ("unattached", EPOCH + 2, -1)
    assert single.core.election.voted == key(2) and not single.last.stopped


# -- from unattached to leader -------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "initializeAsUnattachedAndBecomeLeader")
def test_initialize_as_unattached_and_become_leader() -> None:
    single = unattached()
    send = single.sent(FetchRequest)
    assert send is not None and state(single) == ("unattached", EPOCH, -1)
    unknown = LeaderAndEpoch(-1, EPOCH)
    single.wait(500)
    single.answer(FetchRequest, response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=unknown))
    assert state(single) == ("unattached", EPOCH, -1)
    single.wait(2000)
    assert single.core.role == "prospective"
    single.answer(VoteRequest, granted(), to=2)
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(1))
    ready = single.answer(VoteRequest, granted(EPOCH + 1), to=2)
    assert state(single) == ("leader", EPOCH + 1, 1)
    assert control_records(ready)[0] == LeaderChange(1, (1, 2, 3), (1, 2))
    assert single.core.durable_end_offset == single.core.log_end.offset > END
    assert {s.to for s in sent_since(single, 0, BeginQuorumEpochRequest)} == {2, 3}


@kafka_scenario("KafkaRaftClientTest", "initializeAsCandidateAndBecomeLeaderQuorumOfThree")
def test_initialize_as_candidate_and_become_leader_quorum_of_three() -> None:
    single = Single(election=ElectionState(EPOCH, -1, key(1)))
    assert single.core.role == "candidate"
    ready = single.answer(VoteRequest, granted(), to=3)
    assert state(single) == ("leader", EPOCH, 1)
    assert control_records(ready)[0] == LeaderChange(1, (1, 2, 3), (1, 3))
    assert single.core.durable_end_offset == single.core.log_end.offset > END
    assert {s.to for s in sent_since(single, 0, BeginQuorumEpochRequest)} == {2, 3}
    single.answer(VoteRequest, granted(), to=2)
    assert state(single) == ("leader", EPOCH, 1)


@kafka_scenario("KafkaRaftClientTest", "voteRequestTimeout")
def test_vote_request_timeout() -> None:
    single = unattached(election_timeout_ms=20_000)
    single.wait(30_000)
    single.answer(VoteRequest, granted(), to=2)
    late = single.sent(VoteRequest, to=3)
    assert single.core.role == "candidate" and late is not None
    before = len(single.sends)
    single.wait(2000)
    again = sent_since(single, before, VoteRequest)
    assert late.request in [s.request for s in again]
    single.step(Answered(late.correlation, granted(EPOCH + 1)))
    assert single.core.role == "candidate", "the answer came after its time"
    single.answer(VoteRequest, granted(EPOCH + 1), to=3)
    assert single.core.role == "leader"


@kafka_scenario("KafkaRaftClientTest", "candidateElectionTimeout")
@kafka_scenario("QuorumStateTest", "candidateToProspective")
def test_candidate_election_timeout() -> None:
    single = candidate()
    single.wait(1499)
    assert single.core.role == "candidate"
    before = len(single.sends)
    single.wait(1)
    assert state(single) == ("prospective", EPOCH + 1, -1)
    assert single.core.election.voted == single.stored.voted == key(1)
    asked = sent_since(single, before, VoteRequest)
    places = {(s.to, s.request.epoch, s.request.pre_vote) for s in asked}  # type: ignore[union-attr]
    assert places == {(2, EPOCH + 1, True), (3, EPOCH + 1, True)}
    seen = len(single.notes)
    single.wait(1499)
    assert roles_since(single, seen) == []
    single.wait(1)
    assert roles_since(single, seen) == ["unattached", "prospective"]


@kafka_scenario("KafkaRaftClientTest", "handleVoteRequestAsProspectiveWithVotedCandidate")
def test_handle_vote_request_as_prospective_with_voted_candidate() -> None:
    single = Single(election=ElectionState(EPOCH, -1, key(3)))
    single.wait(2000)
    assert (single.core.role, single.core.election.voted) == ("prospective", key(3))
    assert single.ask(vote(EPOCH, candidate=2)).granted is False  # type: ignore[union-attr]
    assert single.ask(vote(EPOCH + 1, candidate=2)).granted is True  # type: ignore[union-attr]
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(2))


@kafka_scenario("KafkaRaftClientTest", "handleVoteRequestAsObserver")
def test_handle_vote_request_as_observer() -> None:
    single = Single(4, election=ElectionState(EPOCH))
    answer = single.ask(vote(EPOCH + 1))
    assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 1), True)
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(2))


@kafka_scenario("KafkaRaftClientTest", "leaderAcceptVoteFromObserver")
def test_leader_accept_vote_from_observer() -> None:
    single = leader()
    older = single.ask(vote(EPOCH, candidate=9, last_epoch=0, end=0))
    same = single.ask(vote(EPOCH + 1, candidate=9, last_epoch=0, end=0))
    assert older == VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, OWN, False, listeners(1))
    assert same == VoteResponse(ErrorCode.NONE, OWN, False, listeners(1))


@kafka_scenario("KafkaRaftClientTest", "voteResponseIgnoredAfterBecomingFollower")
def test_vote_response_ignored_after_becoming_follower() -> None:
    single = candidate()
    single.ask(begin(EPOCH + 1, 3))
    assert state(single) == ("follower", EPOCH + 1, 3)
    late = {send.to: send.correlation for send in sent_since(single, 0, VoteRequest)}
    named = VoteResponse(ErrorCode.NONE, LeaderAndEpoch(3, EPOCH + 1), True)
    single.step(Answered(late[2], granted(EPOCH + 1)), Answered(late[3], named))
    assert state(single) == ("follower", EPOCH + 1, 3)
    assert single.core.election == ElectionState(EPOCH + 1, 3, key(1))


# -- finding the leader --------------------------------------------------------------------------
@kafka_scenario(
    "KafkaRaftClientTest", "unattachedAsObserverDoesNotBecomeProspectiveAfterElectionTimeout"
)
def test_unattached_as_observer_does_not_become_prospective_after_election_timeout() -> None:
    single = Single(4, election=ElectionState(EPOCH))
    for epoch in (EPOCH, EPOCH + 1):
        before = len(single.sends)
        single.wait(100_000)
        assert single.core.role == "unattached"
        asked = [send.request for send in single.sends[before:]]
        assert asked and all(isinstance(r, FetchRequest) and r.epoch == epoch for r in asked)
        if epoch == EPOCH:
            answer = single.ask(vote(EPOCH + 1))
            assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 1), True)
    assert single.sent(VoteRequest) is None


@kafka_scenario(
    "KafkaRaftClientTest", "followerAsObserverDoesNotBecomeProspectiveAfterFetchTimeout"
)
def test_follower_as_observer_does_not_become_prospective_after_fetch_timeout() -> None:
    single = Single(4, election=ElectionState(EPOCH, 2))
    assert state(single) == ("follower", EPOCH, 2)
    single.wait(2000)
    assert state(single) == ("follower", EPOCH, 2)
    answer = single.ask(vote(EPOCH + 1))
    assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 1), True)
    assert state(single) == ("unattached", EPOCH + 1, -1)
    assert single.sent(VoteRequest) is None


@kafka_scenario("KafkaRaftClientTest", "voterBecomeProspectiveAfterFetchTimeout")
def test_voter_become_prospective_after_fetch_timeout() -> None:
    """The first in line, to the millisecond; it asks with the end of its log."""
    single = Single(election=ElectionState(EPOCH, 2))
    assert single.sent(FetchRequest, to=2) is not None
    single.wait(1999)
    assert state(single) == ("follower", EPOCH, 2)
    single.wait(1)
    assert state(single) == ("prospective", EPOCH, 2)
    asked = [send.request for send in sent_since(single, 0, VoteRequest)]
    assert asked == [
        VoteRequest(CLUSTER_ID, key(i), EPOCH, key(1), LAST_EPOCH, END, True) for i in (2, 3)
    ]


@kafka_scenario("KafkaRaftClientTest", "unattachedAsVoterCanBecomeFollowerAfterFindingLeader")
def test_unattached_as_voter_can_become_follower_after_finding_leader() -> None:
    single = unattached()
    single.answer(FetchRequest, response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert state(single) == ("follower", EPOCH, 2)
    assert single.sent(FetchRequest, to=2) is not None
