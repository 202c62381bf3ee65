"""KafkaRaftClientPreVoteTest: pre-votes asked, answered, won and lost (KIP-996)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, ReplicaKey
from quorate.raft.inputs import Answered, Resign
from quorate.raft.messages import FetchRequest, VoteRequest, VoteResponse
from quorate.raft.values import ElectionState
from quorate.sim.scenario.names import key, listeners
from raft.conformance.world import (
    LEADER,
    OWN,
    committed,
    refused,
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
    fetched,
    follower,
    granted,
    knows_leader,
    leader,
    prospective,
    unattached,
    vote,
    voted,
)


def pre_vote(single: Single, candidate_id: int = 2, **changes: object) -> VoteResponse:
    mine = single.core.log_end
    fields = {"end": mine.offset, "last_epoch": mine.epoch} | changes
    answer = single.ask(vote(single.core.epoch, candidate_id, pre_vote=True, **fields))
    assert isinstance(answer, VoteResponse) and answer.error == ErrorCode.NONE
    return answer


def observer() -> Single:
    return Single(4, election=ElectionState(EPOCH))


@kafka_scenario(
    "KafkaRaftClientPreVoteTest",
    "handlePreVoteRequestAsCandidate",
    "handlePreVoteRequestAsUnattachedObserver",
    "handlePreVoteRequestAsUnattachedVoted",
    "handlePreVoteRequestAsUnattachedWithLeader",
)
@pytest.mark.parametrize(
    "make", [unattached, voted, knows_leader, observer, candidate], ids=lambda make: make.__name__
)
def test_pre_votes_are_granted_to_every_candidate_repeatedly(make) -> None:
    """handlePreVoteRequestAs: Candidate, UnattachedObserver, -Voted, -WithLeader."""
    single = make()
    before = single.core.election
    for asking in (2, 2, 3, 9):
        answer = pre_vote(single, asking)
        assert answer.granted
        assert answer.leader == LeaderAndEpoch(before.leader_id, before.epoch)
    assert pre_vote(single, 2, last_epoch=LAST_EPOCH - 1).granted is False
    assert single.core.election == before


@kafka_scenario("KafkaRaftClientPreVoteTest", "handlePreVoteRequestAsResigned")
def test_handle_pre_vote_request_as_resigned() -> None:
    single = committed()
    single.step(Resign(EPOCH + 1))
    answer = pre_vote(single)
    assert answer.granted and answer.leader == LeaderAndEpoch(1, EPOCH + 1)
    mine = single.core.log_end
    higher = vote(EPOCH + 2, pre_vote=True, end=mine.offset, last_epoch=mine.epoch)
    assert single.ask(higher) == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 2), True)
    assert single.core.role == "unattached"


@kafka_scenario("KafkaRaftClientPreVoteTest", "handlePreVoteRequestAsFollowerObserver")
@pytest.mark.parametrize("has_fetched", [False, True])
def test_handle_pre_vote_request_as_follower_observer(has_fetched: bool) -> None:
    single = Single(4, election=ElectionState(EPOCH, 2))
    if has_fetched:
        single.answer(FetchRequest, response())
    answer = pre_vote(single, 3)
    assert (answer.granted, answer.leader) == (not has_fetched, LEADER)
    assert state(single) == ("follower", EPOCH, 2) and not single.core.is_voter


@kafka_scenario("KafkaRaftClientPreVoteTest", "handlePreVoteRequestAsFollower")
@pytest.mark.parametrize("has_fetched", [False, True])
def test_handle_pre_vote_request_as_follower(has_fetched: bool) -> None:
    """Voters and observers alike; a higher epoch is taken, without a vote."""
    single = fetched() if has_fetched else follower()
    for asking in (3, 9):
        answer = pre_vote(single, asking)
        assert (answer.granted, answer.leader) == (not has_fetched, LEADER)
        assert answer.leader_endpoints == listeners(2)
        assert state(single) == ("follower", EPOCH, 2)
    higher = vote(EPOCH + 1, 3, pre_vote=True, last_epoch=EPOCH + 1)
    assert single.ask(higher) == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 1), True)
    assert state(single) == ("unattached", EPOCH + 1, -1)
    assert single.core.election.voted is None


@kafka_scenario("KafkaRaftClientPreVoteTest", "handlePreVoteRequestAsFollowerWithVotedCandidate")
@pytest.mark.parametrize("has_fetched", [False, True])
def test_handle_pre_vote_request_as_follower_with_voted_candidate(has_fetched: bool) -> None:
    single = voted()
    single.ask(begin())
    if has_fetched:
        single.answer(FetchRequest, response())
    for asking in (2, 3, 9):
        answer = pre_vote(single, asking)
        assert (answer.granted, answer.leader) == (not has_fetched, LEADER)
    assert single.core.election == ElectionState(EPOCH, 2, key(3))


@kafka_scenario(
    "KafkaRaftClientPreVoteTest",
    "leaderRejectPreVoteRequestOnSameEpoch",
    "leaderAcceptPreVoteFromObserver",
)
def test_leader_reject_pre_vote_request_on_same_epoch() -> None:
    """Also: leaderAcceptPreVoteFromObserver, which is answered, older epochs with an error."""
    single = leader()
    for asking, changes in ((2, {}), (9, {}), (9, {"end": 0, "last_epoch": 0})):
        assert pre_vote(single, asking, **changes) == VoteResponse(
            ErrorCode.NONE, OWN, False, listeners(1)
        )
    older = single.ask(vote(EPOCH, 9, pre_vote=True, end=0, last_epoch=0))
    assert older == VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, OWN, False, listeners(1))
    assert state(single) == ("leader", EPOCH + 1, 1)


@kafka_scenario("KafkaRaftClientPreVoteTest", "preVoteResponseIgnoredAfterBecomingFollower")
def test_pre_vote_response_ignored_after_becoming_follower() -> None:
    single = prospective()
    single.ask(begin(EPOCH, 3))
    assert state(single) == ("follower", EPOCH, 3)
    for voter_id in (2, 3):
        single.answer(VoteRequest, granted(), to=voter_id)
    assert state(single) == ("follower", EPOCH, 3)


@kafka_scenario("KafkaRaftClientPreVoteTest", "prospectiveReceivesBeginQuorumRequest")
def test_prospective_receives_begin_quorum_request() -> None:
    single = prospective()
    single.ask(begin(EPOCH, 2))
    assert state(single) == ("follower", EPOCH, 2)


@kafka_scenario("KafkaRaftClientPreVoteTest", "prospectiveTransitionsToUnattachedOnElectionFailure")
def test_prospective_transitions_to_unattached_on_election_failure() -> None:
    single = prospective()
    seen = len(single.notes)
    single.wait(1500)
    assert roles_since(single, seen)[0] == "unattached", "time is up"
    single = prospective()
    seen = len(single.notes)
    for voter_id in (2, 3):
        single.answer(VoteRequest, refused(), to=voter_id)
    assert roles_since(single, seen) == ["unattached"]
    single.wait(1499)
    assert state(single) == ("unattached", EPOCH, -1)
    single.wait(1)
    assert state(single) == ("prospective", EPOCH, -1)


@kafka_scenario("KafkaRaftClientPreVoteTest", "prospectiveWithLeaderTransitionsToFollower")
def test_prospective_with_leader_transitions_to_follower() -> None:
    single = fetched()
    single.wait(2100)
    assert state(single) == ("prospective", EPOCH, 2)
    single.wait(1500)
    assert state(single) == ("follower", EPOCH, 2), "time is up"
    single.wait(2100)
    assert state(single) == ("prospective", EPOCH, 2)
    for voter_id in (2, 3):
        single.answer(VoteRequest, refused(), to=voter_id)
    assert state(single) == ("follower", EPOCH, 2), "lost"
    assert isinstance(single.sends[-1].request, FetchRequest) and single.sends[-1].to == 2
    single.wait(2100)
    assert state(single) == ("prospective", EPOCH, 2)
    newer = LeaderAndEpoch(3, EPOCH + 1)
    fenced = VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, newer, False, listeners(3))
    single.answer(VoteRequest, fenced, to=2)
    assert state(single) == ("follower", EPOCH + 1, 3), "another leads by now"


@kafka_scenario("KafkaRaftClientPreVoteTest", "prospectiveLosesElectionHasLeaderButMissingEndpoint")
@kafka_scenario(
    "QuorumStateTest",
    "unattachedWithLeaderNoEndpointToAndFromProspective",
    "prospectiveWithLeaderToUnattachedInSameEpoch",
)
def test_prospective_loses_election_has_leader_but_missing_endpoint() -> None:
    single = knows_leader()
    single.wait(2000)
    assert state(single) == ("prospective", EPOCH, 9)
    for voter_id in (2, 3):
        single.answer(VoteRequest, refused(leader_id=9), to=voter_id)
    assert state(single) == ("unattached", EPOCH, 9)
    single.wait(2000)
    assert state(single) == ("prospective", EPOCH, 9)
    seen = len(single.notes)
    single.wait(1500)
    assert roles_since(single, seen)[0] == "unattached", "time is up"
    assert single.core.election == ElectionState(EPOCH, 9)


@kafka_scenario("KafkaRaftClientPreVoteTest", "prospectiveWithoutLeaderTransitionsToFollower")
def test_prospective_without_leader_transitions_to_follower() -> None:
    """A granted pre-vote that names a leader: the leader counts."""
    single = prospective()
    named = VoteResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), True, listeners(2))
    single.answer(VoteRequest, named, to=3)
    assert state(single) == ("follower", EPOCH, 2)


@kafka_scenario("KafkaRaftClientPreVoteTest", "preVoteRequestTimeout")
def test_pre_vote_request_timeout() -> None:
    single = unattached(election_timeout_ms=20_000)
    single.wait(30_000)
    late = single.sent(VoteRequest, to=2)
    assert late is not None and single.core.role == "prospective"
    before = len(single.sends)
    single.wait(2000)
    assert late.request in [s.request for s in sent_since(single, before, VoteRequest)]
    single.step(Answered(late.correlation, granted()))
    assert single.core.role == "prospective", "the answer came after its time"
    single.answer(VoteRequest, granted(), to=2)
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(1))


@kafka_scenario(
    "KafkaRaftClientPreVoteTest",
    "handleInvalidPreVoteRequestWithOlderEpoch",
    "rejectPreVoteIfRemoteLogIsNotUpToDate",
)
def test_reject_pre_vote_if_remote_log_is_not_up_to_date() -> None:
    single = unattached()
    older = single.ask(vote(EPOCH - 1, pre_vote=True, end=0, last_epoch=2))
    assert older == VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, LeaderAndEpoch(-1, EPOCH), False)
    assert pre_vote(single, end=END - 1).granted is False
    assert pre_vote(single, end=END + 9, last_epoch=LAST_EPOCH - 1).granted is False
    assert state(single) == ("unattached", EPOCH, -1)


@kafka_scenario("KafkaRaftClientPreVoteTest", "followerGrantsPreVoteIfHasNotFetchedYet")
def test_follower_grants_pre_vote_if_has_not_fetched_yet() -> None:
    """The answers name the leader either way."""
    single = follower()
    assert pre_vote(single) == VoteResponse(ErrorCode.NONE, LEADER, True, listeners(2))
    single.answer(FetchRequest, response())
    assert pre_vote(single) == VoteResponse(ErrorCode.NONE, LEADER, False, listeners(2))
    assert state(single) == ("follower", EPOCH, 2)


@kafka_scenario("KafkaRaftClientPreVoteTest", "preVoteNotSupportedByRemote")
def test_pre_vote_not_supported_by_remote() -> None:
    """One that does not know pre-votes is enough, each time anew; the others' come too late."""
    single = prospective()
    for epoch in (EPOCH, EPOCH + 1):
        others = single.sent(VoteRequest, to=3)
        assert others is not None and state(single) == ("prospective", epoch, -1)
        if epoch == EPOCH:
            single.answer(VoteRequest, VoteResponse(ErrorCode.UNSUPPORTED_VERSION), to=2)
        else:
            single.answer(VoteRequest, granted(epoch), to=2)
        assert state(single) == ("candidate", epoch + 1, -1)
        before = len(single.sends)
        late = granted(epoch) if epoch == EPOCH else VoteResponse(ErrorCode.UNSUPPORTED_VERSION)
        single.step(Answered(others.correlation, late))
        assert state(single) == ("candidate", epoch + 1, -1) and single.sends[before:] == []
        for voter_id in (2, 3):
            asked = single.sent(VoteRequest, to=voter_id)
            assert asked is not None and isinstance(asked.request, VoteRequest)
            assert (asked.request.epoch, asked.request.pre_vote) == (epoch + 1, False)
        single.wait(1500)
        asked = single.sent(VoteRequest, to=3)
        assert asked is not None and asked.request.pre_vote  # type: ignore[union-attr]


