"""KafkaRaftClientTest: fetching, finding the leader again, commits, describe, shutdown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from conformance.marker import kafka_scenario
from narrow import as_any
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, ReplicaKey
from quorate.node.raft_rpc_inbound import request_from_wire
from quorate.node.raft_rpc_outbound import request_to_wire
from quorate.raft.describe import QuorumDescription, ReplicaDescription
from quorate.raft.inputs import Propose, Resign, Shutdown
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    ReadRange,
    Request,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Append
from quorate.raft.values import ElectionState
from quorate.sim.scenario.names import key
from raft.conformance.world import (
    LEADER,
    OWN,
    SERVERS,
    SET,
    START,
    STATIC,
    acknowledge,
    alone,
    batch,
    committed,
    empty,
    end,
    follower_of_two,
    in_log,
    led,
    observer,
    response,
    sent_since,
    snapshot_request,
    state,
    static,
    without_voters,
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
    fetched,
    follower,
    granted,
    leader,
    unattached,
    vote,
)

FENCED = response(error=ErrorCode.FENCED_LEADER_EPOCH)
BOOTSTRAP = (-2, -3)


# -- an observer finds the leader -------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "initializeObserverNoPreviousState")
def test_initialize_observer_no_previous_state() -> None:
    single = Single(4, log=empty(), election=ElectionState())
    send = single.sent(FetchRequest)
    assert send is not None and send.to in (1, 2, 3)
    assert isinstance(send.request, FetchRequest)
    assert (send.request.epoch, send.request.offset, send.request.last_fetched_epoch) == (0, 0, 0)
    single.answer(FetchRequest, FENCED)
    assert state(single) == ("follower", EPOCH, 2)


@kafka_scenario("KafkaRaftClientTest", "observerQuorumDiscoveryFailure")
def test_observer_quorum_discovery_failure() -> None:
    single = observer()
    failed = FetchResponse(ErrorCode.UNKNOWN_SERVER_ERROR, LeaderAndEpoch(-1, -1))
    send = single.sent(FetchRequest)
    assert send is not None and send.to in BOOTSTRAP
    single.answer(FetchRequest, failed)
    single.wait(20)
    again = single.sent(FetchRequest)
    assert again is not None and again is not send and again.to in BOOTSTRAP
    single.answer(FetchRequest, FENCED)
    assert state(single) == ("follower", EPOCH, 2)


@kafka_scenario("KafkaRaftClientTest", "observerUnattachedSendFetchToBootstrapServers")
def test_observer_unattached_send_fetch_to_bootstrap_servers() -> None:
    single = observer()
    send = single.sent(FetchRequest)
    assert send is not None and send.to in BOOTSTRAP and send.address in SERVERS
    assert state(single) == ("unattached", EPOCH, -1)
    single.answer(FetchRequest, FENCED)
    assert state(single) == ("follower", EPOCH, 2)


@kafka_scenario("KafkaRaftClientTest", "observerFollowerSendFetchToBestNode")
def test_observer_follower_send_fetch_to_best_node() -> None:
    single = observer(election=ElectionState(EPOCH, 2))
    asked = []
    for _ in range(3):
        send = single.sent(FetchRequest)
        assert send is not None
        asked.append(send.to)
        single.wait(2000)
    assert asked[0] == asked[2] == 2
    assert asked[1] in BOOTSTRAP


def discovered() -> Single:
    """An observer that learned of leader 2 from a bootstrap server and fetches from it."""
    single = observer()
    single.answer(FetchRequest, FENCED)
    send = single.sent(FetchRequest)
    assert send is not None and send.to == 2
    return single


@kafka_scenario("KafkaRaftClientTest", "observerHandleRetryFetchToBootstrapServer")
def test_observer_handle_retry_fetch_to_bootstrap_server() -> None:
    single = discovered()
    late = single.sent(FetchRequest)
    single.wait(2000)
    send = single.sent(FetchRequest)
    assert send is not None and late is not None and send.to in BOOTSTRAP
    same = response(batches=(batch(END),))
    single.answer(FetchRequest, same, to=2)
    assert single.core.log_end.offset == END, "the answer came after its time"
    single.answer(FetchRequest, same, to=send.to)
    assert single.core.log_end.offset == END + 1, "that server is the leader too"
    assert state(single) == ("follower", EPOCH, 2)


@kafka_scenario("KafkaRaftClientTest", "observerHandleRetryFetchToLeader")
def test_observer_handle_retry_fetch_to_leader() -> None:
    single = discovered()
    single.wait(2000)
    late = single.sent(FetchRequest)
    assert late is not None and late.to in BOOTSTRAP
    before = len(single.sends)
    single.wait(1999)
    assert single.sends[before:] == [], "one at a time"
    single.wait(1)
    send = single.sent(FetchRequest)
    assert send is not None and send.to == 2
    single.answer(FetchRequest, FENCED, to=late.to)
    assert state(single) == ("follower", EPOCH, 2)


def starve(single: Single, how: str) -> None:
    if how == "timeout":
        single.wait(2000)
    else:
        gone = FetchResponse(ErrorCode.BROKER_NOT_AVAILABLE, LeaderAndEpoch(-1, EPOCH))
        single.answer(FetchRequest, gone)


@kafka_scenario(
    "KafkaRaftClientTest",
    "followerLeaderRediscoveryAfterBrokerNotAvailableError",
    "followerLeaderRediscoveryAfterRequestTimeout",
    "observerLeaderRediscoveryAfterBrokerNotAvailableError",
    "observerLeaderRediscoveryAfterRequestTimeout",
)
@pytest.mark.parametrize("who", ["follower", "observer"])
@pytest.mark.parametrize("how", ["timeout", "broker not available"])
def test_leader_rediscovery(who: str, how: str) -> None:
    """Four scenarios of Kafka: follower and observer, after the error and after silence."""
    if who == "observer":
        single = discovered()
    else:
        single = follower(bootstrap_servers=SERVERS, fetch_timeout_ms=10_000)
    starve(single, how)
    send = single.sent(FetchRequest)
    assert send is not None and send.to in BOOTSTRAP
    assert state(single) == ("follower", EPOCH, 2)
    newer = response(error=ErrorCode.FENCED_LEADER_EPOCH, leader=LeaderAndEpoch(3, EPOCH + 1))
    single.answer(FetchRequest, newer, to=send.to)
    assert state(single) == ("follower", EPOCH + 1, 3)


# -- the leader answers a Fetch ------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "leaderStateUpdateWithDifferentFetchRequestVersions")
@pytest.mark.parametrize("version", range(12, 19))
def test_leader_state_update_with_different_fetch_request_versions(version: int) -> None:
    single = static()
    single.step(Propose(0, EPOCH + 1, 1, 1, "x"))
    assert single.core.high_watermark == START
    asked = fetch(START + 1, EPOCH + 1, max_wait_ms=0)
    request = request_from_wire(request_to_wire(asked, version), version)
    assert isinstance(request, FetchRequest)
    single.ask(request)
    assert single.core.high_watermark == START + 1


@kafka_scenario(
    "KafkaRaftClientTest",
    "fetchRequestClusterIdValidation",
    "voteRequestClusterIdValidation",
    "beginQuorumEpochRequestClusterIdValidation",
    "endQuorumEpochRequestClusterIdValidation",
)
@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchSnapshotRequestClusterIdValidation")
@kafka_scenario("KafkaRaftClientPreVoteTest", "preVoteRequestClusterIdValidation")
@pytest.mark.parametrize(
    ("cluster_id", "error"),
    [
        ("cluster", ErrorCode.NONE),
        (None, ErrorCode.NONE),
        ("", ErrorCode.INCONSISTENT_CLUSTER_ID),
        ("invalid-uuid", ErrorCode.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_cluster_id_validation(cluster_id: str | None, error: ErrorCode) -> None:
    """Of Vote, pre-vote, Begin- and EndQuorumEpoch, Fetch and FetchSnapshot."""
    requests: list[tuple[Callable[[], Single], Request, ErrorCode]] = [
        (unattached, vote(), ErrorCode.NONE),
        (unattached, vote(pre_vote=True), ErrorCode.NONE),
        (unattached, begin(), ErrorCode.NONE),
        (follower, end(key(1)), ErrorCode.NONE),
        (leader, fetch(END, LAST_EPOCH), ErrorCode.NONE),
        (leader, snapshot_request(), ErrorCode.SNAPSHOT_NOT_FOUND),
    ]
    for make, request, otherwise in requests:
        answer = make().ask(replace(as_any(request), cluster_id=cluster_id))
        assert answer is not None
        assert answer.error == (error or otherwise), request


# -- the follower --------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "fetchResponseIgnoredAfterBecomingProspective")
def test_fetch_response_ignored_after_becoming_prospective() -> None:
    single = fetched()
    single.wait(2100)
    assert single.core.role == "prospective"
    ready = single.answer(FetchRequest, response(batches=(batch(END),), high_watermark=END + 1))
    assert ready.writes == () and ready.high_watermark is None
    assert single.core.role == "prospective"


@kafka_scenario("KafkaRaftClientTest", "observerReplication")
def test_observer_replication() -> None:
    single = discovered()
    ready = single.answer(
        FetchRequest, response(batches=(batch(END, count=2),), high_watermark=END + 1)
    )
    assert ready.writes == (Append((batch(END, count=2),)),)
    assert (single.core.log_end, ready.high_watermark) == ((END + 2, EPOCH), END + 1)
    send = single.sent(FetchRequest)
    assert send is not None and isinstance(send.request, FetchRequest)
    assert (send.to, send.request.offset, send.request.last_fetched_epoch) == (2, END + 2, EPOCH)


@kafka_scenario("KafkaRaftClientTest", "emptyRecordSetInFetchResponse")
def test_empty_record_set_in_fetch_response() -> None:
    single = Single(log=empty(), election=ElectionState(EPOCH, 2))
    reported = []
    for batches, high_watermark in [((), -1), ((), 0), ((batch(0, count=2),), 0), ((), 2)]:
        ready = single.answer(
            FetchRequest, response(batches=batches, high_watermark=high_watermark)
        )
        reported.append((single.core.log_end.offset, ready.high_watermark))
    assert reported == [(0, None), (0, 0), (2, None), (2, 2)]


# -- commits -------------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "listenerCommitCallbackAfterLeaderWrite")
def test_listener_commit_callback_after_leader_write() -> None:
    single = led()
    assert single.core.high_watermark == -1
    acknowledge(single, 2)
    assert single.core.high_watermark == START
    single.step(Propose(0, EPOCH + 1, 3, 30, "abc"))
    answer = single.ask(fetch(START, EPOCH + 1))
    assert isinstance(answer, FetchResponse)
    assert answer.records == ReadRange(START, START + 3, 1 << 20)
    assert single.core.high_watermark == START
    single.ask(fetch(START + 3, EPOCH + 1))
    assert single.last.high_watermark == single.core.high_watermark == START + 3


@kafka_scenario("KafkaRaftClientTest", "leaderAppendSingleMemberQuorum")
def test_leader_append_single_member_quorum() -> None:
    single = alone()
    start = single.core.log_end.offset
    assert single.core.high_watermark == start
    for i in range(3):
        single.step(Propose(i, single.core.epoch, 2, 20, "x"))
        assert single.core.high_watermark == start + 2 * (i + 1)
    asked = fetch(start, single.core.epoch, replica=key(9), epoch=single.core.epoch)
    answer = single.ask(asked)
    assert isinstance(answer, FetchResponse)
    assert answer.records == ReadRange(start, start + 6, 1 << 20)


@kafka_scenario(
    "KafkaRaftClientTest",
    "handleLeaderChangeFiresAfterListenerReachesEpochStartOffsetOnEmptyLog",
    "handleLeaderChangeFiresAfterListenerReachesEpochStartOffset",
)
@pytest.mark.parametrize("log", [empty, in_log], ids=["empty log", "log"])
def test_handle_leader_change_fires_after_listener_reaches_epoch_start_offset(log) -> None:
    """The core reports the leadership with the epoch's first offset: lead when that is applied."""
    single = candidate(log=log(*SET) if log is in_log else log())
    ready = single.answer(VoteRequest, granted(EPOCH + 1), to=2)
    start = log(*SET).end_offset if log is in_log else 0
    assert (ready.leader, ready.epoch_start_offset) == (OWN, start)
    single.ask(fetch(0, 0, max_wait_ms=0))
    assert single.core.high_watermark == -1
    acknowledge(single, 2)
    assert single.core.high_watermark == single.core.log_end.offset > start


