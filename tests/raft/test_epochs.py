"""Begin/EndQuorumEpoch, start-up, shutdown, a failed disk (reference 5.1, 5.4, 5.5, 5.10, 5.11)."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import LeaderAndEpoch, Listener, OffsetAndEpoch, ReplicaKey
from quorate.raft.core import RaftCore
from quorate.raft.epochs import election_backoff
from quorate.raft.inputs import (
    ConnectionLost,
    Propose,
    SendFailed,
    SendFailure,
    Shutdown,
    StorageFailed,
)
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    VoteRequest,
)
from quorate.raft.values import ElectionState, Voters
from quorate.sim.scenario.cluster import CoreCluster
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners, voter
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    ROLES,
    Single,
    begin,
    candidate,
    fetch,
    fetched,
    follower,
    leader,
    observer,
    recovered,
    resigned,
    unattached,
    vote,
)


def end(
    *preferred: ReplicaKey, epoch: int = EPOCH, leader_id: int = 2, cluster_id: str = CLUSTER_ID
) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(cluster_id, LeaderAndEpoch(leader_id, epoch), preferred)


# -- BeginQuorumEpoch ----------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "invalidVoterReplicaBeginQuorumEpochRequest")
@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (begin(cluster_id="x"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (begin(EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
        (begin(leader=-1), ErrorCode.INVALID_REQUEST),
        (begin(voter=key(2)), ErrorCode.INVALID_VOTER_KEY),
        (begin(voter=key(1, 1)), ErrorCode.INVALID_VOTER_KEY),
        (begin(voter=ReplicaKey(1)), ErrorCode.NONE),
        (begin(voter=key(1)), ErrorCode.NONE),
        (begin(cluster_id=None), ErrorCode.NONE),
    ],
)
def test_begin_is_checked(request_: BeginQuorumEpochRequest, error: ErrorCode) -> None:
    single = unattached()
    answer = single.ask(request_)
    assert isinstance(answer, BeginQuorumEpochResponse) and answer.error == error
    follows = error in (ErrorCode.NONE, ErrorCode.INVALID_VOTER_KEY)
    assert single.core.role == ("follower" if follows else "unattached")
    if error != ErrorCode.INCONSISTENT_CLUSTER_ID:
        assert answer.leader == LeaderAndEpoch(2 if follows else -1, EPOCH)


def test_the_follower_role_is_entered_before_the_receiver_is_checked() -> None:
    single = unattached()
    single.ask(begin(voter=key(2)))
    assert single.core.role == "follower"


@kafka_scenario("KafkaRaftClientTest", "handleBeginQuorumRequest")
@pytest.mark.parametrize("role", ["unattached", "voted", "prospective", "follower", "fetched"])
def test_begin_makes_a_follower(role: str) -> None:
    single = ROLES[role]()
    answer = single.ask(begin())
    assert isinstance(answer, BeginQuorumEpochResponse)
    assert (answer.error, answer.leader) == (ErrorCode.NONE, LeaderAndEpoch(2, EPOCH))
    assert single.core.role == "follower"
    assert single.core.leader_endpoints == listeners(2)


@kafka_scenario("KafkaRaftClientTest", "handleBeginQuorumResponse")
@pytest.mark.parametrize("role", list(ROLES))
def test_a_leader_of_a_higher_epoch_is_followed_by_all(role: str) -> None:
    single = ROLES[role]()
    epoch = single.core.epoch + 1
    answer = single.ask(begin(epoch, 3))
    assert isinstance(answer, BeginQuorumEpochResponse) and answer.error == ErrorCode.NONE
    assert (single.core.role, single.core.leader) == ("follower", LeaderAndEpoch(3, epoch))


def test_without_endpoints_the_voter_set_knows_them() -> None:
    single = unattached()
    single.ask(begin(leader_endpoints=()))
    assert single.core.leader_endpoints == listeners(2)


def test_a_leader_without_an_address_is_not_followed() -> None:
    single = unattached()
    single.ask(begin(EPOCH + 1, 9, leader_endpoints=()))
    assert (single.core.role, single.core.epoch) == ("unattached", EPOCH + 1)
    assert single.ask(vote(EPOCH + 1)).granted is False  # type: ignore[union-attr]
    single.ask(begin(EPOCH + 1, 9))
    assert (single.core.role, single.core.leader.leader_id) == ("follower", 9)


@kafka_scenario("KafkaRaftClientTest", "handleBeginQuorumRequestMoreEndpoints")
@kafka_scenario("KafkaRaftClientReconfigTest", "handleBeginQuorumRequestMoreEndpoints")
def test_more_endpoints_replace_fewer_do_not() -> None:
    single = follower()
    more = (*listeners(2), Listener("OTHER", "h", 1))
    answer = single.ask(begin(leader_endpoints=more))
    assert answer == BeginQuorumEpochResponse(
        ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), leader_endpoints=more
    )
    assert single.core.leader_endpoints == more
    single.ask(begin())
    assert single.core.leader_endpoints == more


@pytest.mark.parametrize("role", ["follower", "fetched", "leader", "resigned"])
def test_another_leader_in_the_same_epoch_is_refused(role: str) -> None:
    single = ROLES[role]()
    before = (single.core.role, single.core.election)
    answer = single.ask(begin(single.core.epoch, 3))
    assert answer is not None and answer.error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (single.core.role, single.core.election) == before
    assert single.last.faulted is None


def test_the_leader_reminds_voters_that_do_not_fetch() -> None:
    single = leader()
    first = [s for s in single.sends if isinstance(s.request, BeginQuorumEpochRequest)]
    assert [s.to for s in first] == [2, 3]
    expected = BeginQuorumEpochRequest(
        CLUSTER_ID, key(2), LeaderAndEpoch(1, EPOCH + 1), listeners(1)
    )
    assert first[0].request == expected
    done = BeginQuorumEpochResponse(ErrorCode.NONE, LeaderAndEpoch(1, EPOCH + 1))
    for voter_id in (2, 3):
        single.answer(BeginQuorumEpochRequest, done, to=voter_id)
    before = len(single.sends)
    single.wait(900)
    single.ask(fetch(single.core.log_end.offset, EPOCH + 1, max_wait_ms=0))
    single.wait(100)
    assert [s.to for s in single.sends[before:]] == [3]


# -- EndQuorumEpoch ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (end(cluster_id="x"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (end(epoch=EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
        (end(leader_id=-1), ErrorCode.INVALID_REQUEST),
        (end(leader_id=3), ErrorCode.UNKNOWN_SERVER_ERROR),
        (end(), ErrorCode.NONE),
    ],
)
def test_end_is_checked(request_: EndQuorumEpochRequest, error: ErrorCode) -> None:
    answer = fetched().ask(request_)
    assert isinstance(answer, EndQuorumEpochResponse) and answer.error == error


@kafka_scenario(
    "KafkaRaftClientTest",
    "handleEndQuorumRequest",
    "handleEndQuorumRequestWithLowerPriorityToBecomeLeader",
)
@pytest.mark.parametrize(
    ("preferred", "wait_ms"),
    [
        ((key(1), key(3)), 0),
        ((key(3), key(1)), 500),
        ((key(3), ReplicaKey(1)), 500),
        ((key(3), key(4), key(1)), 500),
        ((key(3),), 1000),
        ((key(1, 1),), 1000),
        ((), 0),
    ],
)
def test_a_successor_backs_off_by_its_position(
    preferred: tuple[ReplicaKey, ...], wait_ms: int
) -> None:
    single = fetched()
    single.ask(end(*preferred))
    if wait_ms:
        single.wait(wait_ms - 1)
        assert single.core.role == "follower"
        single.wait(1)
    assert single.core.role == "prospective"


@pytest.mark.parametrize(
    ("position", "total", "expected"),
    [(0, 3, 0), (1, 3, 250), (2, 3, 500), (3, 3, 1000), (1, 2, 500), (1, 11, 0), (9, 10, 256)],
)
def test_backoff_formula(position: int, total: int, expected: int) -> None:
    assert election_backoff(1000, position, total) == expected


def test_a_follower_grants_pre_votes_after_its_leader_ended_the_epoch() -> None:
    single = fetched()
    single.ask(end(key(3), key(1)))
    single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), 0))
    assert single.ask(vote(candidate=3, pre_vote=True)).granted is True  # type: ignore[union-attr]
    single.wait(500)
    assert single.core.role == "prospective"


def test_a_late_successor_waits_no_longer_than_the_fetch_timeout() -> None:
    """Seed 23011937: the last of nine waited 240 ms, and its fetch timeout is of 108."""
    cluster = CoreCluster().dynamic(*range(1, 10), fetch_timeout_ms=108).start()
    leader_id = cluster.elect()
    cluster.run(50)
    last = max(node_id for node_id in range(1, 10) if node_id != leader_id)
    cluster.ask(last, end(epoch=cluster[last].epoch, leader_id=leader_id))
    cluster.partition([last])
    cluster.run(109)
    assert cluster[last].role != "follower"


def test_an_observer_starts_no_election_after_the_end_of_an_epoch() -> None:
    single = observer()
    single.ask(end(key(4)))
    single.wait(10_000)
    assert single.core.role == "follower"


def test_a_resigned_leader_sends_successors_until_all_voters_acknowledge() -> None:
    single = leader()
    single.ask(fetch(END, LAST_EPOCH, replica=key(3), max_wait_ms=0))
    single.step(Shutdown())
    sent = [s for s in single.sends if isinstance(s.request, EndQuorumEpochRequest)]
    assert [s.to for s in sent] == [2, 3]
    assert sent[0].request == EndQuorumEpochRequest(
        CLUSTER_ID, LeaderAndEpoch(1, EPOCH + 1), (key(3), key(2))
    )
    single.answer(
        EndQuorumEpochRequest,
        EndQuorumEpochResponse(ErrorCode.NONE, LeaderAndEpoch(1, EPOCH + 1)),
        to=2,
    )
    single.step(SendFailed(sent[1].correlation, SendFailure.DISCONNECTED))
    before = len(single.sends)
    single.wait(20)
    assert [s.to for s in single.sends[before:]] == [3]


def test_a_resigned_leader_starts_the_next_epoch_by_itself() -> None:
    single = resigned()
    single.wait(1499)
    assert (single.core.role, single.core.epoch) == ("resigned", EPOCH + 1)
    single.wait(1)
    assert single.core.epoch == EPOCH + 2


# -- start-up ------------------------------------------------------------------------------------
@kafka_scenario(
    "QuorumStateTest",
    "initializeAsUnattached",
    "initializeAsFollower",
    "initializeAsResignedCandidate",
    "initializeAsResignedLeader",
)
@pytest.mark.parametrize(
    ("election", "role", "epoch"),
    [
        (None, "unattached", LAST_EPOCH),
        (ElectionState(2), "unattached", LAST_EPOCH),
        (ElectionState(7), "unattached", 7),
        (ElectionState(7, 1), "resigned", 7),
        (ElectionState(7, -1, key(1)), "candidate", 7),
        (ElectionState(7, -1, ReplicaKey(1)), "candidate", 7),
        (ElectionState(7, -1, key(1, 1)), "unattached", 7),
        (ElectionState(7, -1, key(2)), "unattached", 7),
        (ElectionState(7, 2), "follower", 7),
        (ElectionState(7, 9), "unattached", 7),
    ],
)
def test_first_role(election: ElectionState | None, role: str, epoch: int) -> None:
    core = RaftCore(unattached().config, election, recovered(), lambda: 0.5)
    core.step([], 0)
    assert (core.role, core.epoch) == (role, epoch)


@kafka_scenario("QuorumStateTest", "initializeAsOnlyVoter")
def test_an_only_voter_starts_an_election_at_once() -> None:
    log = recovered(control_records=((4, Voters((voter(1),))),))
    for election in (None, ElectionState(7, 1), ElectionState(7, -1, key(1))):
        assert Single(log=log, election=election).core.role == "leader"


@kafka_scenario("KafkaRaftClientTest", "initializeAsCandidateFromStateStore")
def test_a_candidate_of_before_asks_again() -> None:
    single = Single(election=ElectionState(EPOCH, -1, key(1)))
    assert {s.to for s in single.sends if isinstance(s.request, VoteRequest)} == {2, 3}
    assert single.core.epoch == EPOCH


def test_a_replaced_disk_that_is_named_leader_continues() -> None:
    single = unattached()
    single.ask(begin(EPOCH + 4, 1))
    assert (single.core.role, single.core.epoch) == ("unattached", EPOCH + 4)
    assert single.last.faulted is None


@pytest.mark.parametrize(
    "log",
    [
        recovered(start_offset=3, snapshots=()),
        recovered(start_offset=3, snapshots=(OffsetAndEpoch(2, 2),)),
        recovered(snapshots=(OffsetAndEpoch(9, 3),)),
    ],
)
def test_a_log_that_does_not_fit_its_snapshots_is_refused(log) -> None:
    with pytest.raises(QuorateError, match="snapshot"):
        RaftCore(unattached().config, None, log, lambda: 0.5)


def test_static_voters_are_the_bootstrap_servers_where_none_are_configured() -> None:
    voters = tuple(voter(i, known=False) for i in (1, 2, 3))
    log = recovered(snapshots=(), snapshot_control=None)
    single = Single(4, log=log, static_voters=voters)
    send = single.sent(FetchRequest)
    assert send is not None and send.to in (1, 2, 3)


# -- shutdown ------------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "followerGracefulShutdown")
@pytest.mark.parametrize("role", ["follower", "fetched", "observer"])
def test_a_replica_that_no_majority_needs_stops_at_once(role: str) -> None:
    assert ROLES[role]().step(Shutdown()).stopped


@kafka_scenario("KafkaRaftClientTest", "gracefulShutdownSingleMemberQuorum")
def test_an_only_voter_stops_at_once() -> None:
    single = Single(log=recovered(control_records=((4, Voters((voter(1),))),)))
    assert single.step(Shutdown()).stopped


@kafka_scenario("KafkaRaftClientTest", "leaderGracefulShutdownTimeout")
@pytest.mark.parametrize("role", ["unattached", "prospective", "candidate", "leader", "resigned"])
def test_other_voters_wait_for_a_leader_or_the_shutdown_timeout(role: str) -> None:
    single = ROLES[role]()
    assert not single.step(Shutdown(5000)).stopped
    assert not single.wait(4999).stopped
    assert single.wait(1).stopped
    single = ROLES[role]()
    single.step(Shutdown(5000))
    single.ask(begin(EPOCH + 5, 3))
    assert single.last.stopped


def test_a_voter_that_shuts_down_searches_no_leader() -> None:
    """The winner announces itself (BeginQuorumEpoch)."""
    single = unattached()
    asked = single.sent(FetchRequest)
    assert asked is not None
    single.step(Shutdown(5000))
    before = len(single.sends)
    single.step(SendFailed(asked.correlation, SendFailure.DISCONNECTED))
    single.wait(4000)
    assert not single.last.stopped and single.sends[before:] == []


@pytest.mark.parametrize("role", ["leader", "prospective", "candidate"])
def test_no_shutdown_waits_when_the_peers_are_unreachable(role: str) -> None:
    single = ROLES[role]()
    single.step(Shutdown(5000))
    asked = {send.to: send.correlation for send in single.sends}
    single.step(SendFailed(asked[2], SendFailure.TIMED_OUT))
    assert not single.step(SendFailed(asked[3], SendFailure.DISCONNECTED)).stopped
    single.wait(single.config.retry_backoff_ms)
    asked = {send.to: send.correlation for send in single.sends}
    assert single.step(SendFailed(asked[2], SendFailure.DISCONNECTED)).stopped


def test_a_peer_that_is_stopping_too_will_not_follow() -> None:
    single = leader()
    single.step(Shutdown(5000))
    gone = EndQuorumEpochResponse(ErrorCode.BROKER_NOT_AVAILABLE, LeaderAndEpoch(-1, -1))
    assert not single.answer(EndQuorumEpochRequest, gone, to=2).stopped
    fine = EndQuorumEpochResponse(ErrorCode.NONE, LeaderAndEpoch(1, EPOCH + 1), listeners(1))
    assert not single.answer(EndQuorumEpochRequest, fine, to=3).stopped
    assert single.step(ConnectionLost(3)).stopped


def test_a_peer_that_was_unreachable_before_may_have_returned() -> None:
    single = leader()
    single.step(ConnectionLost(2), ConnectionLost(3))
    assert not single.step(Shutdown(5000)).stopped


def test_a_voter_that_shuts_down_still_votes() -> None:
    single = leader()
    single.step(Shutdown())
    answer = single.ask(vote(EPOCH + 2, end=END + 9, last_epoch=EPOCH + 1))
    assert answer is not None and answer.granted is True  # type: ignore[union-attr]


def test_requests_after_a_shutdown_are_refused() -> None:
    single = follower()
    single.step(Shutdown())
    answer = single.ask(fetch())
    assert answer is not None and answer.error == ErrorCode.BROKER_NOT_AVAILABLE


# -- a failed disk -------------------------------------------------------------------------------
def test_a_leader_whose_disk_fails_ends_its_epoch() -> None:
    single = leader()
    single.ask(fetch(single.core.log_end.offset, EPOCH + 1, replica=key(9)))
    before = len(single.sends)
    ready = single.step(Propose(1, EPOCH + 1, 1, 1, "x"), StorageFailed("no space left"))
    assert ready.writes == () and ready.wake_at_ms is None
    assert ready.faulted == "storage failed: no space left"
    assert ready.leader == LeaderAndEpoch(-1, EPOCH + 1)
    assert {s.to for s in single.sends[before:]} == {2, 3}
    assert single.replies[1].error == ErrorCode.BROKER_NOT_AVAILABLE
    assert single.core.describe(single.now) is None


def test_a_vote_that_could_not_be_stored_is_unsaid() -> None:
    single = Single(slow=True)
    single.ask(vote())
    single.step(StorageFailed("broken"))
    assert single.replies[1].error == ErrorCode.BROKER_NOT_AVAILABLE


@pytest.mark.parametrize("role", list(ROLES))
def test_a_failed_disk_ends_every_role(role: str) -> None:
    single = ROLES[role]()
    single.step(StorageFailed("broken"))
    answer = single.ask(vote(EPOCH + 9, end=99, last_epoch=EPOCH + 8))
    assert answer is not None and answer.error == ErrorCode.BROKER_NOT_AVAILABLE
    assert single.wait(100_000).faulted is not None
    assert single.step(Shutdown()).stopped


@kafka_scenario("KafkaRaftClientDriverTest", "uncaughtException")
def test_a_violated_invariant_stops_the_replica_without_a_message() -> None:
    single = candidate()
    single.core.state.high_watermark = 99
    ready = single.step()
    assert ready.faulted is not None and "broken invariant" in ready.faulted
    assert (ready.writes, ready.sends) == ((), ())


def test_observers_are_described_for_five_minutes() -> None:
    single = leader()
    single.ask(fetch(END, LAST_EPOCH, replica=key(9), max_wait_ms=0))
    described = single.core.describe(single.now + 299_999)
    assert described is not None and [row.key for row in described.observers] == [key(9)]
    described = single.core.describe(single.now + 300_000)
    assert described is not None and described.observers == ()


def test_the_own_row_is_always_fresh() -> None:
    single = leader()
    described = single.core.describe(77_777)
    assert described is not None and described.leader_id == 1
    own = described.voters[0]
    assert (own.key, own.last_fetch_ms, own.last_caught_up_ms) == (key(1), 77_777, 77_777)
    assert [node.listeners for node in described.nodes] == [listeners(i) for i in (1, 2, 3)]
    assert observer().core.describe(0) is None
