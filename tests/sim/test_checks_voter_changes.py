"""Voter changes, fences, epoch notifications, retention: each check fails once by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import (
    ZERO_UUID,
    Address,
    LeaderAndEpoch,
    Listener,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorate.raft.messages import (
    AddVoterRequest,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Clean, SaveElection, Send
from quorate.raft.roles import Follower, Resigned
from quorate.raft.values import ControlState, ElectionState, LeaderChange, Voter, Voters
from quorate.replica.disk_jobs import (
    AppendBatches,
    SnapshotFailed,
    SnapshotWritten,
    Survey,
    Surveyed,
    Write,
    WriteSnapshot,
)
from quorate.replica.replica import Answer
from quorate.sim.checks.history import LoggedBatch
from quorate.sim.checks.voter_change_errors import (
    PendingVoterChange,
    VoterChangeConditions,
    wrong_error,
)
from quorate.sim.world.observable import CLUSTER_ID, LISTENER
from quorate.storage.api import SnapshotInfo
from sim.fake import Fake, Node, key, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_leader_duties import leading

pytestmark = pytest.mark.interpreted
HERE = (Listener(LISTENER, "host", 9093),)


# -- voter changes in the log ---------------------------------------------------------------------
def writes(leader: Node, *voter: Voter) -> None:
    """A voter set that no node has asked for, unless the test has."""
    leader._be_asked_for = lambda new: None  # type: ignore[method-assign]
    leader.state.controls.state = ControlState(1, voter)
    leader.append(leader.control(Voters(voter)))


def test_a_change_that_no_node_asked_for() -> None:
    _, leader = leading()
    with broken("voter change was requested", "requested was []"):
        writes(leader, *voters(1, 2))


def test_a_change_of_another_voter_than_was_asked_for() -> None:
    _, leader = leading()
    leader.receive(RemoveVoterRequest(None, key(2)))
    with broken("voter change was requested"):
        writes(leader, *voters(1, 2))


def test_endpoints_that_no_node_reported() -> None:
    _, leader = leading()
    leader.receive(AddVoterRequest(None, key(4), HERE))
    with broken("voter change was requested"):
        writes(leader, *voters(1, 2, 3, 4))


def test_an_update_writes_what_was_reported() -> None:
    _, leader = leading()
    reply_to = leader.receive(UpdateVoterRequest(None, 1, key(2), HERE, 0, 1))
    one, _, three = voters(1, 2, 3)
    writes(leader, one, Voter(key(2), HERE, 0, 1), three)
    leader.answer(UpdateVoterResponse(ErrorCode.NONE), reply_to)


def test_an_update_that_is_acknowledged_and_not_written() -> None:
    _, leader = leading()
    reply_to = leader.receive(UpdateVoterRequest(None, 1, key(2), HERE, 0, 1))
    with broken("acknowledged voter change is in the log", "UpdateVoterRequest"):
        leader.answer(UpdateVoterResponse(ErrorCode.NONE), reply_to)


def test_an_update_written_before_its_leader_learned_of_another_epoch() -> None:
    """Seed 8453652: twice the same, then a Vote, all in one step; the second finds it written."""
    _, leader = leading()
    asked = [leader.receive(UpdateVoterRequest(None, 1, key(2), HERE, 0, 1)) for _ in range(2)]
    one, _, three = voters(1, 2, 3)
    writes(leader, one, Voter(key(2), HERE, 0, 1), three)
    leader.save(2)
    leader.state.role = Resigned(9_999, set(), ())
    for reply_to in asked:
        leader.answer(UpdateVoterResponse(ErrorCode.NONE), reply_to)


def test_a_refused_change_that_is_in_the_log() -> None:
    _, leader = leading()
    reply_to = leader.receive(RemoveVoterRequest(None, key(3)))
    writes(leader, *voters(1, 2))
    with broken("refused voter change has no effect", "VOTER_NOT_FOUND"):
        leader.answer(RemoveVoterResponse(ErrorCode.VOTER_NOT_FOUND), reply_to)


def test_a_change_that_another_request_asked_for_too() -> None:
    """Seed 3015052 of plan format 5: the first of the two was for another cluster."""
    _, leader = leading()
    foreign = leader.receive(RemoveVoterRequest("another", key(3)))
    leader.receive(RemoveVoterRequest(None, key(3)))
    writes(leader, *voters(1, 2))
    leader.answer(RemoveVoterResponse(ErrorCode.INCONSISTENT_CLUSTER_ID), foreign)


def test_a_change_that_only_another_cluster_was_asked_for() -> None:
    _, leader = leading()
    leader.receive(RemoveVoterRequest("another", key(3)))
    with broken("voter change was requested"):
        writes(leader, *voters(1, 2))


def test_a_change_that_is_made_after_it_was_refused() -> None:
    _, leader = leading()
    reply_to = leader.receive(RemoveVoterRequest(None, key(3)))
    leader.answer(RemoveVoterResponse(ErrorCode.REQUEST_TIMED_OUT), reply_to)
    with broken("voter change was requested"):
        writes(leader, *voters(1, 2))


def test_a_new_voter_that_does_not_support_the_version_in_force() -> None:
    _, leader = leading()
    leader.receive(AddVoterRequest(None, key(4), ()))
    with broken("voter range", "does not support 1"):
        writes(leader, *voters(1, 2, 3), Voter(key(4), (), 0, 0))


def test_a_new_voter_with_a_range_that_is_not_its_own() -> None:
    _, leader = leading()
    leader.receive(AddVoterRequest(None, key(4), ()))
    with broken("voter range", "supports (0, 1)"):
        writes(leader, *voters(1, 2, 3), Voter(key(4), (), 1, 1))


def test_a_new_leader_that_changes_another_voter() -> None:
    fake, _ = leading()
    second = fake[2]
    fake[3].grant(2, 1, pre_vote=True)
    second.save(2, -1, 2)
    second.persist()
    fake[3].grant(2, 2)
    second.state.election = ElectionState(2, 2)
    second._be_asked_for = lambda new: None  # type: ignore[method-assign]
    batch = second.control(LeaderChange(2, (1, 2, 3), (2, 3)), Voters(voters(1, 2)))
    with broken("voter change was requested", "begins its epoch"):
        second.write(SaveElection(second.state.election, 1), AppendBatches((batch,)))


# -- answers --------------------------------------------------------------------------------------
def durable(node: Node) -> None:
    node.state.durable.election_is_durable = True
    node.step(sends=[Send(0, 0, Address("host", 9093), begin(node), 0)])


def begin(node: Node) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(None, None, leader_of(node))


def leader_of(node: Node) -> Any:
    return LeaderAndEpoch(node.id, node.epoch)


def test_an_operator_that_waits_for_too_long() -> None:
    _, leader = leading()
    durable(leader)
    leader.receive(RemoveVoterRequest(None, key(3)))
    leader.state.now += 2000
    leader.step()
    leader.state.now += 1
    with broken("voter change deadline", "2001 ms ago"):
        leader.step()


def test_an_operator_is_answered_by_a_former_leader() -> None:
    _, leader = leading()
    durable(leader)
    leader.receive(RemoveVoterRequest(None, key(3)))
    leader.state.role = Follower((), 0, 0)
    with broken("voter change deadline", " 0 ms ago"):
        leader.step()


@pytest.mark.parametrize(
    "error",
    [ErrorCode.VOTER_NOT_FOUND, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID],
)
def test_an_error_that_is_not_deserved(error: ErrorCode) -> None:
    _, leader = leading()
    reply_to = leader.receive(RemoveVoterRequest(None, key(3)))
    with broken("voter change response", error.name):
        leader.answer(RemoveVoterResponse(error), reply_to)


@pytest.mark.parametrize("end", [{"stopped": True}, {"faulted": "the disk is full"}, {}])
def test_a_stopping_replica_checks_nothing_and_a_running_one_checks_the_cluster_first(
    end: Any,
) -> None:
    """Seed 1001127 of plan format 4: asked for another cluster, and its disk was full."""
    _, leader = leading()
    reply_to = leader.receive(RemoveVoterRequest("another", key(3)))
    answers = [Answer(reply_to, RemoveVoterResponse(ErrorCode.BROKER_NOT_AVAILABLE))]
    if end:
        leader.step(answers=answers, **end)
    else:
        with broken("voter change response", "the cluster another"):
            leader.step(answers=answers)


def test_a_stopping_replica_does_not_lead() -> None:
    """Seed 1169 of plan format 4: a leader was shut down with an AddRaftVoter under way."""
    _, leader = leading()
    reply_to = leader.receive(RemoveVoterRequest(None, key(3)))
    refusal = RemoveVoterResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    leader.step(answers=[Answer(reply_to, refusal)], stopped=True)


LEADS = VoterChangeConditions(True, 5, 1, voters(1, 2, 3))
STATIC = VoterChangeConditions(True, 5, 0, voters(1, 2, 3))
FOLLOWS = VoterChangeConditions(False, 5, 1, voters(1, 2, 3))
ADD = AddVoterRequest(CLUSTER_ID, key(4), HERE)
REMOVE = RemoveVoterRequest(CLUSTER_ID, key(3))
UPDATE = UpdateVoterRequest(CLUSTER_ID, 5, key(3), HERE, 0, 1)
NAMELESS = ReplicaKey(4, ZERO_UUID)
E = ErrorCode


@pytest.mark.parametrize(
    ("request_", "place", "able", "error", "is_right"),
    [
        (ADD, LEADS, (0, 1), E.NONE, True),
        (ADD, STATIC, (0, 1), E.NONE, False),
        (ADD, STATIC, (0, 1), E.UNSUPPORTED_VERSION, True),
        (ADD, LEADS, (0, 1), E.UNSUPPORTED_VERSION, False),
        (ADD, STATIC, (0, 1), E.REQUEST_TIMED_OUT, False),
        (ADD, replace(STATIC, settled=False), (0, 1), E.REQUEST_TIMED_OUT, True),
        (UPDATE, STATIC, (0, 1), E.REQUEST_TIMED_OUT, True),
        (ADD, LEADS, (0, 1), E.DUPLICATE_VOTER, False),
        (replace(ADD, voter=key(3)), LEADS, (0, 1), E.DUPLICATE_VOTER, True),
        (replace(REMOVE, voter=key(3)), LEADS, (0, 1), E.DUPLICATE_VOTER, False),
        (ADD, FOLLOWS, (0, 1), E.NOT_LEADER_OR_FOLLOWER, True),
        (ADD, LEADS, (0, 0), E.INVALID_REQUEST, True),
        (ADD, LEADS, (0, 1), E.INVALID_REQUEST, False),
        (replace(ADD, voter=NAMELESS), LEADS, (0, 1), E.INVALID_REQUEST, True),
        (replace(ADD, voter=NAMELESS), LEADS, (0, 1), E.REQUEST_TIMED_OUT, False),
        (replace(ADD, listeners=()), LEADS, (0, 1), E.REQUEST_TIMED_OUT, False),
        (replace(ADD, cluster_id="x"), LEADS, (0, 1), E.REQUEST_TIMED_OUT, False),
        (replace(ADD, cluster_id="x"), LEADS, (0, 1), E.INCONSISTENT_CLUSTER_ID, True),
        (ADD, LEADS, (0, 1), E.INCONSISTENT_CLUSTER_ID, False),
        (REMOVE, LEADS, (0, 1), E.VOTER_NOT_FOUND, False),
        (replace(REMOVE, voter=key(4)), LEADS, (0, 1), E.VOTER_NOT_FOUND, True),
        (UPDATE, LEADS, (0, 1), E.VOTER_NOT_FOUND, False),
        (replace(UPDATE, voter=key(4)), LEADS, (0, 1), E.VOTER_NOT_FOUND, True),
        (UPDATE, LEADS, (0, 1), E.FENCED_LEADER_EPOCH, False),
        (replace(UPDATE, epoch=4), LEADS, (0, 1), E.FENCED_LEADER_EPOCH, True),
        (UPDATE, LEADS, (0, 0), E.INVALID_REQUEST, True),
        (ADD, LEADS, (0, 1), E.BROKER_NOT_AVAILABLE, True),
    ],
)
def test_what_a_request_deserves(
    request_: Any,
    place: VoterChangeConditions,
    able: tuple[int, int],
    error: ErrorCode,
    is_right: bool,
) -> None:
    asked = PendingVoterChange(request_, 0, place, able)
    assert (wrong_error(asked, place, error) is None) is is_right


# -- fences ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (FetchRequest(None, key(2), 0, 0, 0, 0, 0, -1), FetchResponse),
        (FetchRequest(None, key(2), 2, 0, 0, 0, 0, -1), FetchResponse),
        (VoteRequest(None, key(1), 0, key(2), 0, 0, True), VoteResponse),
        (BeginQuorumEpochRequest(None, None, (2, 0)), BeginQuorumEpochResponse),  # type: ignore[arg-type]
    ],
)
def test_a_request_of_an_epoch_that_is_over_or_unheard_of(request_: Any, kind: Any) -> None:
    if isinstance(request_, BeginQuorumEpochRequest):
        request_ = replace(request_, leader=LeaderAndEpoch(2, 0))
    _, leader = leading()
    reply_to = leader.receive(request_)
    leader.answer(kind(ErrorCode.FENCED_LEADER_EPOCH), reply_to)
    reply_to = leader.receive(request_)
    with broken("fencing", "node 1 (incarnation 1) is in epoch 1"):
        leader.step(answers=[Answer(reply_to, kind(ErrorCode.NONE))])


def test_a_restarted_node_may_number_its_requests_from_the_start() -> None:
    _, leader = leading()
    leader.replies = 100
    of_old_epoch = VoteRequest(None, key(1), 0, key(2), 0, 0, True)
    assert leader.receive(of_old_epoch) == 101
    leader.start()
    leader.replies = 100
    reply_to = leader.receive(replace(of_old_epoch, epoch=leader.epoch))
    assert reply_to == 101
    leader.answer(VoteResponse(ErrorCode.NONE), reply_to)


def test_a_fetch_of_an_earlier_epoch_does_not_count() -> None:
    fake, leader = leading()
    leader.state.now = 5000
    leader.receive(FetchRequest(None, key(2), 0, 0, 0, 0, 0, -1))
    leader.receive(FetchSnapshotRequest(None, key(2), 0, (0, 0), 0, 0))  # type: ignore[arg-type]
    assert fake.checks.models[1].received.last_request_ms[key(2)] == 0


# -- comings and goings ---------------------------------------------------------------------------
def known(*ids: int) -> tuple[Voter, ...]:
    return tuple(Voter(key(i), HERE, 0, 1) for i in ids)


def quorum() -> tuple[Fake, Node]:
    """A leader of voters that have endpoints; two of them have not fetched."""
    fake = Fake(3)
    leader = fake[1]
    model = fake.checks.models[1]
    model.initial_voters = known(1, 2, 3)
    leader.state.durable.election_is_durable = True
    return fake, leader


def test_a_leader_that_does_not_report_its_leadership() -> None:
    _, leader = quorum()
    leader.state.role = A_LEADER
    with broken("epoch notifications", "begins epoch 0"):
        leader.step()


def test_a_leader_that_does_not_report_its_resignation() -> None:
    _, leader = quorum()
    leader.state.role = Resigned(0, {2, 3})
    with broken("epoch notifications", "ends epoch 0"):
        leader.step()


def test_a_voter_that_fetches_needs_no_begin_quorum_epoch() -> None:
    fake, leader = quorum()
    fake.checks.models[1].received.last_request_ms = {key(2): 0, key(3): 0}
    leader.state.role = A_LEADER
    leader.step()


@pytest.mark.parametrize(
    ("error", "epoch", "leader", "well"),
    [(0, 1, 2, False), (0, 2, -1, False), (0, 2, 3, True), (42, 1, 2, True)],
)
def test_a_replica_that_accepts_a_leader_knows_it(
    error: int, epoch: int, leader: int, well: bool
) -> None:
    fake = Fake()
    request = BeginQuorumEpochRequest(None, key(1), LeaderAndEpoch(3, 2), ())
    fake[1].state.election = fake.checks.models[1].election = ElectionState(epoch, leader)
    name = (1, fake[1].receive(request))
    response = BeginQuorumEpochResponse(ErrorCode(error), LeaderAndEpoch(-1, 0))
    if well:
        fake[1].answer(response, name[1])
        return
    with broken("epoch notifications", "node 3 begins epoch 2, and"):
        fake[1].answer(response, name[1])


# -- retention ------------------------------------------------------------------------------------
def test_a_disk_that_is_not_scanned() -> None:
    _, leader = quorum()
    leader.step()
    leader.state.now = 59_999
    leader.step()
    leader.state.now = 60_000
    leader.step(jobs=[Survey()])
    leader.state.now = 119_999
    leader.step()
    leader.state.now = 120_000
    with broken("retention", "within 60000 ms"):
        leader.step()


def test_a_disk_that_is_looked_at_too_soon() -> None:
    """Only where something was dropped there may be more to drop."""
    _, leader = leading()
    snapshot = leader.fake.checks.history.committed
    leader.step()
    leader.state.now = 60_000
    leader.step(jobs=[Survey()])
    leader.step(jobs=[Write(9, (Clean(OffsetAndEpoch(snapshot.end, 1)),)), Survey()])
    with broken("retention", "60000 ms too early, and has removed nothing"):
        leader.step(jobs=[Survey()])


OLD_SNAPSHOT = SnapshotInfo(OffsetAndEpoch(2, 1), 10, 0)


def cleaning() -> Node:
    """Its disk is asked to drop what is before the newest snapshot, and was asked to look before and
    after that; the first answer has come."""
    _, leader = leading()
    clean = Clean(OffsetAndEpoch(leader.fake.checks.history.committed.end, 1))
    leader.state.now = 60_000
    leader.step(jobs=[Survey()])
    leader.step(jobs=[Write(7, (clean,)), Survey()])
    leader.step([Surveyed(9, (OLD_SNAPSHOT,))])
    return leader


def test_a_disk_that_keeps_what_it_was_asked_to_drop() -> None:
    with broken("retention", "still has snapshot (2, 1); all before (3, 1)"):
        cleaning().step([Surveyed(9, (OLD_SNAPSHOT,))])


def test_an_own_snapshot_may_follow_a_newer_one() -> None:
    leader = cleaning()
    leader.fake.checks.retention._surveys[leader.id][0] = OffsetAndEpoch(3, 1), OLD_SNAPSHOT.id
    leader.step([Surveyed(9, (OLD_SNAPSHOT,))])


DUE = "a snapshot is written when it is due"


def has_applied(node: Node, size: int) -> None:
    """So many bytes, since its last snapshot."""
    node.replica.applier.bytes_applied = node.fake.checks.retention._applied[node.id] = size


def begun() -> tuple[Node, WriteSnapshot]:
    """It has applied what is enough for a snapshot, and writes one."""
    _, leader = leading()
    leader.step()
    job = WriteSnapshot(OffsetAndEpoch(3, 1), 0, ControlState(1, voters(1, 2, 3)), (), 0)
    leader.step(jobs=[job])
    has_applied(leader, 1000)
    leader.step()
    return leader, job


@pytest.mark.parametrize("result", ["written", "failed"])
def test_a_replica_that_applied_enough_writes_the_next_snapshot(result: str) -> None:
    leader, job = begun()
    name = job.snapshot_id
    reported = SnapshotFailed(name, "full") if result == "failed" else SnapshotWritten(name, 10)
    with broken(DUE, "has applied 1000 bytes since the last one, the limit is 1000"):
        leader.step([reported])
    has_applied(leader, 999)
    leader.step()


def test_a_replica_that_loads_applies_in_part_or_stops_writes_no_snapshot() -> None:
    leader, job = begun()
    leader.replica.applier.loading = job.snapshot_id
    leader.step([SnapshotFailed(job.snapshot_id, "full")])
    leader.replica.applier.loading = None
    leader.replica.applier.is_inside_a_batch = True
    leader.step()
    leader.replica.applier.is_inside_a_batch = False
    leader.step(stopped=True)
    with broken(DUE):
        leader.step()


def test_what_was_applied_is_in_a_snapshot_within_the_interval() -> None:
    leader, job = begun()
    has_applied(leader, 1)
    leader.replica.policy.max_interval_ms = 500
    leader.state.now += 500
    leader.step()  # one is in the making
    leader.fake.checks.retention._making[leader.id] = OffsetAndEpoch(0, 0)
    leader.replica.applier.is_inside_a_batch = True
    leader.step()
    leader.replica.applier.is_inside_a_batch = False
    with broken(DUE, "has begun no snapshot for 500 ms, the limit is 500, and has applied 1 bytes"):
        leader.step()
    has_applied(leader, 0)
    leader.step()
    leader.replica.applier.loading = job.snapshot_id
    leader.step()
    leader.replica.applier.loading = None
    has_applied(leader, 1)
    leader.state.now += 499
    leader.step()


def survey(*ages_ms: int, size: int = 10) -> Surveyed:
    """Of a log of 100 bytes, and of snapshots that are so old."""
    return Surveyed(
        100,
        tuple(
            SnapshotInfo(OffsetAndEpoch(at + 1, 1), size, -age) for at, age in enumerate(ages_ms)
        ),
    )


@pytest.mark.parametrize(
    ("retention_bytes", "retention_ms", "looked_at", "due"),
    [
        (-1, -1, survey(9, 9, 9), None),
        (-1, 5, survey(9, 6, 5, 0), 3),
        (-1, 5, survey(9, 9), 2),
        (-1, 5, survey(9), None),
        (129, -1, survey(9, 9, 9), 2),
        (130, -1, survey(9, 9, 9), None),
        (0, -1, survey(9), None),
        (0, 5, survey(9, 9, 9), 3),
    ],
)
def test_what_a_disk_is_asked_to_drop(
    retention_bytes: int, retention_ms: int, looked_at: Surveyed, due: int | None
) -> None:
    _, leader = leading()
    policy = leader.replica.policy
    policy.retention_bytes, policy.retention_ms = retention_bytes, retention_ms
    known = leader.fake.checks.history
    known.committed_at.update({end: LoggedBatch(known.root, 0, end, 1, b"") for end in (1, 2)})

    def reported(*ends: int, note: str = "") -> None:
        writes = tuple(Clean(OffsetAndEpoch(end, 1)) for end in ends)
        jobs = [Write(7, writes)] if writes else []
        leader.step([looked_at], jobs=jobs, notes=[note])
        leader.fake.checks.retention._surveys[leader.id].clear()
        leader.fake.checks.retention._oldest[leader.id] = OffsetAndEpoch(0, 0)

    if due is None:
        reported()
        with broken("retention", "should remove nothing; it removes what is before (1"):
            reported(1)
    else:
        reported(due)
        reported(note="nothing to clean before it")
        leader.state.log.snapshots = [OffsetAndEpoch(due, 1)]
        leader.state.installing = OffsetAndEpoch(9, 1)
        reported(note="nothing to clean before it")
        leader.state.installing = None
        with broken("retention"):  # but there is
            reported(note="nothing to clean before it")
        with broken("retention", f"should remove what is before ({due}, 1); it removes"):
            reported()
        with broken("retention"):
            reported(due - 1)


def test_a_snapshot_older_than_its_id() -> None:
    _, leader = leading()
    job = WriteSnapshot(OffsetAndEpoch(3, 1), 1, ControlState(1, voters(1, 2, 3)), (), 0)
    with broken("age of a snapshot", "the newest batch in it is of 0 ms"):
        leader.step(jobs=[job])


COUNTED = "applied bytes are counted"


def test_bytes_that_were_applied_and_not_counted() -> None:
    _, leader = leading()
    with broken(COUNTED, "and counts 0"):
        leader.machine.trail.append((3, 0, 0))
        leader.step()


def test_the_byte_count_restarts_at_a_written_snapshot() -> None:
    leader, job = begun()
    has_applied(leader, 999)
    with broken(COUNTED, "has applied 0 bytes since the last snapshot, and counts 999"):
        leader.step([SnapshotWritten(job.snapshot_id, 10)], jobs=[job])
    has_applied(leader, 999)
    leader.replica.applier.bytes_applied = 0
    leader.step([SnapshotWritten(job.snapshot_id, 10)], jobs=[job])


@pytest.mark.parametrize("size", [0, 7])
def test_the_byte_count_restarts_at_a_loaded_snapshot(size: int) -> None:
    _, leader = leading()
    has_applied(leader, 7)
    leader.replica.applier.loading = OffsetAndEpoch(3, 1)
    leader.step()
    leader.replica.applier.loading = None
    leader.replica.applier.bytes_applied = size
    leader.machine.trail.append((3, 0, 0))
    if size:
        with broken(COUNTED, "has applied 0 bytes"):
            leader.step()
    else:
        leader.step()


def test_another_incarnation_loads_its_disk() -> None:
    _, leader = leading()
    has_applied(leader, 7)
    leader.start()
    leader.step()