@kafka_scenario(
    "KafkaRaftClientTest", "handleCommitCallbackFiresAfterFollowerHighWatermarkAdvances"
)
def test_handle_commit_callback_fires_after_follower_high_watermark_advances() -> None:
    single = Single(log=empty(), election=ElectionState(EPOCH, 2))
    first = response(batches=(batch(0, 3, 3),), high_watermark=0)
    assert single.answer(FetchRequest, first).high_watermark == 0
    second = response(batches=(batch(3, 3, 3),), high_watermark=3)
    assert single.answer(FetchRequest, second).high_watermark == 3


@kafka_scenario("KafkaRaftClientTest", "handleCommitCallbackFiresInVotedState")
def test_handle_commit_callback_fires_in_voted_state() -> None:
    """The high watermark stays known in an election: a state machine may catch up to it."""
    single = committed()
    single.ask(vote(EPOCH + 2, end=START, last_epoch=EPOCH + 1))
    assert single.core.election.voted == key(2)
    assert single.core.high_watermark == START


@kafka_scenario("KafkaRaftClientTest", "handleCommitCallbackFiresInCandidateState")
def test_handle_commit_callback_fires_in_candidate_state() -> None:
    single = committed()
    single.step(Resign(EPOCH + 1))
    single.wait(1500)
    assert single.core.role == "prospective"
    single.answer(VoteRequest, granted(EPOCH + 2), to=2)
    assert (single.core.role, single.core.high_watermark) == ("candidate", START)


