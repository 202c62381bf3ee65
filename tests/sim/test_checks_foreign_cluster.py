"""Requests of a foreign cluster are refused and change nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.inputs import Received
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.roles import Follower
from quorate.sim.checks.all_checks import Checks
from quorate.sim.checks.cluster_id import OF_PEERS, is_foreign
from quorate.sim.plan.plan import FaultEvent, Plan
from quorate.sim.run.run import run_plan
from quorate.sim.world.observer import Observer
from sim.fake import key
from sim.test_checks_core import a_quorum, broken
from sim.test_checks_leader_duties import leading

CHECK = "foreign cluster is refused"
HERS = LeaderAndEpoch(3, 1)
QUESTIONS: list[Any] = [
    FetchRequest("another", key(3), 1, 3, 1, 0, 0, 3),
    FetchSnapshotRequest("another", key(3), 1, OffsetAndEpoch(3, 1), 0, 9),
    VoteRequest("another", key(2), 2, key(3), 9, 9, False),
    BeginQuorumEpochRequest("another", key(2), HERS),
    EndQuorumEpochRequest("another", HERS, (key(2),)),
]


def test_the_questions_are_all_that_replicas_ask_and_carry_a_cluster() -> None:
    assert {type(request) for request in QUESTIONS} == OF_PEERS
    assert all(is_foreign(request, "simulated") for request in QUESTIONS)
    assert not any(is_foreign(request, "another") for request in QUESTIONS)


@pytest.mark.interpreted
@pytest.mark.parametrize("request_", QUESTIONS, ids=lambda request: type(request).__name__)
def test_a_replica_that_serves_a_foreign_cluster(request_: Any) -> None:
    fake, _ = a_quorum()
    node = fake[2]
    node.state.durable.election_is_durable = False  # so that the answer may be late
    name = node.receive(request_)
    refused = VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    node.answer(refused, name)
    name = node.receive(request_)
    with broken(CHECK, "of another cluster and answers"):
        node.answer(VoteResponse(ErrorCode.NONE), name)


@pytest.mark.interpreted
def test_a_replica_that_keeps_a_foreign_cluster_waiting() -> None:
    fake, _ = a_quorum()
    fake[2].state.durable.election_is_durable = True
    with broken(CHECK, "does not refuse it at once"):
        fake[2].receive(QUESTIONS[0])


@pytest.mark.interpreted
def test_a_new_incarnation_has_no_open_requests() -> None:
    fake, _ = a_quorum()
    fake[2].receive(QUESTIONS[0])
    fake[3].receive(QUESTIONS[0])
    fake[2].start()
    fake[2].state.durable.election_is_durable = fake[3].state.durable.election_is_durable = True
    fake[2].step()
    with broken(CHECK, "node 3"):
        fake[3].step()


@pytest.mark.interpreted
def test_a_stopping_replica_answers_foreign_clusters() -> None:
    fake, _ = a_quorum()
    name = fake[2].receive(QUESTIONS[0])
    fake[2].answer(FetchResponse(ErrorCode.BROKER_NOT_AVAILABLE), name)


@pytest.mark.interpreted
def test_an_end_quorum_epoch_of_another_cluster_starts_no_election() -> None:
    fake, leader = leading()
    node = fake[2]
    node.state.role = Follower((), 900, 0)
    node.receive(EndQuorumEpochRequest("another", LeaderAndEpoch(leader.id, 1), (key(2),)))


class Heard(Observer):
    """What of another cluster came in, and what was said to it."""

    def __init__(self) -> None:
        self.asked: dict[int, str] = {}
        self.said: Counter[tuple[str, ErrorCode]] = Counter()

    def stepped(self, process: Any, happened: Any, effects: Any) -> None:
        for item in happened:
            if isinstance(item, Received) and is_foreign(item.request, "simulated"):
                self.asked[item.reply_to] = type(item.request).__name__
        for answer in effects.answers:
            if answer.reply_to in self.asked:
                self.said[self.asked[answer.reply_to], answer.response.error] += 1


def test_a_world_with_a_foreign_cluster_continues() -> None:
    fault_events = tuple(
        FaultEvent(at, "foreign-cluster", (1 + at % 3, to, 50, 60))
        for at in (100, 3000)
        for to in (1, 2, 3)
    )
    heard = Heard()
    outcome = run_plan(Plan(seed=3, duration_ms=7000, fault_events=fault_events), [Checks(), heard])
    assert outcome.failure is None
    assert {name for name, _ in heard.said} == {kind.__name__ for kind in OF_PEERS}
    assert {error for _, error in heard.said} == {ErrorCode.INCONSISTENT_CLUSTER_ID}
