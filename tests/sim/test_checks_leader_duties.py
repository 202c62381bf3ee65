"""What a leader owes, each broken once by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.batch import encode_batch
from quorate.raft.inputs import Persisted, Received, Shutdown
from quorate.raft.messages import EndQuorumEpochRequest, FetchRequest, FetchResponse, ReadRange
from quorate.raft.progress import ProgressTracker
from quorate.raft.ready import SaveElection
from quorate.raft.roles import Follower, Leader, Resigned, Unattached
from quorate.raft.values import ControlState, ElectionState, Voters
from quorate.raft.voters import VoterSet
from quorate.replica.disk_jobs import AppendBatches, Write
from quorate.sim.checks.state_machines import TIMES
from quorate.storage.api import AppendedBatch
from sim.fake import Fake, Node, key, voters
from sim.test_checks_core import A_LEADER, broken

pytestmark = pytest.mark.interpreted


def leading(count: int = 4) -> tuple[Fake, Node]:
    """Node 1 leads voters 1 to 3; node 4 is there too, and all have fetched at 0 ms."""
    fake = Fake(count, (1, 2, 3))
    leader = fake.elect(1, 1, 2, 3)
    fake.replicate(leader, 2, 3)
    leader.commit(3)
    leader.state.role = A_LEADER
    leader.step()
    return fake, leader


def at(leader: Node, now_ms: int) -> None:
    """A step every second until then, and one then."""
    for now in (*range(leader.state.now + 1000, now_ms, 1000), now_ms):
        leader.state.now = now
        leader.step()


def test_a_leader_that_stays_without_a_majority() -> None:
    _, leader = leading()
    at(leader, 6000)
    with broken("check quorum", "for 6001 ms no majority"):
        at(leader, 6001)


def test_one_follower_of_three_voters_is_enough() -> None:
    _, leader = leading()
    at(leader, 4000)
    leader.hear(2)
    at(leader, 9000)
    with broken("check quorum"):
        at(leader, 10_001)


def test_a_paused_leader_counts_fetches_that_arrived_meanwhile() -> None:
    """As Kafka does. Seed 101449 of plan format 3: a leader that was stopped for five seconds."""
    _, leader = leading()
    leader.state.now = 8000
    leader.step()
    at(leader, 11_000)
    with broken("check quorum"):
        at(leader, 11_001)


@pytest.mark.parametrize("last_ms", [4000, 4979])
def test_a_leader_paused_beyond_its_longest_wait_counts_fetches_that_arrived_meanwhile(
    last_ms: int,
) -> None:
    """It wakes each half fetch timeout; here its last deadline went by meanwhile (seed 8456896, and
    18007502, where that was less than a fetch timeout)."""
    _, leader = leading()
    at(leader, last_ms)
    leader.state.now = 6001
    leader.step()
    at(leader, 9001)
    with broken("check quorum"):
        at(leader, 9002)


def test_a_new_voter_set_restarts_check_quorum() -> None:
    fake, leader = leading()
    at(leader, 5000)
    fake.rule(leader, 1, 2)
    leader.append(leader.control(Voters(voters(1, 2))))
    at(leader, 11_000)
    with broken("check quorum", "of {1"):
        at(leader, 11_001)


def test_an_observer_is_not_enough() -> None:
    _, leader = leading()
    at(leader, 4000)
    leader.hear(4)
    with broken("check quorum"):
        at(leader, 6001)


GOOD = FetchResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), 3, 0, None, None, None, (), ())
GONE = "epoch 1: resigned (no fetch from a majority of the voters)"


def serve(leader: Node, other: int, response: object = None) -> None:
    """Node `other` fetches now, and is answered."""
    request = FetchRequest(None, key(other), leader.epoch, leader.end, 0, 0, 0, -1)
    reply_to = leader.receive(request)
    leader.answer(response or GOOD, reply_to)  # type: ignore[arg-type]


def resign(leader: Node, *notes: str) -> None:
    leader.state.role = Resigned(9000, set())
    leader.step(notes=list(notes))


def test_a_leader_that_resigns_although_a_majority_fetches() -> None:
    _, leader = leading()
    at(leader, 3000)
    serve(leader, 2)
    at(leader, 5999)
    with broken("leader with a majority stays", "within 3000 ms it has answered 2-"):
        resign(leader, GONE)


def test_a_leader_resigns_when_the_last_fetch_reaches_the_timeout() -> None:
    _, leader = leading()
    at(leader, 3000)
    serve(leader, 2)
    at(leader, 6000)
    resign(leader, GONE)


def test_a_leader_may_resign_for_another_reason() -> None:
    _, leader = leading()
    at(leader, 3000)
    serve(leader, 2)
    leader.state.role = Resigned(9000, set())
    leader.step([Shutdown(3000)], notes=["epoch 1: resigned (shutdown)"])


def test_a_leader_that_resigns_for_no_reason() -> None:
    """What it says is no reason, unless there is a check that sees whether it is so."""
    _, leader = leading()
    with broken(
        "leader resigns with a reason", 'without a request: "epoch 1: resigned (shutdown)"'
    ):
        resign(leader, "epoch 1: resigned (shutdown)")


@pytest.mark.parametrize(
    "response",
    [
        FetchResponse(ErrorCode.INVALID_REQUEST, LeaderAndEpoch(1, 1), -1, 0),
        FetchResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), 3, 0, OffsetAndEpoch(1, 1)),
        FetchResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), 3, 0, None, OffsetAndEpoch(1, 1)),
    ],
)
def test_a_fetch_that_is_refused_does_not_count(response: FetchResponse) -> None:
    _, leader = leading()
    at(leader, 3000)
    serve(leader, 2, response)
    resign(leader, GONE)


def test_a_fetch_before_the_voter_set_was_in_force_does_not_count() -> None:
    fake, leader = leading()
    at(leader, 3000)
    serve(leader, 2)
    fake.rule(leader, 1, 2)
    leader.append(leader.control(Voters(voters(1, 2))))
    resign(leader, GONE)


def test_a_new_voter_that_has_not_fetched_in_the_epoch() -> None:
    fake, leader = leading()
    fake.checks.models[1].received.forget()
    fake.rule(leader, 1, 2, 3, 4)
    with broken("a new voter has caught up", "adds 4"):
        leader.append(leader.control(Voters(voters(1, 2, 3, 4))))


def test_a_new_voter_that_is_behind() -> None:
    """Until it has fetched what the leader had when it fetched before."""
    fake, leader = leading()
    fake.checks.models[1].received.forget()
    leader.hear(4, behind=2)
    fake.rule(leader, 1, 2, 3, 4)
    with broken("a new voter has caught up", "which has not caught up in epoch"):
        leader.append(leader.control(Voters(voters(1, 2, 3, 4))))


def test_a_new_voter_that_has_what_there_was_when_it_fetched_before() -> None:
    """Or earlier: seed 100862 of plan format 3 fetched without success below the log's start meanwhile."""
    fake, leader = leading()
    fake.checks.models[1].received.forget()
    leader.hear(4, behind=1)
    leader.append(leader.made())
    leader.hear(4, behind=2)
    leader.append(leader.made())
    leader.hear(4, behind=2)
    fake.rule(leader, 1, 2, 3, 4)
    leader.append(leader.control(Voters(voters(1, 2, 3, 4))))


