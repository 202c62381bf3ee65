"""A replica whose timer is too late, once for each kind of deadline."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from narrow import as_any
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, LeaderAndEpoch
from quorate.raft.inputs import Received
from quorate.raft.messages import AddVoterRequest, AddVoterResponse
from quorate.raft.ready import Send
from quorate.raft.roles import (
    NEVER,
    Ballot,
    Candidate,
    Follower,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorate.raft.voters import VoterSet
from quorate.replica.disk_jobs import Survey
from quorate.replica.replica import Answer, Committed, Effects
from quorate.sim.checks.all_checks import RECHECK_PERIOD
from quorate.sim.checks.voter_changes import IN_TIME
from quorate.sim.checks.wakeups import DONE, PATIENCE, WAKES
from sim.fake import Fake, Node, key, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_leader_duties import leading
from sim.test_checks_voter_changes import HERE

pytestmark = pytest.mark.interpreted
ALL = VoterSet(tuple(replace(voter, listeners=HERE) for voter in voters(1, 2, 3)))


def node(role: Role, *, is_voter: bool = True) -> Node:
    """Node 1, of three voters or beside two, in this role at 0 ms; all that it has is durable,
    nothing is under way."""
    found = Fake()[1]
    found.fake.checks.models[1].initial_voters = ALL.voters[0 if is_voter else 1 :]
    found.state.role = role
    found.state.durable.election_is_durable = True
    return found


def asks(found: Node, other: int, until: int) -> None:
    found.state.requests.by_node[other] = SimpleNamespace(expires_ms=until)


def backs_off(found: Node, other: int, until: int) -> None:
    found.state.requests.backoff_until[other] = until


def follower(*, is_voter: bool = True) -> Node:
    """Of node 2, which it asks until 9000 ms."""
    found = node(Follower(HERE, 2000, 3000), is_voter=is_voter)
    found.state.leader_id = 2
    asks(found, 2, 9000)
    return found


def sleeps_no_longer(found: Node, until: int, what: str) -> None:
    found.step(wake_at_ms=until)
    with broken(WAKES, what):
        found.step(wake_at_ms=until + 1)


# -- leaders --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("due", "what"),
    [
        ("check_deadline", "check quorum ends"),
        ("begin_deadline", "voters that do not fetch are notified"),
    ],
)
def test_a_leader_that_sleeps_over_what_is_due(due: str, what: str) -> None:
    _, leader = leading()
    leader.state.role = replace(A_LEADER, **as_any({due: 700}))
    sleeps_no_longer(leader, 700, f"sleeps for 701 ms as leader; in 700 ms {what}")


def test_a_lone_leader_has_no_node_to_wait_for() -> None:
    alone = node(replace(A_LEADER, check_deadline=700))
    alone.fake.checks.models[1].initial_voters = voters(1)
    alone.step(wake_at_ms=None)


def test_a_leader_that_misses_the_timeout_of_a_change() -> None:
    _, leader = leading()
    leader.state.durable.election_is_durable = True
    request = AddVoterRequest(None, key(4), HERE)
    leader.step([Received(9, request)], wake_at_ms=2000)
    with broken(IN_TIME, "received AddVoterRequest"):
        leader.step(wake_at_ms=2001)


# -- followers ------------------------------------------------------------------------------------
def test_a_follower_that_sleeps_over_its_fetch_timeout() -> None:
    sleeps_no_longer(follower(), 2000, "its fetch timeout ends")


def test_an_observer_waits_for_its_leader() -> None:
    sleeps_no_longer(follower(is_voter=False), 3000, "it updates its voter")


def test_an_installing_replica_starts_no_election() -> None:
    found = follower()
    found.state.installing = (3, 1)
    found.step(wake_at_ms=3000)


def test_a_follower_whose_request_fails() -> None:
    found = follower()
    asks(found, 2, 500)
    sleeps_no_longer(found, 500, "its request times out")


def test_a_follower_whose_leader_is_no_longer_backed_off() -> None:
    """Another may be asked earlier; a node with a longer backoff does not count."""
    found = follower()
    asks(found, 2, 0)
    backs_off(found, 2, 20)
    backs_off(found, 3, 10)
    sleeps_no_longer(found, 20, "it may fetch")


def test_a_follower_that_asks_no_node() -> None:
    found = follower()
    asks(found, 2, 0)
    with broken(WAKES, "in 0 ms it may fetch"):
        found.step(wake_at_ms=2)


@pytest.mark.parametrize("what", ["election_is_durable", "log_is_durable", "installing"])
def test_a_replica_that_may_not_fetch_yet_sends_none(what: str) -> None:
    found = follower()
    asks(found, 2, 0)
    if what == "installing":
        found.state.installing = (3, 1)
    else:
        setattr(found.state.durable, what, False)
    found.step(wake_at_ms=2000)


# -- without a leader ----------------------------------------------------------------------------
def test_an_unattached_replica_that_misses_its_election_timeout() -> None:
    sleeps_no_longer(node(Unattached(800)), 800, "its election timeout ends")


def test_an_unattached_replica_that_sends_no_fetch() -> None:
    found = node(Unattached(800))
    found.state.requests.bootstrap = ((2, HERE),)
    with broken(WAKES, "as unattached; in 0 ms it may fetch"):
        found.step(wake_at_ms=2)
    backs_off(found, 2, 20)
    sleeps_no_longer(found, 20, "it may fetch")


@pytest.mark.parametrize("role", [Prospective, Candidate])
def test_a_candidate_that_sends_no_vote_request(role: type) -> None:
    ballot = Ballot(ALL, {1})
    found = node(role(ballot, 800))
    asks(found, 2, 600)
    backs_off(found, 3, 700)
    sleeps_no_longer(found, 600, "it sends to node 2 again")
    ballot.record(2, True)
    sleeps_no_longer(found, 700, "it sends to node 3 again")
    ballot.record(3, True)
    sleeps_no_longer(found, 800, "its election timeout ends")


def test_a_candidate_that_lost_sends_no_request() -> None:
    found = node(Candidate(Ballot(ALL, {1}, {2, 3}), 800))
    found.step(wake_at_ms=800)


def test_a_resigned_leader_notifies_the_other_voters() -> None:
    found = node(Resigned(800, {2}))
    found.fake.checks.epoch_notifications._resigned[1] = found.epoch  # all were notified once
    backs_off(found, 2, 20)
    sleeps_no_longer(found, 20, "it sends to node 2 again")
    found.state.durable.election_is_durable = False
    sleeps_no_longer(found, 800, "its election timeout ends")


def test_a_replica_that_is_to_stop() -> None:
    found = follower()
    found.state.shutdown_deadline = 100
    sleeps_no_longer(found, 100, "its shutdown times out")


def test_a_replica_without_a_timer() -> None:
    with broken(WAKES, "sleeps for ever as follower"):
        follower().step(wake_at_ms=None)


# -- what is left undone --------------------------------------------------------------------------
LEFT = [
    (
        {
            "sends": [
                Send(9, 2, Address("host", 9093), AddVoterRequest("", key(1), (), 0, False), 0)
            ]
        },
        "AddVoterRequest(",
    ),
    ({"answers": [Answer(7, AddVoterResponse(ErrorCode.NONE))]}, "AddVoterResponse("),
    ({"jobs": [Survey()]}, "Survey for its disk"),
    ({"outcomes": [Committed(7, 3, 4)]}, "Committed for 7"),
    ({"faulted": "storage failed"}, "storage failed"),
    ({"leader": LeaderAndEpoch(2, 1)}, "to report the leader"),
]


def steps(found: Node, count: int, wake_at_ms: int | None) -> None:
    for _ in range(count):
        found.step(wake_at_ms=wake_at_ms)


@pytest.mark.parametrize(("left", "what"), LEFT)
def test_a_step_that_leaves_something_undone(left: dict[str, Any], what: str) -> None:
    found = node(Unattached(NEVER))
    steps(found, 2 * RECHECK_PERIOD, None)
    found.replica.step = lambda *_: Effects(**left)
    steps(found, 2 * RECHECK_PERIOD, found.state.now + 1)
    with broken(DONE, f"until something happens as unattached and has left undone: {what}"):
        steps(found, RECHECK_PERIOD, None)
    with broken(DONE, "node 1 (incarnation 1) would sleep for 2 ms"):
        steps(found, RECHECK_PERIOD, found.state.now + 2)


def test_a_stopping_replica_has_no_duties() -> None:
    found = node(Unattached(NEVER))
    found.replica.step = lambda *_: Effects(jobs=[Survey()])
    for _ in range(RECHECK_PERIOD):
        found.step(stopped=True, wake_at_ms=None)


# -- how long it waits ----------------------------------------------------------------------------
def looked_at(found: Node) -> None:
    """It is looked at now and then."""
    for _ in range(RECHECK_PERIOD):
        found.step()


@pytest.mark.parametrize(
    ("role", "most"),
    [
        (Follower(HERE, 0, NEVER), 3500),
        (Unattached(0), 3000),
    ],
    ids=["a follower", "who knows no leader"],
)
def test_a_replica_that_waits_too_long_for_a_leader(role: Role, most: int) -> None:
    name = "fetch_deadline" if isinstance(role, Follower) else "election_deadline"
    looked_at(node(replace(role, **as_any({name: most}))))
    looked_at(node(replace(role, **as_any({name: most + 1})), is_voter=False))
    with broken(PATIENCE, f"waits {most + 1} ms"):
        looked_at(node(replace(role, **as_any({name: most + 1}))))


def test_a_successor_with_a_later_deadline() -> None:
    found = node(Follower(HERE, 0, 4000))
    found.state.config.election_backoff_max_ms = 4000
    looked_at(found)
