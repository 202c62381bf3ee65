"""Tools of brokers and partitions: what interop does not show, JSON, files and half-done work."""

import json
from typing import Any

import pytest

from client.fake_node import FakeNode
from client.test_admin import BROKER, cluster
from quorate.base.errors import ErrorCode
from quorate.cli.java_names import exception_name
from quorate.cli.tools.cluster import versions_text
from quorate.cli.tools.leader_election import partitions_of_file
from quorate.client.admin.cluster import ApiRange
from quorate.wire.messages import (
    CreateAclsResponse,
    CreateDelegationTokenResponse,
    DeleteAclsResponse,
    DescribeAclsResponse,
    DescribeDelegationTokenResponse,
    DescribeLogDirsResponse,
    ElectLeadersResponse,
    RenewDelegationTokenResponse,
    UnregisterControllerResponse,
)

ELECTION = ElectLeadersResponse.ReplicaElectionResult
LOG_DIR = DescribeLogDirsResponse.DescribeLogDirsResult
RESOURCE = DescribeAclsResponse.DescribeAclsResource
FILTERED = DeleteAclsResponse.DeleteAclsFilterResult
TOKEN = DescribeDelegationTokenResponse.DescribedDelegationToken


@pytest.fixture
def node():
    with FakeNode({}, BROKER) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        yield node


@pytest.fixture
def tool(quorate, node):
    def tool(name, *words):
        verb = words[:1] if name == "cluster" else ()
        return quorate(name, *verb, "--bootstrap-controller", node.address, *words[len(verb) :])

    return tool


# -- acls ----------------------------------------------------------------------------------------
ADD = ("acls", "--add", "--topic", "t", "--operation", "read")


