"""`quorate cluster registrations`: the registered nodes that are gone."""

import json
import re
import time
from dataclasses import replace

import pytest
from immutables import Map

from client.fake_node import HANG_UP, FakeNode
from client.test_admin import BROKER
from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.cli.json_schemas import schema_of
from quorate.cli.tools import cluster_image, cluster_problems
from quorate.cli.tools.cluster_registrations import STATES
from quorate.metadata.image import Broker, Cluster, Endpoint, Image, Partition, Topic, Topics
from quorate.wire.messages import (
    ApiVersionsResponse,
    DescribeAclsResponse,
    DescribeClusterResponse,
    DescribeQuorumResponse,
    DescribeTopicPartitionsResponse,
    ListPartitionReassignmentsResponse,
)

PARTITION = DescribeQuorumResponse.TopicData.PartitionData
NOW = 1_000_000
UPGRADE = "quorate features WHERE upgrade --release-version 4.4 && "
ONE = Uuid(bytes(15) + b"f")
NO_ACLS = DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED)
"""The answer of a cluster without an authorizer."""


def quorum(voters, observers):
    """Voters and observers with the times of their last Fetch; the leader is 1."""

    def rows(times):
        return [
            PARTITION.ReplicaState(
                replica_id=node_id, replica_directory_id=ONE, last_fetch_timestamp=time
            )
            for node_id, time in times.items()
        ]

    partition = PARTITION(leader_id=1, current_voters=rows(voters), observers=rows(observers))
    topic = DescribeQuorumResponse.TopicData(
        topic_name="__cluster_metadata", partitions=[partition]
    )
    return DescribeQuorumResponse(topics=[topic])


def cluster(node, ids, fenced=(), dead=()):
    """Nodes at the address of the fake; nobody listens at those of `dead`."""
    return DescribeClusterResponse(
        cluster_id="c",
        controller_id=1,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=each,
                host=node.address.host,
                port=1 if each in dead else node.address.port,
                is_fenced=each in fenced,
            )
            for each in ids
        ],
    )


def image_of(brokers=(), fenced=(), partitions=None):
    """An image with brokers, and with partitions of topic t: index -> (leader, isr, replicas)."""
    nobody = Broker(0, 1, ONE, (Endpoint("P", "127.0.0.1", 1, 0),))
    parts = {
        index: Partition(replicas, (), isr, (), (), leader, 0, 0, 0)
        for index, (leader, isr, replicas) in (partitions or {}).items()
    }
    return Image(
        cluster=Cluster(
            brokers=Map({i: replace(nobody, id=i, fenced=i in fenced) for i in brokers})
        ),
        topics=Topics(by_id=Map({ONE: Topic(ONE, "t", Map(parts))}), ids=Map({"t": ONE})),
    )


@pytest.fixture
def log(monkeypatch):
    """Sets what the leader's metadata log is read as: an image, or the error of the reading."""
    kept = [image_of()]

    def read(admin, most_ms=0):
        if isinstance(kept[0], Exception):
            raise kept[0]
        return kept[0]

    for module in (cluster_image, cluster_problems):
        monkeypatch.setattr(module, "read_image", read)
    return lambda found: kept.__setitem__(0, found)


def partitions_answer(*replicas):
    topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    parts = [
        topic.DescribeTopicPartitionsResponsePartition(
            partition_index=n, leader_id=ids[0], replica_nodes=ids, isr_nodes=ids
        )
        for n, ids in enumerate(replicas)
    ]
    return DescribeTopicPartitionsResponse(topics=[topic(name="t", partitions=parts)])


