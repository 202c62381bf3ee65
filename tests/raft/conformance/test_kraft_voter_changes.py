"""KafkaRaftClientReconfigTest: the leader's side of a voter change, step by step to its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, ReplicaKey
from quorate.raft.inputs import Resign, UpgradeKRaftVersion
from quorate.raft.messages import (
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterResponse,
    VoteRequest,
)
from quorate.raft.ready import Refused
from quorate.raft.values import Voter
from quorate.sim.scenario.names import key, listeners
from raft.conformance.world import (
    MOVED,
    OWN,
    SET,
    START,
    acknowledge,
    add,
    committed,
    control_records,
    led,
    remove,
    sent_since,
    state,
    static,
    update,
    versions,
)
from raft.single import EPOCH, Single, follower, granted, unattached

NEW = Voter(key(4), listeners(4), 0, 1)
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT
DONE = UpdateVoterResponse(ErrorCode.NONE, OWN, listeners(1))


def counts(single: Single) -> tuple[int, int, bool]:
    """(number-of-voters, number-of-observers, uncommitted-voter-change)"""
    described = single.core.describe(single.now)
    assert described is not None
    return len(described.voters), len(described.observers), single.core.changes_voters


# -- adding --------------------------------------------------------------------------------------
@kafka_scenario(
    "KafkaRaftClientReconfigTest", "addVoter", "addVoterCompletesEarlyWithAckWhenCommittedFalse"
)
@pytest.mark.parametrize("wait_for_commit", [True, False], ids=["at commit", "early"])
def test_add_voter_from_the_question_to_the_commit(wait_for_commit: bool) -> None:
    """addVoter, addVoterCompletesEarlyWithAckWhenCommittedFalse: answered once, then or then."""
    single = committed()
    assert counts(single) == (3, 1, False)
    single.ask(add(ack_when_committed=wait_for_commit))
    number = single.asked
    asked = single.sent(ApiVersionsRequest)
    assert asked is not None and (asked.to, asked.address) == (4, listeners(4)[0].address)
    assert counts(single) == (3, 1, True) and not single.last.writes
    versions(single)
    assert single.core.voters.voters == (*SET, NEW)
    assert counts(single) == (4, 0, True)
    early = single.replies.pop(number, None)
    assert early == (None if wait_for_commit else AddVoterResponse(ErrorCode.NONE))
    acknowledge(single, 2)
    assert counts(single) == (4, 0, True) and number not in single.replies
    acknowledge(single, 3)
    assert counts(single) == (4, 0, False)
    late = single.replies.get(number)
    assert late == (AddVoterResponse(ErrorCode.NONE) if wait_for_commit else None)


@kafka_scenario("KafkaRaftClientReconfigTest", "addVoterTimeout")
def test_add_voter_timeout() -> None:
    """The answer is given up, not the voter: its record may still be committed."""
    single = committed()
    single.ask(add())
    number = single.asked
    versions(single)
    single.wait(1999)
    assert number not in single.replies
    single.wait(1)
    assert single.replies[number] == AddVoterResponse(TIMED_OUT, "The request timed out.")
    assert single.core.voters.voters == (*SET, NEW)
    assert counts(single) == (4, 0, False)
    again = single.ask(remove(4))
    assert again is not None and again.error == TIMED_OUT, "uncommitted as it is"


@kafka_scenario("KafkaRaftClientReconfigTest", "addVoterWithApiVersionsFromIncorrectNode")
def test_add_voter_when_the_new_voter_answers_with_an_error() -> None:
    """addVoterWithApiVersionsFromIncorrectNode, as Kafka has it: INVALID_REQUEST comes back."""
    single = committed()
    single.ask(add())
    number = single.asked
    ready = single.answer(ApiVersionsRequest, ApiVersionsResponse(ErrorCode.INVALID_REQUEST))
    assert single.replies[number].error == TIMED_OUT and not ready.writes
    assert single.core.voters.voters == SET and counts(single) == (3, 1, False)


@kafka_scenario(
    "KafkaRaftClientReconfigTest",
    "addVoterInvalidClusterId",
    "removeVoterInvalidClusterId",
    "updateVoterInvalidClusterId",
)
@pytest.mark.parametrize("cluster_id", ["", "invalid-uuid"])
@pytest.mark.parametrize(
    "asked", [add(), remove(2), update(listeners=())], ids=["add", "remove", "update"]
)
def test_a_voter_change_for_another_cluster(asked, cluster_id: str) -> None:
    """addVoter-, removeVoter- and updateVoterInvalidClusterId: an empty id is another one too."""
    single = committed()
    answer = single.ask(replace(asked, cluster_id=cluster_id))
    assert answer is not None and answer.error == ErrorCode.INCONSISTENT_CLUSTER_ID
    if isinstance(answer, UpdateVoterResponse):
        assert (answer.leader, answer.leader_endpoints) == (OWN, listeners(1))
    assert single.core.voters.voters == SET and not single.core.changes_voters


# -- removing ------------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientReconfigTest", "removeVoter")
def test_remove_voter_from_the_append_to_the_commit() -> None:
    """The removed voter has an observer's row until it stops fetching."""
    single = committed()
    acknowledge(single, 3)
    single.ask(remove())
    number = single.asked
    assert single.core.voters.voters == SET[:2]
    assert counts(single) == (2, 2, True) and number not in single.replies
    acknowledge(single, 3)
    assert counts(single) == (2, 2, True), "it counts no more"
    acknowledge(single, 2)
    assert single.replies[number] == RemoveVoterResponse(ErrorCode.NONE)
    assert counts(single) == (2, 2, False)


