"""Update, upgrade, auto join, and where the voter set comes from (reference 5.9)."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import (
    LeaderAndEpoch,
    Listener,
    OffsetAndEpoch,
    ReplicaKey,
    Uuid,
)
from quorate.raft.inputs import (
    SnapshotInstalled,
    UpgradeKRaftVersion,
)
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    FetchRequest,
    FetchResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
)
from quorate.raft.ready import Accepted, Append, Refused
from quorate.raft.values import Batch, KRaftVersion, LeaderChange, Voter, Voters
from quorate.sim.scenario.names import CLUSTER_ID, directory, key, listeners, voter
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    Single,
    begin,
    candidate,
    follower,
    granted,
    recovered,
)
from raft.voter_scenarios import (
    NAMELESS,
    NEW,
    SET,
    START,
    TIMED_OUT,
    TWICE,
    appended,
    committed,
    led,
    static,
    update,
)


# -- UpdateRaftVoter -----------------------------------------------------------------------------
@kafka_scenario(
    "KafkaRaftClientReconfigTest",
    "invalidUpdateVoter",
    "updateVoterWithoutFencedPreviousLeaders",
    "updateVoterWithNoneVoter",
    "updateVoterWithNoneVoterId",
)
@pytest.mark.parametrize(
    ("make", "changes", "error"),
    [
        (committed, {"cluster_id": "x"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (committed, {"epoch": EPOCH}, ErrorCode.FENCED_LEADER_EPOCH),
        (committed, {"epoch": EPOCH + 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (committed, {"voter": ReplicaKey(2)}, ErrorCode.INVALID_REQUEST),
        (committed, {"voter": ReplicaKey(-2, Uuid(b"x" * 16))}, ErrorCode.INVALID_REQUEST),
        (committed, {"listeners": ()}, ErrorCode.INVALID_REQUEST),
        (committed, {"listeners": NAMELESS}, ErrorCode.INVALID_REQUEST),
        (static, {"listeners": NAMELESS}, ErrorCode.INVALID_REQUEST),
        (committed, {"listeners": TWICE}, ErrorCode.INVALID_REQUEST),
        (static, {"listeners": TWICE}, ErrorCode.INVALID_REQUEST),
        (committed, {"min_kraft_version": -1}, ErrorCode.INVALID_REQUEST),
        (committed, {"min_kraft_version": 1, "max_kraft_version": 0}, ErrorCode.INVALID_REQUEST),
        (led, {}, TIMED_OUT),
        (committed, {"max_kraft_version": 0}, ErrorCode.INVALID_REQUEST),
        (committed, {"voter": key(9)}, ErrorCode.VOTER_NOT_FOUND),
        (committed, {"voter": key(2, 1)}, ErrorCode.VOTER_NOT_FOUND),
        (static, {"voter": key(9)}, ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_update_is_refused(make, changes: dict[str, object], error: ErrorCode) -> None:
    answer = make().ask(update(**changes))
    assert isinstance(answer, UpdateVoterResponse)
    assert (answer.error, answer.leader) == (error, LeaderAndEpoch(1, EPOCH + 1))


def test_update_at_version_1_is_appended_and_answered() -> None:
    single = committed()
    assert single.ask(update()).error == ErrorCode.NONE  # type: ignore[union-attr]
    moved = Voter(key(2), (Listener("CONTROLLER", "moved", 1),), 0, 1)
    assert appended(single.last) == (SET[0], moved, SET[2])


@kafka_scenario("KafkaRaftClientReconfigTest", "updateVoterWithKraftVersion0")
def test_update_at_version_0_is_remembered_by_the_leader_alone() -> None:
    single = static()
    assert single.ask(update()).error == ErrorCode.NONE  # type: ignore[union-attr]
    assert single.last.writes == ()
    assert single.core.voters.voters == tuple(voter(i, known=False) for i in (1, 2, 3))


def test_update_counts_for_check_quorum() -> None:
    single = committed()
    single.now += 2990
    single.ask(update())
    single.wait(20)
    assert single.core.role == "leader"


def updating(**config: object) -> Single:
    """Follower of 2 whose own entry in the voter set has another listener."""
    other = Voter(key(1), (Listener("CONTROLLER", "old", 1),), 0, 1)
    return follower(log=recovered(control_records=((4, Voters((other, *SET[1:]))),)), **config)


def pass_period(single: Single) -> None:
    """Let the update period pass while fetching goes on."""
    leader = LeaderAndEpoch(2, EPOCH)
    for _ in range(4):
        single.wait(500)
        single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, leader, 0))


def test_a_voter_whose_entry_is_wrong_asks_for_an_update() -> None:
    single = updating()
    pass_period(single)
    send = single.sent(UpdateVoterRequest)
    assert send is not None and send.to == 2
    assert send.request == UpdateVoterRequest(CLUSTER_ID, EPOCH, key(1), listeners(1), 0, 1)


def test_a_voter_whose_entry_is_right_does_not() -> None:
    single = follower()
    pass_period(single)
    assert single.sent(UpdateVoterRequest) is None


@kafka_scenario("KafkaRaftClientReconfigTest", "followerSendsUpdateVoterWithKraftVersion0")
@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ErrorCode.NONE, False),
        (ErrorCode.UNSUPPORTED_VERSION, False),
        (ErrorCode.REQUEST_TIMED_OUT, True),
    ],
)
def test_at_version_0_a_voter_reports_once_a_leader(error: ErrorCode, again: bool) -> None:
    voters = tuple(voter(i, known=False) for i in (1, 2, 3))
    single = follower(log=recovered(snapshots=(), snapshot_control=None), static_voters=voters)
    pass_period(single)
    leader = LeaderAndEpoch(2, EPOCH)
    single.answer(UpdateVoterRequest, UpdateVoterResponse(error, leader))
    single.wait(20)
    before = len(single.sends)
    pass_period(single)
    pass_period(single)
    sent = [s for s in single.sends[before:] if isinstance(s.request, UpdateVoterRequest)]
    assert bool(sent) is again


# -- auto join -----------------------------------------------------------------------------------
def joining(node_id: int = 4, disk: int = 0, **config: Any) -> Single:
    single = Single(node_id, directory_id=directory(node_id, disk), auto_join=True, **config)
    single.ask(begin())
    pass_period(single)
    return single


def test_an_observer_adds_itself() -> None:
    send = joining().sent(AddVoterRequest)
    assert send is not None and send.to == 2
    assert send.request == AddVoterRequest(CLUSTER_ID, key(4), listeners(4), 2000, False)


def test_an_observer_first_removes_its_old_directory() -> None:
    single = joining(3, disk=1)
    send = single.sent(RemoveVoterRequest)
    assert send is not None and send.request == RemoveVoterRequest(CLUSTER_ID, key(3))
    assert single.sent(AddVoterRequest) is None


@pytest.mark.parametrize("config", [{"can_be_voter": False}, {"auto_join": False}])
def test_a_replica_that_does_not_join(config: dict[str, Any]) -> None:
    single = Single(4, **({"auto_join": True} | config))
    single.ask(begin())
    pass_period(single)
    assert single.sent(AddVoterRequest) is None


def test_no_node_joins_at_version_0() -> None:
    voters = tuple(voter(i, known=False) for i in (1, 2, 3))
    log = recovered(snapshots=(), snapshot_control=None)
    assert joining(log=log, static_voters=voters).sent(AddVoterRequest) is None


@pytest.mark.parametrize(
    ("error", "backs_off"),
    [
        (ErrorCode.NONE, False),
        (ErrorCode.REQUEST_TIMED_OUT, False),
        (ErrorCode.DUPLICATE_VOTER, False),
        (ErrorCode.VOTER_NOT_FOUND, False),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.INVALID_REQUEST, True),
    ],
)
@pytest.mark.parametrize("disk", [0, 1], ids=["adding itself", "removing its old self"])
def test_after_a_finished_or_pending_join_it_fetches_from_the_leader_at_once(
    disk: int, error: ErrorCode, backs_off: bool
) -> None:
    single = joining(3 if disk else 4, disk)
    before = len(single.sends)
    if disk:
        single.answer(RemoveVoterRequest, RemoveVoterResponse(error))
    else:
        single.answer(AddVoterRequest, AddVoterResponse(error))
    asked = [s.to for s in single.sends[before:] if isinstance(s.request, FetchRequest)]
    assert len(asked) == 1 and (asked == [2]) is not backs_off


def test_a_refused_auto_join_reports_the_reason() -> None:
    single = joining()
    why = "the leader cannot connect to it"
    ready = single.answer(AddVoterRequest, AddVoterResponse(ErrorCode.REQUEST_TIMED_OUT, why))
    assert f"auto join: REQUEST_TIMED_OUT: {why}" in ready.notes


# -- kraft.version 0 -> 1 ------------------------------------------------------------------------
def upgradable() -> Single:
    single = static()
    for i in (2, 3):
        single.ask(update(voter=key(i), listeners=listeners(i)))
    return single


def test_upgrade_writes_version_and_voters_in_one_batch() -> None:
    ready = upgradable().step(UpgradeKRaftVersion(7, 1))
    (write,) = ready.writes
    assert isinstance(write, Append)
    assert write.batches[0].control == (KRaftVersion(1), Voters(SET))
    assert ready.proposals == (Accepted(7, START, START + 2),)


@kafka_scenario("KafkaRaftClientReconfigTest", "invalidKRaftUpgradeVersion")
@pytest.mark.parametrize(
    ("make", "version", "error", "text"),
    [
        (follower, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER, "not the current leader"),
        (committed, 0, ErrorCode.INVALID_UPDATE_VERSION, "because the new version is a downgrade"),
        (static, 1, ErrorCode.INVALID_UPDATE_VERSION, "not all of the voters support it"),
        (upgradable, 2, ErrorCode.INVALID_UPDATE_VERSION, "from version 0 to 2"),
    ],
)
def test_upgrade_is_refused(make, version: int, error: ErrorCode, text: str) -> None:
    (proposal,) = make().step(UpgradeKRaftVersion(7, version)).proposals
    assert isinstance(proposal, Refused)
    assert proposal.error == error and text in proposal.message


@pytest.mark.parametrize("validate_only", [False, True])
def test_an_upgrade_to_the_current_version_changes_nothing(validate_only: bool) -> None:
    ready = committed().step(UpgradeKRaftVersion(7, 1, validate_only))
    (proposal,) = ready.proposals
    assert isinstance(proposal, Accepted) and ready.writes == ()
    ready = upgradable().step(UpgradeKRaftVersion(7, 1, True))
    assert isinstance(ready.proposals[0], Accepted) and ready.writes == ()


# -- where the voter set comes from --------------------------------------------------------------
def test_the_first_epoch_repeats_the_bootstrap_snapshot() -> None:
    single = candidate()
    ready = single.answer(VoteRequest, granted(EPOCH + 1), to=2)
    batches = [b for w in ready.writes if isinstance(w, Append) for b in w.batches]
    change = LeaderChange(1, (1, 2, 3), (1, 2))
    assert batches[0].control == (change, KRaftVersion(1), Voters(SET))


def test_later_epochs_repeat_it_only_when_the_leaders_entry_is_wrong() -> None:
    assert led().core.log_end.offset == END + 1
    moved = Voter(key(1), (Listener("CONTROLLER", "old", 1),), 0, 1)
    single = led((moved, *SET[1:]))
    assert single.core.log_end.offset == END + 3
    assert single.core.voters.voters == SET


def test_at_version_0_only_the_leader_change_is_written() -> None:
    assert static().core.log_end.offset == END + 1


def test_truncation_restores_a_followers_voter_set() -> None:
    single = follower()
    voters = (*SET, NEW)
    batch = Batch(5, 5, EPOCH, 10, (Voters(voters),))
    leader = LeaderAndEpoch(2, EPOCH)
    single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, leader, 0, batches=(batch,)))
    assert single.core.voters.voters == voters
    diverging = OffsetAndEpoch(5, LAST_EPOCH)
    single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, leader, 0, diverging=diverging))
    assert single.core.voters.voters == SET
    assert single.core.control_at(5).voters == SET


@kafka_scenario("ControllerMetadataMetricsTest", "ignoredStaticVoters")
@kafka_scenario("KafkaRaftClientTest", "staticVotersIgnoredWithBootstrapSnapshot")
def test_static_voters_are_ignored_with_a_note() -> None:
    single = Single(static_voters=(voter(8, known=False),))
    assert single.core.voters.voters == SET
    assert any("static voters are ignored" in note for note in single.notes)
    assert single.core.ignores_static_voters


def test_unrequested_snapshots_are_ignored() -> None:
    single = follower()
    control = single.core.control_at(0)
    single.step(SnapshotInstalled(1, OffsetAndEpoch(9, 3), control))
    assert single.core.log_end.offset == END
