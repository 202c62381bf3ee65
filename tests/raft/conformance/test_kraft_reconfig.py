"""KafkaRaftClientReconfigTest, KafkaRaftClientAutoJoinTest: what our own tests did not say yet."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, Listener, OffsetAndEpoch
from quorate.raft.inputs import Answered, Propose, SendFailure, UpgradeKRaftVersion
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
)
from quorate.raft.values import (
    Batch,
    ControlState,
    ElectionState,
    KRaftVersion,
    LeaderChange,
    Voter,
    Voters,
)
from quorate.sim.scenario.names import CLUSTER_ID, directory, key, listeners, voter
from raft.conformance.world import (
    LEADER,
    MOVED,
    OWN,
    SERVERS,
    SET,
    START,
    STATIC,
    acknowledge,
    add,
    committed,
    control_records,
    empty,
    in_log,
    keep_fetching,
    led,
    lose,
    remove,
    response,
    sent_since,
    state,
    static,
    update,
    versions,
    without_voters,
)
from raft.single import (
    END,
    EPOCH,
    Single,
    begin,
    candidate,
    fetch,
    follower,
    granted,
    observer,
    unattached,
    vote,
)

BOOTSTRAP = OffsetAndEpoch(0, 0)
TWO_LISTENERS = (*listeners(1), Listener("OTHER", "host1", 1))


# -- the bootstrap snapshot --------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientReconfigTest", "leaderWritesBootstrapRecords")
@kafka_scenario("BatchAccumulatorTest", "leaderChangeMessageWritten")
@kafka_guarantee(
    "KafkaRaftClientSnapshotTest",
    "listenerReceivesBootstrapSnapshot",
    "listenerReceivesBootstrapSnapshotViaFollowerFetch",
)
def test_leader_writes_bootstrap_records() -> None:
    single = candidate(log=empty())
    ready = single.answer(VoteRequest, granted(EPOCH + 1), to=2)
    change = LeaderChange(1, (1, 2, 3), (1, 2))
    assert control_records(ready) == (change, KRaftVersion(1), Voters(SET))
    assert single.core.control_at(3) == ControlState(1, SET)


@kafka_scenario("KafkaRaftClientReconfigTest", "bootstrapCheckpointIsNotReturnedOnFetch")
def test_bootstrap_checkpoint_is_not_returned_on_fetch() -> None:
    single = Single(log=empty(), election=ElectionState(EPOCH, -1, key(1)))
    single.answer(VoteRequest, granted(), to=2)
    assert single.core.snapshots == (BOOTSTRAP,)
    answer = single.ask(fetch(0, 0, epoch=EPOCH))
    assert answer is not None and answer.error == ErrorCode.NONE
    assert answer.snapshot_id is None and answer.records is not None  # type: ignore[union-attr]


@kafka_scenario("KafkaRaftClientReconfigTest", "followerDoesNotRequestLeaderBootstrapSnapshot")
def test_follower_does_not_request_leader_bootstrap_snapshot() -> None:
    """Java asks the leader again at once; here it may back off, and another is asked meanwhile."""
    single = Single(log=empty(), election=ElectionState(EPOCH, 2))
    first = single.sent(FetchRequest)
    assert first is not None and isinstance(first.request, FetchRequest)
    assert (first.request.epoch, first.request.offset, first.request.last_fetched_epoch) == (
        EPOCH,
        0,
        0,
    )
    before = len(single.sends)
    single.answer(FetchRequest, response(snapshot_id=BOOTSTRAP))
    single.wait(20)
    single.answer(FetchRequest, response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER), to=3)
    asked = [(send.to, send.request) for send in single.sends[before:]]
    assert asked == [(3, first.request), (2, first.request)]
    assert state(single) == ("follower", EPOCH, 2)


@kafka_scenario("KafkaRaftClientReconfigTest", "followerReadsKRaftBootstrapRecords")
def test_follower_reads_kraft_bootstrap_records() -> None:
    single = Single(log=empty(), election=ElectionState(EPOCH, 2))
    voters = (*SET, voter(4))
    records = (LeaderChange(2, (1, 2, 3), (2, 3)), KRaftVersion(1), Voters(voters))
    batch = Batch(0, 2, EPOCH, 100, records)
    single.answer(FetchRequest, response(batches=(batch,)))
    assert single.core.voters == ControlState(1, voters)


# -- adding, removing, updating ------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientReconfigTest", "addVoterWithApiVersionsFromIncorrectNode")
def test_add_voter_with_api_versions_from_incorrect_node() -> None:
    """An answer that does not belong to the question asked of the new voter counts for nothing."""
    single = committed()
    single.ask(add())
    send = single.sent(ApiVersionsRequest)
    assert send is not None
    answer = ApiVersionsResponse(ErrorCode.NONE, {"kraft.version": (0, 1)})
    ready = single.step(Answered(send.correlation + 1000, answer))
    assert ready.writes == () and single.asked not in single.replies
    assert versions(single).writes != ()


@kafka_scenario(
    "KafkaRaftClientReconfigTest",
    "addVoterFailsWhenLosingLeadership",
    "removeVoterFailsWhenLosingLeadership",
)
@pytest.mark.parametrize("asked", [add(), remove()], ids=["add", "remove"])
def test_voter_change_fails_when_losing_leadership(asked) -> None:
    """addVoterFailsWhenLosingLeadership, removeVoterFailsWhenLosingLeadership."""
    single = committed()
    single.ask(asked)
    number = single.asked
    single.ask(vote(EPOCH + 2, end=START + 9, last_epoch=EPOCH + 1))
    assert single.core.role == "unattached"
    assert single.replies[number].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


@kafka_scenario("KafkaRaftClientReconfigTest", "removeVoterTimedOut")
def test_remove_voter_timed_out() -> None:
    single = committed()
    single.ask(remove())
    number = single.asked
    single.wait(1999)
    assert number not in single.replies
    single.wait(1)
    assert single.replies[number].error == ErrorCode.REQUEST_TIMED_OUT
    assert single.core.voters.voters == SET[:2], "it may still commit"


def test_remove_voter_is_leader() -> None:
    single = committed()
    single.ask(remove(1))
    number = single.asked
    assert not single.core.is_voter and single.core.role == "leader"
    acknowledge(single, 2)
    assert number not in single.replies
    acknowledge(single, 3)
    assert single.replies[number] == RemoveVoterResponse(ErrorCode.NONE)
    assert single.core.role == "resigned"


@kafka_scenario(
    "KafkaRaftClientReconfigTest",
    "addVoterWithPendingAddVoter",
    "removeVoterWithPendingRemoveVoter",
    "addVoterWithPendingRemoveVoter",
    "removeVoterWithPendingAddVoter",
    "updateVoterWithPendingAddVoter",
)
@pytest.mark.parametrize("first", [add(), remove()], ids=["add", "remove"])
@pytest.mark.parametrize("second", [add(), remove(2), update()], ids=["add", "remove", "update"])
def test_voter_change_with_another_pending(first, second) -> None:
    """...WithPendingAddVoter, ...WithPendingRemoveVoter."""
    single = committed()
    single.ask(first)
    answer = single.ask(second)
    assert answer is not None and answer.error == ErrorCode.REQUEST_TIMED_OUT


@kafka_scenario("KafkaRaftClientReconfigTest", "leaderUpdatesVoter")
def test_leader_updates_voter() -> None:
    """Its listeners changed since the voter set was written: the new leader writes them."""
    single = led(listeners=TWO_LISTENERS)
    acknowledge(single, 2)
    entry = Voter(key(1), TWO_LISTENERS, 0, 1)
    assert single.core.control_at(single.core.high_watermark).voters == (entry, *SET[1:])


@kafka_scenario("KafkaRaftClientReconfigTest", "updateVoterOldEpoch", "updateVoterNewEpoch")
@pytest.mark.parametrize(
    ("epoch", "error"),
    [(EPOCH, ErrorCode.FENCED_LEADER_EPOCH), (EPOCH + 2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_update_voter_in_another_epoch(epoch: int, error: ErrorCode) -> None:
    answer = committed().ask(update(epoch=epoch))
    assert answer == UpdateVoterResponse(error, OWN, listeners(1))


@kafka_scenario("KafkaRaftClientReconfigTest", "updateVoterToNotLeader")
def test_update_voter_to_not_leader() -> None:
    answer = follower().ask(update(epoch=EPOCH))
    assert answer == UpdateVoterResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, LEADER, listeners(2))


@kafka_scenario("KafkaRaftClientReconfigTest", "addVoterToNotLeader", "removeVoterToNotLeader")
def test_voter_changes_to_not_leader() -> None:
    for role in (unattached, follower, observer):
        for asked in (add(), remove()):
            answer = role().ask(asked)
            assert answer is not None and answer.error == ErrorCode.NOT_LEADER_OR_FOLLOWER


# -- what a follower asks ------------------------------------------------------------------------
def different(**config: object) -> Single:
    """Follower of 2 in epoch 4 whose own listeners are not those of the voter set."""
    return follower(log=in_log(*SET), listeners=TWO_LISTENERS, **config)


@kafka_scenario("KafkaRaftClientReconfigTest", "followerSendsUpdateVoter")
def test_follower_sends_update_voter() -> None:
    single = different()
    keep_fetching(single)
    send = single.sent(UpdateVoterRequest)
    assert send is not None and send.to == 2
    assert send.request == UpdateVoterRequest(CLUSTER_ID, EPOCH, key(1), TWO_LISTENERS, 0, 1)
    single.answer(UpdateVoterRequest, UpdateVoterResponse(ErrorCode.NONE, LEADER))
    assert isinstance(single.sends[-1].request, FetchRequest)
    entry = Voter(key(1), TWO_LISTENERS, 0, 1)
    batch = Batch(END, END, EPOCH, 100, (Voters((entry, *SET[1:])),))
    single.answer(FetchRequest, response(batches=(batch,)))
    before = len(single.sends)
    keep_fetching(single, 4000)
    assert sent_since(single, before, UpdateVoterRequest) == []


@kafka_scenario(
    "KafkaRaftClientReconfigTest", "followerSendsUpdateVoterAfterElectionWithKraftVersion0"
)
@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION])
def test_follower_sends_update_voter_after_election_with_kraft_version_0(error: ErrorCode) -> None:
    """Once for each leader."""
    single = static(follower)
    keep_fetching(single)
    assert single.sent(UpdateVoterRequest, to=2) is not None
    single.answer(UpdateVoterRequest, UpdateVoterResponse(error, LEADER))
    before = len(single.sends)
    keep_fetching(single, 4000)
    assert sent_since(single, before, UpdateVoterRequest) == []
    single.ask(begin(EPOCH + 1, 3))
    keep_fetching(single, 4000)
    (send,) = sent_since(single, before, UpdateVoterRequest)
    assert send.to == 3 and send.request.epoch == EPOCH + 1  # type: ignore[union-attr]


@kafka_scenario(
    "KafkaRaftClientReconfigTest", "followerSendsUpdateVoterIfPendingFetchDuringTimeout"
)
def test_follower_sends_update_voter_if_pending_fetch_during_timeout() -> None:
    """Not beside a Fetch in flight, but when that one is answered."""
    single = different(fetch_timeout_ms=4000)
    keep_fetching(single, 3500)
    before = len(single.sends)
    single.wait(500)
    single.wait(500)
    assert sent_since(single, before, UpdateVoterRequest) == []
    single.answer(FetchRequest, response())
    (send,) = single.sends[before:]
    assert isinstance(send.request, UpdateVoterRequest)


@kafka_scenario("KafkaRaftClientReconfigTest", "updateVoterResponseCausesEpochChange")
def test_update_voter_response_causes_epoch_change() -> None:
    single = different()
    keep_fetching(single)
    newer = LeaderAndEpoch(3, EPOCH + 1)
    single.answer(UpdateVoterRequest, UpdateVoterResponse(ErrorCode.NONE, newer))
    assert state(single) == ("follower", EPOCH + 1, 3)
    assert single.sends[-1].to == 3 and isinstance(single.sends[-1].request, FetchRequest)


@kafka_scenario("KafkaRaftClientReconfigTest", "observerDiscoversLeaderWithUnknownVoters")
def test_observer_discovers_leader_with_unknown_voters() -> None:
    single = Single(4, log=without_voters(), bootstrap_servers=(("seed", 1234),))
    send = single.sent(FetchRequest)
    assert send is not None and (send.to, *send.address) == (-2, "seed", 1234)
    assert single.core.voters.voters == ()


# -- kraft.version -------------------------------------------------------------------------------
def upgraded() -> Single:
    """Leader that went from kraft.version 0 to 1, all committed."""
    single = static()
    for node_id in (2, 3):
        single.ask(update(node_id, listeners=listeners(node_id)))
    ready = single.step(UpgradeKRaftVersion(7, 1))
    assert control_records(ready) == (KRaftVersion(1), Voters(SET))
    acknowledge(single, 2)
    assert single.core.voters == ControlState(1, SET)
    return single


@kafka_scenario("KafkaRaftClientReconfigTest", "kRaftUpgradeVersion")
def test_kraft_upgrade_version() -> None:
    single = upgraded()
    assert single.core.high_watermark == START + 2
    single.step(Propose(1, EPOCH + 1, 1, 1, "x"))
    acknowledge(single, 3)
    assert single.core.high_watermark == START + 3


@kafka_scenario("KafkaRaftClientReconfigTest", "updateVoterAfterKRaftVersionUpgrade")
def test_update_voter_after_kraft_version_upgrade() -> None:
    single = upgraded()
    answer = single.ask(update())
    assert answer is not None and answer.error == ErrorCode.NONE
    moved = Voter(key(2), MOVED, 0, 1)
    assert control_records(single.last) == (Voters((SET[0], moved, SET[2])),)


@kafka_scenario("KafkaRaftClientReconfigTest", "leaderDoesNotBootstrapRecordsWithKraftVersion0")
def test_leader_does_not_bootstrap_records_with_kraft_version_0() -> None:
    single = candidate(log=without_voters(), static_voters=STATIC)
    ready = single.answer(VoteRequest, granted(EPOCH + 1), to=2)
    assert control_records(ready) == (LeaderChange(1, (1, 2, 3), (1, 2)),)
    assert single.core.voters == ControlState(0, STATIC)


# -- auto join -----------------------------------------------------------------------------------
def joining(node_id: int, disk: int = 0, **config: Any) -> Single:
    single = Single(node_id, directory_id=directory(node_id, disk), auto_join=True, **config)
    single.ask(begin())
    keep_fetching(single)
    return single


@kafka_scenario("KafkaRaftClientAutoJoinTest", "autoRemoveOldVoter", "autoAddNewVoter")
@pytest.mark.parametrize(
    ("node_id", "disk", "kind", "done"),
    [
        (3, 1, RemoveVoterRequest, RemoveVoterResponse(ErrorCode.NONE)),
        (4, 0, AddVoterRequest, AddVoterResponse(ErrorCode.NONE)),
    ],
    ids=["remove", "add"],
)
def test_auto_join_repeats_its_request_until_the_voter_set_changes(
    node_id: int, disk: int, kind, done
) -> None:
    """autoRemoveOldVoter, autoAddNewVoter: again after a period while the set stays."""
    single = joining(node_id, disk)
    assert len(sent_since(single, 0, kind)) == 1
    single.answer(kind, done)
    assert isinstance(single.sends[-1].request, FetchRequest)
    keep_fetching(single)
    assert len(sent_since(single, 0, kind)) == 2


@kafka_scenario("KafkaRaftClientAutoJoinTest", "autoAddNewVoter")
def test_auto_add_new_voter_whose_request_is_lost() -> None:
    """No node answers: the log is fetched, and a period later the request is sent again and succeeds."""
    single = joining(4, bootstrap_servers=SERVERS)
    first = single.sent(AddVoterRequest)
    assert first is not None and first.to == 2
    before = len(single.sends)
    single.wait(2000)
    elsewhere = single.sends[before]
    assert isinstance(elsewhere.request, FetchRequest) and elsewhere.to in (-2, -3)
    single.wait(20)
    (again,) = sent_since(single, before, AddVoterRequest)
    assert (again.to, again.request) == (2, first.request)
    sent = len(single.sends)
    single.step(Answered(first.correlation, AddVoterResponse(ErrorCode.NONE)))
    assert single.sends[sent:] == [], "too late"
    single.step(Answered(elsewhere.correlation, response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)))
    single.step(Answered(again.correlation, AddVoterResponse(ErrorCode.NONE)))
    send = single.sends[-1]
    assert send.to == 2 and isinstance(send.request, FetchRequest)
    voters = (*SET, voter(4))
    added = Batch(END, END, EPOCH, 10, (Voters(voters),))
    single.answer(FetchRequest, response(batches=(added,)))
    assert single.core.voters.voters == voters and single.core.is_voter


def test_an_observer_that_joins_fetches_from_bootstrap_servers_after_the_leaders_timeout() -> None:
    """Java keeps asking that leader: its request times out when the next one is due."""
    single = joining(4, bootstrap_servers=SERVERS)
    assert single.sent(AddVoterRequest, to=2) is not None
    for _ in range(3):
        before = len(single.sends)
        single.wait(2000)
        single.wait(20)
        (elsewhere,) = sent_since(single, before, FetchRequest)
        assert elsewhere.to in (-2, -3)
        assert len(sent_since(single, before, AddVoterRequest)) == 1
    newer = response(error=ErrorCode.FENCED_LEADER_EPOCH, leader=LeaderAndEpoch(3, EPOCH + 1))
    single.step(Answered(elsewhere.correlation, newer))
    assert state(single) == ("follower", EPOCH + 1, 3)


@pytest.mark.parametrize("after_ms", [1990, 2000])
def test_an_observer_that_joins_does_so_when_a_response_and_its_next_request_coincide(
    after_ms: int,
) -> None:
    """The leader is backed off then; the observer waited until the end of the backoff."""
    single = joining(4, bootstrap_servers=SERVERS)
    assert single.sent(AddVoterRequest, to=2) is not None
    for _ in range(3):
        before = len(single.sends)
        single.now += after_ms
        lose(single, AddVoterRequest, SendFailure.TIMED_OUT)
        (elsewhere,) = sent_since(single, before, FetchRequest)
        assert elsewhere.to in (-2, -3)
        single.step(
            Answered(elsewhere.correlation, response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
        )
        single.wait(20)
        assert len(sent_since(single, before, AddVoterRequest)) == 1


@kafka_scenario(
    "KafkaRaftClientAutoJoinTest",
    "observersDoNotAutoJoin",
    "observerDoesNotAddItselfWhenAutoJoinDisabled",
    "observerDoesNotAutoJoinWithKRaftVersion0",
)
@pytest.mark.parametrize(
    ("node_id", "disk", "config"),
    [
        (4, 0, {"can_be_voter": False}),
        (4, 0, {"auto_join": False}),
        (4, 0, {"log": without_voters(), "static_voters": STATIC}),
        (3, 1, {"can_be_voter": False}),
        (3, 1, {"auto_join": False}),
    ],
)
def test_an_observer_without_auto_join_only_fetches(
    node_id: int, disk: int, config: dict[str, object]
) -> None:
    """observersDoNotAutoJoin, observerDoesNotAddItselfWhenAutoJoinDisabled, -WithKRaftVersion0."""
    fields: dict[str, Any] = {"directory_id": directory(node_id, disk), "auto_join": True}
    single = Single(node_id, **(fields | config))
    single.ask(begin())
    before = len(single.sends)
    keep_fetching(single, 8000)
    asked = [(send.to, type(send.request)) for send in single.sends[before:]]
    assert asked == [(2, FetchRequest)] * 16


@kafka_scenario("KafkaRaftClientAutoJoinTest", "observerRemovesOldVoterAndAutoJoins")
def test_observer_removes_old_voter_and_auto_joins() -> None:
    single = joining(3, disk=1)
    single.answer(RemoveVoterRequest, RemoveVoterResponse(ErrorCode.NONE))
    removed = Batch(END, END, EPOCH, 10, (Voters(SET[:2]),))
    single.answer(FetchRequest, response(batches=(removed,)))
    keep_fetching(single)
    send = single.sent(AddVoterRequest)
    assert send is not None and isinstance(send.request, AddVoterRequest)
    assert (send.request.voter, send.request.ack_when_committed) == (key(3, 1), False)
    single.answer(AddVoterRequest, AddVoterResponse(ErrorCode.NONE))
    mine = Voter(key(3, 1), listeners(3), 0, 1)
    added = Batch(END + 1, END + 1, EPOCH, 10, (Voters((*SET[:2], mine)),))
    single.answer(FetchRequest, response(batches=(added,)))
    assert single.core.is_voter
    before = len(single.sends)
    keep_fetching(single, 4000)
    assert all(isinstance(s.request, FetchRequest) for s in single.sends[before:])


@kafka_scenario("KafkaRaftClientReconfigTest", "followerSendsUpdateVoterWhenDifferent")
def test_follower_sends_update_voter_when_different() -> None:
    """It sends none when the entry is right, and schedules no timer that is due at once."""
    single = follower(log=in_log(*SET))
    keep_fetching(single, 8000)
    assert single.sent(UpdateVoterRequest) is None
    wake = single.last.wake_at_ms
    assert wake is not None and wake > single.now + 100