@kafka_scenario("KafkaRaftClientReconfigTest", "removeVoterIsLeader")
def test_a_leader_that_removed_itself_ends_its_epoch_and_is_an_observer() -> None:
    """removeVoterIsLeader"""
    single = committed()
    single.ask(remove(1))
    number = single.asked
    assert not single.core.is_voter and counts(single) == (2, 2, True)
    acknowledge(single, 2)
    assert state(single) == ("leader", EPOCH + 1, 1) and number not in single.replies
    before = len(single.sends)
    acknowledge(single, 3)
    assert single.replies[number] == RemoveVoterResponse(ErrorCode.NONE)
    assert state(single) == ("resigned", EPOCH + 1, 1)
    ended = sent_since(single, before, EndQuorumEpochRequest)
    assert {send.to for send in ended} == {2, 3}
    assert {send.address for send in ended} == {listeners(i)[0].address for i in (2, 3)}
    single.step(Resign(EPOCH + 1))
    assert single.last.faulted is None and state(single) == ("resigned", EPOCH + 1, 1)
    assert single.core.describe(single.now) is None and not single.core.changes_voters
    single.wait(2000)
    assert state(single) == ("unattached", EPOCH + 2, -1)
    single.wait(100_000)
    assert state(single) == ("unattached", EPOCH + 2, -1), "an observer never runs"
    assert sent_since(single, before, VoteRequest) == []


@pytest.mark.parametrize("missing", [ReplicaKey(3), ReplicaKey(-1, key(3).directory_id)])
def test_remove_voter_without_a_whole_key(missing: ReplicaKey) -> None:
    single = committed()
    answer = single.ask(RemoveVoterRequest("cluster", missing))
    assert answer is not None and answer.error == ErrorCode.INVALID_REQUEST
    assert single.core.voters.voters == SET


# -- leadership ends -----------------------------------------------------------------------------
def asking() -> tuple[Single, int]:
    single = committed()
    single.ask(add())
    return single, single.asked


def adding() -> tuple[Single, int]:
    single, number = asking()
    versions(single)
    return single, number


def removing() -> tuple[Single, int]:
    single = committed()
    single.ask(remove())
    return single, single.asked


@kafka_scenario(
    "KafkaRaftClientReconfigTest",
    "addVoterFailsWhenLosingLeadership",
    "removeVoterFailsWhenLosingLeadership",
)
@pytest.mark.parametrize(
    ("begin", "voters"),
    [(asking, SET), (adding, (*SET, NEW)), (removing, SET[:2])],
    ids=["asking", "adding", "removing"],
)
def test_a_voter_change_ends_when_its_leader_resigns(begin, voters: tuple[Voter, ...]) -> None:
    """addVoter-, removeVoterFailsWhenLosingLeadership: the set in the log goes on ruling."""
    single, number = begin()
    single.step(Resign(EPOCH + 1))
    assert single.replies[number].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert single.core.voters.voters == voters
    assert single.core.describe(single.now) is None and not single.core.changes_voters