# -- the leader that a state machine learns at the start -------------------------------------
@kafka_scenario(
    "KafkaRaftClientTest",
    "handleLeaderChangeFiresAfterUnattachedRegistration",
    "handleLeaderChangeFiresAfterFollowerRegistration",
    "handleLeaderChangeFiresAfterResignRegistration",
)
@pytest.mark.parametrize(
    ("election", "reported"),
    [
        (ElectionState(EPOCH), LeaderAndEpoch(-1, EPOCH)),
        (ElectionState(EPOCH, 2), LEADER),
        (ElectionState(EPOCH, 1), LeaderAndEpoch(-1, EPOCH)),
    ],
    ids=["unattached", "follower", "resigned"],
)
def test_handle_leader_change_fires_after_registration(
    election: ElectionState, reported: LeaderAndEpoch
) -> None:
    """A resigned leader is reported as no leader."""
    single = Single(election=election)
    assert single.last.leader == single.core.leader == reported


# -- DescribeQuorum ------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "describeQuorumNonLeader")
@pytest.mark.parametrize("role", [name for name in ROLES if name != "leader"])
def test_describe_quorum_non_leader(role: str) -> None:
    single = ROLES[role]()
    assert single.core.describe(single.now) is None


Times = tuple[int, int, int]
"""Log end offset, last fetch, last caught up."""


