"""`quorate reassign-partitions`: files, proposals, throttles, and what is said of half-done work."""

import json
from typing import Any

import pytest
from immutables import Map

from client.fake_node import HANG_UP, FakeNode
from client.test_admin import BROKER, cluster
from narrow import as_any
from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.cli.flat_options import FlatToolError, JsonFileError
from quorate.cli.tools import (
    cluster_image,
    known_replicas,
    reassign_proposals,
    reassign_verify,
)
from quorate.cli.tools.reassign_files import (
    ReassignmentPlan,
    check_plan,
    plan_document,
    read_plan,
    read_topics,
)
from quorate.cli.tools.reassign_progress import progress_line
from quorate.cli.tools.reassign_proposals import empty_brokers, place_topics
from quorate.cli.tools.reassign_throttles import PartitionMove, proposed_moves, topic_throttles
from quorate.cli.tools.reassign_verify import partition_states
from quorate.client.admin.log_dirs import TopicPartitionReplica
from quorate.client.admin.reassignments import PartitionName, Reassignment
from quorate.client.admin.topics import PartitionDescription, TopicDescription
from quorate.controller.placement import UsableBroker
from quorate.metadata.image import Broker, Cluster, Image, Partition, Topic, Topics
from quorate.wire.messages import (
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsResponse,
    DescribeAclsResponse,
    DescribeLogDirsResponse,
    DescribeTopicPartitionsResponse,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesResponse,
    ListPartitionReassignmentsResponse,
)

ANSWER = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
TOPIC = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
PARTITION = TOPIC.DescribeTopicPartitionsResponsePartition
LOG_DIR = DescribeLogDirsResponse.DescribeLogDirsResult
MOVED = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
ALTER_REASSIGNMENTS = 45
ZERO, ONE = PartitionName("t", 0), PartitionName("t", 1)
READERS = (cluster_image, known_replicas, reassign_proposals, reassign_verify)
"""The modules that read the log of the controllers."""


@pytest.fixture
def file(tmp_path):
    def file(text):
        path = tmp_path / "plan.json"
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return str(path)

    return file


def plan(*replicas, **more):
    return {
        "version": 1,
        "partitions": [
            {"topic": "t", "partition": index, "replicas": ids, **more}
            for index, ids in enumerate(replicas)
        ],
    }


# -- files ---------------------------------------------------------------------------------------
def test_a_plan_with_directories(file):
    found = read_plan(file(plan([1, 2], [2, 1], log_dirs=["any", "/d"])))
    assert found.targets == [(ZERO, (1, 2)), (ONE, (2, 1))]
    assert found.directories == {
        TopicPartitionReplica(ZERO, 2): "/d",
        TopicPartitionReplica(ONE, 1): "/d",
    }
    assert (found.topics, found.brokers) == (["t"], {1, 2})
    written = plan_document(dict(found.targets), found.directories)
    assert read_plan(file(written)) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"partitions": [}', "line 1, column 17: not valid JSON"),
        ("7", "must be a JSON object"),
        ({"version": 2}, "Not supported version field value 2"),
        ({"partitions": 7}, '"partitions" must be a list'),
        ({"partitions": [{"topic": "t"}]}, r"partitions\[0\] must have"),
        *(
            (document, f'"{key}": Expected `Integer` value, received {json.dumps(value)}')
            for value in (True, "1", 1.5, 99999999999, None)
            for key, document in (
                ("replicas", plan([value])),
                ("version", plan([1]) | {"version": value}),
                ("partition", {"partitions": [plan([1])["partitions"][0] | {"partition": value}]}),
            )
        ),
        (plan([1], log_dirs=[]), "different from size of log dirs list"),
        (plan([1], log_dirs=7), '"log_dirs" of partitions'),
    ],
)
def test_an_error_in_a_file_names_its_position(file, text, reason):
    path = file(text)
    with pytest.raises(JsonFileError, match=reason) as caught:
        read_plan(path)
    assert path in str(caught.value)


