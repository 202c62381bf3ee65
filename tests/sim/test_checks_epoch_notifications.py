"""How a leader comes and goes, and which nodes it notifies: each check fails once by hand."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, LeaderAndEpoch, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.raft.inputs import Answered, Received, SendFailed, SendFailure, Shutdown
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    FetchResponse,
    RemoveVoterRequest,
    VoteRequest,
)
from quorate.raft.ready import InstallSnapshot, Send
from quorate.raft.roles import Candidate, Follower, Prospective, Resigned, Unattached
from quorate.raft.values import ElectionState, Voters
from quorate.replica.replica import Answer
from sim.fake import Node, key, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_leader_duties import leading
from sim.test_checks_voter_changes import HERE, known, quorum

pytestmark = pytest.mark.interpreted
COMES = "epoch notifications"


def to(other: int, request: Any, correlation: int = 0) -> Send:
    return Send(correlation, other, Address("host", 9093), request, 500)


def begin(leader: Node, other: int, name: int | None = None, at: Any = ()) -> Send:
    me = LeaderAndEpoch(1, leader.epoch)
    receiver = key(name or other)
    return to(other, BeginQuorumEpochRequest(None, receiver, me, at), correlation=other)


def end(leader: Node, other: int, *named: int) -> Send:
    me = LeaderAndEpoch(1, leader.epoch)
    return to(other, EndQuorumEpochRequest(None, me, tuple(map(key, named))))


def reigning() -> Node:
    """Node 1 leads since 0 ms, and has announced that to voters 2 and 3, which do not fetch."""
    fake, leader = quorum()
    leader.state.config.retry_backoff_ms = 20
    leader.state.election = ElectionState(0, 1)
    fake.checks.models[1].vote = leader.state.election
    leader.state.role = A_LEADER
    leader.step(sends=[begin(leader, 2), begin(leader, 3)])
    return leader


# -- BeginQuorumEpoch -----------------------------------------------------------------------------
def test_a_leader_that_notifies_the_first_voter_only() -> None:
    _, leader = quorum()
    leader.state.election = leader.fake.checks.models[1].vote = ElectionState(0, 1)
    leader.state.role = A_LEADER
    with broken(COMES, "begins epoch 0 and does not notify {3-"):
        leader.step(sends=[begin(leader, 2)])


def test_a_leader_that_notifies_an_unresponsive_voter_once() -> None:
    """The request may take 500 ms; half the fetch timeout later it is due again."""
    leader = reigning()
    leader.state.now = 1999
    leader.step(sends=[begin(leader, 2), begin(leader, 3)])
    leader.state.now = 3498
    leader.step(sends=[begin(leader, 2)])
    leader.state.now = 3499
    with broken(COMES, "has not notified 3-"):
        leader.step()


@pytest.mark.parametrize("how", ["answered", "failed"])
def test_a_voter_that_answered_is_notified_again_at_the_earliest_time(how: str) -> None:
    """After the backoff, at the next time for it."""
    leader = reigning()
    leader.state.now = 100
    response = BeginQuorumEpochResponse(ErrorCode.NONE, LeaderAndEpoch(1, 0))
    came = Answered(3, response) if how == "answered" else SendFailed(3, SendFailure.DISCONNECTED)
    leader.step([came, SendFailed(9, SendFailure.TIMED_OUT)])
    leader.state.now = 1119
    leader.step()
    leader.state.now = 1120
    with broken(COMES, "has not notified 3-"):
        leader.step()


def test_a_voter_that_fetches_is_not_notified_again() -> None:
    leader = reigning()
    leader.state.now = 1400
    leader.fake.checks.models[1].received.last_request_ms = {key(2): 400, key(3): 1000}
    leader.step()
    leader.state.now = 2400
    with broken(COMES, "has not notified 2-"):
        leader.step()


def test_new_voters_are_notified_again() -> None:
    """They have fetched as observers."""
    leader = reigning()
    leader.state.now = 1400
    leader.fake.checks.models[1].initial_voters = known(1, 2, 3)
    leader.step()
    leader.state.now = 2399
    leader.step()
    leader.state.now = 2400
    with broken(COMES):
        leader.step()


def test_a_leader_that_announces_an_old_endpoint() -> None:
    leader = reigning()
    with broken(COMES, "listens at (), and sends "):
        leader.step(sends=[begin(leader, 2, at=HERE)])


@pytest.mark.parametrize("kind", ["begin", "vote"])
def test_a_request_that_names_another_than_it_is_for(kind: str) -> None:
    leader = reigning()
    if kind == "begin":
        wrong = begin(leader, 2, name=1)
    else:
        wrong = to(2, VoteRequest(None, key(3), 0, key(1), 0, 0, True))
    with broken("request names its receiver", "asks 2-"):
        leader.step(sends=[wrong])


def test_a_non_voter_is_asked_under_any_directory() -> None:
    leader = reigning()
    leader.step(sends=[begin(leader, 4, name=2)])


@pytest.mark.parametrize("why", ["", "refused", "follows", "of another epoch", "nowhere"])
def test_a_replica_that_does_not_follow_the_announced_leader(why: str) -> None:
    """It knew the leader; `why`: it need not follow."""
    fake, leader = leading()
    node = fake[2]
    node.state.election = fake.checks.models[2].election = ElectionState(1, 1)
    node.state.role = Follower(HERE, 900, 0) if why == "follows" else Unattached(0)
    me = LeaderAndEpoch(leader.id, 2 if "epoch" in why else 1)
    request = BeginQuorumEpochRequest(None, key(2), me, () if why == "nowhere" else HERE)
    error = ErrorCode.INVALID_VOTER_KEY if why == "refused" else ErrorCode.NONE
    answer = Answer(7, BeginQuorumEpochResponse(error, LeaderAndEpoch(1, 1)))
    if why == "of another epoch":
        with broken(COMES, "accepted that node 1"):
            node.step([Received(7, request)], answers=[answer])
    elif why:
        node.step([Received(7, request)], answers=[answer])
    else:
        with broken("known leader is followed", "stays unattached"):
            node.step([Received(7, request)], answers=[answer])


@pytest.mark.parametrize("why", ["", "late", "nowhere", "another"])
def test_a_replica_that_does_not_follow_the_leader_of_an_answer(why: str) -> None:
    """It knew the leader; `why`: it need not follow."""
    fake, _ = leading()
    node = fake[2]
    node.state.election = fake.checks.models[2].election = ElectionState(1, 1)
    node.state.role = Unattached(0)
    node.state.requests.by_correlation = {8 if why == "late" else 7: None}
    node.step()
    leader = LeaderAndEpoch(1, 0 if why == "another" else 1)
    where = () if why == "nowhere" else HERE
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    answered = Answered(7, FetchResponse(error, leader, leader_endpoints=where))
    if why:
        node.step([answered])
        return
    with broken("known leader is followed"):
        node.step([answered])
    node.start()
    node.state.election, node.state.role = ElectionState(1, 1), Unattached(0)
    fake.checks.models[2].election = node.state.election
    node.step([answered])


# -- EndQuorumEpoch -------------------------------------------------------------------------------
def test_a_leader_that_ends_its_epoch_towards_one() -> None:
    leader = reigning()
    leader.state.role = Resigned(0, {2, 3})
    with broken(COMES, "ends epoch 0 and does not notify {3-"):
        leader.step(sends=[end(leader, 2, 3, 2)])


def test_a_leader_that_ends_its_epoch_towards_all() -> None:
    leader = reigning()
    leader.state.role = Resigned(0, {2, 3})
    leader.step(sends=[end(leader, 2, 3, 2), end(leader, 3, 3, 2)])
    leader.step()


@pytest.mark.parametrize("named", [(), (2,), (2, 3, 3), (1, 2, 3)])
def test_a_leader_that_does_not_name_all_successors(named: tuple[int, ...]) -> None:
    leader = reigning()
    leader.state.role = Resigned(0, {2, 3})
    with broken("EndQuorumEpoch names all voters", "ends epoch 0 and names ["):
        leader.step(sends=[end(leader, 2, *named), end(leader, 3, *named)])


def test_a_leader_of_an_earlier_incarnation_names_no_node() -> None:
    _, leader = leading()
    leader.start()
    leader.state.role = Resigned(0, {2, 3})
    leader.step(sends=[end(leader, 2), end(leader, 3)])
    with broken("EndQuorumEpoch names all voters"):
        leader.step(sends=[end(leader, 2, 2, 3)])


def test_a_leader_whose_disk_fails_ends_its_epoch() -> None:
    leader = reigning()
    leader.state.role = Resigned(0, set())
    with broken(COMES, "ends epoch 0 and does not notify {2-"):
        leader.step(faulted="storage failed: no space")


def test_a_leader_that_stops_for_another_reason_sends_nothing() -> None:
    leader = reigning()
    leader.step(faulted="the state machine failed")
    leader = reigning()
    leader.state.role = Resigned(0, {2, 3})
    leader.step(stopped=True)


# -- graceful shutdown ----------------------------------------------------------------------------
def to_stop(role: Any = None) -> Node:
    """Node 1 of three voters was asked to stop within 500 ms, and knows no leader."""
    _, node = quorum()
    node.state.role = role or Unattached(0)
    node.step([Shutdown(500)])
    node.step([Shutdown(9000)])
    return node


def test_a_replica_that_stops_too_early() -> None:
    node = to_stop()
    node.state.now = 499
    with broken("shutdown waits for a new leader", "1 ms of its timeout are left, and {1-"):
        node.step(stopped=True)


def test_a_replica_with_a_failed_disk_waits_for_no_node() -> None:
    """Seed 10212176: at the end of a pause it was asked to stop, and its disk was full."""
    node = to_stop()
    node.state.now = 499
    node.step(stopped=True, faulted="storage failed: the disk is full")


def test_a_leader_that_stops_without_end_quorum_epoch() -> None:
    """Also where no node could follow it: they may come back."""
    node = to_stop(Follower((), 900, 0))
    node.state.role, node.state.requests.unreachable = A_LEADER, {2, 3}
    node.fake.checks.epoch_notifications._leaders.clear()
    with broken("shutdown waits for a new leader", "as leader"):
        node.step(stopped=True)


@pytest.mark.parametrize("why", ["time", "no voter", "alone", "another leads", "peers are gone"])
def test_a_replica_that_need_not_wait(why: str) -> None:
    node = to_stop()
    model = node.fake.checks.models[1]
    if why == "time":
        node.state.now = 500
    elif why == "no voter":
        model.initial_voters = known(2, 3)
    elif why == "alone":
        model.initial_voters = known(1)
    elif why == "another leads":
        node.state.election = model.election = ElectionState(0, 2)
    else:
        node.state.requests.unreachable = {2}
        with broken("shutdown waits for a new leader"):
            node.step(stopped=True)
        node.state.requests.unreachable = {2, 3}
    node.step(stopped=True)


def test_a_new_incarnation_was_notified_of_nothing() -> None:
    node = to_stop()
    node.start()
    node.step([Shutdown(501)])
    node.state.now = 500
    with broken("shutdown waits for a new leader"):
        node.step(stopped=True)


def hears_end_of_epoch(*named: int) -> Node:
    """Node 2 follows node 1, which ends its epoch."""
    fake, leader = leading()
    node = fake[2]
    node.state.role = Follower((), 900, 0)
    node.state.installing = node.state.shutdown_deadline = None
    notification = EndQuorumEpochRequest(None, LeaderAndEpoch(leader.id, 1), tuple(map(key, named)))
    node.notification = notification  # type: ignore[attr-defined]
    return node


def test_the_first_successor_that_waits() -> None:
    node = hears_end_of_epoch(2, 3)
    with broken("first successor starts an election at once", "waits for 900 ms"):
        node.receive(node.notification)  # type: ignore[attr-defined]


def test_a_prospective_returns_to_its_leader_after_any_answer() -> None:
    """Seed 10213841: its election timeout was over in the step of the EndQuorumEpoch. So is Kafka's."""
    node = hears_end_of_epoch(2, 3)
    follower = node.state.role
    node.state.role = Prospective(None, 900)  # type: ignore[arg-type]
    node.step()
    node.state.role = follower
    node.receive(node.notification)  # type: ignore[attr-defined]
    with broken("first successor starts an election at once", "waits for 900 ms"):
        node.receive(node.notification)  # type: ignore[attr-defined]


