"""QuorumStateTest: from every role, what leads where, in the same, a higher and a lower epoch.

Kafka calls the transitions by hand; here the messages that cause them do, so that what Kafka
refuses with an exception is what no message can bring about. One table for each old role.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode, InvariantError
from quorate.base.ids import LeaderAndEpoch, Listener
from quorate.raft import transitions
from quorate.raft.core import RaftCore
from quorate.raft.inputs import Resign
from quorate.raft.messages import FetchRequest, VoteRequest, VoteResponse
from quorate.raft.roles import (
    LEGAL_TRANSITIONS,
    NEVER,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorate.raft.values import ElectionState
from quorate.sim.scenario.names import key, listeners
from raft.conformance.world import committed, empty, led, refused, response, state
from raft.single import (
    END,
    EPOCH,
    ROLES,
    Single,
    begin,
    candidate,
    fetched,
    granted,
    knows_leader,
    leader,
    observer,
    resigned,
    unattached,
    vote,
    voted,
)

UP_TO_DATE = {"end": END + 9, "last_epoch": EPOCH}
"""A log longer than ours, of an epoch before the higher ones asked for."""


@pytest.fixture(params=[0, 1], autouse=True)
def kraft_version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test at both, as Kafka runs its own."""
    monkeypatch.setattr("raft.single.KRAFT_VERSION", request.param)
    assert Single().core.voters.kraft_version == request.param


def prospective_voted() -> Single:
    single = voted()
    single.wait(2000)
    return single


def prospective_with_leader() -> Single:
    """Lost its leader 2 in epoch 4."""
    single = fetched()
    single.wait(2100)
    return single


def prospective_voted_with_leader() -> Single:
    single = voted()
    single.ask(begin())
    single.wait(2100)
    return single


def follower_voted() -> Single:
    single = voted()
    single.ask(begin())
    return single


MADE: dict[str, Callable[[], Single]] = ROLES | {
    "prospective voted": prospective_voted,
    "prospective with leader": prospective_with_leader,
    "prospective voted with leader": prospective_voted_with_leader,
    "follower voted": follower_voted,
    "unattached observer": lambda: Single(4, election=ElectionState(EPOCH)),
}


def win(single: Single) -> None:
    """Whatever was asked of 2 is granted."""
    if single.sent(VoteRequest, to=2) is not None:
        single.answer(VoteRequest, granted(single.core.epoch), to=2)


def lose(single: Single) -> None:
    leader_id = single.core.election.leader_id
    for voter_id in (2, 3):
        answer = refused(single.core.epoch, leader_id)
        if single.sent(VoteRequest, to=voter_id) is not None:
            single.answer(VoteRequest, answer, to=voter_id)


def at(*changes: int, **what: Any) -> Callable[[Single], None]:
    """A vote request `rise` epochs above."""
    (rise,) = changes
    return lambda s: (s.ask(vote(s.core.epoch + rise, **what)), None)[1]


def follows(leader_id: int, rise: int, *, addressed: bool = True) -> Callable[[Single], None]:
    def receive(single: Single) -> None:
        endpoints = listeners(leader_id) if addressed else ()
        single.ask(begin(single.core.epoch + rise, leader_id, leader_endpoints=endpoints))

    return receive


EVENTS: dict[str, Callable[[Single], None]] = {
    "higher epoch": at(1, end=0, last_epoch=0),
    "higher epoch, voted": at(1, **UP_TO_DATE),
    "same epoch, asked for a vote": at(0),
    "lower epoch": at(-1, end=0, last_epoch=0),
    "leader 2, same epoch": follows(2, 0),
    "leader 3, same epoch": follows(3, 0),
    "leader 3, higher epoch": follows(3, 1),
    "leader 9 without address, higher epoch": follows(9, 1, addressed=False),
    "leader 3, lower epoch": follows(3, -1),
    "itself as leader, higher epoch": follows(1, 1),
    "time": lambda s: (s.wait(3000), None)[1],
    "votes": win,
    "refusals": lose,
    "resign": lambda s: (s.step(Resign(s.core.epoch)), None)[1],
}

