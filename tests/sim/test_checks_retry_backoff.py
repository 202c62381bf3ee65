"""Backoff of unresponsive nodes; replicas that count for a majority; how often a node reports itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch
from quorate.raft.inputs import Answered, ConnectionLost, SendFailed, SendFailure
from quorate.raft.messages import (
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from quorate.raft.ready import Send
from quorate.raft.roles import NEVER, Follower, Leader
from quorate.replica.replica import Effects
from sim.fake import Fake, Node, key
from sim.test_checks_core import broken
from sim.test_checks_leader_duties import leading

pytestmark = pytest.mark.interpreted
NOBODY: Any = SimpleNamespace(voters={}, find=lambda key: None)
BACKOFF = "retry backoff"
COUNTS = "check quorum counts current voters"
UPDATE_RATE = "UpdateRaftVoter rate"


# -- backed off ----------------------------------------------------------------------------------
def asking() -> Node:
    """Node 2 has asked node 1 for its log, under number 7, and backs off for 20 ms when it fails."""
    fake, _ = leading()
    node = fake[2]
    node.state.config.retry_backoff_ms = 20
    asks(node, 7)
    return node


def asks(node: Node, correlation: int, happened: Any = ()) -> None:
    request = FetchSnapshotRequest(None, key(node.id), node.epoch, (3, 1), 0, 9)  # type: ignore[arg-type]
    node.step(happened, sends=[Send(correlation, 1, ("host", 9093), request, 100)])  # type: ignore[arg-type]


def may_be_asked_after_20_ms(node: Node, later: int) -> None:
    node.state.now = later
    if later == 20:
        asks(node, 8)
    else:
        with broken(BACKOFF, "node 2 (incarnation 1) failed to reach 1"):
            asks(node, 8)


@pytest.mark.parametrize("failure", [SendFailure.DISCONNECTED, SendFailure.TIMED_OUT])
@pytest.mark.parametrize("later", [19, 20])
def test_a_node_that_does_not_answer_is_asked_after_the_backoff(
    failure: SendFailure, later: int
) -> None:
    node = asking()
    node.step([SendFailed(7, failure)])
    may_be_asked_after_20_ms(node, later)


@pytest.mark.parametrize("later", [19, 20])
def test_a_node_that_answers_a_fetch_with_an_error_is_backed_off(later: int) -> None:
    node = asking()
    node.step([Answered(7, FetchResponse(ErrorCode.UNKNOWN_LEADER_EPOCH))])
    may_be_asked_after_20_ms(node, later)


def test_an_observer_that_finds_no_leader_doubles_its_backoff() -> None:
    """20, 40, and then 50 ms, as long as a Fetch may wait."""
    node = Fake(4, (1, 2, 3))[4]
    node.state.config.retry_backoff_ms, node.state.config.fetch_max_wait_ms = 20, 50
    for correlation, rest in enumerate((20, 40, 50, 50)):
        asks(node, correlation)
        node.step([SendFailed(correlation, SendFailure.TIMED_OUT)])
        node.state.now += rest
    asks(node, 9)
    node.step([SendFailed(9, SendFailure.TIMED_OUT)])
    node.state.now += 49
    with broken(BACKOFF, "sends to it 1 ms before its backoff is over"):
        asks(node, 10)


@pytest.mark.parametrize("answers", [False, True])
def test_a_configured_longest_backoff_doubles_it_until_an_answer(answers: bool) -> None:
    """20, 40, and then 50 ms; after an answer 20 again."""
    fake, _ = leading()
    node = fake[2]
    node.state.config.retry_backoff_max_ms = 50
    for correlation, rest in enumerate((20, 40, 50)):
        asks(node, correlation)
        node.step([SendFailed(correlation, SendFailure.TIMED_OUT)])
        node.state.now += rest
    asks(node, 8)
    if answers:
        node.step([Answered(8, FetchResponse(ErrorCode.NONE))])
        asks(node, 8)
    node.step([SendFailed(8, SendFailure.TIMED_OUT)])
    node.state.now += 20 if answers else 49
    if answers:
        asks(node, 10)
    else:
        with broken(BACKOFF, "sends to it 1 ms before its backoff is over"):
            asks(node, 10)


def test_it_may_be_asked_in_the_very_step_in_which_it_fails_no_more_than_later() -> None:
    node = asking()
    with broken(BACKOFF):
        asks(node, 8, [SendFailed(7, SendFailure.DISCONNECTED)])


@pytest.mark.parametrize(
    "why",
    ["answered", "unsupported", "late", "another", "lost", "reset", "began", "in one step", "ends"],
)
def test_a_node_that_need_not_be_backed_off(why: str) -> None:
    node = asking()
    failed: list[Any] = [SendFailed(7, SendFailure.DISCONNECTED)]
    if why == "answered":
        failed = [Answered(7, FetchResponse(ErrorCode.NONE))]
    elif why == "unsupported":
        failed = [SendFailed(7, SendFailure.UNSUPPORTED_VERSION)]
    elif why == "late":
        node.state.now = 100
    elif why == "another":
        failed = [SendFailed(6, SendFailure.DISCONNECTED)]
    elif why == "lost":
        node.step([ConnectionLost(1)])
    if why == "in one step":
        asks(node, 8, [*failed, ConnectionLost(3)])
        return
    node.step(failed)
    if why == "ends":  # seed 9601403: a leader whose disk failed ends its epoch towards all
        notification = EndQuorumEpochRequest(None, LeaderAndEpoch(2, 1), ())
        effects = Effects(sends=[Send(8, 1, ("host", 9093), notification, 100)], stopped=True)  # type: ignore[arg-type]
        node.fake.checks.retry_backoff.after_step(
            node.fake.checks.models[2], [], effects, node.state
        )
        return
    if why == "reset":
        node.state.requests.resets += 1
    elif why == "began":
        node.persist()
        node.start()
    asks(node, 8)


# -- a majority that fetches ----------------------------------------------------------------------
def reigning(*first: int) -> tuple[Fake, Node]:
    """Node 1 leads five voters, and a majority fetched at 0 ms and at 100 ms."""
    fake = Fake(6, (1, 2, 3, 4, 5))
    leader = fake.elect(1, 1, 2, 3)
    fake.replicate(leader, 2, 3, 4, 5)
    leader.commit(leader.end)
    leader.state.role = Leader(0, NOBODY, 3000, NEVER)
    leader.step()
    for now in (0, 100):
        leader.state.now = now
        hears(leader, 2, 3)
        leader.state.now = now + 1
        found(leader)
    leader.state.now = 200
    return fake, leader


def hears(leader: Node, *others: int) -> None:
    for other in others:
        leader.receive(FetchRequest(None, key(other), 1, leader.end, 1, 0, 0, -1))


def found(leader: Node) -> None:
    """It takes itself to be connected."""
    leader.state.role.check_deadline = leader.state.now + 3001
    leader.step()


@pytest.mark.parametrize("heard", [(2, 3), (2,), (2, 6)])
def test_a_majority_is_of_voters_that_asked_since_the_last_one(heard: tuple[int, ...]) -> None:
    _, leader = reigning()
    hears(leader, *heard)
    if heard == (2, 3):
        found(leader)
    else:
        with broken(COUNTS, "only {2-AAAAAAAAAAAAAAAAAAAAAg} have sent a request"):
            found(leader)


def test_before_an_epoch_is_durable_no_node_counts_and_then_all_do() -> None:
    _, leader = reigning()
    leader.state.role = Leader(0, NOBODY, 9000, NEVER)
    leader.step()
    hears(leader, 2, 3, 4)
    leader.state.now = 300
    found(leader)
    leader.state.now = 400
    hears(leader, 5)
    found(leader)


def test_in_the_step_of_its_removal_a_voter_may_count() -> None:
    _, leader = reigning()
    hears(leader, 2)
    leader.fake.checks.check_quorum._leaders[1].voters = ()
    found(leader)


# -- of itself ------------------------------------------------------------------------------------
def telling(version: int) -> Node:
    """Node 2 reports itself to its leader at 0 ms, under number 7."""
    fake = Fake(3)
    leader = fake.elect(1, 1, 2, bare=version == 0)
    fake.replicate(leader, 2)
    node = fake[2]
    node.persist()
    node.state.role = Follower((), 9000, 0)
    fake.checks.models[2].initial_kraft_version = version
    report_itself(node, 7)
    return node


def report_itself(node: Node, correlation: int) -> None:
    request = UpdateVoterRequest(None, 1, key(2), (), 0, 1)
    node.step(sends=[Send(correlation, 1, ("host", 9093), request, 100)])  # type: ignore[arg-type]


@pytest.mark.parametrize("now", [1999, 2000])
def test_a_voter_reports_itself_once_in_a_fetch_timeout(now: int) -> None:
    node = telling(1)
    node.state.now = now
    if now == 2000:
        report_itself(node, 8)
        node.state.now = 2001
        node.state.role = Follower((), 9000, 0)
        report_itself(node, 9)
    else:
        with broken(UPDATE_RATE, "sent its endpoints to node 1 1999 ms ago, and sends them again"):
            report_itself(node, 8)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("why", ["", "refused", "late", "another leader", "another answer"])
def test_an_acknowledged_voter_at_version_0_sends_no_more_updates(version: int, why: str) -> None:
    """At kraft.version 1 it does until its own log says so."""
    node = telling(version)
    error = ErrorCode.REQUEST_TIMED_OUT if why == "refused" else ErrorCode.NONE
    leader = LeaderAndEpoch(3 if why == "another leader" else 1, 1)
    node.state.now = 100 if why == "late" else 99
    response = UpdateVoterResponse(error, leader)
    node.step([Answered(6 if why == "another answer" else 7, response)])
    node.state.now = 5000
    if why or version:
        report_itself(node, 8)
    else:
        with broken(UPDATE_RATE, "which accepted them, and sends them again"):
            report_itself(node, 8)
