"""`quorate topics`: the text of Kafka's tool, JSON, and what is said when something is wrong."""

import json

import pytest

from client.fake_node import FakeNode
from client.test_admin import BROKER, cluster
from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.wire.messages import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DescribeConfigsResponse,
    DescribeTopicPartitionsResponse,
    ListPartitionReassignmentsResponse,
)

TOPIC = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
PARTITION = TOPIC.DescribeTopicPartitionsResponsePartition
RESULT = DescribeConfigsResponse.DescribeConfigsResult
CONFIG = RESULT.DescribeConfigsResourceResult
MOVES = ListPartitionReassignmentsResponse.OngoingTopicReassignment


def partition(index, leader, replicas, isr, elr=()):
    return PARTITION(
        partition_index=index,
        leader_id=leader,
        leader_epoch=5,
        replica_nodes=replicas,
        isr_nodes=isr,
        eligible_leader_replicas=list(elr),
        last_known_elr=[],
    )


ORDERS = TOPIC(
    name="orders",
    topic_id=Uuid(bytes(15) + b"f"),
    partitions=[
        partition(0, 1, [1, 2, 3], [1, 2, 3]),
        partition(1, -1, [2, 3], [], elr=[2]),
        partition(2, 3, [3, 1], [3]),
    ],
)
PLAIN = TOPIC(name="plain", partitions=[partition(0, 9, [9], [9])])
INTERNAL = TOPIC(
    name="__consumer_offsets", is_internal=True, partitions=[partition(0, 1, [1], [1])]
)


def configs(request):
    def entries(name):
        yield CONFIG(name="min.insync.replicas", value="2", config_source=5)
        if name == "orders":
            yield CONFIG(name="retention.ms", value="1000", config_source=1)
            yield CONFIG(name="segment.bytes", value="2000", config_source=4)

    return DescribeConfigsResponse(
        results=[
            RESULT(
                resource_type=2,
                resource_name=each.resource_name,
                configs=[*entries(each.resource_name)],
            )
            for each in request.resources
        ]
    )


@pytest.fixture
def broker():
    """Brokers 1 to 3; partition 0 of orders moves from broker 3 to 2."""
    moving = MOVES.OngoingPartitionReassignment(
        partition_index=0, replicas=[1, 2, 3], adding_replicas=[2], removing_replicas=[3]
    )
    with FakeNode({}, BROKER) as node:
        node.answers |= {
            "DescribeClusterRequest": [cluster(node, node, node)],
            "DescribeTopicPartitionsRequest": [
                DescribeTopicPartitionsResponse(topics=[INTERNAL, ORDERS, PLAIN])
            ],
            "DescribeConfigsRequest": configs,
            "ListPartitionReassignmentsRequest": [
                ListPartitionReassignmentsResponse(
                    topics=[MOVES(name="orders", partitions=[moving])]
                )
            ],
        }
        yield node


@pytest.fixture
def tool(quorate, broker):
    def tool(*words):
        return quorate("topics", "--bootstrap-server", broker.address, *words)

    return tool


HEAD = (
    "Topic: orders\tTopicId: AAAAAAAAAAAAAAAAAAAAZg\tPartitionCount: 3\tReplicationFactor: 2\t"
    "Configs: retention.ms=1000,segment.bytes=2000\n"
)
LINES = [
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tAdding Replicas: 2\t"
    "Removing Replicas: 3\tElr: \tLastKnownElr: \n",
    "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3\tIsr: \tElr: 2\tLastKnownElr: \n",
    "\tTopic: orders\tPartition: 2\tLeader: 3\tReplicas: 3,1\tIsr: 3\tElr: \tLastKnownElr: \n",
]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((), HEAD + "".join(LINES)),
        (("--topics-with-overrides",), HEAD),
        (("--under-replicated-partitions",), LINES[1] + LINES[2]),
        (("--unavailable-partitions",), LINES[1]),
        (("--under-min-isr-partitions",), LINES[1] + LINES[2]),
        (("--at-min-isr-partitions",), ""),
        (("--under-replicated-partitions", "--unavailable-partitions"), LINES[1] + LINES[2]),
    ],
)
def test_describe(tool, words, shown):
    assert tool("--describe", "--topic", "orders", *words) == (0, shown, "")