TABLE = """
unattached                     | higher epoch                           | unattached 5 -1
unattached                     | higher epoch, voted                    | unattached 5 -1 voted 2
unattached                     | same epoch, asked for a vote           | unattached 4 -1 voted 2
unattached                     | lower epoch                            | unattached 4 -1
unattached                     | leader 2, same epoch                   | follower 4 2
unattached                     | leader 3, higher epoch                 | follower 5 3
unattached                     | leader 9 without address, higher epoch | unattached 5 9
unattached                     | leader 3, lower epoch                  | unattached 4 -1
unattached                     | itself as leader, higher epoch         | unattached 5 -1
unattached                     | time                                   | prospective 4 -1
unattached                     | votes                                  | unattached 4 -1
unattached                     | resign                                 | unattached 4 -1
voted                          | higher epoch                           | unattached 5 -1
voted                          | higher epoch, voted                    | unattached 5 -1 voted 2
voted                          | same epoch, asked for a vote           | unattached 4 -1 voted 3
voted                          | lower epoch                            | unattached 4 -1 voted 3
voted                          | leader 2, same epoch                   | follower 4 2 voted 3
voted                          | leader 3, higher epoch                 | follower 5 3
voted                          | leader 3, lower epoch                  | unattached 4 -1 voted 3
voted                          | time                                   | prospective 4 -1 voted 3
voted                          | resign                                 | unattached 4 -1 voted 3
knows leader                   | time                                   | prospective 4 9
knows leader                   | higher epoch                           | unattached 5 -1
knows leader                   | lower epoch                            | unattached 4 9
follower                       | higher epoch                           | unattached 5 -1
follower                       | higher epoch, voted                    | unattached 5 -1 voted 2
follower                       | same epoch, asked for a vote           | follower 4 2
follower                       | lower epoch                            | follower 4 2
follower                       | leader 2, same epoch                   | follower 4 2
follower                       | leader 3, same epoch                   | follower 4 2
follower                       | leader 3, higher epoch                 | follower 5 3
follower                       | leader 3, lower epoch                  | follower 4 2
follower                       | time                                   | prospective 4 2
follower                       | votes                                  | follower 4 2
follower                       | resign                                 | follower 4 2
follower voted                 | same epoch, asked for a vote           | follower 4 2 voted 3
follower voted                 | leader 2, same epoch                   | follower 4 2 voted 3
follower voted                 | leader 3, same epoch                   | follower 4 2 voted 3
follower voted                 | leader 3, higher epoch                 | follower 5 3
follower voted                 | higher epoch                           | unattached 5 -1
follower voted                 | time                                   | prospective 4 2 voted 3
prospective                    | higher epoch                           | unattached 5 -1
prospective                    | higher epoch, voted                    | unattached 5 -1 voted 2
prospective                    | same epoch, asked for a vote           | prospective 4 -1 voted 2
prospective                    | lower epoch                            | prospective 4 -1
prospective                    | leader 9 without address, higher epoch | unattached 5 9
prospective                    | leader 2, same epoch                   | follower 4 2
prospective                    | leader 3, higher epoch                 | follower 5 3
prospective                    | refusals                               | unattached 4 -1
prospective                    | votes                                  | candidate 5 -1 voted 1
prospective                    | time                                   | prospective 4 -1
prospective                    | resign                                 | prospective 4 -1
prospective voted              | refusals                               | unattached 4 -1 voted 3
prospective voted              | leader 2, same epoch                   | follower 4 2 voted 3
prospective voted              | same epoch, asked for a vote           | prospective 4 -1 voted 3
prospective voted              | votes                                  | candidate 5 -1 voted 1
prospective with leader        | refusals                               | follower 4 2
prospective with leader        | higher epoch                           | unattached 5 -1
prospective with leader        | leader 9 without address, higher epoch | unattached 5 9
prospective with leader        | leader 2, same epoch                   | prospective 4 2
prospective with leader        | leader 3, same epoch                   | prospective 4 2
prospective with leader        | leader 3, higher epoch                 | follower 5 3
prospective with leader        | votes                                  | candidate 5 -1 voted 1
prospective voted with leader  | refusals                               | follower 4 2 voted 3
prospective voted with leader  | higher epoch                           | unattached 5 -1
prospective voted with leader  | same epoch, asked for a vote           | prospective 4 2 voted 3
candidate                      | higher epoch                           | unattached 6 -1
candidate                      | higher epoch, voted                    | unattached 6 -1 voted 2
candidate                      | same epoch, asked for a vote           | candidate 5 -1 voted 1
candidate                      | lower epoch                            | candidate 5 -1 voted 1
candidate                      | leader 2, same epoch                   | follower 5 2 voted 1
candidate                      | leader 3, higher epoch                 | follower 6 3
candidate                      | leader 3, lower epoch                  | candidate 5 -1 voted 1
candidate                      | votes                                  | leader 5 1
candidate                      | refusals                               | candidate 5 -1 voted 1
candidate                      | resign                                 | candidate 5 -1 voted 1
leader                         | higher epoch                           | unattached 6 -1
leader                         | higher epoch, voted                    | unattached 6 -1 voted 2
leader                         | same epoch, asked for a vote           | leader 5 1
leader                         | lower epoch                            | leader 5 1
leader                         | leader 3, same epoch                   | leader 5 1
leader                         | leader 3, higher epoch                 | follower 6 3
leader                         | leader 3, lower epoch                  | leader 5 1
leader                         | votes                                  | leader 5 1
leader                         | resign                                 | resigned 5 1
resigned                       | higher epoch                           | unattached 6 -1
resigned                       | higher epoch, voted                    | unattached 6 -1 voted 2
resigned                       | same epoch, asked for a vote           | resigned 5 1
resigned                       | leader 3, same epoch                   | resigned 5 1
resigned                       | leader 3, higher epoch                 | follower 6 3
resigned                       | lower epoch                            | resigned 5 1
unattached observer            | same epoch, asked for a vote           | unattached 4 -1 voted 2
unattached observer            | higher epoch                           | unattached 5 -1
unattached observer            | leader 2, same epoch                   | follower 4 2
unattached observer            | leader 3, higher epoch                 | follower 5 3
unattached observer            | time                                   | unattached 4 -1
unattached observer            | resign                                 | unattached 4 -1
observer                       | higher epoch                           | unattached 5 -1
observer                       | leader 3, higher epoch                 | follower 5 3
observer                       | time                                   | follower 4 2
observer                       | resign                                 | follower 4 2
"""
ROWS = [tuple(cell.strip() for cell in line.split("|")) for line in TABLE.strip().splitlines()]


