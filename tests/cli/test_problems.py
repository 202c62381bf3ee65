"""`quorate cluster problems` on answers that real nodes give seldom; tests/e2e has the faults."""

import json

import pytest

from cli.test_registrations import NOW, cluster, quorum
from client.fake_node import FakeNode
from client.test_admin import BROKER
from quorate.base.errors import ErrorCode
from quorate.wire.messages import (
    DescribeClusterResponse,
    DescribeQuorumResponse,
    ListPartitionReassignmentsResponse,
)


@pytest.fixture
def found(quorate):
    """The exit code and the problems by node, of one fake node that stands for all."""

    def found(kind, answers, *, ids=(1,), fenced=()):
        answers |= {"ListPartitionReassignmentsRequest": [ListPartitionReassignmentsResponse()]}
        with FakeNode(answers, BROKER) as node:
            node.answers["DescribeClusterRequest"] = [cluster(node, ids, fenced)]
            where = (f"--bootstrap-{kind}", node.address)
            run = quorate("cluster", "problems", *where, "--json")
        return run.code, {row["node"]: row for row in json.loads(run.out)}

    return found


def test_a_healthy_quorum(found):
    answers = {"DescribeQuorumRequest": [quorum({1: NOW, 2: NOW}, {})]}
    assert found("controller", answers, ids=(1, 2)) == (0, {})


def test_a_fenced_broker_and_a_ghost(found):
    answers = {"DescribeQuorumRequest": [quorum({1: NOW}, {11: NOW, 12: NOW})]}
    code, rows = found("server", answers, ids=(11, 12, 13), fenced=(12, 13))
    assert (code, sorted(rows)) == (1, ["broker 12", "broker 13"])
    assert rows["broker 12"]["what"].startswith("it is fenced: it fetches metadata, but its heart")
    assert rows["broker 12"]["runbook"] == "Fenced broker"
    assert "quorate cluster unregister --id 13" in rows["broker 13"]["remedy"]


def test_a_voter_that_never_fetched_and_one_behind(found):
    state = DescribeQuorumResponse.TopicData.PartitionData.ReplicaState
    answer = quorum({1: NOW, 2: -1}, {})
    answer.topics[0].partitions[0].current_voters.append(
        state(
            replica_id=3,
            log_end_offset=7,
            last_fetch_timestamp=NOW,
            last_caught_up_timestamp=NOW - 9_000,
        )
    )
    answers = {"DescribeQuorumRequest": [answer]}
    code, rows = found("controller", answers, ids=(1, 2, 3))
    assert code == 1
    assert rows["controller 2"]["what"].startswith("it has never fetched from this leader, but")
    assert "it fetches, but has not caught up for 9.0 s" in rows["controller 3"]["what"]


def test_a_quorum_without_a_leader(quorate):
    """The node says so; another address of the list does not answer."""
    refusal = DescribeClusterResponse(error_code=int(ErrorCode.NOT_CONTROLLER))
    with FakeNode({"DescribeClusterRequest": [refusal]}, BROKER) as node:
        run = quorate(
            *("cluster", "problems", "--timeout", "1"),
            *("--bootstrap-controller", f"{node.address},127.0.0.1:1"),
        )
    assert run.code == 1
    lines = run.out.splitlines()
    assert lines[0].startswith("quorum: no leader: ")
    assert lines[2] == "    see: docs/operations.md, QuorateNoActiveController"
    assert lines[3].startswith("127.0.0.1:1: Cannot connect to 127.0.0.1:1")