def test_topics_to_move(file):
    assert read_topics(file({"topics": [{"topic": "a"}, {"topic": "b"}]})) == ["a", "b"]
    with pytest.raises(FlatToolError, match=r"duplicate entries: \[a\]"):
        read_topics(file({"topics": [{"topic": "a"}, {"topic": "a"}]}))
    with pytest.raises(JsonFileError, match=r"topics\[0\] must be"):
        read_topics(file({"topics": ["a"]}))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({}, "list cannot be empty"),
        (plan([]), "replica list cannot be empty"),
        ({"partitions": plan([1])["partitions"] * 2}, "duplicate topic partitions: t-0"),
        (plan([1, 2, 2, 1]), "t-0 contains multiple entries for 1,2"),
    ],
)
def test_a_plan_that_cannot_be_executed(file, document, reason):
    with pytest.raises(FlatToolError, match=reason):
        check_plan(read_plan(file(document)))


# -- proposals and throttles ---------------------------------------------------------------------
def test_a_proposal_spreads_whole_topics_over_racks():
    brokers = [UsableBroker(n, "ab"[n % 2], False) for n in range(4)]
    replicas = {PartitionName(topic, index): [9, 8] for topic in "tu" for index in range(4)}
    found = place_topics(replicas, brokers)
    assert found.keys() == replicas.keys()
    for topic in "tu":
        ids = [found[PartitionName(topic, index)] for index in range(4)]
        assert all({first % 2, second % 2} == {0, 1} for first, second in ids)
        assert {broker for pair in ids for broker in pair} == {0, 1, 2, 3}
    with pytest.raises(FlatToolError, match="replication factor of 2 cannot be reached"):
        place_topics(replicas, brokers[:1])


def test_an_emptied_broker_gives_each_replica_to_the_least_loaded_one():
    brokers = [UsableBroker(n, rack, False) for n, rack in ((1, "a"), (2, "b"), (3, "b"), (4, "a"))]
    replicas = {
        PartitionName("t", 0): (1, 2),
        PartitionName("t", 1): (2, 1),
        PartitionName("t", 2): (2, 4),
        PartitionName("u", 0): (4, 3),
    }
    # Rack a is that of the leaving broker 1, and broker 4 is the only other one in it.
    assert empty_brokers(replicas, {1}, brokers) == {
        PartitionName("t", 0): [4, 2],
        PartitionName("t", 1): [2, 4],
    }
    assert empty_brokers(replicas, {9}, brokers) == {}
    plain = [UsableBroker(n, None, False) for n in (1, 2, 3)]
    found = empty_brokers({PartitionName("t", n): (1,) for n in range(4)}, {1}, plain)
    assert [ids[0] for ids in found.values()] == [2, 3, 2, 3]
    with pytest.raises(FlatToolError, match="No broker is left for the replica of t-0 on broker 1"):
        empty_brokers({PartitionName("t", 0): (1, 2)}, {1}, plain[:2])


def test_progress_names_what_is_moving():
    moving = {PartitionName("t", n): Reassignment((1, 2), (2,), (1,)) for n in range(7)}
    line = progress_line(9, moving)
    assert line.startswith("2 of 9 partitions are done; moving: t-0 (+2 -1), t-1 (+2 -1), ")
    assert line.endswith("t-4 (+2 -1) and 2 more")


def test_throttles_cover_moves_in_progress_and_new_ones():
    current = {ZERO: Reassignment((1, 2, 3), (3,), (1,))}
    moves = proposed_moves(current, {ZERO: [2, 4], ONE: [1, 5]}, {ZERO: [1, 2, 3], ONE: [1, 2]})
    assert moves == {
        ZERO: PartitionMove(frozenset({1, 2}), frozenset({4})),
        ONE: PartitionMove(frozenset({1, 2}), frozenset({5})),
    }
    [(resource, changes)] = topic_throttles(moves).items()
    assert (resource.name, [change.value for change in changes]) == (
        "t",
        ["0:1,0:2,1:1,1:2", "0:4,1:5"],
    )


def altered_all(request):
    altered = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    return IncrementalAlterConfigsResponse(
        responses=[
            altered(resource_type=each.resource_type, resource_name=each.resource_name)
            for each in request.resources
        ]
    )