@kafka_scenario(
    "QuorumStateTest",
    "unattachedToUnattached",
    "unattachedToUnattachedVotedSameEpoch",
    "unattachedToUnattachedVotedHigherEpoch",
    "unattachedToFollowerSameEpoch",
    "unattachedToFollowerHigherEpoch",
    "unattachedToProspective",
    "unattachedToAnyStateLowerEpoch",
    "unattachedVotedToUnattachedSameEpoch",
    "unattachedVotedToUnattachedHigherEpoch",
    "unattachedVotedToUnattachedVoted",
    "unattachedVotedToFollowerSameEpoch",
    "unattachedVotedToFollowerHigherEpoch",
    "unattachedVotedToProspective",
    "unattachedVotedToAnyStateLowerEpoch",
    "unattachedWithLeaderToProspective",
    "followerToUnattachedSameEpoch",
    "followerToUnattachedHigherEpoch",
    "followerToUnattachedVotedHigherEpoch",
    "followerToFollowerSameEpoch",
    "followerToFollowerHigherEpoch",
    "followerToProspective",
    "followerToAnyStateLowerEpoch",
    "followerVotedToUnattachedSameEpoch",
    "followerVotedToUnattachedHigherEpoch",
    "followerVotedToFollowerSameEpoch",
    "followerVotedToFollowerHigherEpoch",
    "prospectiveToUnattachedInSameEpoch",
    "prospectiveToUnattachedInHigherEpoch",
    "prospectiveToUnattachedVoted",
    "prospectiveToUnattachedWithLeaderInHigherEpoch",
    "prospectiveToFollowerSameEpoch",
    "prospectiveToFollowerHigherEpoch",
    "prospectiveToProspective",
    "prospectiveToCandidate",
    "prospectiveVotedToUnattachedInSameEpoch",
    "prospectiveVotedToAndFromFollowerSameEpoch",
    "prospectiveVotedToCandidate",
    "prospectiveWithLeaderToUnattachedInHigherEpoch",
    "prospectiveWithLeaderToUnattachedWithLeaderInHigherEpoch",
    "prospectiveWithLeaderToFollowerSameEpoch",
    "prospectiveWithLeaderToFollowerHigherEpoch",
    "prospectiveWithLeaderToCandidate",
    "prospectiveVotedWithLeaderToUnattachedInSameEpoch",
    "candidateToUnattachedSameEpoch",
    "candidateToUnattachedHigherEpoch",
    "candidateToFollowerSameEpoch",
    "candidateToFollowerHigherEpoch",
    "candidateToLeader",
    "candidateToAnyStateLowerEpoch",
    "leaderToUnattachedSameEpoch",
    "leaderToUnattachedHigherEpoch",
    "leaderToFollowerHigherEpoch",
    "leaderToResigned",
    "leaderToAnyStateLowerEpoch",
    "resignedToFollowerInSameEpoch",
    "resignedToUnattachedInHigherEpoch",
    "observerUnattachedToUnattachedVoted",
    "observerUnattachedToFollower",
    "observerFollowerToUnattached",
)
@pytest.mark.parametrize(("role", "event", "expected"), ROWS, ids=[f"{r}: {d}" for r, d, _ in ROWS])
def test_transition(role: str, event: str, expected: str) -> None:
    single = MADE[role]()
    if event == "higher epoch, voted" and single.core.role in ("leader", "resigned"):
        single.ask(vote(single.core.epoch + 1, end=END + 9, last_epoch=single.core.epoch))
    else:
        EVENTS[event](single)
    election = single.core.election
    found = f"{single.core.role} {election.epoch} {election.leader_id}"
    if election.voted is not None:
        found += f" voted {election.voted.id}"
    assert found == expected
    assert single.stored == election, "what counts is on the disk"
    assert single.last.faulted is None


