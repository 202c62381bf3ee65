"""What a tool says when an authorizer refuses it: Kafka's text, then who needs which ACL where."""

import pytest

from client.fake_node import FakeNode
from client.test_admin import BROKER, cluster
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.client.admin.pool import ClientConfig
from quorate.client.admin.refusals import explained, operation_of
from quorate.client.config import client_config
from quorate.client.results import DENIED, RequestFailedError
from quorate.config.settings import Settings
from quorate.node.apis import API_TABLE
from quorate.security.acl import AclOperation
from quorate.wire.messages import (
    CreateTopicsResponse,
    DescribeAclsResponse,
    DescribeClusterResponse,
    UpdateFeaturesResponse,
)

NODE = Address("node", 9093)
JAAS = "org.apache.kafka.common.security.{} required {};"


@pytest.fixture
def node():
    with FakeNode({}, BROKER) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        yield node


def test_a_refused_call_names_node_principal_and_operation(quorate, node):
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    node.answers["DescribeAclsRequest"] = [
        DescribeAclsResponse(error_code=denied, error_message=denied.message)
    ]
    outcome = quorate("acls", "--bootstrap-controller", node.address, "--list")
    assert outcome.code == 1
    assert outcome.out == "Error while executing ACL command: Cluster authorization failed.\n"
    assert outcome.err == (
        f"Refused by {node.address}: User:ANONYMOUS needs Describe on Cluster (this side showed no "
        "certificate and no login). quorate acls --add --allow-principal User:ANONYMOUS --operation "
        "Describe --cluster allows it, if no entry denies it: quorate acls --list shows those.\n"
    )


def test_a_refused_look_for_the_leader_is_explained(quorate, node):
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    node.answers["DescribeClusterRequest"] = [DescribeClusterResponse(error_code=denied)]
    words = "metadata-quorum", "--bootstrap-controller", node.address, "describe", "--status"
    first, second = quorate(*words).err.splitlines()
    assert first == "Cluster authorization failed. (CLUSTER_AUTHORIZATION_FAILED)"
    assert "User:ANONYMOUS needs Alter on Cluster" in second


def test_a_refused_item_is_named(quorate, node):
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    result = CreateTopicsResponse.CreatableTopicResult(name="bills", error_code=denied)
    node.answers["CreateTopicsRequest"] = [CreateTopicsResponse(topics=[result])]
    words = "topics", "--bootstrap-server", node.address, "--create", "--topic", "bills"
    outcome = quorate(*words)
    assert "Topic authorization failed." in outcome.out
    assert "User:ANONYMOUS needs Create on Topic bills" in outcome.err
    assert "--operation Create --topic bills allows it" in outcome.err


def test_nothing_is_said_of_a_refusal_in_spite_of_which_the_tool_goes_on(quorate, node):
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    refused = UpdateFeaturesResponse(error_code=denied)
    node.answers["UpdateFeaturesRequest"] = [refused]
    words = "features", "--bootstrap-controller", node.address
    assert "needs Alter on Cluster" in quorate(*words, "upgrade", "--feature", "x=1").err
    assert quorate(*words, "describe").err == "", "nor of one of the tool before"


def config(**values):
    return client_config(Settings(values, {}), controllers="node:9093")


def line(code, key, config, item=None):
    return explained(RequestFailedError(code, None), item, (NODE, key), config)


@pytest.mark.parametrize(
    ("module", "mechanism", "options", "who"),
    [
        ("plain.PlainLoginModule", "PLAIN", "username=u password=p", "User:u needs"),
        ("scram.ScramLoginModule", "SCRAM-SHA-256", "username=u password=p", "User:u needs"),
        (
            *("scram.ScramLoginModule", "SCRAM-SHA-256"),
            *("username=u password=p tokenauth=true", "the principal of this login needs"),
        ),
        (
            *("oauthbearer.OAuthBearerLoginModule", "OAUTHBEARER"),
            *("", "the principal of this login needs"),
        ),
    ],
    ids=["PLAIN", "SCRAM", "token", "OAUTHBEARER"],
)
def test_the_principal_is_known_from_the_configuration_or_not_at_all(
    module, mechanism, options, who
):
    words = " ".join('{}="{}"'.format(*each.split("=")) for each in options.split())
    made = config(
        **{
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": JAAS.format(module, words),
            "sasl.oauthbearer.token.endpoint.url": "file:///none",
        }
    )
    text = line(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 29, made)
    assert f"Refused by node:9093: {who} Describe on Cluster." in text
    assert ("User:NAME" in text) is ("User:u" not in text)


def test_a_token_for_another_user_needs_a_permission_on_the_user():
    made = ClientConfig((NODE,), controllers=True)
    text = line(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, 38, made)
    assert "CreateTokens on User" in text and "--user-principal NAME" in text
    assert "Describe on DelegationToken" in line(
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, 41, made
    )
    assert "a permission on Group" in line(ErrorCode.GROUP_AUTHORIZATION_FAILED, 999, made)


def test_the_operations_are_those_that_the_nodes_ask_for():
    internal = AclOperation.CLUSTER_ACTION
    for key, row in API_TABLE.items():
        if row.acl is not None and row.acl.operation != internal:
            assert operation_of(key) == row.acl.operation, row.name


@pytest.mark.parametrize("code", sorted(DENIED))
def test_every_refusal_has_a_line(code):
    made = ClientConfig((NODE,), controllers=True)
    assert line(code, 3, made, "a").startswith("Refused by node:9093: User:ANONYMOUS needs")
