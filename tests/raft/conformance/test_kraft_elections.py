"""KafkaRaftClientTest: start-up, elections, Begin- and EndQuorumEpoch, resigning."""

from __future__ import annotations

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, ReplicaKey
from quorate.raft.inputs import Answered, Propose, Resign, Shutdown
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Refused
from quorate.raft.values import ControlState, ElectionState, LeaderChange, RecoveredLog
from quorate.sim.story.names import CLUSTER_ID, key, listeners, voter
from raft.conformance.world import (
    LEADER,
    OWN,
    acknowledge,
    alone,
    committed,
    control_records,
    empty,
    end,
    led,
    response,
    roles_since,
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
    granted,
    leader,
    recovered,
    resigned,
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


def test_initialize_single_member_quorum() -> None:
    """Also: initializeAsOnlyVoterWithEmptyElectionState. The first epoch is 1."""
    single = Single(log=newborn(), election=ElectionState())
    assert state(single) == ("leader", 1, 1)
    assert single.core.log_end == (3, 1) and single.core.high_watermark == 3
    assert single.sends == []


def test_initialize_as_leader_from_state_store_single_member_quorum() -> None:
    """Not in the epoch that it led, whose end nobody knows any more."""
    single = Single(log=newborn(), election=ElectionState(7, 1))
    assert state(single) == ("leader", 8, 1)
    assert single.core.leader == OWN_AGAIN and single.core.log_end.epoch == 8


def test_initialize_as_resigned_and_only_voter() -> None:
    """Nobody has to be told that it leads no more: the next epoch is its own, on the disk too."""
    single = alone(election=ElectionState(7, 1))
    assert single.notes[0].startswith("epoch 7: starts as resigned")
    assert roles_since(single, 0) == ["prospective", "candidate", "leader"]
    assert state(single) == ("leader", 8, 1)
    assert single.stored == ElectionState(8, 1)


def test_initialize_as_follower_and_only_voter() -> None:
    assert state(alone(election=ElectionState(7, 2))) == ("leader", 8, 1)


def test_initialize_as_candidate_and_only_voter() -> None:
    assert state(alone(election=ElectionState(7, -1, key(1)))) == ("leader", 7, 1)


def test_initialize_as_resigned_and_unable_to_contact_quorum() -> None:
    single = Single(election=ElectionState(EPOCH, 1))
    assert state(single) == ("resigned", EPOCH, 1)
    single.wait(1500)
    assert state(single) == ("prospective", EPOCH + 1, -1)
    told = len(single.notes)
    single.wait(1500)
    assert roles_since(single, told) == ["unattached", "prospective"]
    assert single.core.epoch == EPOCH + 1


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
    told = len(single.notes)
    single.wait(1)
    assert roles_since(single, told) == ["unattached", "prospective"]
    assert single.core.epoch == EPOCH + 1


def test_end_quorum_epoch_retries_while_resigned() -> None:
    """Who has not answered within the request timeout is asked again, and only that one."""
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


@pytest.mark.parametrize("before", list(BEFORE))
def test_reject_votes_from_same_epoch_after_resigning(before: str) -> None:
    single = Single(election=BEFORE[before])
    answer = single.ask(vote(EPOCH, candidate=2))
    assert isinstance(answer, VoteResponse)
    assert (answer.error, answer.granted) == (ErrorCode.NONE, False)
    assert answer.leader == LeaderAndEpoch(BEFORE[before].leader_id, EPOCH)
    assert single.core.election == BEFORE[before]


@pytest.mark.parametrize("before", list(BEFORE))
def test_grant_votes_from_higher_epoch_after_resigning(before: str) -> None:
    single = Single(election=BEFORE[before])
    answer = single.ask(vote(EPOCH + 1, candidate=2))
    assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 1), True)
    assert single.core.role == "unattached"
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(2))


def test_grant_votes_when_shutting_down() -> None:
    single = leader()
    single.step(Shutdown(5000))
    answer = single.ask(vote(EPOCH + 2, end=END + 9, last_epoch=EPOCH + 1))
    assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 2), True)
    assert state(single) == ("unattached", EPOCH + 2, -1)
    assert single.core.election.voted == key(2) and not single.last.stopped


# -- from unattached to leader -------------------------------------------------------------------
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
    told = len(single.notes)
    single.wait(1499)
    assert roles_since(single, told) == []
    single.wait(1)
    assert roles_since(single, told) == ["unattached", "prospective"]