LEFT = {
    1200: "kept",
    1500: "new",
    2000: "fetch",
    1700: "silent",
    2060: "fetch, as the third in line",
}
"""What is left after 300 ms: of the election timer, of a new one, of a new fetch timer, of it."""
TIMERS = """
unattached            | higher epoch                 | kept
unattached            | higher epoch, voted          | new
unattached            | same epoch, asked for a vote | new
unattached            | leader 2, same epoch         | fetch
unattached            | time                         | new
voted                 | higher epoch                 | kept
voted                 | same epoch, asked for a vote | kept
voted                 | leader 2, same epoch         | fetch
voted                 | time                         | new
knows leader          | higher epoch                 | kept
prospective           | higher epoch                 | kept
prospective           | same epoch, asked for a vote | new
prospective           | refusals                     | new
prospective           | votes                        | new
prospective           | leader 2, same epoch         | fetch
prospective           | leader 3, higher epoch       | fetch
prospective voted     | votes                        | new
prospective with leader | refusals                   | fetch
prospective with leader | higher epoch               | kept
candidate             | higher epoch                 | kept
candidate             | higher epoch, voted          | new
candidate             | leader 2, same epoch         | fetch
candidate             | time                         | new
follower              | higher epoch                 | new
follower              | leader 2, same epoch         | silent
follower              | leader 3, higher epoch       | fetch
follower              | time                         | new
follower voted        | higher epoch                 | new
leader                | higher epoch                 | new
leader                | leader 3, higher epoch       | fetch
leader                | resign                       | new
resigned              | higher epoch                 | kept
resigned              | leader 3, higher epoch       | fetch
unattached observer   | leader 3, higher epoch       | fetch, as the third in line
"""
TIMER_ROWS = [[cell.strip() for cell in row.split("|")] for row in TIMERS.strip().splitlines()]


@kafka_scenario(
    "QuorumStateTest",
    "unattachedToUnattached",
    "unattachedToUnattachedVotedSameEpoch",
    "unattachedToFollowerSameEpoch",
    "unattachedToFollowerHigherEpoch",
    "unattachedToProspective",
    "unattachedVotedToUnattachedHigherEpoch",
    "unattachedVotedToProspective",
    "followerToUnattachedHigherEpoch",
    "followerToProspective",
    "followerVotedToUnattachedHigherEpoch",
    "prospectiveToCandidate",
    "prospectiveVotedToCandidate",
    "observerUnattachedToFollower",
)
@pytest.mark.parametrize(
    ("role", "event", "expected"), TIMER_ROWS, ids=[f"{r}: {d}" for r, d, _ in TIMER_ROWS]
)
def test_timer_after_a_transition(role: str, event: str, expected: str) -> None:
    """Who leaves an election without a leader waits no longer for it than it would have; who voted,
    was refused or had a leader begins anew."""
    single = MADE[role]()
    single.wait(300)
    EVENTS[event](single)
    held = single.core.state.role
    deadline = held.fetch_deadline if isinstance(held, Follower) else held.election_deadline  # type: ignore[union-attr]
    assert LEFT.get(deadline - single.now) == expected
    if isinstance(held, Follower):
        assert held.leader_endpoints == listeners(single.core.election.leader_id)