@pytest.mark.parametrize("named", [(), (3, 2)])
def test_a_later_successor_may_wait(named: tuple[int, ...]) -> None:
    node = hears_end_of_epoch(*named)
    node.receive(node.notification)  # type: ignore[attr-defined]


@pytest.mark.parametrize("why", ["runs", "installs", "stops", "ends", "no voter"])
def test_a_first_successor_that_need_not_start_an_election(why: str) -> None:
    node = hears_end_of_epoch(2, 3)
    if why == "runs":
        node.state.role = Prospective(None, 0)  # type: ignore[arg-type]
    elif why == "installs":
        node.state.installing = (3, 1)
    elif why == "stops":
        node.state.shutdown_deadline = 9
    elif why == "no voter":
        node.fake.checks.models[2].tip.voters = voters(1, 3)
    else:
        node.fake.checks.fetch_responses._waiting[2].clear()
        node.step([], stopped=True)
        return
    node.receive(node.notification)  # type: ignore[attr-defined]


# -- why it goes ----------------------------------------------------------------------------------
REMOVED = "epoch 1: resigned (removed from the voter set)"


def removing(*left: int) -> Node:
    """Node 1 was asked to remove a voter, so that these are left, and has that in its log."""
    fake, leader = leading()
    leader.state.durable.election_is_durable = True
    for waiting in fake.checks.fetch_responses._waiting.values():
        waiting.clear()
    for node in fake.nodes.values():
        fake.rule(node, *left)
    leader.receive(RemoveVoterRequest(None, key(6 - sum(left))))
    leader._be_asked_for = lambda new: None  # type: ignore[method-assign]
    leader.append(leader.control(Voters(voters(*left))))
    leader.persist()
    fake.replicate(leader, 2, 3)
    return leader