@kafka_scenario(
    "KafkaRaftClientPreVoteTest", "invalidVoterReplicaPreVoteRequest", "invalidPreVoteRequest"
)
@pytest.mark.parametrize("make", [unattached, follower, fetched], ids=lambda make: make.__name__)
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"receiver": key(9)}, ErrorCode.INVALID_VOTER_KEY),
        ({"receiver": key(1, 1)}, ErrorCode.INVALID_VOTER_KEY),
        ({"receiver": key(1)}, ErrorCode.NONE),
        ({"end": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_epoch": EPOCH + 1}, ErrorCode.INVALID_REQUEST),
        ({"last_epoch": EPOCH}, ErrorCode.NONE),
        ({"candidate": -1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_pre_vote_is_checked(make, changes: dict[str, int], error: ErrorCode) -> None:
    """invalidVoterReplicaPreVoteRequest, invalidPreVoteRequest."""
    single = make()
    before = state(single)
    replica = ReplicaKey(-1) if changes.get("candidate") == -1 else key(2)
    fields = {name: value for name, value in changes.items() if name != "candidate"}
    request = replace(vote(EPOCH, pre_vote=True, **fields), candidate=replica)
    answer = single.ask(request)
    assert isinstance(answer, VoteResponse)
    granted = error == ErrorCode.NONE and make is not fetched
    assert (answer.error, answer.granted) == (error, granted)
    assert answer.leader == (LeaderAndEpoch(-1, EPOCH) if make is unattached else LEADER)
    assert state(single) == before