@pytest.mark.parametrize("event", ["higher epoch", "higher epoch, voted", "time"])
def test_an_observer_has_no_election_timeout(event: str) -> None:
    single = MADE["unattached observer"]()
    EVENTS[event](single)
    assert single.core.state.role.election_deadline == NEVER  # type: ignore[union-attr]


# -- what Java refuses with an exception ---------------------------------------------------------
@kafka_scenario(
    "QuorumStateTest",
    "unattachedToCandidate",
    "unattachedToLeaderOrResigned",
    "unattachedVotedToCandidateOrLeaderOrResigned",
    "followerToCandidate",
    "followerToLeaderOrResigned",
    "prospectiveToLeaderOrResigned",
    "candidateToResigned",
    "leaderToProspective",
    "leaderToCandidate",
    "leaderToLeader",
)
def test_transitions_that_do_not_exist() -> None:
    """To leader only as a candidate, to candidate only as prospective, to resigned as a leader."""
    assert [a for a, b in LEGAL_TRANSITIONS if b is Leader] == [Candidate]
    assert [a for a, b in LEGAL_TRANSITIONS if b is Candidate] == [Prospective]
    assert [a for a, b in LEGAL_TRANSITIONS if b is Resigned] == [Leader]
    for pair in ((Leader, Prospective), (Leader, Candidate), (Candidate, Candidate)):
        assert pair not in LEGAL_TRANSITIONS
    assert (Resigned, Follower) in LEGAL_TRANSITIONS and (
        Follower,
        Candidate,
    ) not in LEGAL_TRANSITIONS


@kafka_scenario(
    "QuorumStateTest",
    "unattachedVotedToUnattachedSameEpoch",
    "followerToUnattachedSameEpoch",
    "followerVotedToUnattachedSameEpoch",
    "prospectiveToProspective",
    "candidateToUnattachedSameEpoch",
    "candidateToCandidate",
    "leaderToUnattachedSameEpoch",
    "observerUnattachedToProspective",
    "observerUnattachedToCandidateOrLeaderOrResigned",
    "observerFollowerToProspectiveOrCandidateOrLeaderOrResigned",
)
@pytest.mark.parametrize(
    ("make", "move"),
    [
        (unattached, lambda s: transitions.become_leader(s, {1, 2})),
        (unattached, lambda s: transitions.become_candidate(s)),
        (fetched, lambda s: transitions.become_candidate(s)),
        (leader, lambda s: transitions.become_prospective(s, "test")),
        (candidate, lambda s: transitions.become_candidate(s)),
        (ROLES["prospective"], lambda s: transitions.become_prospective(s, "test")),
        (prospective_voted, lambda s: transitions.become_prospective(s, "test")),
        (leader, lambda s: transitions.become_leader(s, {1, 2})),
        (observer, lambda s: transitions.become_prospective(s, "test")),
        (observer, lambda s: transitions.become_leader(s, {1, 2})),
        (unattached, lambda s: transitions.become_unattached(s, EPOCH - 1)),
        (unattached, lambda s: transitions.become_unattached(s, EPOCH)),
        (voted, lambda s: transitions.become_unattached(s, EPOCH)),
        (fetched, lambda s: transitions.become_unattached(s, EPOCH)),
        (follower_voted, lambda s: transitions.become_unattached(s, EPOCH)),
        (candidate, lambda s: transitions.become_unattached(s, EPOCH + 1)),
        (leader, lambda s: transitions.become_unattached(s, EPOCH + 1)),
        (resigned, lambda s: transitions.become_unattached(s, EPOCH + 1)),
        (fetched, lambda s: transitions.become_follower(s, EPOCH, 1, listeners(1))),
        (fetched, lambda s: transitions.become_follower(s, EPOCH + 1, -1, listeners(2))),
        (fetched, lambda s: transitions.become_follower(s, EPOCH + 1, 2, ())),
    ],
)
def test_an_illegal_transition_is_a_broken_invariant(make, move) -> None:
    with pytest.raises(InvariantError):
        move(make().core.state)