def test_a_voter_that_is_updated_beside_a_change() -> None:
    """The same replicas, but it is a voter set like any other."""
    fake, leader = leading()
    fake.rule(leader, 1, 2)
    leader.append(leader.control(Voters(voters(1, 2))))
    moved = (replace(voters(1)[0], max_kraft_version=2), *voters(2))
    leader.state.controls.state = ControlState(1, moved)
    with broken("single voter change", "is not known to be committed"):
        leader.append(leader.control(Voters(moved)))


def test_a_new_voter_that_has_fetched() -> None:
    fake, leader = leading()
    fake.rule(leader, 1, 2, 3, 4)
    leader.append(leader.control(Voters(voters(1, 2, 3, 4))))


def test_a_new_voter_added_in_the_step_in_which_the_leader_learns_of_a_newer_epoch() -> None:
    """Seed 266 once failed: what was received in the old epoch was dropped too soon."""
    fake, leader = leading()
    fake.rule(leader, 1, 2, 3, 4)
    batch = leader.control(Voters(voters(1, 2, 3, 4)))
    leader.batches.append(batch)
    leader.state.election = ElectionState(2)
    leader.state.role = Unattached(0)
    leader.write(AppendBatches((batch,)), SaveElection(leader.state.election, 1))


def test_a_removed_leader_that_stays() -> None:
    fake, leader = leading()
    fake.rule(leader, 2, 3)
    leader.append(leader.control(Voters(voters(2, 3))))
    leader.persist()
    fake.rule(fake[2], 2, 3)
    fake.rule(fake[3], 2, 3)
    fake.replicate(leader, 2, 3)
    with broken("a removed leader resigns", "is committed"):
        leader.commit(leader.end)


