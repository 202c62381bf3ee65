"""`quorate cluster registrations`: the registered nodes that are gone."""

import json

import pytest

from client.fake_node import FakeNode
from client.test_admin import BROKER
from quorate.base.ids import Uuid
from quorate.cli.json_schemas import schema_of
from quorate.cli.tools.cluster_registrations import STATES
from quorate.wire.messages import (
    ApiVersionsResponse,
    DescribeClusterResponse,
    DescribeQuorumResponse,
)

PARTITION = DescribeQuorumResponse.TopicData.PartitionData
NOW = 1_000_000
UPGRADE = "quorate features upgrade --release-version 4.4 && "
ONE = Uuid(bytes(15) + b"f")


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


def cluster(node, ids, fenced=()):
    return DescribeClusterResponse(
        cluster_id="c",
        controller_id=1,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=each,
                host=node.address.host,
                port=node.address.port,
                is_fenced=each in fenced,
            )
            for each in ids
        ],
    )


@pytest.fixture
def listed(quorate):
    def listed(kind, ids, voters, observers, fenced=()):
        with FakeNode({"DescribeQuorumRequest": [quorum(voters, observers)]}, BROKER) as node:
            node.answers["DescribeClusterRequest"] = [cluster(node, ids, fenced)]
            where = (f"--bootstrap-{kind}", node.address)
            text = quorate("cluster", "registrations", *where).out
            found = json.loads(quorate("cluster", "registrations", *where, "--json").out)
        return text, {row["id"]: (row["state"], row["remedy"]) for row in found}

    return listed


def test_controllers(listed):
    voters = {1: NOW, 2: NOW - 300, 3: NOW - 60_000}
    text, found = listed(
        "controller", [1, 2, 3, 4, 5, 6], voters, {4: NOW - 10_000, 5: NOW - 10_001}
    )
    remove = "quorate metadata-quorum remove-controller -i 3 -d AAAAAAAAAAAAAAAAAAAAZg"
    assert found == {
        1: ("voter", None),
        2: ("voter", None),
        3: ("silent", remove),
        4: ("observer", None),
        5: ("ghost", "quorate cluster unregister-controller --id 5"),
        6: ("ghost", "quorate cluster unregister-controller --id 6"),
    }
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["ID", "KIND", "ADDRESS", "STATE", "LAST", "SEEN", "REMOVE", "WITH"]
    assert lines[4][3:] == ["silent", "60.0", "s", "ago", *remove.split()]
    # One that was just removed and stopped counts as live for a while.
    seen = [" ".join(line[4:7]) for line in lines[2:]]
    assert seen[:2] == ["0.0 s ago", "0.3 s ago"] and seen[3:5] == ["10.0 s ago", "10.0 s ago"]
    assert lines[7][4] == "never"


@pytest.mark.parametrize(
    ("level", "first"),
    [(30, UPGRADE), (32, UPGRADE), (33, "")],
)
def test_the_way_to_remove_a_controller_works_at_this_metadata_version(quorate, level, first):
    feature = ApiVersionsResponse.FinalizedFeatureKey
    with FakeNode({"DescribeQuorumRequest": [quorum({1: NOW}, {})]}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node, [1, 5])]
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
    assert json.loads(out)[1]["remedy"] == f"{first}quorate cluster unregister-controller --id 5"
    assert ("start a new controller with its id first" in err) == bool(first)


def test_brokers(listed):
    _, found = listed("server", [4, 5, 6, 7], {1: NOW}, {4: NOW, 5: NOW, 6: 5}, fenced=(5, 6, 7))
    assert found == {
        4: ("active", None),
        5: ("fenced", None),
        6: ("ghost", "quorate cluster unregister --id 6"),
        7: ("ghost", "quorate cluster unregister --id 7"),
    }


def test_the_schema_has_every_state():
    items = schema_of("cluster")["$defs"]["registrations"]["items"]
    assert set(items["properties"]["state"]["enum"]) == set(STATES)