@pytest.fixture
def listed(quorate, log):
    def listed(kind, ids, voters, observers, fenced=(), dead=(), holders=((1,),)):
        answers = {
            "DescribeQuorumRequest": [quorum(voters, observers)],
            "DescribeTopicPartitionsRequest": [partitions_answer(*holders)],
            "DescribeAclsRequest": [NO_ACLS],
        }
        with FakeNode(answers, BROKER) as node:
            node.answers["DescribeClusterRequest"] = [cluster(node, ids, fenced, dead)]
            where = (f"--bootstrap-{kind}", node.address)
            text = quorate("cluster", "registrations", *where).out
            found = json.loads(quorate("cluster", "registrations", *where, "--json").out)
        words = f" {' '.join(map(str, where))} "
        return text, {
            row["id"]: (row["state"], row["remedy"] and row["remedy"].replace(words, " WHERE "))
            for row in found
        }

    return listed


LONG = 600_000


def test_controllers(listed):
    """Only one that is silent for long, or that a new leader has not seen and nobody answers for, is gone."""
    voters = {1: NOW, 2: NOW - 300, 3: NOW - 60_000, 7: NOW - LONG, 8: -1, 9: -1}
    observers = {4: NOW - 10_000, 5: NOW - 10_001, 10: NOW - LONG, 12: NOW - 10_001}
    text, found = listed("controller", range(1, 13), voters, observers, dead=(3, 6, 9, 12))
    remove = "quorate metadata-quorum WHERE remove-controller -i {} -d AAAAAAAAAAAAAAAAAAAAZg"
    unregister = "quorate cluster unregister-controller WHERE --id {}"
    assert found == {
        1: ("voter", None),
        2: ("voter", None),
        3: ("silent", None),
        4: ("observer", None),
        5: ("silent", None),
        6: ("ghost", unregister.format(6)),
        7: ("silent", remove.format(7)),
        8: ("silent", None),
        9: ("silent", remove.format(9)),
        10: ("ghost", unregister.format(10)),
        11: ("silent", None),
        12: ("ghost", unregister.format(12)),
    }
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["ID", "KIND", "ADDRESS", "STATE", "LAST", "SEEN", "REMOVE", "WITH"]
    assert lines[4][3:] == ["silent", "60.0", "s", "ago"]
    # One that was just removed and stopped counts as live for a while.
    seen = [" ".join(line[4:7]) for line in lines[2:]]
    assert seen[:2] == ["0.0 s ago", "0.3 s ago"] and seen[3:5] == ["10.0 s ago", "10.0 s ago"]
    assert lines[7][4] == "never"


def test_brokers_through_controllers(listed, log):
    """No broker has to be alive. One with replicas is no ghost."""
    log(image_of((11, 12, 13), fenced=(12, 13), partitions={0: (11, (11,), (11, 12))}))
    _, found = listed("controller", [1], {1: NOW}, {11: NOW, 12: NOW - LONG, 13: NOW - LONG})
    assert found == {
        11: ("active", None),
        12: ("silent", None),
        13: ("ghost", "quorate cluster unregister WHERE --id 13"),
        1: ("voter", None),
    }


def test_a_log_that_may_not_be_read_is_named(quorate, log):
    log(cluster_image.ImageUnreadableError("it needs ClusterAction on Cluster", is_refused=True))
    with FakeNode({"DescribeQuorumRequest": [quorum({1: NOW}, {})]}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node, [1])]
        run = quorate("cluster", "registrations", "--bootstrap-controller", node.address)
    assert run.err == "Brokers are not listed: it needs ClusterAction on Cluster\n"


def test_a_missing_leader_is_waited_for_once(quorate, monkeypatch):
    """The metadata log is read only once a leader has answered."""
    reads = []
    monkeypatch.setattr(cluster_image, "read_image", lambda *_: reads.append(1))
    refusal = DescribeClusterResponse(error_code=int(ErrorCode.NOT_CONTROLLER))
    with FakeNode({"DescribeClusterRequest": [refusal]}) as node:
        where = ("--bootstrap-controller", node.address, "--timeout", "0.3")
        run = quorate("cluster", "registrations", *where)
    assert (run.code, run.out, reads) == (1, "", [])
    assert "NOT_CONTROLLER" in run.err and "Brokers are not listed" not in run.err