@pytest.mark.parametrize("left", [999, 1000])
def test_a_voter_that_voted_for_another_waits_an_election_timeout(left: int) -> None:
    fake = Fake()
    fake[1].state.now = 5000
    fake[1].state.role = Unattached(5000 + left)
    fake[1].state.election = ElectionState(1, -1, key(2))
    saved = Write(1, (SaveElection(fake[1].state.election, 1),))
    if left < 1000:
        with broken("vote resets the election timeout", "would start an election in 999 ms"):
            fake[1].step([Persisted(0)], jobs=[saved])
    else:
        fake[1].step([Persisted(0)], jobs=[saved])


def test_a_voter_that_lost_its_new_leader_in_the_step_of_its_vote_may_start_an_election_early() -> (
    None
):
    """Seed 20261122000018: vote, leader and its EndQuorumEpoch, all taken at the end of a pause."""
    fake = Fake()
    fake[1].state.role = Unattached(100)
    fake[1].state.election = ElectionState(1, -1, key(2))
    saved = Write(1, (SaveElection(fake[1].state.election, 1),))
    fake[1].step([Persisted(0), Persisted(0)], jobs=[saved])


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_follower_grants_pre_votes_after_its_leader_ended_the_epoch(epoch: int) -> None:
    fake, leader = leading()
    fake[2].state.role = Follower((), 9000, 9000, has_fetched=True)
    notification = EndQuorumEpochRequest(None, LeaderAndEpoch(leader.id, epoch), ())
    if epoch == leader.epoch:
        with broken("EndQuorumEpoch ends leadership", "node 1 ends epoch 1, and still follows it"):
            fake[2].receive(notification)
        fake[2].state.role.has_fetched = False
    fake[2].receive(notification)


def test_a_replica_that_follows_since_the_step_of_an_end_quorum_epoch_was_no_follower_before() -> (
    None
):
    """Seed 10126816: at the end of a pause, unattached, it took the EndQuorumEpoch and then a Fetch's
    answer."""
    fake, leader = leading()
    fake[2].state.role = Unattached(9000)
    fake[2].step()
    fake[2].state.role = Follower((), 9000, 9000, has_fetched=True)
    notification = EndQuorumEpochRequest(None, LeaderAndEpoch(leader.id, 1), ())
    fake[2].step([Received(1, notification), Persisted(0)])
    with broken("EndQuorumEpoch ends leadership", "node 1 ends epoch 1, and still follows it"):
        fake[2].step([Received(2, notification), Persisted(0)])


def notified_node() -> Node:
    """Node 2 has received EndQuorumEpoch of epoch 1."""
    fake, leader = leading()
    fake[2].state.role = Follower((), 9000, 9000)
    fake[2].receive(EndQuorumEpochRequest(None, LeaderAndEpoch(leader.id, 1), ()))
    fake[2].state.role = Follower((), 9000, 9000, has_fetched=True)
    return fake[2]


def test_a_fetch_does_not_restore_a_leader_that_ended_its_epoch() -> None:
    with broken("EndQuorumEpoch ends leadership", "node 1 ends epoch 1, and still follows it"):
        notified_node().step()