def rows(replicas: tuple[ReplicaDescription, ...]) -> dict[ReplicaKey, Times]:
    return {r.key: (r.log_end_offset, r.last_fetch_ms, r.last_caught_up_ms) for r in replicas}


@kafka_scenario(
    "KafkaRaftClientTest", "describeQuorumWithOnlyStaticVoters", "describeQuorumWithFollowers"
)
@pytest.mark.parametrize("known", [True, False], ids=["directories", "static"])
def test_describe_quorum_with_followers(known: bool) -> None:
    """A voter whose directory id the set does not hold is described without, fetching with one."""
    single = led() if known else leader(log=without_voters(), static_voters=STATIC)
    one, two, three = (key(i) if known else ReplicaKey(i) for i in (1, 2, 3))
    assert rows(describe(single).voters) == {
        one: (START, single.now, single.now),
        two: (-1, -1, -1),
        three: (-1, -1, -1),
    }
    assert (describe(single).high_watermark, describe(single).observers) == (-1, ())
    single.now += 100
    acknowledge(single, 2)
    first = single.now
    single.step(Propose(0, EPOCH + 1, 2, 20, "x"))
    single.now += 100
    assert rows(describe(single).voters) == {
        one: (START + 2, single.now, single.now),
        two: (START, first, first),
        three: (-1, -1, -1),
    }
    assert describe(single).high_watermark == START
    single.ask(fetch(START, EPOCH + 1, replica=key(3)))
    behind = single.now
    assert rows(describe(single).voters)[three] == (START, behind, -1)
    single.now += 100
    acknowledge(single, 3)
    described = describe(single)
    assert (described.leader_id, described.epoch) == (1, EPOCH + 1)
    assert described.high_watermark == START + 2
    assert rows(described.voters)[three] == (START + 2, single.now, single.now)
    assert rows(described.voters)[two] == (START, first, first)
    single.wait(3000)
    assert single.core.describe(single.now) is None, "check quorum"


@kafka_scenario("KafkaRaftClientTest", "describeQuorumWithObserver")
def test_describe_quorum_with_observer() -> None:
    single = led()
    acknowledge(single, 2)
    single.now += 100
    single.ask(fetch(0, 0, replica=key(4), max_wait_ms=0))
    assert rows(describe(single).observers) == {key(4): (0, single.now, -1)}
    single.now += 100
    acknowledge(single, 4)
    caught_up = single.now
    assert rows(describe(single).observers) == {key(4): (START, caught_up, caught_up)}
    single.now += 100
    single.step(Propose(0, EPOCH + 1, 2, 20, "x"))
    assert rows(describe(single).observers) == {key(4): (START, caught_up, caught_up)}
    while single.now < caught_up + 299_999:
        single.now = min(single.now + 2999, caught_up + 299_999)
        acknowledge(single, 2)
    assert list(rows(describe(single).observers)) == [key(4)]
    single.now += 1
    assert describe(single).observers == ()
    single.ask(fetch(START, EPOCH + 1, replica=ReplicaKey(-1), max_wait_ms=0))
    assert describe(single).observers == ()


