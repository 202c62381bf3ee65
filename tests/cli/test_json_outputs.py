"""`--json` prints JSON whatever the outcome; the fixture compares it with the command's schema."""

import json

import pytest

from client.fake_node import FakeNode
from client.test_admin import cluster
from client.test_admin_calls import page
from client.test_admin_parts import CALLS, PARTITIONS
from quorate.base.errors import ErrorCode
from quorate.wire.messages import (
    AddRaftVoterResponse,
    AlterPartitionReassignmentsResponse,
    CreateTopicsResponse,
    DescribeTopicPartitionsResponse,
    ElectLeadersResponse,
    FetchResponse,
    IncrementalAlterConfigsResponse,
    ListPartitionReassignmentsResponse,
    RemoveRaftVoterResponse,
    UnregisterControllerResponse,
    UpdateFeaturesResponse,
)
from shell.test_loading import folder  # noqa: F401 - a fixture

UUID = "AQEBAQEBAQEBAQEBAQEBAQ"


@pytest.fixture
def node():
    with FakeNode({}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        yield node


@pytest.fixture
def ask(quorate, node):
    """The exit code, the JSON and stderr of a command."""

    def ask(tool, *words):
        where = ("--bootstrap-controller", node.address)
        line = (*words, *where) if tool == "topics" else (*where, *words)
        code, out, err = quorate(tool, *line, "--json")
        return code, json.loads(out), err

    return ask


def test_a_topic_that_exists_already(ask, node):
    failed = CreateTopicsResponse.CreatableTopicResult(
        name="t", error_code=ErrorCode.TOPIC_ALREADY_EXISTS
    )
    node.answers["CreateTopicsRequest"] = [CreateTopicsResponse(topics=[failed])]
    words = ("--create", "--topic", "t", "--if-not-exists")
    assert ask("topics", *words) == (0, {"topic": "t", "created": False}, "")


@pytest.mark.parametrize("words", [("--delete",), ("--alter", "--partitions", "3")])
def test_a_topic_that_is_not_there(ask, node, words):
    unknown = page("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    node.answers["DescribeTopicPartitionsRequest"] = [unknown]
    assert ask("topics", *words, "--topic", "t", "--if-exists") == (0, [], "")


def test_the_configs_of_a_topic_that_is_not_there(ask, node):
    node.answers["DescribeTopicPartitionsRequest"] = [DescribeTopicPartitionsResponse()]
    code, found, err = ask("configs", "--describe", "--topic", "nope")
    assert (code, found, "doesn't exist" in err) == (0, [], True)


@pytest.mark.parametrize("dry", [True, False])
def test_voters(ask, node, dry, tmp_path):
    node.answers["RemoveRaftVoterRequest"] = [RemoveRaftVoterResponse()]
    node.answers["UnregisterControllerRequest"] = [UnregisterControllerResponse()]
    words = ("remove-controller", "-i", 1, "-d", UUID, "--unregister", *["--dry-run"][: int(dry)])
    key = {"id": 1, "directoryId": UUID}
    done = {"removed": not dry, "unregistered": not dry, "dryRun": dry}
    assert ask("metadata-quorum", *words) == (0, key | done, "")
    node.answers["AddRaftVoterRequest"] = [AddRaftVoterResponse()]
    (tmp_path / "meta.properties").write_text(
        f"version=1\ncluster.id={UUID}\nnode.id=1\ndirectory.id={UUID}\n"
    )
    config = tmp_path / "c.properties"
    config.write_text(
        f"node.id=1\nprocess.roles=controller\nlog.dirs={tmp_path}\n"
        "listeners=C://h:9\ncontroller.listener.names=C\n"
    )
    words = ("add-controller", "--config", config, *["--dry-run"][: int(dry)])
    added = {"endpoints": ["C://h:9"], "added": not dry, "dryRun": dry}
    assert ask("metadata-quorum", *words) == (0, key | added, "")


def test_a_call_in_several_requests_that_fails_in_the_middle(ask, node, tmp_path):
    """The first request is answered; the second is refused."""
    requests = []

    def answer(request):
        requests.append(request)
        if len(requests) > 1:
            return ElectLeadersResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return CALLS["elect_leaders"][1](request)

    node.answers["ElectLeadersRequest"] = answer
    more = [{"topic": each.topic, "partition": n} for n in (0, 1) for each in PARTITIONS]
    (file := tmp_path / "plan.json").write_text(json.dumps({"partitions": more}))
    words = ("--election-type", "preferred", "--path-to-json-file", file)
    code, found, err = ask("leader-election", *words)
    assert (code, found["unknown"]) == (1, [])
    assert "CLUSTER_AUTHORIZATION_FAILED" in found["error"] and found["error"] in err
    answered = [each["item"] for each in found["answered"] if each["error"] is None]
    assert answered == [str(each) for each in PARTITIONS[: len(answered)]]
    assert len(answered) + len(found["notDone"]) == len(more)


def test_a_reassignment_that_fails_in_the_middle(ask, node, tmp_path):
    """The throttle is set, and the reassignment refused."""
    topic = page("t", 0)
    node.answers |= {
        "ListPartitionReassignmentsRequest": [ListPartitionReassignmentsResponse()],
        "DescribeTopicPartitionsRequest": [topic],
        "FetchRequest": [FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)],
        "IncrementalAlterConfigsRequest": lambda request: IncrementalAlterConfigsResponse(
            responses=[
                IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                    resource_type=each.resource_type, resource_name=each.resource_name
                )
                for each in request.resources
            ]
        ),
        "AlterPartitionReassignmentsRequest": [
            AlterPartitionReassignmentsResponse(
                error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="no"
            )
        ],
    }
    plan = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2]}]}
    (file := tmp_path / "plan.json").write_text(json.dumps(plan))
    words = ("--execute", "--reassignment-json-file", file, "--throttle", "1000")
    code, found, err = ask("reassign-partitions", *words)
    assert (code, found["error"], found["unknown"]) == (1, "no (CLUSTER_AUTHORIZATION_FAILED)", [])
    assert found["notDone"] == ["reassignment of t-0"]
    assert "throttle of topic t" in [each["item"] for each in found["answered"]]
    assert "Not done: reassignment of t-0" in err