def test_a_leader_that_resigns_before_its_removal_is_committed() -> None:
    leader = removing(2, 3)
    leader.state.role = Resigned(0, {2, 3})
    with broken("resignation reason is true", f'"{REMOVED}"'):
        leader.step(notes=[REMOVED])


def test_a_leader_resigns_when_its_removal_is_committed() -> None:
    leader = removing(2, 3)
    leader.state.high_watermark = leader.end
    leader.state.role = Resigned(0, {2, 3})
    leader.fake.checks.voter_changes._asked[1].clear()
    leader.step(notes=[REMOVED])


def test_a_committed_voter_change_is_answered_at_once() -> None:
    leader = removing(1, 2)
    with broken("committed voter change is answered at once", "has not answered"):
        leader.commit(leader.end)


def test_a_stopping_replica_answers_an_operator() -> None:
    leader = removing(1, 2)
    with broken("voter change deadline", "stops and has not answered"):
        leader.step(stopped=True)


# -- replicas without an election ------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [Prospective, Candidate])
def test_a_replica_that_starts_an_election_while_it_installs_a_snapshot(kind: Any) -> None:
    """A disk that takes long had hidden nothing: no check asked."""
    fake, _ = leading()
    node = fake[3]
    node.write(InstallSnapshot(OffsetAndEpoch(3, 1)))
    node.state.role = Unattached(0)
    node.step()
    node.state.role = kind(None, 0)
    with broken(
        "no election during a snapshot install",
        "node 3 (incarnation 1) starts an election after epoch",
    ):
        node.step()