def describe(single: Single) -> QuorumDescription:
    described = single.core.describe(single.now)
    assert described is not None
    return described


@kafka_scenario("KafkaRaftClientTest", "describeQuorumNonMonotonicFollowerFetch")
def test_describe_quorum_non_monotonic_follower_fetch() -> None:
    single = led()
    single.step(Propose(0, EPOCH + 1, 2, 20, "x"))
    acknowledge(single, 2)
    assert single.core.high_watermark == START + 2
    single.now += 100
    single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
    row = describe(single).voters[1]
    assert (row.log_end_offset, row.last_fetch_ms) == (START, single.now)
    assert row.last_caught_up_ms == single.now - 100
    assert single.core.high_watermark == describe(single).high_watermark == START + 2


# -- shutdown ------------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "leaderGracefulShutdown")
def test_leader_graceful_shutdown() -> None:
    single = leader()
    assert not single.step(Shutdown(5000)).stopped
    assert state(single) == ("resigned", EPOCH + 1, 1)
    for voter_id in (2, 3):
        done = EndQuorumEpochResponse(ErrorCode.NONE, OWN)
        single.answer(EndQuorumEpochRequest, done, to=voter_id)
    before = len(single.sends)
    single.wait(100)
    assert sent_since(single, before, EndQuorumEpochRequest) == []
    single.ask(vote(EPOCH + 2, end=END + 9, last_epoch=EPOCH + 1))
    assert not single.last.stopped
    single.ask(begin(EPOCH + 2, 2))
    assert single.last.stopped


# -- KafkaRaftClientClusterAuthTest --------------------------------------------------------------
UNAUTHORIZED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@kafka_scenario(
    "KafkaRaftClientClusterAuthTest",
    "clusterAuthorizationFailedInFetch",
    "clusterAuthorizationFailedInVote",
)
@pytest.mark.parametrize(
    ("make", "kind", "answer"),
    [
        (follower_of_two, FetchRequest, FetchResponse(UNAUTHORIZED, LEADER)),
        (follower_of_two, FetchRequest, FetchResponse(UNAUTHORIZED)),
        (candidate, VoteRequest, VoteResponse(UNAUTHORIZED, LeaderAndEpoch(-1, EPOCH + 1))),
        (candidate, VoteRequest, VoteResponse(UNAUTHORIZED)),
    ],
    ids=["fetch", "fetch (top level)", "vote", "vote (top level)"],
)
def test_cluster_authorization_failed(make, kind, answer) -> None:
    """Java stops the node; here a peer's bytes do not: a note, a backoff, and a new request."""
    single = make()
    before = state(single)
    asked = single.sent(kind)
    assert asked is not None
    sent = len(single.sends)
    ready = single.answer(kind, answer)
    assert ready.faulted is None and state(single) == before
    assert any(UNAUTHORIZED.name in note for note in single.notes)
    single.wait(19)
    assert [s for s in sent_since(single, sent, kind) if s.to == asked.to] == []
    single.wait(1)
    assert len([s for s in sent_since(single, sent, kind) if s.to == asked.to]) == 1


@kafka_scenario("KafkaRaftClientClusterAuthTest", "clusterAuthorizationFailedInBeginQuorumEpoch")
def test_cluster_authorization_failed_in_begin_quorum_epoch() -> None:
    single = leader()
    ready = single.answer(BeginQuorumEpochRequest, BeginQuorumEpochResponse(UNAUTHORIZED))
    assert ready.faulted is None and single.core.role == "leader"
    assert any(UNAUTHORIZED.name in note for note in single.notes)


@kafka_scenario("KafkaRaftClientClusterAuthTest", "clusterAuthorizationFailedInEndQuorumEpoch")
def test_cluster_authorization_failed_in_end_quorum_epoch() -> None:
    single = leader()
    single.step(Resign(EPOCH + 1))
    ready = single.answer(EndQuorumEpochRequest, EndQuorumEpochResponse(UNAUTHORIZED))
    assert ready.faulted is None and single.core.role == "resigned"
    assert any(UNAUTHORIZED.name in note for note in single.notes)


@kafka_scenario("KafkaRaftClientTest", "observerGracefulShutdown")
def test_observer_graceful_shutdown() -> None:
    """It stops at once, although it knows no leader."""
    single = observer()
    assert state(single) == ("unattached", EPOCH, -1)
    assert single.step(Shutdown(5000)).stopped