@pytest.mark.parametrize("verb", ["upgrade", "downgrade", "disable"])
def test_features(ask, node, verb):
    node.versions[57] = (0, 1)  # the last version with a result for each feature
    result = UpdateFeaturesResponse.UpdatableFeatureResult
    node.answers["UpdateFeaturesRequest"] = [
        UpdateFeaturesResponse(
            results=[
                result(feature="a"),
                result(
                    feature="b", error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="no"
                ),
            ]
        )
    ]
    names = ("a", "b") if verb == "disable" else ("a=0", "b=0")
    code, found, err = ask(
        "features", verb, *(word for name in names for word in ("--feature", name))
    )
    rows = [
        {"feature": "a", "level": 0, "error": None},
        {"feature": "b", "level": 0, "error": "no"},
    ]
    assert (code, found) == (1, {"dryRun": False, "features": rows})
    assert "1 out of 2 operation(s) failed." in err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("ls", "/"), "image"),
        (("tree", "/image/features"), None),
        (("find", "/image/features"), "/image/features"),
        (("cat", "/image/cluster/zkMigrationState"), None),
    ],
)
def test_the_shell(quorate, folder, words, line):  # noqa: F811
    code, out, _ = quorate("metadata-shell", "-d", folder, "--json", *words)
    found = json.loads(out)
    assert (code, found["command"]) == (0, words[0])
    assert line is None or line in found["lines"]


def test_a_principal_without_a_type_is_refused(quorate, node):
    where = ("--bootstrap-controller", node.address)
    said = "Error while executing ACL command: expected a string in format "
    said += "principalType:principalName but got a\n"
    words = ("acls", *where, "--list", "--principal", "a")
    assert quorate(*words) == (1, said, "")
    assert quorate(*words, "--json") == (1, "", said)