def test_several_patterns_and_internal_topics(tool):
    assert tool("--list").out == "__consumer_offsets\norders\nplain\n"
    assert tool("--list", "--exclude-internal").out == "orders\nplain\n"
    assert tool("--list", "--topic", "ord.*", "--topic", "'plain'").out == "orders\nplain\n"
    assert tool("--list", "--topic", "plain, orders").out == "orders\nplain\n"
    assert tool("--list", "--topic", "order").out == "\n"
    outcome = tool("--list", "--topic", "*x")
    assert outcome.code == 1
    assert outcome.out.startswith("Error while executing topic command : *x is an invalid regex.")


def test_by_topic_id(tool):
    assert tool("--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAZg").out.startswith(HEAD)
    code, out, _ = tool("--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAZw")
    assert code == 1
    assert "TopicId 'AAAAAAAAAAAAAAAAAAAAZw' does not exist as expected" in out


def test_json(tool):
    assert json.loads(tool("--list", "--json").out)[0] == "__consumer_offsets"
    [topic] = json.loads(tool("--describe", "--topic", "orders", "--json").out)
    first, second, _ = topic.pop("partitions")
    assert topic == {
        "topic": "orders",
        "topicId": "AAAAAAAAAAAAAAAAAAAAZg",
        "internal": False,
        "partitionCount": 3,
        "replicationFactor": 2,
        "configs": {"retention.ms": "1000", "segment.bytes": "2000"},
    }
    assert (first["addingReplicas"], first["removingReplicas"]) == ([2], [3])
    assert (second["leader"], second["eligibleLeaderReplicas"]) == (None, [2])


def test_a_new_topic(tool, broker):
    result = CreateTopicsResponse.CreatableTopicResult
    broker.answers["CreateTopicsRequest"] = [CreateTopicsResponse(topics=[result(name="new")])]
    for assignment in ("1:2,2:3", "1:2:,2:3,"):  # Java's split drops what is empty at the end
        words = ("--create", "--topic", "new", "--config", "a=b")
        created = tool(*words, "--replica-assignment", assignment)
        assert created == (0, "Created topic new.\n", "")
    [request, same] = broker.asked("CreateTopicsRequest")
    [topic] = request.topics
    assert same == request
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert [(a.partition_index, a.broker_ids) for a in topic.assignments] == [
        (0, [1, 2]),
        (1, [2, 3]),
    ]
    assert [(c.name, c.value) for c in topic.configs] == [("a", "b")]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--replica-assignment", "1:1"), "may not contain duplicate entries: 1"),
        (("--replica-assignment", "1:2,3"), "Partition 1 has different replication factor: [3]"),
        (("--replica-assignment", "1,,1"), "'' of partition 1 must be broker ids"),
        (("--replica-assignment", "1:x"), "'1:x' of partition 0 must be broker ids"),
        (("--config", "a"), 'must be in the format "key=val"'),
        (("--config", "a="), 'must be in the format "key=val"'),
        (("--replication-factor", "40000"), "between 1 and 32767 inclusive"),
    ],
)
def test_values_are_checked_before_anything_is_sent(tool, broker, words, reason):
    code, out, _ = tool("--create", "--topic", "new", *words)
    assert (code, out.startswith("Error while executing topic command : ")) == (1, True)
    assert reason in out
    assert broker.requests == []


def test_a_partial_change_reports_the_finished_part(tool, broker):
    result = CreatePartitionsResponse.CreatePartitionsTopicResult
    broker.answers["CreatePartitionsRequest"] = [
        CreatePartitionsResponse(
            results=[
                result(name="orders"),
                result(
                    name="plain",
                    error_code=ErrorCode.INVALID_PARTITIONS,
                    error_message="too few",
                ),
            ]
        )
    ]
    words = ("--alter", "--topic", "orders|plain", "--partitions", "3")
    assert tool(*words) == (
        1,
        "Error while executing topic command : too few\n",
        "Altered: orders\nNot altered: plain: too few\n",
    )


def test_a_bootstrap_list_is_needed(quorate):
    code, out, err = quorate("topics", "--list")
    assert (code, out, err) == (1, "", "--bootstrap-server must be specified\n")
    both = ("--bootstrap-server", "a:1", "--bootstrap-controller", "b:1")
    assert "You cannot specify both" in quorate("topics", "--list", *both).err


def test_the_timeout_limits_the_call(quorate):
    code, out, _ = quorate(
        "topics", "--bootstrap-server", "localhost:1", "--list", "--timeout", ".01"
    )
    assert (code, "Cannot connect to localhost:1" in out) == (1, True)
    code, _, err = quorate(
        "topics", "--bootstrap-server", "localhost:1", "--list", "--timeout", "0"
    )
    assert (code, "--timeout" in err) == (1, True)
