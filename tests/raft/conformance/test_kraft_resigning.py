"""KafkaRaftClientTest: Begin- and EndQuorumEpoch, resigning, and how a leader keeps its voters."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, ReplicaKey
from quorate.raft.inputs import Propose, Resign, Shutdown
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    VoteRequest,
)
from quorate.raft.ready import Refused
from quorate.raft.values import ElectionState
from quorate.sim.scenario.names import key, listeners
from raft.conformance.world import (
    LEADER,
    OWN,
    acknowledge,
    alone,
    committed,
    end,
    led,
    response,
    sent_since,
    state,
)
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    ROLES,
    Single,
    begin,
    candidate,
    fetch,
    leader,
    resigned,
    unattached,
    vote,
)


# -- EndQuorumEpoch ------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "endQuorumIgnoredAsCandidateIfOlderEpoch")
def test_end_quorum_ignored_as_candidate_if_older_epoch() -> None:
    single = candidate()
    answer = single.ask(end(key(1), epoch=EPOCH - 1))
    assert answer == EndQuorumEpochResponse(
        ErrorCode.FENCED_LEADER_EPOCH, LeaderAndEpoch(-1, EPOCH + 1)
    )
    single.wait(1499)
    assert single.core.role == "candidate"
    single.wait(1)
    assert single.core.role == "prospective"


@kafka_scenario("KafkaRaftClientTest", "endQuorumIgnoredAsLeaderIfOlderEpoch")
def test_end_quorum_ignored_as_leader_if_older_epoch() -> None:
    single = leader()
    answer = single.ask(end(key(1), epoch=EPOCH))
    assert answer == EndQuorumEpochResponse(ErrorCode.FENCED_LEADER_EPOCH, OWN, listeners(1))
    single.wait(1999)
    assert state(single) == ("leader", EPOCH + 1, 1)


@kafka_scenario("KafkaRaftClientTest", "endQuorumStartsNewElectionImmediatelyIfFollowerUnattached")
def test_end_quorum_starts_new_election_immediately_if_follower_unattached() -> None:
    single = unattached()
    answer = single.ask(end(key(1), key(3)))
    assert isinstance(answer, EndQuorumEpochResponse)
    assert (answer.error, answer.leader) == (ErrorCode.NONE, LEADER)
    assert state(single) == ("prospective", EPOCH, 2)


@kafka_scenario(
    "KafkaRaftClientTest",
    "handleEndQuorumRequest",
    "handleEndQuorumRequestWithLowerPriorityToBecomeLeader",
)
@pytest.mark.parametrize("preferred", [(key(1),), (key(3), key(1))], ids=["first", "second"])
def test_handle_end_quorum_request(preferred: tuple[ReplicaKey, ...]) -> None:
    """Also: ...WithLowerPriorityToBecomeLeader, which fetches on until its turn comes."""
    single = Single(election=ElectionState(EPOCH, 2))
    single.answer(FetchRequest, response())
    answer = single.ask(end(*preferred))
    assert answer == EndQuorumEpochResponse(ErrorCode.NONE, LEADER, listeners(2))
    if len(preferred) == 2:
        before = len(single.sends)
        single.answer(FetchRequest, response())
        single.wait(499)
        assert state(single) == ("follower", EPOCH, 2)
        assert sent_since(single, before, FetchRequest) == single.sends[before:] != []
        single.wait(1)
    assert state(single) == ("prospective", EPOCH, 2)
    asked = sent_since(single, 0, VoteRequest)
    places = {(s.to, s.request.epoch, s.request.pre_vote) for s in asked}  # type: ignore[union-attr]
    assert places == {(2, EPOCH, True), (3, EPOCH, True)}


# -- resigning -----------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "resignInOlderEpochIgnored")
def test_resign_in_older_epoch_ignored() -> None:
    single = leader()
    single.step(Resign(EPOCH))
    single.wait(2000)
    assert state(single) == ("leader", EPOCH + 1, 1)


@kafka_scenario("KafkaRaftClientTest", "cannotResignWithLargerEpochThanCurrentEpoch")
def test_cannot_resign_with_larger_epoch_than_current_epoch() -> None:
    """Java throws; here the core says no in a note and goes on."""
    single = leader()
    single.step(Resign(EPOCH + 2))
    assert any(f"resignation of epoch {EPOCH + 2} ignored" in note for note in single.notes)
    assert state(single) == ("leader", EPOCH + 1, 1)


@kafka_scenario("KafkaRaftClientTest", "cannotResignIfNotLeader", "cannotResignIfObserver")
@pytest.mark.parametrize("role", [name for name in ROLES if name not in ("leader", "resigned")])
def test_cannot_resign_if_not_leader(role: str) -> None:
    """Also: cannotResignIfObserver."""
    single = ROLES[role]()
    before = state(single)
    single.step(Resign(single.core.epoch))
    assert state(single) == before
    assert any("resignation" in note for note in single.notes)


@kafka_scenario("KafkaRaftClientTest", "handleBeginQuorumEpochAfterUserInitiatedResign")
def test_handle_begin_quorum_epoch_after_user_initiated_resign() -> None:
    single = resigned()
    answer = single.ask(begin(EPOCH + 2, 3))
    assert answer is not None and answer.error == ErrorCode.NONE
    assert single.core.leader == single.last.leader == LeaderAndEpoch(3, EPOCH + 2)


@kafka_scenario("KafkaRaftClientTest", "electionTimeoutAfterUserInitiatedResign")
def test_election_timeout_after_user_initiated_resign() -> None:
    single = resigned()
    done = EndQuorumEpochResponse(ErrorCode.NONE, OWN)
    for voter_id in (2, 3):
        single.answer(EndQuorumEpochRequest, done, to=voter_id)
    before = len(single.sends)
    single.wait(20)
    assert sent_since(single, before, EndQuorumEpochRequest) == []
    answer = single.ask(fetch())
    assert answer is not None and answer.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.leader == OWN  # type: ignore[union-attr]
    single.wait(1480)
    assert single.core.election == ElectionState(EPOCH + 2)
    assert single.last.leader == LeaderAndEpoch(-1, EPOCH + 2)
    assert single.core.role == "prospective", "right away"


def take_follower(single: Single) -> None:
    single.ask(begin(EPOCH + 2, 3))


def take_voted(single: Single) -> None:
    single.ask(vote(EPOCH + 2, end=END + 9, last_epoch=EPOCH + 1))


def take_unattached(single: Single) -> None:
    single.ask(vote(EPOCH + 2))


@kafka_scenario(
    "KafkaRaftClientTest",
    "accumulatorClearedAfterBecomingFollower",
    "accumulatorClearedAfterBecomingVoted",
    "accumulatorClearedAfterBecomingUnattached",
)
@pytest.mark.parametrize("leave", [take_follower, take_voted, take_unattached])
def test_no_proposal_waits_beyond_leadership(leave) -> None:
    """accumulatorClearedAfterBecoming...: here nothing waits; what comes after is refused."""
    single = committed()
    leave(single)
    ready = single.step(Propose(7, EPOCH + 1, 1, 1, "x"))
    (proposal,) = ready.proposals
    assert isinstance(proposal, Refused) and not proposal.in_doubt
    assert ready.writes == ()


# -- the leader keeps the voters -----------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "beginQuorumEpochHeartbeat")
@kafka_scenario("LeaderStateTest", "beginQuorumEpochTimer")
def test_begin_quorum_epoch_heartbeat() -> None:
    single = led()
    before = 0
    for _ in range(2):
        assert {s.to for s in sent_since(single, before, BeginQuorumEpochRequest)} == {2, 3}
        for voter_id in (2, 3):
            done = BeginQuorumEpochResponse(ErrorCode.NONE, OWN)
            single.answer(BeginQuorumEpochRequest, done, to=voter_id)
        before = len(single.sends)
        single.wait(999)
        assert sent_since(single, before, BeginQuorumEpochRequest) == []
        single.wait(1)


@kafka_scenario("KafkaRaftClientTest", "beginQuorumShouldNotSendAfterFetchRequest")
def test_begin_quorum_should_not_send_after_fetch_request() -> None:
    """A voter that fetched within the period gets no request; after a period without Fetch it does."""
    single = led()
    done = BeginQuorumEpochResponse(ErrorCode.NONE, OWN)
    reminded = []
    for fetches in (True, True, False):
        for voter_id in {s.to for s in sent_since(single, 0, BeginQuorumEpochRequest)}:
            single.answer(BeginQuorumEpochRequest, done, to=voter_id)
        before = len(single.sends)
        single.wait(700)
        if fetches:
            single.ask(fetch(END, LAST_EPOCH, max_wait_ms=0))
        single.wait(300)
        reminded.append([s.to for s in sent_since(single, before, BeginQuorumEpochRequest)])
    assert reminded == [[3], [3], [2, 3]]


@kafka_scenario("KafkaRaftClientTest", "fetchShouldBeTreatedAsLeaderAcknowledgement")
def test_fetch_should_be_treated_as_leader_acknowledgement() -> None:
    single = led(fetch_timeout_ms=50_000)
    begun = {s.to for s in sent_since(single, 0, BeginQuorumEpochRequest)}
    assert begun == {2, 3}
    for voter_id in (2, 3):
        single.ask(fetch(END, LAST_EPOCH, replica=key(voter_id)))
    before = len(single.sends)
    single.wait(24_999)
    assert sent_since(single, before, BeginQuorumEpochRequest) == []


@kafka_scenario("KafkaRaftClientTest", "leaderShouldNotResignLeadershipIfOnlyOneVoters")
def test_leader_should_not_resign_leadership_if_only_one_voters() -> None:
    single = alone()
    single.wait(1_000_000)
    assert single.core.role == "leader"


# -- EndQuorumEpoch ------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "endQuorumEpochRetriesWhileResigned")
def test_end_quorum_epoch_retries_while_resigned() -> None:
    """Only a voter that has not answered within the request timeout is asked again."""
    single = Single(
        election=ElectionState(EPOCH, 1), election_timeout_ms=10_000, request_timeout_ms=5000
    )
    done = EndQuorumEpochResponse(ErrorCode.NONE, LeaderAndEpoch(1, EPOCH))
    ready = single.answer(EndQuorumEpochRequest, done, to=2)
    assert ready.sends == ()
    before = len(single.sends)
    single.wait(4999)
    assert single.sends[before:] == []
    single.wait(1)
    (again,) = single.sends[before:]
    assert again.to == 3 and isinstance(again.request, EndQuorumEpochRequest)
    assert (again.request.leader, again.request.preferred_candidates) == (
        LeaderAndEpoch(1, EPOCH),
        (),
    )


@kafka_scenario("KafkaRaftClientTest", "endQuorumEpochSentBasedOnFetchOffset")
def test_end_quorum_epoch_sent_based_on_fetch_offset() -> None:
    """The one that is further on is named first, though it fetched last and has the higher id."""
    single = committed()
    single.step(Propose(0, EPOCH + 1, 2, 20, "x"))
    acknowledge(single, 3)
    before = len(single.sends)
    single.step(Shutdown(5000))
    sent = sent_since(single, before, EndQuorumEpochRequest)
    assert {s.to for s in sent} == {2, 3}
    for send in sent:
        assert isinstance(send.request, EndQuorumEpochRequest)
        assert send.request.preferred_candidates == (key(3), key(2))
    assert not single.last.stopped
