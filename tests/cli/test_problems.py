"""`quorate cluster problems` on answers that real nodes give seldom; tests/e2e has the faults."""

import json
import time

import pytest

from cli.test_registrations import (
    LONG,
    NO_ACLS,
    NOW,
    cluster,
    image_of,
    log,
    partitions_answer,
    quorum,
)
from client.fake_node import HANG_UP, SILENCE, FakeNode
from client.test_admin import BROKER
from quorate.base.errors import ErrorCode
from quorate.cli.tools import cluster_probe, cluster_problems
from quorate.cli.tools.cluster_image import ImageUnreadableError
from quorate.client import config as client_config
from quorate.wire.messages import (
    DescribeClusterResponse,
    DescribeConfigsResponse,
    DescribeQuorumResponse,
    ListPartitionReassignmentsResponse,
)

__all__ = ["log"]


@pytest.fixture
def found(quorate, log):
    """The exit code and the problems by node, of one fake node that stands for all."""

    def found(kind, answers, *, ids=(1,), fenced=(), dead=()):
        answers = {
            "ListPartitionReassignmentsRequest": [ListPartitionReassignmentsResponse()],
            "DescribeTopicPartitionsRequest": [partitions_answer((11, 12))],
            "DescribeAclsRequest": [NO_ACLS],
        } | answers
        with FakeNode(answers, BROKER) as node:
            node.answers.setdefault("DescribeClusterRequest", [cluster(node, ids, fenced, dead)])
            where = (f"--bootstrap-{kind}", node.address)
            run = quorate("cluster", "problems", *where, "--json")
        return run.code, {row["node"]: row for row in json.loads(run.out)}

    return found


def test_a_healthy_quorum(found):
    answers = {"DescribeQuorumRequest": [quorum({1: NOW, 2: NOW}, {})]}
    assert found("controller", answers, ids=(1, 2)) == (0, {})


def test_a_fenced_broker_one_that_is_silent_and_a_ghost(found):
    answers = {"DescribeQuorumRequest": [quorum({1: NOW}, {11: NOW, 12: NOW, 14: NOW - LONG})]}
    code, rows = found(
        "server",
        answers | {"DescribeTopicPartitionsRequest": [partitions_answer((11, 14))]},
        ids=(11, 12, 13, 14),
        fenced=(12, 13, 14),
        dead=(13, 14),
    )
    assert (code, sorted(rows)) == (1, ["broker 12", "broker 13", "broker 14"])
    assert rows["broker 12"]["what"].startswith("it is fenced: it fetches metadata, but its heart")
    assert rows["broker 12"]["runbook"] == "Fenced broker"
    assert "quorate cluster unregister --bootstrap-server" in rows["broker 13"]["remedy"]
    assert rows["broker 14"]["what"].startswith(
        "it is fenced, and does not fetch from the quorum (last seen: 600.0"
    )


def test_dead_brokers_are_seen_through_controllers(found, log):
    log(
        image_of(
            (11, 12),
            fenced=(11, 12),
            partitions={
                **dict.fromkeys(range(7), (-1, (11,), (11, 12))),
                8: (13, (13,), (13, 12)),
                9: (13, (13,), (13,)),
            },
        )
    )
    config = DescribeConfigsResponse.DescribeConfigsResult
    answers = {
        "DescribeQuorumRequest": [quorum({1: NOW}, {})],
        "DescribeConfigsRequest": [
            DescribeConfigsResponse(
                results=[
                    config(
                        resource_type=2,
                        resource_name="t",
                        configs=[
                            config.DescribeConfigsResourceResult(
                                name="min.insync.replicas", value="2"
                            )
                        ],
                    )
                ]
            )
        ],
    }
    code, rows = found("controller", answers)
    assert code == 1
    assert set(rows) == {"broker 11", "broker 12", "partitions"}
    assert "fewer replicas in sync than min.insync.replicas" in rows["partitions"]["what"]


def test_partitions_without_a_leader_are_counted_and_named(found, log):
    log(image_of(partitions=dict.fromkeys(range(7), (-1, (11,), (11, 12)))))
    code, rows = found("controller", {"DescribeQuorumRequest": [quorum({1: NOW}, {})]})
    assert (code, rows["partitions"]["what"]) == (
        1,
        "7 partitions without a leader, so nobody reads or writes: t-0, t-1, t-2, t-3, t-4, ...",
    )
    assert rows["partitions"]["remedy"] == "start a broker that may lead each: 11"
    answers = {"DescribeQuorumRequest": [quorum({1: NOW}, {11: NOW})]}
    answers["DescribeTopicPartitionsRequest"] = [partitions_answer((-1, 11))]
    code, rows = found("server", answers, ids=(11,))
    assert rows["partitions"]["what"].startswith("1 partition without a leader")


def test_what_may_not_be_read_is_a_problem_of_the_client(found, log):
    log(ImageUnreadableError("it needs ClusterAction on Cluster", is_refused=True))
    code, rows = found("controller", {"DescribeQuorumRequest": [quorum({1: NOW}, {})]})
    assert (code, list(rows)) == (1, ["this client"])
    assert "let the user ClusterAction on Cluster" in rows["this client"]["remedy"]


