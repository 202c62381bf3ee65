"""`quorate configs`: parsing, warnings, JSON and secrets. Texts are compared with Kafka's in interop."""

import hashlib
import json

import pytest
from immutables import Map

from client.fake_node import FakeNode
from client.test_admin import BROKER, cluster
from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.cli.flat_options import FlatToolError
from quorate.cli.tools import config_of_brokers
from quorate.cli.tools.config_entities import configs_to_add, configs_to_delete
from quorate.cli.tools.configs_alter import scram_upsertion
from quorate.metadata.image import Broker, Cluster, ConfigResource, Image
from quorate.wire.messages import (
    AlterClientQuotasResponse,
    AlterUserScramCredentialsResponse,
    DescribeClientQuotasResponse,
    DescribeConfigsResponse,
    DescribeUserScramCredentialsResponse,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesResponse,
    ListGroupsResponse,
)

RESULT = DescribeConfigsResponse.DescribeConfigsResult
CONFIG = RESULT.DescribeConfigsResourceResult
ALTERED = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


@pytest.fixture
def controller():
    with FakeNode({}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        yield node


@pytest.fixture
def tool(quorate, controller):
    def tool(*words):
        return quorate("configs", "--bootstrap-controller", controller.address, *words)

    return tool


def test_values_of_add_config():
    assert configs_to_add("a=1,b=[2,3], c = x ,d=", None) == {
        "a": "1",
        "b": "2,3",
        "c": "x",
        "d": "",
    }
    assert configs_to_add("SCRAM-SHA-256=[iterations=9,password=a=b]", None) == {
        "SCRAM-SHA-256": "iterations=9,password=a=b"
    }
    assert configs_to_add("a=1,", None) == {"a": "1"}
    assert configs_to_add("a=1,b=[2,3],,", None) == {"a": "1", "b": "2,3"}
    for text in ("a=1,,b=2", ",a=1", ""):
        with pytest.raises(FlatToolError, match="Invalid entity config"):
            configs_to_add(text, None)
    assert configs_to_delete(["a, b", "c"]) == ["a", "b", "c"]


def test_a_file_of_configs(tmp_path):
    file = tmp_path / "topic.properties"
    file.write_bytes(b"retention.ms = 5\r\ncleanup.policy=compact,\\\r\n  delete\r\n")
    assert configs_to_add(None, str(file)) == {
        "retention.ms": "5",
        "cleanup.policy": "compact,delete",
    }


def test_a_credential_never_shows_its_password():
    found = scram_upsertion("a", "SCRAM-SHA-256", "password=secret")
    assert (found.iterations, found.password) == (4096, b"secret")
    assert scram_upsertion("a", "SCRAM-SHA-512", "iterations=-1,password=").iterations == 4096
    for text in ("secret", "iterations=5000,secret", "iterations=9,password=secret"):
        with pytest.raises(FlatToolError) as caught:
            scram_upsertion("a", "SCRAM-SHA-256", text)
        assert "secret" not in str(caught.value)


def test_names_and_defaults_keep_their_order(tool, controller):
    controller.answers["AlterClientQuotasRequest"] = [AlterClientQuotasResponse()]
    words = ("--alter", "--entity-type", "clients", "--entity-default", "--entity-type", "users")
    outcome = tool(*words, "--entity-name", "alice", "--add-config", "producer_byte_rate=1e3")
    assert outcome == (0, "Completed updating default config for clients in the cluster.\n", "")
    [request] = controller.asked("AlterClientQuotasRequest")
    [entry] = request.entries
    assert [(e.entity_type, e.entity_name) for e in entry.entity] == [
        ("client-id", None),
        ("user", "alice"),
    ]
    assert [(op.key, op.value, op.remove) for op in entry.ops] == [
        ("producer_byte_rate", 1000.0, False)
    ]


def test_a_broker_config_past_the_broker_is_warned_of(tool, controller):
    controller.answers["IncrementalAlterConfigsRequest"] = [
        IncrementalAlterConfigsResponse(responses=[ALTERED(resource_type=4, resource_name="7")])
    ]
    code, out, err = tool("--alter", "--broker", "7", "--add-config", "a=b", "--json")
    assert (code, json.loads(out)["set"]) == (0, ["a"])
    assert err.startswith("Warning: ")
    assert "the broker does not validate it" in err


def test_what_is_set_for_a_broker_is_described_through_controllers(tool, monkeypatch):
    values = Map({"leader.replication.throttled.rate": "5000", "unknown": "secret"})
    image = Image(
        cluster=Cluster(brokers=Map({11: Broker(11, 1, ZERO_UUID)})),
        configs=Map({ConfigResource(4, "12"): values}),
    )
    monkeypatch.setattr(config_of_brokers, "read_image", lambda admin: image)
    code, out, _ = tool("--describe", "--broker", "12")
    assert (code, out) == (
        0,
        "Dynamic configs for broker 12 are:\n"
        "  leader.replication.throttled.rate=5000 sensitive=false "
        "synonyms={DYNAMIC_BROKER_CONFIG:leader.replication.throttled.rate=5000}\n"
        "  unknown=null sensitive=true synonyms={DYNAMIC_BROKER_CONFIG:unknown=null}\n",
    )
    assert tool("--describe", "--broker", "11").out == "Dynamic configs for broker 11 are:\n"
    unknown = "The broker '13' doesn't exist and doesn't have dynamic config.\n"
    assert tool("--describe", "--broker", "13").out == unknown
    code, out, err = tool("--describe", "--broker", "12", "--all")
    assert (code, "use --bootstrap-server" in out + err) == (1, True)


def test_quotas_and_credentials_as_json(tool, controller):
    entry = DescribeClientQuotasResponse.EntryData
    user = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    controller.answers |= {
        "DescribeClientQuotasRequest": [
            DescribeClientQuotasResponse(
                entries=[
                    entry(
                        entity=[entry.EntityData(entity_type="user", entity_name=None)],
                        values=[entry.ValueData(key="request_percentage", value=1e7)],
                    )
                ]
            )
        ],
        "DescribeUserScramCredentialsRequest": [
            DescribeUserScramCredentialsResponse(
                results=[
                    user(
                        user="bob",
                        credential_infos=[user.CredentialInfo(mechanism=2, iterations=5000)],
                    ),
                    user(user="eve", error_code=ErrorCode.RESOURCE_NOT_FOUND),
                    user(user="mallory", error_code=ErrorCode.DUPLICATE_RESOURCE),
                ]
            )
        ],
    }
    assert json.loads(tool("--describe", "--entity-type", "users", "--json").out) == {
        "quotas": [{"entity": {"user": None}, "quotas": {"request_percentage": 1e7}}],
        "scramCredentials": [
            {"user": "bob", "credentials": [{"mechanism": "SCRAM-SHA-512", "iterations": 5000}]},
            {
                "user": "mallory",
                "credentials": [],
                "error": "DUPLICATE_RESOURCE: A request illegally referred to the same resource twice.",
            },
        ],
    }
    out = tool("--describe", "--entity-type", "users").out.splitlines()
    assert out[0] == ("Quota configs for the default user-principal are request_percentage=1.0E7")
    assert out[1].endswith("'bob' are SCRAM-SHA-512=iterations=5000")


def test_a_refusal_of_the_cluster_names_no_secret(tool, controller):
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    controller.answers["AlterUserScramCredentialsRequest"] = [
        AlterUserScramCredentialsResponse(
            results=[
                result(
                    user="a", error_code=ErrorCode.UNACCEPTABLE_CREDENTIAL, error_message="too weak"
                )
            ]
        )
    ]
    words = ("--alter", "--user", "a", "--add-config", "SCRAM-SHA-256=[password=hunter2]")
    code, out, err = tool(*words)
    assert (code, out) == (1, "")
    assert err == "Error while executing config command: too weak (UNACCEPTABLE_CREDENTIAL)\n"
    [request] = controller.asked("AlterUserScramCredentialsRequest")
    [sent] = request.upsertions
    assert sent.salted_password == hashlib.pbkdf2_hmac("sha256", b"hunter2", sent.salt, 4096)


def test_configs_of_several_brokers_as_json(quorate):
    def describe(request):
        [resource] = request.resources
        value = f"of {resource.resource_name or 'all'}"
        source = 2 if resource.resource_name else 3
        entry = CONFIG(name="a", value=value, config_source=source)
        other = CONFIG(name="b", value="", config_source=5)
        found = RESULT(
            resource_type=4, resource_name=resource.resource_name, configs=[other, entry]
        )
        return DescribeConfigsResponse(results=[found])

    with FakeNode({"DescribeConfigsRequest": describe}, BROKER) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node, node)]
        where = ("--bootstrap-server", node.address)
        out = quorate("configs", *where, "--describe", "--entity-type", "brokers", "--json").out
    found = json.loads(out)
    assert [each["entityName"] for each in found] == ["1", "2", None]
    assert [[c["value"] for c in each["configs"]] for each in found] == [
        ["of 1"],
        ["of 2"],
        ["of all"],
    ]


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ((0, 1), "The group 'g' doesn't exist and doesn't have dynamic config."),
        ((0, 0), "Dynamic configs for group g are:"),
    ],
    ids=["of now", "before Kafka 4.1"],
)
def test_a_group_may_have_configs_where_they_cannot_be_listed(quorate, versions, message):
    found = RESULT(resource_type=32, resource_name="g", configs=[])
    answers = {
        "ListGroupsRequest": [ListGroupsResponse()],
        "ListConfigResourcesRequest": [ListConfigResourcesResponse()],
        "DescribeConfigsRequest": [DescribeConfigsResponse(results=[found])],
    }
    with FakeNode(answers, {**BROKER, 74: versions}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        where = ("--bootstrap-server", node.address)
        assert quorate("configs", *where, "--describe", "--group", "g").out == f"{message}\n"


def test_an_empty_name_is_no_group(quorate):
    answers = {
        "ListGroupsRequest": [ListGroupsResponse()],
        "ListConfigResourcesRequest": [ListConfigResourcesResponse()],
    }
    with FakeNode(answers, BROKER) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        where = ("--bootstrap-server", node.address)
        code, out, _ = quorate("configs", *where, "--describe", "--group", "")
    assert (code, out) == (0, "The group '' doesn't exist and doesn't have dynamic config.\n")


def test_an_empty_password_is_refused(tool, controller):
    words = ("--alter", "--user", "u", "--add-config", "SCRAM-SHA-256=[password=]")
    code, out, err = tool(*words)
    assert (code, out) == (1, "") and "Password must not be empty" in err
    assert controller.asked("AlterUserScramCredentialsRequest") == []


def test_a_mistyped_entity_type_gets_a_suggestion(tool):
    code, _, err = tool("--describe", "--entity-type", "topic")
    assert (code, "(did you mean topics?)" in err) == (1, True)