@kafka_scenario("KafkaRaftClientReconfigTest", "leaderMetricsAreReset")
def test_a_reelected_leader_starts_with_fresh_state() -> None:
    """leaderMetricsAreReset"""
    single, number = asking()
    assert counts(single) == (3, 1, True)
    single.step(Resign(EPOCH + 1))
    assert single.replies[number].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    single.answer(EndQuorumEpochRequest, EndQuorumEpochResponse(ErrorCode.NONE, OWN), to=2)
    single.wait(2000)
    assert state(single) == ("prospective", EPOCH + 2, -1)
    single.answer(VoteRequest, granted(EPOCH + 2), to=2)
    single.answer(VoteRequest, granted(EPOCH + 3), to=2)
    assert state(single) == ("leader", EPOCH + 3, 1)
    assert counts(single) == (3, 0, False)
    described = single.core.describe(single.now)
    assert described is not None and described.high_watermark == -1


# -- updating ------------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientReconfigTest", "updateVoter")
def test_update_voter_is_answered_before_it_is_committed() -> None:
    single = committed()
    assert single.ask(update()) == DONE
    moved = (SET[0], Voter(key(2), MOVED, 0, 1), SET[2])
    assert single.core.voters.voters == moved
    assert single.core.high_watermark == START < single.core.log_end.offset
    again = single.ask(update())
    assert again == UpdateVoterResponse(TIMED_OUT, OWN, listeners(1)), "one at a time"
    acknowledge(single, 2)
    assert single.ask(update()) == DONE


@kafka_scenario("KafkaRaftClientReconfigTest", "updateVoterWithKraftVersion0")
def test_update_voter_with_kraft_version_0_is_answered_at_once() -> None:
    single = static()
    assert single.ask(update()) == DONE
    assert not single.last.writes


@kafka_scenario(
    "KafkaRaftClientReconfigTest",
    "updateVoterOldEpoch",
    "updateVoterNewEpoch",
    "updateVoterToNotLeader",
)
@pytest.mark.parametrize(
    ("make", "changes", "expected"),
    [
        (committed, {"epoch": EPOCH}, ErrorCode.FENCED_LEADER_EPOCH),
        (committed, {"epoch": EPOCH + 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (committed, {}, ErrorCode.INVALID_REQUEST),
        (led, {}, ErrorCode.INVALID_REQUEST),
        (unattached, {"epoch": EPOCH}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (follower, {"epoch": EPOCH}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_update_voter_without_endpoints(make, changes, expected: ErrorCode) -> None:
    """Epoch and leadership are looked at first, as in Kafka's updateVoterOldEpoch, -NewEpoch,
    -ToNotLeader; the endpoints before anything that may pass."""
    single = make()
    answer = single.ask(update(listeners=(), **changes))
    known = single.core.election
    assert isinstance(answer, UpdateVoterResponse)
    assert (answer.error, answer.leader) == (expected, LeaderAndEpoch(known.leader_id, known.epoch))


@kafka_scenario("KafkaRaftClientReconfigTest", "invalidKRaftUpgradeVersion")
@kafka_scenario("LeaderStateTest", "invalidMaybeAppendUpgradedKRaftVersion")
def test_upgrade_needs_every_voter() -> None:
    """invalidKRaftUpgradeVersion: none has reported its versions, then one of two."""
    single = static()
    for updated in (None, 2):
        if updated is not None:
            assert single.ask(update(updated, listeners=listeners(updated))) == DONE
        ready = single.step(UpgradeKRaftVersion(7, 1))
        (refused,) = ready.proposals
        assert isinstance(refused, Refused)
        assert refused.error == ErrorCode.INVALID_UPDATE_VERSION
        assert control_records(ready) == () and single.core.voters.kraft_version == 0


def test_a_late_api_versions_response_adds_no_voter() -> None:
    """What a new voter answers after its request was given up changes nothing."""
    single, number = asking()
    late = single.sent(ApiVersionsRequest)
    single.wait(2000)
    assert single.replies[number].error == TIMED_OUT and late is not None
    assert not versions(single).writes
    assert single.core.voters.voters == SET