# -- the command ---------------------------------------------------------------------------------
@pytest.fixture
def broker():
    """Partitions 0 and 1 of topic t on broker 1, in directory /a."""
    partitions = [
        PARTITION(partition_index=index, leader_id=1, replica_nodes=[1]) for index in (0, 1)
    ]
    part = LOG_DIR.DescribeLogDirsTopic.DescribeLogDirsPartition
    topic = LOG_DIR.DescribeLogDirsTopic(
        name="t", partitions=[part(partition_index=index) for index in (0, 1)]
    )
    with FakeNode({}, BROKER) as node:
        node.answers |= {
            "DescribeClusterRequest": [cluster(node, node)],
            "ListPartitionReassignmentsRequest": [ListPartitionReassignmentsResponse()],
            "DescribeTopicPartitionsRequest": [
                DescribeTopicPartitionsResponse(topics=[TOPIC(name="t", partitions=partitions)])
            ],
            "DescribeLogDirsRequest": [
                DescribeLogDirsResponse(results=[LOG_DIR(log_dir="/a", topics=[topic])])
            ],
            "IncrementalAlterConfigsRequest": altered_all,
            "DescribeAclsRequest": [DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED)],
        }
        yield node


@pytest.fixture
def tool(quorate, broker):
    def tool(*words):
        return quorate("reassign-partitions", "--bootstrap-server", broker.address, *words)

    return tool


def alter_answer(*errors):
    return AlterPartitionReassignmentsResponse(
        responses=[
            ANSWER(
                name="t",
                partitions=[
                    ANSWER.ReassignablePartitionResponse(partition_index=index, error_code=error)
                    for index, error in enumerate(errors)
                ],
            )
        ]
    )