def test_handle_vote_request_as_prospective_with_voted_candidate() -> None:
    single = Single(election=ElectionState(EPOCH, -1, key(3)))
    single.wait(2000)
    assert (single.core.role, single.core.election.voted) == ("prospective", key(3))
    assert single.ask(vote(EPOCH, candidate=2)).granted is False  # type: ignore[union-attr]
    assert single.ask(vote(EPOCH + 1, candidate=2)).granted is True  # type: ignore[union-attr]
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(2))


def test_handle_vote_request_as_observer() -> None:
    single = Single(4, election=ElectionState(EPOCH))
    answer = single.ask(vote(EPOCH + 1))
    assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 1), True)
    assert single.core.election == ElectionState(EPOCH + 1, -1, key(2))


def test_leader_accept_vote_from_observer() -> None:
    single = leader()
    older = single.ask(vote(EPOCH, candidate=9, last_epoch=0, end=0))
    same = single.ask(vote(EPOCH + 1, candidate=9, last_epoch=0, end=0))
    assert older == VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, OWN, False, listeners(1))
    assert same == VoteResponse(ErrorCode.NONE, OWN, False, listeners(1))


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


def test_follower_as_observer_does_not_become_prospective_after_fetch_timeout() -> None:
    single = Single(4, election=ElectionState(EPOCH, 2))
    assert state(single) == ("follower", EPOCH, 2)
    single.wait(2000)
    assert state(single) == ("follower", EPOCH, 2)
    answer = single.ask(vote(EPOCH + 1))
    assert answer == VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, EPOCH + 1), True)
    assert state(single) == ("unattached", EPOCH + 1, -1)
    assert single.sent(VoteRequest) is None


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


def test_unattached_as_voter_can_become_follower_after_finding_leader() -> None:
    single = unattached()
    single.answer(FetchRequest, response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert state(single) == ("follower", EPOCH, 2)
    assert single.sent(FetchRequest, to=2) is not None


# -- EndQuorumEpoch ------------------------------------------------------------------------------
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


def test_end_quorum_ignored_as_leader_if_older_epoch() -> None:
    single = leader()
    answer = single.ask(end(key(1), epoch=EPOCH))
    assert answer == EndQuorumEpochResponse(ErrorCode.FENCED_LEADER_EPOCH, OWN, listeners(1))
    single.wait(1999)
    assert state(single) == ("leader", EPOCH + 1, 1)


def test_end_quorum_starts_new_election_immediately_if_follower_unattached() -> None:
    single = unattached()
    answer = single.ask(end(key(1), key(3)))
    assert isinstance(answer, EndQuorumEpochResponse)
    assert (answer.error, answer.leader) == (ErrorCode.NONE, LEADER)
    assert state(single) == ("prospective", EPOCH, 2)


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
def test_resign_in_older_epoch_ignored() -> None:
    single = leader()
    single.step(Resign(EPOCH))
    single.wait(2000)
    assert state(single) == ("leader", EPOCH + 1, 1)


def test_cannot_resign_with_larger_epoch_than_current_epoch() -> None:
    """Java throws; here the core says no in a note and goes on."""
    single = leader()
    single.step(Resign(EPOCH + 2))
    assert any(f"resignation of epoch {EPOCH + 2} ignored" in note for note in single.notes)
    assert state(single) == ("leader", EPOCH + 1, 1)


@pytest.mark.parametrize("role", [name for name in ROLES if name not in ("leader", "resigned")])
def test_cannot_resign_if_not_leader(role: str) -> None:
    """Also: cannotResignIfObserver."""
    single = ROLES[role]()
    before = state(single)
    single.step(Resign(single.core.epoch))
    assert state(single) == before
    assert any("resignation" in note for note in single.notes)


def test_handle_begin_quorum_epoch_after_user_initiated_resign() -> None:
    single = resigned()
    answer = single.ask(begin(EPOCH + 2, 3))
    assert answer is not None and answer.error == ErrorCode.NONE
    assert single.core.leader == single.last.leader == LeaderAndEpoch(3, EPOCH + 2)


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


def test_begin_quorum_should_not_send_after_fetch_request() -> None:
    """Whoever fetched within the period is not reminded; once it is silent for one, it is again."""
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


def test_fetch_should_be_treated_as_leader_acknowledgement() -> None:
    single = led(fetch_timeout_ms=50_000)
    begun = {s.to for s in sent_since(single, 0, BeginQuorumEpochRequest)}
    assert begun == {2, 3}
    for voter_id in (2, 3):
        single.ask(fetch(END, LAST_EPOCH, replica=key(voter_id)))
    before = len(single.sends)
    single.wait(24_999)
    assert sent_since(single, before, BeginQuorumEpochRequest) == []


def test_leader_should_not_resign_leadership_if_only_one_voters() -> None:
    single = alone()
    single.wait(1_000_000)
    assert single.core.role == "leader"