def acl(**changes):
    fields: dict[str, Any] = {
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return RESOURCE(
        resource_type=2, resource_name="t", acls=[RESOURCE.AclDescription(**fields | changes)]
    )


def test_only_what_is_missing_is_added(tool, node):
    node.answers["DescribeAclsRequest"] = [DescribeAclsResponse(resources=[acl()])]
    node.answers["CreateAclsRequest"] = [
        CreateAclsResponse(results=[CreateAclsResponse.AclCreationResult()])
    ]
    words = (*ADD, "--allow-principal", "User:a", "--allow-principal", "User:b")
    code, out, err = tool(*words)
    entry = "(principal=User:{}, host=*, operation=READ, permissionType=ALLOW)"
    pattern = "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
    assert (code, err) == (0, "")
    assert out == (
        f"Acl (pattern={pattern}, entry={entry.format('a')}) already exists.\n"
        f"Adding ACLs for resource `{pattern}`: \n \t{entry.format('b')}\n\n"
    )
    [request] = node.asked("CreateAclsRequest")
    assert [each.principal for each in request.creations] == ["User:b"]
    added = json.loads(tool(*words, "--json").out)["added"]
    assert [(each["principal"], each["operation"]) for each in added] == [("User:b", "READ")]


def test_removing_asks_first(tool, node, monkeypatch):
    match = FILTERED.DeleteAclsMatchingAcl(
        resource_type=2,
        resource_name="t",
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    node.answers["DeleteAclsRequest"] = [
        DeleteAclsResponse(filter_results=[FILTERED(matching_acls=[match])])
    ]
    for answer, asked in (("n\n", 0), ("\n", 0), ("Y\n", 1)):
        monkeypatch.setattr("sys.stdin.readline", lambda answer=answer: answer, raising=False)
        code, out, _ = tool("acls", "--remove", "--topic", "t")
        assert (code, out.startswith("Are you sure you want to delete all ACLs for")) == (0, True)
        assert len(node.asked("DeleteAclsRequest")) == asked
    monkeypatch.setattr("sys.stdin.readline", lambda: "", raising=False)
    code, out, _ = tool("acls", "--remove", "--topic", "t", "--topic", "u")
    assert (code, len(node.asked("DeleteAclsRequest"))) == (1, 1)
    assert "name=t, patternType=LITERAL)` was removed: the input ended without an answer" in out
    removed = json.loads(tool("acls", "--remove", "--topic", "t", "--force", "--json").out)
    assert [each["resourceName"] for each in removed["removed"]] == ["t"]


def test_a_refused_entry_ends_the_command(tool, node):
    node.answers["DescribeAclsRequest"] = [
        DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer")
    ]
    code, out, err = tool("acls", "--list")
    assert (code, out, err) == (1, "Error while executing ACL command: No Authorizer\n", "")
    code, out, err = tool("acls", "--list", "--json")
    assert (code, out, err) == (1, "", "Error while executing ACL command: No Authorizer\n")


def test_entries_that_were_added_before_an_error_are_listed(tool, node):
    result = CreateAclsResponse.AclCreationResult
    node.answers["DescribeAclsRequest"] = [DescribeAclsResponse()]
    node.answers["CreateAclsRequest"] = [
        CreateAclsResponse(
            results=[result(), result(error_code=ErrorCode.INVALID_REQUEST, error_message="no")]
        )
    ]
    code, out, err = tool(*ADD, "--allow-principal", "User:a", "--allow-principal", "User:b")
    assert (code, out.splitlines()[-1]) == (1, "Error while executing ACL command: no")
    entry = (
        "(pattern=ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL), "
        "entry=(principal=User:{}, host=*, operation=READ, permissionType=ALLOW))"
    )
    one, two = entry.format("a"), entry.format("b")
    assert err == f"Added: {one}\nNot added: {two}\n"
    node.answers["CreateAclsRequest"] *= 2
    code, out, _ = tool(
        *ADD, "--allow-principal", "User:a", "--allow-principal", "User:b", "--json"
    )
    assert (code, json.loads(out)) == (
        1,
        {
            "error": "no (INVALID_REQUEST)",
            "answered": [{"item": one, "error": None}, {"item": two, "error": "no"}],
            "unknown": [],
            "notDone": [],
        },
    )
    node.answers["DeleteAclsRequest"] = [
        DeleteAclsResponse(
            filter_results=[
                FILTERED(error_code=ErrorCode.INVALID_REQUEST, error_message="not that"),
            ]
        )
    ]
    code, out, err = tool("acls", "--remove", "--topic", "t", "--force")
    assert (code, out, err) == (1, "Error while executing ACL command: not that\n", "")


def test_parts_of_a_principal_may_be_empty(tool, node):
    """As for `SecurityUtils.parseKafkaPrincipal`: only the colon is needed."""
    node.answers["DescribeAclsRequest"] = [DescribeAclsResponse()]
    node.answers["CreateAclsRequest"] = [
        CreateAclsResponse(results=[CreateAclsResponse.AclCreationResult()])
    ]
    for principal in ("User:", ":x"):
        assert tool(*ADD, "--allow-principal", principal).code == 0
    sent = [each.creations[0].principal for each in node.asked("CreateAclsRequest")]
    assert sent == ["User:", ":x"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--allow-principal", "alice", "--json"), "principalType:principalName but got alice"),
        (("--allow-principal", "User:a", "--operation", "fly"), "Unknown operation 'fly'"),
        (("--allow-principal", "User:a", "--operation", "CreateTokens"), "TOPIC only supports"),
    ],
)
def test_wrong_values_of_acls(tool, node, words, reason):
    code, _, err = tool("acls", "--add", "--topic", "t", *words)
    assert (code, node.requests) == (1, [])
    assert reason in err


# -- leader-election -----------------------------------------------------------------------------
def elected(**errors):
    return ElectLeadersResponse(
        replica_election_results=[
            ELECTION(
                topic=topic,
                partition_result=[ELECTION.PartitionResult(partition_id=0, error_code=error)],
            )
            for topic, error in errors.items()
        ]
    )


def test_elections_that_failed_are_named(tool, node):
    node.answers["ElectLeadersRequest"] = [
        elected(a=0, b=ErrorCode.ELECTION_NOT_NEEDED, c=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    ]
    words = ("leader-election", "--election-type", "PREFERRED", "--all-topic-partitions")
    code, out, err = tool(*words)
    reason = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE.message
    assert (code, err) == (1, "1 replica(s) could not be elected\n")
    assert out == (
        "Successfully completed leader election (PREFERRED) for partitions a-0\n"
        "Valid replica already elected for partitions b-0\n"
        "Error completing leader election (PREFERRED) for partition: c-0: org.apache.kafka.common."
        f"errors.PreferredLeaderNotAvailableException: {reason}\n"
    )
    found = json.loads(tool(*words, "--json").out)
    assert [each["result"] for each in found] == ["elected", "not needed", "failed"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"partitions": [\n {"topic": "a"', "line 2, column 15: not valid JSON"),
        ("[]", 'missing "partitions" field'),
        ('{"partitions": [{"topic": "a"}]}', r"partitions\[0\] must be"),
        *(
            (
                f'{{"partitions": [{{"topic": "a", "partition": {value}}}]}}',
                rf'partitions\[0\]: "partition": Expected `Integer` value, received {value}',
            )
            for value in ("true", '"0"', "0.5", "99999999999")
        ),
        (
            '{"partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}]}',
            r"duplicate partitions: \[a-0\]",
        ),
    ],
)
def test_an_error_in_a_file_names_its_position(tmp_path, text, reason):
    file = tmp_path / "partitions.json"
    file.write_bytes(text.encode())
    with pytest.raises(Exception, match=reason) as caught:
        partitions_of_file(str(file))
    assert str(file) in str(caught.value)


def test_a_file_with_a_byte_order_mark_and_crlf(tmp_path):
    file = tmp_path / "partitions.json"
    file.write_bytes(b'\xef\xbb\xbf{"partitions":\r\n [{"topic": "a", "partition": 3}]}\r\n')
    assert [str(each) for each in partitions_of_file(str(file))] == ["a-3"]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "UnknownTopicOrPartitionException"),
        (ErrorCode.KAFKA_STORAGE_ERROR, "KafkaStorageException"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ClusterAuthorizationException"),
        (ErrorCode.REQUEST_TIMED_OUT, "TimeoutException"),
    ],
)
def test_names_of_exceptions(code, name):
    assert exception_name(code) == f"org.apache.kafka.common.errors.{name}"


# -- log-dirs, tokens, cluster -------------------------------------------------------------------
def test_log_directories(quorate, node):
    topic = LOG_DIR.DescribeLogDirsTopic
    part = topic.DescribeLogDirsPartition
    node.answers["DescribeLogDirsRequest"] = [
        DescribeLogDirsResponse(
            results=[
                LOG_DIR(
                    log_dir="/a",
                    total_bytes=100,
                    topics=[
                        topic(name="t", partitions=[part(partition_index=1, partition_size=5)])
                    ],
                ),
                LOG_DIR(log_dir="/b", error_code=ErrorCode.KAFKA_STORAGE_ERROR),
            ]
        )
    ]
    words = ("log-dirs", "--bootstrap-server", node.address, "--describe")
    lines = quorate(*words).out.splitlines()
    assert lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    [broker] = json.loads(lines[2])["brokers"]
    assert broker["logDirs"] == [
        {
            "logDir": "/a",
            "error": None,
            "partitions": [{"partition": "t-1", "size": 5, "offsetLag": 0, "isFuture": False}],
        },
        {
            "logDir": "/b",
            "error": "org.apache.kafka.common.errors.KafkaStorageException",
            "partitions": [],
        },
    ]
    document = json.loads(quorate(*words, "--json", "--topic-list", "x").out)
    first = document["brokers"][0]["logDirs"][0]
    assert (first["partitions"], first["totalBytes"], first["cordoned"]) == ([], 100, False)


def test_a_broker_that_fails_is_named_beside_the_directories_of_the_others(quorate):
    refused = DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with FakeNode({}, BROKER) as one, FakeNode({}, BROKER) as two:
        answers = ([DescribeLogDirsResponse(results=[LOG_DIR(log_dir="/a")])], [refused])
        for each, answer in zip((one, two), answers, strict=True):
            each.answers["DescribeClusterRequest"] = [cluster(one, two)]
            each.answers["DescribeLogDirsRequest"] = answer
        words = ("log-dirs", "--bootstrap-server", one.address, "--describe")
        code, out, err = quorate(*words)
        failed, refused_by = err.splitlines()
        assert code == 1
        assert failed == "Broker 2: Cluster authorization failed. (CLUSTER_AUTHORIZATION_FAILED)"
        assert f"Refused by {two.address}: User:ANONYMOUS needs Describe on Cluster" in refused_by
        assert "information from brokers 1\n" in out
        [broker] = json.loads(out.splitlines()[2])["brokers"]
        assert [each["logDir"] for each in broker["logDirs"]] == ["/a"]
        code, out, _ = quorate(*words, "--json")
        found = {each["broker"]: each for each in json.loads(out)["brokers"]}
        assert (code, "error" in found[1], found[2]["logDirs"]) == (1, False, [])
        assert "CLUSTER_AUTHORIZATION_FAILED" in found[2]["error"]
        one.answers["DescribeLogDirsRequest"] = [refused]
        code, out, err = quorate(*words)
        assert (code, "CLUSTER_AUTHORIZATION_FAILED" in err, "{" in out) == (1, True, False)


def test_log_directories_are_not_known_to_controllers(tool):
    code, _, err = tool("log-dirs", "--describe")
    assert (code, "answered by brokers only" in err) == (1, True)


def test_tokens(tool, node, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    file = tmp_path / "client.properties"
    file.write_text("client.id=x\n")
    config = ("delegation-tokens", "--command-config", file)
    token: dict[str, Any] = {
        "principal_type": "User",
        "principal_name": "a",
        "token_id": "id1",
        "hmac": b"\x01\x02\x03",
    }
    node.answers |= {
        "CreateDelegationTokenRequest": [CreateDelegationTokenResponse(**token)],
        "RenewDelegationTokenRequest": [RenewDelegationTokenResponse(expiry_timestamp_ms=60_000)],
        "DescribeDelegationTokenRequest": [
            DescribeDelegationTokenResponse(
                tokens=[
                    TOKEN(
                        **token,
                        renewers=[
                            TOKEN.DescribedDelegationTokenRenewer(
                                principal_type="User", principal_name="r"
                            )
                        ],
                    )
                ]
            )
        ],
    }
    renewer = ("--renewer-principal", "User:r")
    created = tool(*config, "--create", "--max-life-time-period", "-1", *renewer).out.splitlines()
    assert created[0] == (
        "Calling create token operation with renewers :[User:r] , max-life-time-period :-1"
    )
    assert created[1] == "Created delegation token with tokenId : id1"
    assert created[-1].split()[:5] == ["id1", "AQID", "User:a", ":", "[User:r]"]
    [found] = json.loads(tool(*config, "--describe", "--json").out)
    assert (found["owner"], found["renewers"], found["hmac"]) == ("User:a", ["User:r"], "AQID")
    renew = (*config, "--renew", "--renew-time-period", "5", "--hmac")
    assert json.loads(tool(*renew, "AQID", "--json").out) == {"expiryTimestamp": 60_000}
    assert node.asked("RenewDelegationTokenRequest")[0].hmac == b"\x01\x02\x03"
    assert "--hmac: the value is not base64" in tool(*renew, "!").err


def test_versions_of_apis():
    removed = ApiRange(7, 0, 3)
    text = versions_text([ApiRange(0, 99, 100), ApiRange(3, 0, 12), removed, ApiRange(999, 1, 1)])
    lines = [line.strip(",\t") for line in text.splitlines()]
    assert lines[1] == "Produce(0): 99 to 100 [unusable: node too new]"
    assert "Fetch(1): UNSUPPORTED" in lines
    assert "Metadata(3): 0 to 12 [usable: 12]" in lines
    assert "ControlledShutdown(7): 0 to 3 [unusable: node too new]" in lines
    assert lines[-2:] == ["UNKNOWN(999): 1", ")"]
    assert not any("Vote(52)" in line for line in lines)


def test_nodes_as_json(tool, node):
    [found] = json.loads(tool("cluster", "list-endpoints", "--json").out)
    assert (found["id"], found["port"], found["endpointType"]) == (
        1,
        node.address.port,
        "controller",
    )
    [versions] = json.loads(tool("cluster", "api-versions", "--json").out)
    named = {api["name"]: api["maxVersion"] for api in versions["apis"]}
    assert (versions["error"], named["DescribeCluster"]) == (None, 2)
    assert json.loads(tool("cluster", "cluster-id", "--json").out) == {"clusterId": "c"}
    out = tool("cluster", "list-endpoints", "--include-fenced-brokers").err
    assert "only supported with --bootstrap-server" in out


def test_a_cluster_without_the_api_is_no_failure(tool, node):
    node.answers["UnregisterControllerRequest"] = [
        UnregisterControllerResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    ]
    code, out, _ = tool("cluster", "unregister-controller", "--id", "7")
    assert (code, out) == (
        0,
        "The target cluster does not support the controller unregistration API.\n",
    )
    assert json.loads(tool("cluster", "unregister-controller", "--id", "7", "--json").out) == {
        "id": 7,
        "unregistered": False,
    }


@pytest.mark.parametrize(
    "words",
    [
        ("cluster", "unregister", "--id", "99999999999"),
        ("cluster", "unregister-controller", "--id", "99999999999"),
        ("features", "describe", "--node-id", "99999999999"),
        (
            "leader-election",
            "--election-type",
            "preferred",
            "--topic",
            "t",
            "--partition",
            "9" * 11,
        ),
        ("topics", "--create", "--topic", "t", "--partitions", "99999999999"),
        ("topics", "--create", "--topic", "t", "--replica-assignment", "1:99999999999"),
    ],
)
def test_a_number_beyond_32_bits_is_refused_before_anything_is_sent(quorate, words):
    with FakeNode({}) as node:
        where = ("--bootstrap-controller", node.address)
        at = 1 if words[0] == "features" else len(words)
        code, out, err = quorate(*words[:at], *where, *words[at:])
        assert node.requests == []
    assert code != 0 and "99999999999" in out + err