def test_half_of_a_plan_is_refused(tool, broker, file):
    broker.answers["AlterPartitionReassignmentsRequest"] = [
        alter_answer(0, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    ]
    path = file(plan([2], [2]))
    code, out, err = tool("--execute", "--reassignment-json-file", path)
    reason = ErrorCode.INVALID_REPLICA_ASSIGNMENT.message
    assert (code, err) == (1, "Done: reassignment of t-0\nNot done: reassignment of t-1\n")
    assert out.endswith(f"rollback\nError reassigning partition(s):\nt-1: {reason}\n")
    before = json.loads(out.splitlines()[2])
    assert [each["log_dirs"] for each in before["partitions"]] == [["/a"], ["/a"]]


def test_an_older_broker_has_no_option_against_a_change_of_the_factor(tool, broker, file):
    broker.versions[ALTER_REASSIGNMENTS] = (0, 0)
    words = ("--disallow-replication-factor-change", "--reassignment-json-file", file(plan([2])))
    code, out, _ = tool("--execute", *words)
    assert code == 1
    assert out.splitlines()[-2:] == [
        "Error reassigning partition(s):",
        "t-0: The broker does not support the AllowReplicationFactorChange option for the "
        "AlterPartitionReassignments API. Consider re-sending the request without the option or "
        "updating the server version",
    ]


def test_the_partitions_of_a_topic_are_read_once_for_a_whole_plan():
    """The time was quadratic in the partitions of a topic."""
    reads = []

    class Partitions(tuple[Any, ...]):
        def __iter__(self):
            reads.append(1)
            return super().__iter__()

    class Stub:
        def list_partition_reassignments(self):
            return {}

        def describe_topics(self, names):
            parts = Partitions(
                PartitionDescription(n, 1, 0, (1,), (1,), (), None, None) for n in range(50)
            )
            return {name: TopicDescription(name, ZERO_UUID, False, parts) for name in names}

    wanted = [(PartitionName("t", n), (1,)) for n in range(51)]
    states, moving = partition_states(as_any(Stub()), ReassignmentPlan(wanted, {}))
    assert not moving and len(reads) == 1
    assert [state.current for state in states.values()] == [(1,)] * 50 + [()]


def test_execute_throttles_first(tool, broker, file):
    broker.answers["AlterPartitionReassignmentsRequest"] = [alter_answer(0, 0)]
    words = ("--execute", "--throttle", "5000", "--reassignment-json-file", file(plan([2], [1, 2])))
    code, out, err = tool(*words, "--json")
    assert code == 0
    assert err.startswith("Warning: You must run --verify periodically")
    assert [each["partition"] for each in json.loads(out)["started"]] == [0, 1]
    names = [type(request.message).__name__ for request in broker.requests]
    assert names.index("IncrementalAlterConfigsRequest") < names.index(
        "AlterPartitionReassignmentsRequest"
    )
    changed = {
        (each.resource_type, each.resource_name): [(c.name, c.value) for c in each.configs]
        for request in broker.asked("IncrementalAlterConfigsRequest")
        for each in request.resources
    }
    assert changed[2, "t"] == [
        ("leader.replication.throttled.replicas", "0:1,1:1"),
        ("follower.replication.throttled.replicas", "0:2,1:2"),
    ]
    assert changed.keys() == {(2, "t"), (4, "1"), (4, "2")}


def test_a_directory_move_waits_until_the_replica_is_there(tool, broker, file):
    def moved(error):
        done = MOVED.AlterReplicaLogDirPartitionResult(error_code=error)
        return AlterReplicaLogDirsResponse(results=[MOVED(topic_name="t", partitions=[done])])

    broker.answers |= {
        "AlterPartitionReassignmentsRequest": [alter_answer(0)],
        "AlterReplicaLogDirsRequest": [moved(ErrorCode.REPLICA_NOT_AVAILABLE), moved(0)],
    }
    path = file(plan([2], log_dirs=["/b"]))
    code, out, _ = tool("--execute", "--reassignment-json-file", path)
    assert (code, len(broker.asked("AlterReplicaLogDirsRequest"))) == (0, 2)
    line = "Successfully started moving log directory to /b for replica t-0 with broker 2 "
    assert out.splitlines()[-1] == line
    broker.answers["AlterReplicaLogDirsRequest"] = [moved(ErrorCode.REPLICA_NOT_AVAILABLE)]
    code, out, _ = tool("--execute", "--timeout", "0", "--reassignment-json-file", path)
    assert code == 1
    assert out.endswith("Timed out before log directory move could be started for: t-0-2\n")


def test_verify_as_json_clears_throttles_only_at_the_end(tool, broker, file):
    path = file(plan([1], [2]))
    document = json.loads(tool("--verify", "--reassignment-json-file", path, "--json").out)
    assert [each["currentReplicas"] for each in document["partitions"]] == [[1], [1]]
    assert (document["partitionsOngoing"], document["throttlesCleared"]) == (False, True)
    moving = ListPartitionReassignmentsResponse.OngoingTopicReassignment
    broker.answers["ListPartitionReassignmentsRequest"] = [
        ListPartitionReassignmentsResponse(
            topics=[
                moving(
                    name="t",
                    partitions=[
                        moving.OngoingPartitionReassignment(
                            partition_index=1, replicas=[1, 2], adding_replicas=[2]
                        )
                    ],
                )
            ]
        )
    ]
    document = json.loads(tool("--verify", "--reassignment-json-file", path, "--json").out)
    assert [each["done"] for each in document["partitions"]] == [True, False]
    assert (document["partitionsOngoing"], document["throttlesCleared"]) == (True, False)
    assert tool("--list").out == (
        "Current partition reassignments:\nt-1: replicas: 1,2. adding: 2.\n"
    )


def test_a_broker_is_emptied_and_waited_for(tool, broker):
    moving = ListPartitionReassignmentsResponse.OngoingTopicReassignment
    one = moving.OngoingPartitionReassignment(
        partition_index=1, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]
    )
    busy = ListPartitionReassignmentsResponse(topics=[moving(name="t", partitions=[one])])
    idle = ListPartitionReassignmentsResponse()
    broker.answers["ListPartitionReassignmentsRequest"] = [idle, busy, idle]
    broker.answers["AlterPartitionReassignmentsRequest"] = [alter_answer(0, 0)]
    code, out, err = tool("--execute", "--from-broker", "1", "--wait", "--json")
    assert (code, err) == (0, "1 of 2 partitions are done; moving: t-1 (+2 -1)\n")
    [request] = broker.asked("AlterPartitionReassignmentsRequest")
    assert [each.replicas for each in request.topics[0].partitions] == [[2], [2]]
    document = json.loads(out)
    assert document["verified"]["partitionsOngoing"] is False
    moved = {"version": 1, "partitions": plan([2], [2], log_dirs=["any"])["partitions"]}
    assert document["plan"] == moved
    code, out, _ = tool("--execute", "--from-broker", "2")
    assert (code, out) == (
        1,
        "Error: Nothing is to be reassigned: the replicas are where they shall be\n",
    )


def test_a_plan_of_the_tool_is_printed_and_can_be_verified(tool, broker, file):
    broker.answers["AlterPartitionReassignmentsRequest"] = [alter_answer(0, 0)]
    code, out, _ = tool("--execute", "--topic", "t", "--broker-list", "2", "--disable-rack-aware")
    lines = out.splitlines()
    text = lines[lines.index("Proposed partition reassignment configuration") + 2]
    assert code == 0 and "Save this to use as the --reassignment-json-file option of" in out
    assert [each["replicas"] for each in json.loads(text)["partitions"]] == [[2], [2]]
    assert tool("--verify", "--reassignment-json-file", file(text)).code == 0


