"""Reads of the admin client over controllers: they see what the client wrote, and nothing stale."""

import pytest

from client.fake_node import FakeNode
from client.test_admin import cluster
from client.test_admin_calls import configs_of, open_admin, page
from quorate.base.errors import ErrorCode
from quorate.client import RequestFailedError
from quorate.client.admin import routing
from quorate.client.admin.configs import Resource, ResourceType
from quorate.client.admin.topics import TopicCreation, TopicDescription
from quorate.wire.messages import (
    CreateTopicsResponse,
    DescribeConfigsResponse,
    DescribeTopicPartitionsResponse,
    ListConfigResourcesResponse,
)

TOPIC = Resource(ResourceType.TOPIC, "a")
CREATED = CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(name="a")])
UNKNOWN = page("a", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
READS = {
    "describe_topics": (lambda admin: admin.describe_topics(["a"])["a"], TopicDescription),
    "list_topics": (lambda admin: admin.list_topics()[0].name, str),
    "describe_configs": (lambda admin: admin.describe_configs([TOPIC])[TOPIC], tuple),
    "list_config_resources": (lambda admin: admin.list_config_resources()[0], Resource),
}


def behind():
    """A follower that does not have the topic yet."""
    failed = DescribeConfigsResponse.DescribeConfigsResult(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, resource_type=2, resource_name="a"
    )
    return FakeNode(
        {
            "DescribeTopicPartitionsRequest": [UNKNOWN],
            "DescribeConfigsRequest": [DescribeConfigsResponse(results=[failed])],
            "ListConfigResourcesRequest": [ListConfigResourcesResponse()],
        }
    )


def leading():
    one = ListConfigResourcesResponse.ConfigResource(resource_name="a", resource_type=2)
    return FakeNode(
        {
            "CreateTopicsRequest": [CREATED],
            "DescribeTopicPartitionsRequest": [page("a", 0)],
            "DescribeConfigsRequest": [DescribeConfigsResponse(results=[configs_of(2, "a", "v")])],
            "ListConfigResourcesRequest": [ListConfigResourcesResponse(config_resources=[one])],
        }
    )


@pytest.mark.parametrize("name", READS)
def test_a_client_reads_what_it_wrote(name):
    read, kind = READS[name]
    with behind() as follower, leading() as leader:
        for node in (follower, leader):
            node.answers["DescribeClusterRequest"] = [cluster(follower, leader, leader=2)]
        with open_admin(follower, leader) as admin:
            assert not isinstance(admin.create_topics([TopicCreation("a")])["a"], Exception)
            assert isinstance(read(admin), kind)


@pytest.mark.parametrize("name", READS)
def test_a_controller_that_leads_no_more_is_not_read(name, monkeypatch):
    """It does not say so in the response: whether it leads is asked again."""
    monkeypatch.setattr(routing, "READ_AGAIN_S", 0.0)
    read, kind = READS[name]
    with behind() as old, leading() as leader:
        both = [cluster(old, leader, leader=1), cluster(old, leader, leader=2)]
        old.answers["DescribeClusterRequest"] = both
        leader.answers["DescribeClusterRequest"] = both[1:]
        with open_admin(old, leader) as admin:
            admin.describe_cluster()
            assert isinstance(read(admin), kind)


@pytest.mark.parametrize("name", READS)
def test_without_an_active_controller_a_read_fails(name):
    read, _ = READS[name]
    with leading() as node, open_admin(node, default_api_timeout_ms=20) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node, leader=-1)]
        with pytest.raises(RequestFailedError, match="No controller is active"):
            read(admin)


def test_only_topics_with_the_prefix_are_asked_for():
    pages = [page("b1", 0, after=("b2", 0)), page("b2", 0, after=("c", 0))]
    with FakeNode({"DescribeTopicPartitionsRequest": pages}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        assert list(admin.describe_topics(prefix="b")) == ["b1", "b2"]
        asked = node.asked("DescribeTopicPartitionsRequest")
    assert [each.cursor.topic_name for each in asked] == ["b", "b2"]


def test_topics_behind_the_prefix_are_left_out():
    answer = DescribeTopicPartitionsResponse(topics=page("c", 0).topics)
    with FakeNode({"DescribeTopicPartitionsRequest": [answer]}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        assert admin.describe_topics(prefix="b") == {}