@pytest.mark.parametrize(
    ("request_name", "answer"),
    [
        (
            "DescribeQuorumRequest",
            DescribeQuorumResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
        ),
        (
            "DescribeClusterRequest",
            DescribeClusterResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
        ),
    ],
)
def test_a_user_without_permission_is_no_quorum_without_a_leader(found, request_name, answer):
    code, rows = found("controller", {request_name: [answer]})
    assert (code, list(rows)) == (1, ["this client"])
    assert "it may not see the quorum" in rows["this client"]["what"]
    assert rows["this client"]["runbook"] == "QuorateAuthorizationDenied"


def test_a_listener_that_wants_a_login_is_named(quorate):
    with FakeNode({"DescribeClusterRequest": [HANG_UP]}, BROKER) as node:
        where = ("--bootstrap-controller", node.address, "--timeout", "0.3")
        run = quorate("cluster", "problems", *where)
    assert (run.code, run.out) == (1, "")
    assert "is it a SASL listener? Then set security.protocol" in run.err


def test_a_controller_among_the_brokers_is_named(quorate):
    with FakeNode({}) as node:
        run = quorate("cluster", "problems", "--bootstrap-server", node.address)
    assert (run.code, run.out) == (1, "")
    assert "is a controller, but a broker was expected. Use --bootstrap-controller" in run.err


def test_a_process_that_hangs_has_no_wrong_address(quorate, monkeypatch):
    monkeypatch.setattr(cluster_probe, "PROBE_MS", 50)
    refusal = DescribeClusterResponse(error_code=int(ErrorCode.NOT_CONTROLLER))
    with (
        FakeNode({"DescribeClusterRequest": [refusal]}, BROKER) as node,
        FakeNode({"ApiVersionsRequest": [SILENCE]}, BROKER) as frozen,
    ):
        run = quorate(
            *("cluster", "problems", "--timeout", "0.3", "--json"),
            *("--bootstrap-controller", f"{node.address},{frozen.address}"),
        )
    rows = {row["node"]: row for row in json.loads(run.out)}
    assert (run.code, list(rows)) == (1, ["quorum", str(frozen.address)])
    assert "its process hangs" in rows[str(frozen.address)]["what"]
    assert rows[str(frozen.address)]["runbook"] == "Wedged follower"


@pytest.mark.parametrize("kind", ["controller", "server"])
@pytest.mark.parametrize("others", [[], ["127.0.0.1:1"]])
def test_a_process_that_hangs_is_named_where_no_node_answers(quorate, monkeypatch, kind, others):
    monkeypatch.setattr(cluster_probe, "PROBE_MS", 50)
    with FakeNode({"ApiVersionsRequest": [SILENCE]}, BROKER) as frozen:
        words = (f"--bootstrap-{kind}", ",".join([*others, str(frozen.address)]))
        run = quorate("cluster", "problems", "--timeout", "0.3", *words, "--json")
    rows = {row["node"]: row for row in json.loads(run.out)}
    assert (run.code, list(rows)) == (1, ["this client", *others, str(frozen.address)])
    assert rows["this client"]["what"].startswith("no node answers, so the quorum is not checked: ")
    assert "its process hangs" in rows[str(frozen.address)]["what"]


def test_where_every_address_refuses_no_process_hangs(quorate):
    run = quorate(
        "cluster", "problems", "--bootstrap-controller", "127.0.0.1:1", "--timeout", "0.3"
    )
    assert (run.code, run.out) == (1, "")
    assert "Cannot connect to 127.0.0.1:1" in run.err


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


@pytest.fixture
def survivor():
    """A node that goes on naming a dead leader, as one of three controllers does."""
    broker = DescribeClusterResponse.DescribeClusterBroker
    dead = broker(broker_id=2, host="127.0.0.1", port=1)
    with FakeNode({}) as node:
        alive = broker(broker_id=3, host=node.address.host, port=node.address.port)
        answer = DescribeClusterResponse(
            endpoint_type=2, cluster_id="c", controller_id=2, brokers=[dead, alive]
        )
        node.answers["DescribeClusterRequest"] = [answer]
        yield node


def test_a_survivor_that_still_names_a_dead_leader(quorate, survivor):
    words = ("--bootstrap-controller", survivor.address, "--timeout", "1")
    run = quorate("cluster", "problems", *words)
    other = quorate("metadata-quorum", *words, "describe", "--status")
    assert run.code == 1
    lines = run.out.splitlines()
    said = (
        f"No controller is active: {survivor.address} answers and names 127.0.0.1:1, which is "
        "unreachable"
    )
    assert lines[0].startswith(f"quorum: no leader: {said} (Cannot connect to 127.0.0.1:1: ")
    assert any(line.startswith("127.0.0.1:1: Cannot connect to 127.0.0.1:1") for line in lines)
    assert other.code == 1 and said in other.err
    assert "quorate cluster problems says which do not" in other.err


def test_a_missing_leader_is_diagnosed_soon(quorate, survivor, monkeypatch):
    """The tool waits for an election, not for the API timeout, and does not recommend itself."""
    monkeypatch.setattr(cluster_problems, "LEADER_WAIT_MS", 300)
    limited = client_config.with_timeout
    monkeypatch.setattr(
        client_config, "with_timeout", lambda *args: limited(*args)._replace(report_after_ms=0)
    )
    began = time.monotonic()
    run = quorate(
        "cluster", "problems", "--bootstrap-controller", survivor.address, "--timeout", "6"
    )
    assert time.monotonic() - began < 3
    assert (run.code, run.out.splitlines()[0][:18]) == (1, "quorum: no leader:")
    assert "Waiting: No controller is active" in run.err
    assert "cluster problems" not in run.out + run.err
