"""How a client is opened, and results of calls to several nodes."""

import pytest

from client.fake_node import FakeNode
from client.test_admin import BROKER, cluster
from client.test_admin_calls import brokers, config, configs_of, open_admin
from quorate.base.errors import ErrorCode
from quorate.client import Admin, AsyncAdmin, ClientError, RequestFailedError
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType
from quorate.client.admin.log_dirs import TopicPartitionReplica
from quorate.client.admin.reassignments import PartitionName
from quorate.client.config import BootstrapError
from quorate.client.connection import ClientSecurity
from quorate.config.settings import ConfigError
from quorate.wire.messages import (
    AlterReplicaLogDirsResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)

TOPIC = Resource(ResourceType.TOPIC, "t")
UNKNOWN = Resource(ResourceType.BROKER_LOGGER, "99")
SET = [AlterConfigOp("retention.ms", OpType.SET, "1")]
ALTERED = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


@pytest.mark.parametrize("cls", [Admin, AsyncAdmin])
@pytest.mark.parametrize("servers", ["a:1,b:2", ["a:1", "b:2"], ("a:1", "b:2")])
def test_a_list_of_addresses_is_one_text_or_several(cls, servers):
    assert list(map(str, cls.open(bootstrap_servers=servers).config.bootstrap)) == ["a:1", "b:2"]


@pytest.mark.parametrize("cls", [Admin, AsyncAdmin])
def test_properties_may_be_a_mapping(cls):
    found = cls.open(properties={"bootstrap.controllers": "c:1", "request.timeout.ms": 700}).config
    assert (found.controllers, found.request_timeout_ms) == (True, 700)
    with pytest.raises(ConfigError, match=r"request\.timeout\.ms"):
        cls.open(properties={"bootstrap.controllers": "c:1", "request.timeout.ms": "soon"})


def test_the_timeout_and_the_security_are_arguments():
    security = ClientSecurity()
    found = Admin.open(bootstrap_servers=["a:1"], timeout_s=1.5, security=security).config
    assert (found.default_api_timeout_ms, found.request_timeout_ms) == (1500, 1500)
    assert found.security is security
    for wrong in (0, float("nan"), float("inf"), 3e6):
        with pytest.raises(BootstrapError, match="must be a number of seconds"):
            Admin.open(bootstrap_servers="a:1", timeout_s=wrong)


def test_the_name_of_a_node_is_its_id():
    with FakeNode({}) as node, open_admin(node) as admin:
        for kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
            wanted = f"The name of a {kind.name} resource is the id of a node, not 'abc'"
            with pytest.raises(ClientError, match=wanted):
                admin.describe_configs([Resource(kind, "abc")])


def test_a_node_that_fails_does_not_hide_the_changes_at_others():
    answer = IncrementalAlterConfigsResponse(
        responses=[ALTERED(resource_type=2, resource_name="t")]
    )
    with FakeNode({"IncrementalAlterConfigsRequest": [answer]}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        found = admin.incremental_alter_configs({UNKNOWN: SET, TOPIC: SET})
    assert found[TOPIC] is None
    assert isinstance(found[UNKNOWN], RequestFailedError)
    assert "The cluster has no node 99" in str(found[UNKNOWN])


def test_a_node_that_fails_does_not_hide_the_configs_of_others():
    answer = DescribeConfigsResponse(results=[configs_of(2, "t", "v")])
    with FakeNode({"DescribeConfigsRequest": [answer]}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        found = admin.describe_configs([UNKNOWN, TOPIC])
        with pytest.raises(ClientError, match="no node 99"):
            admin.describe_configs([UNKNOWN])
    assert found[TOPIC][0].value == "v"
    assert "The cluster has no node 99" in str(found[UNKNOWN])


def test_a_broker_that_fails_does_not_hide_the_moves_at_others():
    moves = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    answer = AlterReplicaLogDirsResponse(
        results=[
            moves(
                topic_name="t",
                partitions=[moves.AlterReplicaLogDirPartitionResult(partition_index=0)],
            )
        ]
    )
    here, gone = (TopicPartitionReplica(PartitionName("t", 0), broker) for broker in (1, 9))
    with FakeNode({"AlterReplicaLogDirsRequest": [answer]}, BROKER) as node:
        node.answers["DescribeClusterRequest"] = [brokers(node)]
        with Admin(config(node, controllers=False)) as admin:
            found = admin.alter_replica_log_dirs({here: "/a", gone: "/a"})
    assert found[here] is None
    assert "has no node 9" in str(found[gone])


@pytest.mark.parametrize("message", [None, ""])
def test_an_error_without_a_text_has_that_of_its_code(message):
    error = RequestFailedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    assert str(error) == (
        "This server does not host this topic-partition. (UNKNOWN_TOPIC_OR_PARTITION)"
    )