@pytest.mark.parametrize("how", ["epoch", "lost", "restart"])
def test_an_end_quorum_epoch_counts_for_one_epoch_and_while_that_leader_is_known(how: str) -> None:
    notified = notified_node()
    found = notified.state.role
    if how == "epoch":
        notified.state.election = replace(notified.state.election, epoch=2, leader_id=-1)
    elif how == "lost":
        notified.state.role = Unattached(9000)
        notified.step()
    else:
        notified.persist()
        notified.start()
    notified.state.role = found
    notified.step()
    notified.step()


# -- one other voter is enough --------------------------------------------------------------------
def acting() -> tuple[Fake, Node]:
    """As `leading`, in an epoch that is durable."""
    fake, leader = leading()
    leader.state.durable.election_is_durable = True
    at(leader, 6000)
    return fake, leader


def test_a_leader_whose_last_fetch_reaches_the_timeout() -> None:
    """Of three voters one Fetch is enough, and sets the deadline: `LeaderState.checkQuorumTimer`.
    Nothing that was asked before the epoch was durable is answered before that."""
    _, leader = acting()
    serve(leader, 2)
    at(leader, 9000)
    with broken("check quorum", "for 3001 ms no majority"):
        at(leader, 9001)


def waits(leader: Node, other: int, knows: int = 3) -> int:
    """Node `other` fetches at the end of the log, and knows this high watermark."""
    request = FetchRequest(None, key(other), leader.epoch, leader.end, 0, 0, 500, knows)
    return leader.receive(request)


def test_a_fetch_at_its_deadline_does_not_count_again() -> None:
    _, leader = acting()
    reply_to = waits(leader, 2)
    at(leader, 6500)
    leader.answer(GOOD, reply_to)
    with broken("check quorum", "for 3001 ms no majority"):
        at(leader, 9001)


@pytest.mark.parametrize(("knows", "records"), [(2, None), (3, ReadRange(3, 4, 100))])
def test_a_fetch_answered_with_content_may_count_again(
    knows: int, records: ReadRange | None
) -> None:
    """As it does in Kafka."""
    _, leader = acting()
    reply_to = waits(leader, 2, knows)
    at(leader, 6500)
    leader.answer(replace(GOOD, records=records), reply_to)
    at(leader, 9500)
    with broken("check quorum", "for 3001 ms no majority"):
        at(leader, 9501)


def test_of_five_voters_the_first_fetch_may_be_older() -> None:
    fake = Fake(5)
    leader = fake.elect(1, 1, 2, 3)
    leader.state.role = A_LEADER
    leader.state.durable.election_is_durable = True
    leader.step()
    at(leader, 5000)
    leader.hear(2, 3)
    at(leader, 11_000)
    with broken("check quorum", "for 6001 ms no majority"):
        at(leader, 11_001)


# -- where the followers are ----------------------------------------------------------------------
def asks(leader: Node, other: int, offset: int) -> int:
    return leader.receive(FetchRequest(None, key(other), leader.epoch, offset, 0, 0, 0, 3))


def test_a_lagging_voter_is_not_the_first_successor() -> None:
    _, leader = acting()
    leader.answer(GOOD, asks(leader, 2, 3))
    leader.answer(GOOD, asks(leader, 3, 2))
    leader.state.role = Resigned(9000, set(), (key(3), key(2)))
    leader.state.now += 1
    with broken("successors are ordered by log", "last fetch offsets are 2 and 3"):
        leader.step()


def test_a_fetch_of_the_step_in_which_it_resigns_may_be_too_late() -> None:
    """Seed 4001215: a replica that stood still took an order to stop, and then a Fetch."""
    _, leader = acting()
    asks(leader, 2, 3)
    leader.state.role = Resigned(9000, set(), (key(3), key(2)))
    leader.step()


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.INVALID_REQUEST])
def test_a_fetch_that_waits_counts_for_the_successors(error: ErrorCode) -> None:
    """It is refused because the leader goes; one that is refused for itself never counted."""
    _, leader = acting()
    leader.answer(GOOD, asks(leader, 2, 2))
    leader.answer(GOOD, asks(leader, 3, 1))
    leader.answer(FetchResponse(error, LeaderAndEpoch(1, 1), -1, 0), asks(leader, 3, 3))
    leader.state.role = Resigned(9000, set(), (key(3), key(2)))
    leader.state.now += 1
    if error is ErrorCode.INVALID_REQUEST:
        with broken("successors are ordered by log", "last fetch offsets are 1 and 2"):
            leader.step()
    else:
        leader.step()