@kafka_scenario("QuorumStateTest", "candidateToLeaderWithoutGrantedVote")
def test_candidate_to_leader_without_granted_vote() -> None:
    """Neither time nor an unknown replica ends it; one other of three voters does."""
    single = candidate()
    single.wait(1400)
    single.core.state.role.ballot.record(9, True)  # type: ignore[union-attr]
    single.step()
    assert state(single) == ("candidate", EPOCH + 1, -1)
    single.answer(VoteRequest, granted(EPOCH + 1), to=2)
    assert state(single) == ("leader", EPOCH + 1, 1)
    described = single.core.describe(single.now)
    assert described is not None and described.high_watermark == -1


@kafka_scenario("QuorumStateTest", "cannotFollowSelf")
def test_cannot_follow_self() -> None:
    single = unattached()
    single.ask(begin(EPOCH, 1))
    assert state(single) == ("unattached", EPOCH, -1)
    assert any("this node as the leader" in note for note in single.notes)


# -- start-up ------------------------------------------------------------------------------------
@kafka_scenario("QuorumStateTest", "initializePrimordialEpoch")
def test_initialize_primordial_epoch() -> None:
    core = RaftCore(Single().config, None, empty(), lambda: 0.5)
    core.step([], 0)
    assert (core.role, core.election) == ("unattached", ElectionState(0))


@kafka_scenario(
    "QuorumStateTest",
    "initializeVotedAndLeaderAreSame",
    "initializeVotedAndLeaderAreDifferent",
    "initializeAsVotedNoLeader",
)
@pytest.mark.parametrize(
    "before",
    [
        ElectionState(EPOCH, 2, key(2)),
        ElectionState(EPOCH, 2, key(3)),
        ElectionState(EPOCH, -1, key(3)),
        ElectionState(EPOCH, 1, key(1)),
    ],
    ids=["voted for the leader", "voted for another", "voted, no leader", "own vote"],
)
def test_initialize_voted(before: ElectionState) -> None:
    """initializeVotedAndLeaderAre..., -AsVotedNoLeader: nothing of quorum-state is forgotten."""
    single = Single(election=before)
    assert single.core.election == before
    role = {2: "follower", -1: "unattached", 1: "resigned"}[before.leader_id]
    assert single.core.role == role


@kafka_scenario(
    "QuorumStateTest",
    "initializeAsUnattached",
    "initializeAsFollower",
    "initializeVotedAndLeaderAreSame",
    "initializeVotedAndLeaderAreDifferent",
    "initializeAsVotedNoLeader",
    "initializeAsResignedCandidate",
    "initializeAsResignedLeader",
)
@pytest.mark.parametrize(
    ("before", "role", "left"),
    [
        (ElectionState(7), Unattached, 1500),
        (ElectionState(7, -1, key(3)), Unattached, 1500),
        (ElectionState(7, 9, key(9)), Unattached, 1500),
        (ElectionState(7, 2), Follower, 2000),
        (ElectionState(7, 2, key(3)), Follower, 2000),
        (ElectionState(7, -1, key(1)), Candidate, 1500),
        (ElectionState(7, 1), Resigned, 1500),
    ],
)
def test_what_a_role_begins_with(before: ElectionState, role: type[Role], left: int) -> None:
    """initializeAs...: its timer is a whole one, and no node has said anything yet."""
    single = Single(election=before)
    held = single.core.state.role
    assert type(held) is role and single.core.election == before
    deadline = held.fetch_deadline if isinstance(held, Follower) else held.election_deadline  # type: ignore[union-attr]
    assert deadline - single.now == left
    if isinstance(held, Candidate):
        assert (held.ballot.granted, held.ballot.refused) == ({1}, set())
        assert held.ballot.open == [key(2), key(3)]
    elif isinstance(held, Resigned):
        assert (held.unacknowledged, held.successors) == ({2, 3}, ())
    elif isinstance(held, Follower):
        assert not held.has_fetched


@kafka_scenario("QuorumStateTest", "initializeAsUnattachedWhenMissingEndpoints")
def test_initialize_as_unattached_when_missing_endpoints() -> None:
    single = knows_leader()
    assert state(single) == ("unattached", EPOCH, 9)
    single.answer(
        FetchRequest,
        response(
            error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            leader=LeaderAndEpoch(9, EPOCH),
            leader_endpoints=listeners(9),
        ),
    )
    assert state(single) == ("follower", EPOCH, 9)