def test_reading_the_log_has_what_is_left_of_the_one_deadline(quorate):
    """The leader answers, but not for its log."""
    answers = {"DescribeQuorumRequest": [quorum({1: NOW}, {})], "FetchRequest": [HANG_UP]}
    began = time.monotonic()
    with FakeNode(answers) as node:
        described = cluster(node, [1])

        def late(request):
            time.sleep(0.5)
            return described

        node.answers["DescribeClusterRequest"] = [late, described]
        where = ("--bootstrap-controller", node.address, "--timeout", "1.5", "--json")
        run = quorate("cluster", "registrations", *where)
    assert (run.code, [row["id"] for row in json.loads(run.out)]) == (0, [1])
    assert "Brokers are not listed: " in run.err
    [patience] = re.findall(r"no leader answered within (\d+) ms", run.err)
    assert int(patience) <= 1000
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("level", "first"),
    [(30, UPGRADE), (32, UPGRADE), (33, "")],
)
def test_the_way_to_remove_a_controller_works_at_this_metadata_version(quorate, log, level, first):
    feature = ApiVersionsResponse.FinalizedFeatureKey
    with FakeNode({"DescribeQuorumRequest": [quorum({1: NOW}, {})]}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node, [1, 5], dead=(5,))]
        node.answers["ApiVersionsRequest"] = [
            ApiVersionsResponse(
                api_keys=[
                    ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
                    for key, (low, high) in node.versions.items()
                ],
                finalized_features=[
                    feature(
                        name="metadata.version", max_version_level=level, min_version_level=level
                    )
                ],
                finalized_features_epoch=1,
            )
        ]
        where = ("--bootstrap-controller", node.address)
        _, out, err = quorate("cluster", "registrations", *where, "--json")
    words = f"--bootstrap-controller {node.address}"
    assert json.loads(out)[1]["remedy"] == (
        f"{first.replace('WHERE', words)}quorate cluster unregister-controller {words} --id 5"
    )
    assert ("start a new controller with its id first" in err) == bool(first)


def test_brokers(listed):
    """A broker that is paused, restarts or holds replicas is no ghost."""
    _, found = listed(
        "server",
        range(4, 11),
        {1: NOW},
        {4: NOW, 5: NOW, 6: NOW - 12_000, 7: NOW - LONG, 8: NOW - LONG},
        fenced=range(5, 11),
        dead=(6, 9),
        holders=((4, 8),),
    )
    assert found == {
        4: ("active", None),
        5: ("fenced", None),
        6: ("silent", None),
        7: ("ghost", "quorate cluster unregister WHERE --id 7"),
        8: ("silent", None),
        9: ("ghost", "quorate cluster unregister WHERE --id 9"),
        10: ("silent", None),
    }


@pytest.mark.parametrize("acls", [0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED])
def test_a_broker_is_no_ghost_where_topics_may_be_hidden(quorate, acls):
    """An authorizer hides topics without a word: nobody knows that the broker has no replicas."""
    answers = {
        "DescribeQuorumRequest": [quorum({1: NOW}, {4: NOW - LONG})],
        "DescribeTopicPartitionsRequest": [partitions_answer((1,))],
        "DescribeAclsRequest": [DescribeAclsResponse(error_code=acls)],
        "ListPartitionReassignmentsRequest": [ListPartitionReassignmentsResponse()],
    }
    with FakeNode(answers, BROKER) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node, [4, 5], fenced=[4, 5], dead=[5])]
        where = ("--bootstrap-server", node.address)
        run = quorate("cluster", "registrations", *where, "--json")
        problems = quorate("cluster", "problems", *where)
    rows = json.loads(run.out)
    assert [(row["state"], row["remedy"]) for row in rows] == [("silent", None)] * 2
    assert "may not describe, so none is called a ghost" in run.err
    assert "cluster unregister" not in problems.out


def test_the_schema_has_every_state():
    items = schema_of("cluster")["$defs"]["registrations"]["items"]
    assert set(items["properties"]["state"]["enum"]) == set(STATES)
