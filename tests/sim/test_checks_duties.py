"""What a leader owes, each broken once by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.node.jobs import AppendBatches, Write
from quorate.raft.inputs import Persisted
from quorate.raft.messages import EndQuorumEpochRequest, FetchRequest, FetchResponse
from quorate.raft.ready import SaveElection
from quorate.raft.roles import Follower, Resigned, Unattached
from quorate.raft.values import ControlState, ElectionState, Voters
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
    with broken("check quorum", "since 6001 ms no majority"):
        at(leader, 6001)


def test_one_follower_of_three_voters_is_enough() -> None:
    _, leader = leading()
    at(leader, 4000)
    leader.hear(2)
    at(leader, 9000)
    with broken("check quorum"):
        at(leader, 10_001)


def test_who_stood_still_takes_what_came_meanwhile_for_news() -> None:
    """As Kafka does. Seed 101449 of plan format 3: a leader that was stopped for five seconds."""
    _, leader = leading()
    leader.state.now = 8000
    leader.step()
    at(leader, 11_000)
    with broken("check quorum"):
        at(leader, 11_001)


def test_a_new_voter_set_has_its_own_time() -> None:
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


GONE = "epoch 1: resigned (no fetch from a majority of the voters)"


def serve(leader: Node, other: int, response: object = None) -> None:
    """Node `other` fetches now, and is answered."""
    request = FetchRequest(None, key(other), leader.epoch, leader.end, 0, 0, 0, -1)
    reply_to = leader.receive(request)
    good = FetchResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), 3, 0, None, None, None, (), ())
    leader.answer(response or good, reply_to)  # type: ignore[arg-type]


def resign(leader: Node, *notes: str) -> None:
    leader.state.role = Resigned(9000, set())
    leader.step(notes=list(notes))


def test_a_leader_that_resigns_although_a_majority_fetches() -> None:
    _, leader = leading()
    at(leader, 3000)
    serve(leader, 2)
    at(leader, 5999)
    with broken("a leader that is heard stays", "within 3000 ms it has answered 2-"):
        resign(leader, GONE)


def test_a_leader_resigns_when_the_last_fetch_is_as_old_as_it_may_be() -> None:
    _, leader = leading()
    at(leader, 3000)
    serve(leader, 2)
    at(leader, 6000)
    resign(leader, GONE)


def test_a_leader_may_resign_for_another_reason() -> None:
    _, leader = leading()
    at(leader, 3000)
    serve(leader, 2)
    resign(leader, "epoch 1: resigned (shutdown)")


@pytest.mark.parametrize(
    "response",
    [
        FetchResponse(ErrorCode.INVALID_REQUEST, LeaderAndEpoch(1, 1), -1, 0),
        FetchResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), 3, 0, OffsetAndEpoch(1, 1)),
        FetchResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), 3, 0, None, OffsetAndEpoch(1, 1)),
    ],
)
def test_a_fetch_that_is_not_answered_well_does_not_count(response: FetchResponse) -> None:
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
    fake.checks.twins[1].forget_heard()
    fake.rule(leader, 1, 2, 3, 4)
    with broken("a new voter has caught up", "adds 4"):
        leader.append(leader.control(Voters(voters(1, 2, 3, 4))))


def test_a_new_voter_that_is_behind() -> None:
    """Until it has fetched what the leader had when it fetched before."""
    fake, leader = leading()
    fake.checks.twins[1].forget_heard()
    leader.hear(4, behind=2)
    fake.rule(leader, 1, 2, 3, 4)
    with broken("a new voter has caught up", "which has not caught up in epoch"):
        leader.append(leader.control(Voters(voters(1, 2, 3, 4))))


def test_a_new_voter_that_has_what_there_was_when_it_fetched_before() -> None:
    """Or earlier: seed 100862 of plan format 3 fetched in vain below the log's start meanwhile."""
    fake, leader = leading()
    fake.checks.twins[1].forget_heard()
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
    """Seed 266 once failed: what was heard in the old epoch was forgotten too soon."""
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
def test_who_votes_for_another_gives_it_an_election_timeout(left: int) -> None:
    fake = Fake()
    fake[1].state.electable = True
    fake[1].state.now = 5000
    fake[1].state.role = Unattached(5000 + left)
    fake[1].state.election = ElectionState(1, -1, key(2))
    saved = Write(1, (SaveElection(fake[1].state.election, 1),))
    if left < 1000:
        with broken("a vote gives time", "would run itself in 999 ms"):
            fake[1].step([Persisted(0)], jobs=[saved])
    else:
        fake[1].step([Persisted(0)], jobs=[saved])


def test_who_lost_its_new_leader_in_the_step_of_its_vote_may_run_soon() -> None:
    """Seed 20261122000018: vote, leader and its goodbye, all taken at the end of a pause."""
    fake = Fake()
    fake[1].state.electable = True
    fake[1].state.role = Unattached(100)
    fake[1].state.election = ElectionState(1, -1, key(2))
    saved = Write(1, (SaveElection(fake[1].state.election, 1),))
    fake[1].step([Persisted(0), Persisted(0)], jobs=[saved])


@pytest.mark.parametrize("epoch", [1, 2])
def test_who_hears_a_goodbye_vouches_for_that_leader_no_more(epoch: int) -> None:
    fake, leader = leading()
    fake[2].state.role = Follower((), 9000, 9000, has_fetched=True)
    goodbye = EndQuorumEpochRequest(None, LeaderAndEpoch(leader.id, epoch), ())
    if epoch == leader.epoch:
        with broken("a goodbye is heard", "node 1 ends epoch 1, and vouches"):
            fake[2].receive(goodbye)
        fake[2].state.role.has_fetched = False
    fake[2].receive(goodbye)