@kafka_scenario("QuorumStateTest", "canBecomeFollowerOfNonVoter")
def test_can_become_follower_of_non_voter() -> None:
    single = unattached()
    single.ask(begin(EPOCH, 9))
    assert state(single) == ("follower", EPOCH, 9)
    assert single.core.leader_endpoints == listeners(9)


@kafka_scenario("QuorumStateTest", "cannotTransitionToFollowerWithNoLeaderEndpoint")
def test_cannot_transition_to_follower_with_no_leader_endpoint() -> None:
    single = unattached()
    for endpoints in ((), (Listener("OTHER", "h", 1),)):
        single.ask(begin(EPOCH + 1, 9, leader_endpoints=endpoints))
        assert state(single) == ("unattached", EPOCH + 1, 9)


@kafka_scenario("QuorumStateTest", "highWatermarkRetained")
def test_high_watermark_retained() -> None:
    single = committed()
    known = single.core.high_watermark
    single.ask(begin(EPOCH + 2, 2))
    assert (single.core.role, single.core.high_watermark) == ("follower", known)
    single.wait(2100)
    assert (single.core.role, single.core.high_watermark) == ("prospective", known)
    win(single)
    assert (single.core.role, single.core.high_watermark) == ("candidate", known)
    single.ask(vote(EPOCH + 9, end=99, last_epoch=EPOCH + 8))
    assert (single.core.role, single.core.high_watermark) == ("unattached", known)
    assert single.core.election.voted == key(2)
    single.wait(1500)
    win(single)
    win(single)
    assert (single.core.role, single.core.high_watermark) == ("leader", known)
    described = single.core.describe(single.now)
    assert described is not None and described.high_watermark == -1, "none of the epoch, as leader"


@kafka_scenario("QuorumStateTest", "hasRemoteLeader")
def test_has_remote_leader() -> None:
    """A node with a leader names it and its endpoints; a leader names itself, a resigned one no node."""
    expected = {
        "unattached": -1,
        "voted": -1,
        "knows leader": 9,
        "prospective": -1,
        "candidate": -1,
        "leader": 1,
        "follower": 2,
        "fetched": 2,
        "resigned": -1,
        "observer": 2,
    }
    assert {name: make().core.leader.leader_id for name, make in ROLES.items()} == expected
    assert prospective_with_leader().core.leader.leader_id == 2


@kafka_scenario("QuorumStateTest", "followerToFollowerSameEpochAndMoreEndpoints")
def test_follower_to_follower_same_epoch_and_more_endpoints() -> None:
    single = fetched()
    more = (*listeners(2), Listener("OTHER", "h", 1))
    single.ask(begin(leader_endpoints=more))
    assert single.core.leader_endpoints == more
    assert state(single) == ("follower", EPOCH, 2)


@kafka_scenario("QuorumStateTest", "unattachedCannotAddVotedStateForSelf")
@pytest.mark.parametrize("disk", [0, 1], ids=["this directory", "another directory"])
@pytest.mark.parametrize("role", ["unattached", "prospective", "unattached observer"])
def test_unattached_cannot_add_voted_state_for_self(role: str, disk: int) -> None:
    """Java stops the node. Kept, such a vote would be this node's own after a restart, and count
    twice: a quorum-state of version 0 has no directory id."""
    single = MADE[role]()
    me = single.config.node_id
    for rise in (0, 1):
        epoch = single.core.epoch + rise
        answer = single.ask(vote(epoch, me, disk=disk, **UP_TO_DATE | {"last_epoch": epoch - 1}))
        assert isinstance(answer, VoteResponse)
        assert (answer.error, answer.granted) == (ErrorCode.UNKNOWN_SERVER_ERROR, False)
        assert single.core.election == ElectionState(epoch)
        assert single.last.faulted is None
        assert any("this node's own id" in note for note in single.last.notes)


@kafka_scenario("QuorumStateTest", "leaderToFollowerSameEpoch")
def test_leader_to_follower_same_epoch_is_refused() -> None:
    single = led()
    answer = single.ask(begin(EPOCH + 1, 2))
    assert answer is not None and answer.error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert single.core.role == "leader"