def test_a_replica_may_start_an_election_after_it_installed_a_snapshot() -> None:
    fake, _ = leading()
    fake[3].install(OffsetAndEpoch(3, 1))
    fake[3].state.role = Prospective(None, 0)  # type: ignore[arg-type]
    fake[3].step()


def test_a_replica_that_accepts_a_request_for_another_directory() -> None:
    fake, _ = leading()
    node = fake[2]
    node.state.election = fake.checks.models[2].election = ElectionState(1, 1)
    node.state.role = Follower(HERE, 900, 0)
    me = LeaderAndEpoch(1, 1)
    for meant in (key(3), ReplicaKey(2, Uuid(bytes(15) + b"\x99"))):
        request = BeginQuorumEpochRequest(None, meant, me, HERE)
        node.step(
            [Received(7, request)],
            answers=[Answer(7, BeginQuorumEpochResponse(ErrorCode.INVALID_VOTER_KEY, me))],
        )
        with broken("request names its receiver", "accepted a request for"):
            node.step(
                [Received(8, request)],
                answers=[Answer(8, BeginQuorumEpochResponse(ErrorCode.NONE, me))],
            )
    request = BeginQuorumEpochRequest(None, ReplicaKey(2), me, HERE)
    node.step(
        [Received(9, request)], answers=[Answer(9, BeginQuorumEpochResponse(ErrorCode.NONE, me))]
    )