def test_a_fetch_before_it_led_counts_for_nothing() -> None:
    """Seed 5122 once failed: a candidate of the same epoch had refused it."""
    fake, leader = acting()
    fake.checks.models[1].received.forget()
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader.state.role = Unattached(0)
    leader.answer(FetchResponse(error, LeaderAndEpoch(1, 1), -1, 0), asks(leader, 3, 4))
    leader.state.role = A_LEADER
    leader.answer(GOOD, asks(leader, 2, 2))
    leader.state.role = Resigned(9000, set(), (key(2), key(3)))
    leader.step()


def test_a_voter_without_a_fetch_is_the_last_successor() -> None:
    fake, leader = acting()
    fake.checks.models[1].received.forget()
    leader.answer(GOOD, asks(leader, 2, 0))
    leader.state.role = Resigned(9000, set(), (key(3), key(2)))
    leader.state.now += 1
    with broken("successors are ordered by log", "last fetch offsets are -1 and 0"):
        leader.step()


def test_before_an_epoch_is_durable_no_node_has_fetched() -> None:
    """Seeds 5122 and 5138 once failed: those that fetch wait, and are refused when it fails."""
    fake, leader = leading()
    fake.checks.models[1].received.forget()
    asks(leader, 2, 3)
    leader.state.role = Resigned(9000, set(), (key(3), key(2)))
    leader.step()


def test_a_new_directory_has_no_log_end_of_the_old_one() -> None:
    """Seed 975 once failed: the old one is the voter, and its successor comes last."""
    fake, leader = acting()
    fake.checks.models[1].received.forget()
    new = ReplicaKey(2, Uuid(bytes(15) + b"\7"))
    reply_to = leader.receive(FetchRequest(None, new, leader.epoch, 3, 0, 0, 0, 3))
    leader.answer(GOOD, reply_to)
    leader.state.role = Resigned(9000, set(), (key(3), key(2)))
    leader.step()


def booked(leader: Node, other: int, offset: int) -> None:
    """The leader's book says that this node is there."""
    progress = ProgressTracker(key(1), VoterSet(voters(1, 2, 3)))
    progress.row(key(other), 0).end_offset = offset
    leader.state.role = Leader(0, progress, 0, 0)


def test_a_leader_that_ignores_a_regressed_log_end() -> None:
    _, leader = acting()
    leader.answer(GOOD, asks(leader, 2, 3))
    booked(leader, 2, 2)
    leader.answer(GOOD, asks(leader, 2, 2))
    booked(leader, 2, 3)
    with broken(
        "leader uses the last Fetch offset", "with log end 3; its last fetch offsets are 1"
    ):
        leader.answer(GOOD, asks(leader, 2, 1))


def test_of_two_fetches_that_wait_the_later_one_counts() -> None:
    _, leader = acting()
    leader.answer(GOOD, asks(leader, 2, 3))
    first, _ = asks(leader, 2, 1), asks(leader, 2, 2)
    booked(leader, 2, 2)
    leader.answer(GOOD, first)


def test_a_leader_writes_the_time_of_its_clock() -> None:
    _, leader = leading()
    leader.append(leader.made())
    data = encode_batch(leader.end, leader.epoch, 5, (b"value",))
    with broken(TIMES, "the timestamps [5, 5] at 0 ms"):
        leader.append(AppendedBatch(leader.end, leader.end, leader.epoch, data))


def test_a_machine_gets_the_timestamp_of_the_batch() -> None:
    fake, leader = leading()
    leader.machine.newest = 3, 0
    leader.apply(3, 1, 1)
    fake[2].commit(3)
    fake[2].machine.newest = 3, 7
    with broken(TIMES, "the batch up to 3 with timestamp 7; its own is 0"):
        fake[2].apply(3, 1, 1)