def test_a_plan_of_the_tool_is_kept_when_it_fails_halfway(tool, broker):
    broker.answers["AlterPartitionReassignmentsRequest"] = [
        alter_answer(0, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    ]
    code, _, err = tool("--execute", "--from-broker", "1", "--json")
    [line] = [line for line in err.splitlines() if line.startswith("The plan: ")]
    assert code == 1
    assert len(json.loads(line.removeprefix("The plan: "))["partitions"]) == 2


@pytest.mark.parametrize("number", ["99999999999", "-99999999999"])
def test_an_id_that_no_broker_can_have(tool, broker, number):
    for words in (("--from-broker", number), ("--topic", "t", "--broker-list", number)):
        code, out, err = tool("--execute", *words)
        assert code == 1 and number in out + err and "codec" not in out + err
    assert broker.asked("AlterPartitionReassignmentsRequest") == []


@pytest.mark.parametrize("list_", ["1", "x"])
def test_a_wrong_file_or_list_is_refused_before_anything_is_asked(quorate, list_):
    """The brokers' racks, which controllers give from their log, took 15 s first."""
    words = ("--topics-to-move-json-file", "nowhere.json", "--broker-list", list_)
    where = ("--bootstrap-controller", "localhost:1")
    code, out, err = quorate("reassign-partitions", *where, "--generate", *words)
    assert code == 1
    assert "nowhere.json" in out + err or "'x' is not a broker id" in out + err
    assert "Waiting" not in err and "no leader" not in out + err


def test_an_unknown_broker_cannot_be_emptied(tool):
    code, out, _ = tool("--execute", "--from-broker", "99")
    assert (code, out) == (1, "Error: Unknown broker id 99\n")


# -- topics that the user may not describe -------------------------------------------------------
@pytest.mark.parametrize("acls", [0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED])
def test_an_emptied_broker_may_keep_topics_that_brokers_hide(tool, broker, acls):
    broker.answers["AlterPartitionReassignmentsRequest"] = [alter_answer(0, 0)]
    assert tool("--execute", "--from-broker", "1").err == ""
    broker.answers["DescribeAclsRequest"] = [DescribeAclsResponse(error_code=acls)]
    for words in (("--generate",), ("--execute", "--json")):
        code, _, err = tool(*words, "--from-broker", "1")
        assert (code, "only the topics that this user may describe are moved" in err) == (0, True)


@pytest.fixture
def hidden(broker, monkeypatch):
    """Topic t is on broker 1, and no user may describe it; broker 2 and 3 are in racks, 4 is dead."""
    parts = {index: Partition((1,), (), (1,), (), (), 1, 0, 0, 0) for index in (0, 1)}
    racks = {1: "a", 2: "b", 3: "c", 4: "d"}
    image = Image(
        cluster=Cluster(
            brokers=Map(
                {i: Broker(i, 1, ZERO_UUID, rack=r, fenced=i == 4) for i, r in racks.items()}
            )
        ),
        topics=Topics(
            by_id=Map({ZERO_UUID: Topic(ZERO_UUID, "t", Map(parts))}), ids=Map({"t": ZERO_UUID})
        ),
    )
    for module in READERS:
        monkeypatch.setattr(module, "read_image", lambda admin: image)

    def describe(request):
        refused = [
            TOPIC(name=each.name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            for each in request.topics
        ]
        return DescribeTopicPartitionsResponse(topics=refused)

    broker.answers["DescribeTopicPartitionsRequest"] = describe
    broker.answers["AlterPartitionReassignmentsRequest"] = [alter_answer(0, 0)]
    return ("--bootstrap-controller", broker.address)


def test_controllers_empty_a_broker_of_topics_that_the_user_may_not_describe(
    quorate, broker, hidden
):
    words = ("--execute", "--from-broker", "1", "--wait")
    code, out, err = quorate("reassign-partitions", *hidden, *words)
    assert (code, err) == (0, ""), out
    [request] = broker.asked("AlterPartitionReassignmentsRequest")
    assert [each.replicas for each in request.topics[0].partitions] == [[2], [3]]
    assert "rather than 2" in out  # the state of the partition is known, too


def test_controllers_place_replicas_by_rack(quorate, hidden, broker):
    """No list of brokers is needed: the log names those that are alive, with their racks."""
    words = ("--generate", "--from-broker", "1", "--broker-list", "2,3,", "--json")
    document = json.loads(quorate("reassign-partitions", *hidden, *words).out)
    assert [each["replicas"] for each in document["proposed"]["partitions"]] == [[2], [3]]
    dead = ("--generate", "--from-broker", "1", "--broker-list", "4")
    code, out, _ = quorate("reassign-partitions", *hidden, *dead)
    assert (code, "No broker is left for the replica of t-0" in out) == (1, True)


def test_controllers_whose_log_may_not_be_read_need_a_list_of_brokers(quorate, broker, monkeypatch):
    def refuse(admin):
        raise cluster_image.ImageUnreadableError("it needs ClusterAction", is_refused=True)

    for module in READERS:
        monkeypatch.setattr(module, "read_image", refuse)
    where = ("--bootstrap-controller", broker.address, "--from-broker", "1")
    code, out, _ = quorate("reassign-partitions", "--generate", *where)
    assert (code, "through controllers: it needs ClusterAction. Use" in out) == (1, True)
    broker.answers["DescribeAclsRequest"] = [DescribeAclsResponse()]
    words = ("--broker-list", "2", "--disable-rack-aware")
    code, _, err = quorate("reassign-partitions", "--generate", *where, *words)
    assert code == 0
    assert "may describe are moved" in err and "(it needs ClusterAction)" in err


# -- half-done work ------------------------------------------------------------------------------
def refused(*names):
    """Refuses the configs of these resources."""

    def answer(request):
        altered = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
        return IncrementalAlterConfigsResponse(
            responses=[
                altered(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    error_code=int(ErrorCode.INVALID_CONFIG) if each.resource_name in names else 0,
                )
                for each in request.resources
            ]
        )

    return answer


def test_a_throttle_that_is_refused_lists_what_was_set_and_what_was_not(tool, broker, file):
    broker.answers["IncrementalAlterConfigsRequest"] = refused("1")
    words = ("--throttle", "5000", "--reassignment-json-file", file(plan([2])))
    code, out, err = tool("--execute", *words)
    assert code == 1
    assert out.splitlines()[-1].startswith("Error: broker 1: ")
    assert err.splitlines() == [
        "Done: throttle of topic t, throttle of broker 2",
        "Not done: throttle of broker 1, reassignment of t-0",
    ]


def test_a_lost_answer_is_not_called_undone(tool, broker, file, tmp_path):
    (tmp_path / "c").write_text("default.api.timeout.ms=300\n")
    broker.answers["AlterPartitionReassignmentsRequest"] = [HANG_UP]
    words = ("--command-config", tmp_path / "c", "--reassignment-json-file", file(plan([2])))
    code, _, err = tool("--execute", "--throttle", "5000", *words)
    assert code == 1
    assert "Not done, or not known: reassignment of t-0\n" in err


def test_a_cancellation_lists_what_was_cancelled(tool, broker, file):
    moving = ListPartitionReassignmentsResponse.OngoingTopicReassignment
    parts = [
        moving.OngoingPartitionReassignment(partition_index=n, replicas=[1, 2], adding_replicas=[2])
        for n in (0, 1)
    ]
    broker.answers |= {
        "ListPartitionReassignmentsRequest": [
            ListPartitionReassignmentsResponse(topics=[moving(name="t", partitions=parts)])
        ],
        "AlterPartitionReassignmentsRequest": [
            alter_answer(0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        ],
    }
    path = file(plan([2], [2]))
    code, out, err = tool("--cancel", "--reassignment-json-file", path)
    assert (code, "Error cancelling partition reassignment for:\nt-1: " in out) == (1, True)
    assert err.splitlines()[0] == "Done: cancellation of t-0"
    assert err.splitlines()[1].startswith(
        "Not done: cancellation of t-1, removal of the throttle of broker 1, "
    )
    broker.answers["AlterPartitionReassignmentsRequest"] = [alter_answer(0, 0)]
    broker.answers["IncrementalAlterConfigsRequest"] = refused("1")
    code, _, err = tool("--cancel", "--reassignment-json-file", path)
    assert (code, err.splitlines()) == (
        1,
        [
            "Done: cancellation of t-0, cancellation of t-1, removal of the throttle of broker 2, "
            "removal of the throttle of topic t",
            "Not done: removal of the throttle of broker 1",
        ],
    )


# -- through controllers -------------------------------------------------------------------------
@pytest.fixture
def through_controllers(quorate, broker, monkeypatch):
    """The tool through controllers; brokers 11, 12 and 13 are registered."""
    image = Image(cluster=Cluster(brokers=Map({i: Broker(i, 1, ZERO_UUID) for i in (11, 12, 13)})))
    for module in READERS:
        monkeypatch.setattr(module, "read_image", lambda admin: image)
    where = ("--bootstrap-controller", broker.address)
    return lambda *words: quorate("reassign-partitions", *where, *words)


def test_an_unknown_broker_is_refused_before_anything_changes(through_controllers, broker, file):
    path = file(plan([12, 99]))
    words = ("--execute", "--additional", "--throttle", "3000", "--reassignment-json-file", path)
    for more in ((), ("--json",)):
        code, out, err = through_controllers(*words, *more)
        assert (code, out + err) == (1, "Error: Unknown broker id 99\n")
    assert broker.asked("IncrementalAlterConfigsRequest") == []


@pytest.mark.parametrize("action", ["--cancel", "--verify"])
def test_the_throttle_of_the_source_is_removed_through_controllers(
    through_controllers, broker, file, action
):
    path = file(plan([12, 13]))
    assert through_controllers(action, "--reassignment-json-file", path).code == 0
    changed = {
        each.resource_name
        for request in broker.asked("IncrementalAlterConfigsRequest")
        for each in request.resources
    }
    assert changed == {"11", "12", "13", "t"}


def test_without_the_log_the_replicas_and_the_configs_name_the_brokers(
    quorate, broker, file, monkeypatch
):
    def refuse(admin):
        raise cluster_image.ImageUnreadableError("no", is_refused=True)

    monkeypatch.setattr(reassign_verify, "read_image", refuse)
    found = ListConfigResourcesResponse.ConfigResource
    broker.answers["ListConfigResourcesRequest"] = [
        ListConfigResourcesResponse(
            config_resources=[found(resource_type=4, resource_name=name) for name in ("", "7")]
        )
    ]
    words = ("--cancel", "--reassignment-json-file", file(plan([2])))
    where = ("--bootstrap-controller", broker.address)
    out = quorate("reassign-partitions", *where, *words).out
    assert "Clearing broker-level throttles on brokers 1,2,7\n" in out


def test_topics_by_pattern_are_proposed_without_a_file(tool):
    document = json.loads(tool("--generate", "--topic", "t.*", "--broker-list", "2", "--json").out)
    assert [each["replicas"] for each in document["proposed"]["partitions"]] == [[2], [2]]
    assert [each["log_dirs"] for each in document["current"]["partitions"]] == [["/a"], ["/a"]]
    code, out, _ = tool("--generate", "--topic", "x", "--broker-list", "2")
    assert (code, out) == (1, "Error: No topic matches x\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--execute", "--topic", "t"), 'Missing required argument "[broker-list]"'),
        (("--execute", "--topic", "t", "--from-broker", "1"), "can't be used with option"),
        (
            ("--execute", "--topic", "t", "--reassignment-json-file", "f"),
            "can't be used with option",
        ),
        (("--verify", "--topic", "t"), 'Missing required argument "[reassignment-json-file]"'),
        (("--list", "--wait"), 'Option "[wait]" can\'t be used with action "[list]"'),
    ],
)
def test_options_without_a_file_that_do_not_fit(tool, broker, words, reason):
    code, _, err = tool(*words)
    assert (code, reason in err, broker.requests) == (1, True, [])


def test_directories_are_not_moved_through_controllers(quorate, file):
    path = file(plan([1], log_dirs=["/d"]))
    words = ("--execute", "--reassignment-json-file", path)
    with FakeNode(
        {"ListPartitionReassignmentsRequest": [ListPartitionReassignmentsResponse()]}
    ) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        where = ("--bootstrap-controller", node.address)
        code, out, _ = quorate("reassign-partitions", *where, *words)
    assert (code, 'use --bootstrap-server, or "any"' in out) == (1, True)
