"""Facts and refusals of the core that `make guards` found neither tested nor reached by a world."""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, ReplicaKey
from quorate.raft.inputs import (
    Persisted,
    Resign,
    SendFailed,
    SendFailure,
    Shutdown,
    StorageFailed,
    UpgradeKRaftVersion,
)
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from quorate.raft.ready import Accepted, Append, Refused
from quorate.raft.roles import NEVER, Follower, Leader, Unattached
from quorate.raft.values import ControlState, KRaftVersion, Voter
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners, voter
from raft.single import (
    EPOCH,
    VOTERS,
    Single,
    fetch,
    follower,
    leader,
    recovered,
    unattached,
)

ADD = AddVoterRequest(CLUSTER_ID, key(4), listeners(4))


def committed(single: Single) -> Single:
    """The leader's first record is on a majority, and node 4 has caught up."""
    end = single.core.log_end.offset
    single.ask(fetch(end, EPOCH + 1, replica=key(2)))
    return single


def test_a_voter_change_is_named_while_it_is_under_way() -> None:
    single = leader()
    assert single.core.voter_change is None and follower().core.voter_change is None
    committed(single)
    single.ask(ADD)
    assert single.core.voter_change == "add"
    single = committed(leader())
    single.ask(RemoveVoterRequest(CLUSTER_ID, key(3)))
    assert single.core.voter_change == "remove"


def test_a_newcomer_that_knows_no_api_versions_is_refused() -> None:
    single = committed(leader())
    assert single.ask(ADD) is None
    send = single.sent(ApiVersionsRequest, to=4)
    assert send is not None
    ready = single.step(SendFailed(send.correlation, SendFailure.UNSUPPORTED_VERSION))
    (reply,) = ready.replies
    assert isinstance(reply.response, AddVoterResponse)
    assert reply.response.error == ErrorCode.REQUEST_TIMED_OUT
    assert (reply.response.message or "").endswith("an error UNSUPPORTED_VERSION")


def test_an_upgrade_to_the_present_version_is_accepted_where_no_record_has_set_it() -> None:
    """At kraft.version 0 nothing stands in the log: the end is 0."""
    log = recovered(snapshots=(), snapshot_control=ControlState(0, None))
    single = leader(log=log, static_voters=VOTERS)
    ready = single.step(UpgradeKRaftVersion(7, 0))
    assert ready.proposals == (Accepted(7, 0, 0),)


def test_an_upgrade_waits_for_the_directory_of_every_voter() -> None:
    """At version 1 an unknown directory id would match any disk."""
    static = tuple(Voter(ReplicaKey(i), listeners(i), 0, 1) for i in (1, 2, 3))
    log = recovered(snapshots=(), snapshot_control=ControlState(0, None))
    single = leader(log=log, static_voters=static)
    (refused,) = single.step(UpgradeKRaftVersion(7, 1)).proposals
    assert isinstance(refused, Refused)
    assert "the directory id of voter 2, 3 is not known yet" in refused.message


def test_an_upgrade_writes_no_voter_set_that_the_snapshot_has() -> None:
    single = leader(log=recovered(snapshot_control=ControlState(0, VOTERS)))
    for voter_id in (2, 3):
        single.ask(update(voter_id, EPOCH + 1))
    single.ask(fetch(single.core.log_end.offset, EPOCH + 1))
    ready = single.step(UpgradeKRaftVersion(7, 1))
    (batch,) = (b for write in ready.writes if isinstance(write, Append) for b in write.batches)
    assert batch.control == (KRaftVersion(1),)


def update(voter_id: int, epoch: int) -> UpdateVoterRequest:
    return UpdateVoterRequest(CLUSTER_ID, epoch, key(voter_id), listeners(voter_id), 0, 1)


def test_a_voter_set_without_a_directory_is_described_as_kafka_does() -> None:
    voters = (voter(1), voter(2), Voter(ReplicaKey(3), listeners(3), 0, 1))
    single = committed(leader(log=recovered(snapshot_control=ControlState(1, voters))))
    response = single.ask(RemoveVoterRequest(CLUSTER_ID, key(9)))
    assert isinstance(response, RemoveVoterResponse)
    assert "ReplicaKey(id=3, directoryId=<undefined>)" in (response.message or "")


def test_a_leader_that_stops_notifies_no_voter_without_an_endpoint() -> None:
    voters = (voter(1), voter(2), Voter(key(3), (), 0, 1))
    single = leader(log=recovered(snapshot_control=ControlState(1, voters)))
    single.step(StorageFailed("the device failed"))
    assert single.sent(EndQuorumEpochRequest, to=2)
    assert not single.sent(EndQuorumEpochRequest, to=3)


def test_a_second_shutdown_does_not_move_the_deadline() -> None:
    single = leader(slow=True)
    single.step(Shutdown(5000))
    deadline = single.core.state.shutdown_deadline
    single.step(Shutdown(9000))
    assert single.core.state.shutdown_deadline == deadline == 5000 + single.now


def reporting() -> Single:
    """A follower whose endpoint is another one than the voter set has: it reports itself."""
    single = follower(listeners=listeners(7))
    single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), 0))
    for _ in range(10):
        single.wait(1000)
        if single.sent(UpdateVoterRequest):
            return single
        single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), 0))
    raise AssertionError(single.notes)


def test_a_leader_of_an_old_release_takes_no_reports() -> None:
    single = reporting()
    send = single.sent(UpdateVoterRequest)
    assert send is not None
    single.step(SendFailed(send.correlation, SendFailure.UNSUPPORTED_VERSION))
    role = single.core.state.role
    assert isinstance(role, Follower) and role.has_updated_leader


def test_a_report_that_is_answered_after_end_quorum_epoch_does_not_prolong_the_epoch() -> None:
    single = reporting()
    role = single.core.state.role
    assert isinstance(role, Follower)
    deadline, role.ended = role.fetch_deadline, True
    single.answer(UpdateVoterRequest, UpdateVoterResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH)))
    assert role.has_updated_leader and role.fetch_deadline == deadline


def test_a_replica_that_became_a_voter_starts_its_election_timer() -> None:
    single = unattached()
    role = single.core.state.role
    assert isinstance(role, Unattached)
    role.election_deadline = NEVER
    single.step()
    assert role.election_deadline < NEVER


def test_a_follower_that_shuts_down_asks_nobody() -> None:
    single = follower()
    single.core.state.shutdown_deadline = single.now + 9000
    before = len(single.sends)
    single.wait(5000)
    assert len(single.sends) == before


def test_a_lone_voter_that_has_stopped_releases_what_became_durable() -> None:
    """Its last writes end after the step in which it stopped."""
    alone = recovered(snapshot_control=ControlState(1, (voter(1),)))
    single = Single(log=alone, slow=True)
    single.wait(2000)
    while not isinstance(single.core.state.role, Leader):
        single.persist()
    assert single.step(Shutdown(5000)).stopped
    assert single.seq is not None
    single.step(Resign(single.core.epoch), Persisted(single.seq))
    assert single.core.durable_end_offset == single.core.log_end.offset
