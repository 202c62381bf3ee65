"""DescribeTopicPartitions: topics of the image, page by page."""

import pytest

from controller.cluster import Cluster
from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.controller.building import at_once
from quorate.controller.result import ApiError
from quorate.controller.topic_reads import describe_topic_partitions
from quorate.wire.messages import DescribeTopicPartitionsRequest

CURSOR = DescribeTopicPartitionsRequest.Cursor


def ask(cluster, *names, limit=2000, cursor=None, may=lambda name: True):
    topic = DescribeTopicPartitionsRequest.TopicRequest
    request = DescribeTopicPartitionsRequest(
        topics=[topic(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor and CURSOR(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return at_once(describe_topic_partitions(cluster.image, request, may))


def places(response):
    """(topic, partitions) of a page, and its cursor."""
    after = response.next_cursor
    return (
        [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics],
        after and (after.topic_name, after.partition_index),
    )


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster(brokers=3)
    cluster.create("b", partitions=3, factor=2)
    cluster.create("a", partitions=1, factor=3)
    cluster.create("__consumer_offsets", partitions=1, factor=1)
    return cluster


def test_a_topic_is_described_as_the_image_has_it(cluster):
    [topic] = ask(cluster, "a").topics
    [partition] = topic.partitions
    state = cluster.partition("a")
    assert (topic.topic_id, topic.is_internal) == (cluster.image.topics.ids["a"], False)
    assert (partition.leader_id, partition.leader_epoch) == (state.leader, state.leader_epoch)
    assert partition.replica_nodes == list(state.replicas)
    assert partition.isr_nodes == list(state.isr)
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
    assert partition.offline_replicas == []


def test_pages_together_are_all_topics_in_order(cluster):
    cursor, found = None, []
    for _ in range(9):
        topics, cursor = places(ask(cluster, limit=2, cursor=cursor))
        assert sum(len(partitions) for _, partitions in topics) <= 2
        found += topics
        if cursor is None:
            break
    assert found == [("__consumer_offsets", [0]), ("a", [0]), ("b", [0, 1]), ("b", [2])]
    assert [t.is_internal for t in ask(cluster).topics] == [True, False, False]


def test_a_page_ends_at_the_limit_inside_a_topic(cluster):
    assert places(ask(cluster, "b", limit=2)) == ([("b", [0, 1])], ("b", 2))
    assert places(ask(cluster, "b", limit=2, cursor=("b", 2))) == ([("b", [2])], None)
    assert places(ask(cluster, "b", limit=0))[0] == [("b", [0])]


def test_an_unknown_topic_has_an_error_of_its_own(cluster):
    known, unknown = ask(cluster, "b", "nothing").topics
    assert (known.error_code, unknown.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (unknown.name, unknown.topic_id, unknown.partitions) == ("nothing", ZERO_UUID, [])


def test_what_the_requester_may_not_see_is_hidden(cluster):
    def may(name):
        return name == "a"

    assert places(ask(cluster, may=may)) == ([("a", [0])], None)
    seen, hidden = ask(cluster, "a", "b", may=may).topics
    assert seen.name == "a"
    assert (hidden.name, hidden.error_code) == ("b", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (hidden.topic_id, hidden.partitions) == (ZERO_UUID, [])


@pytest.mark.parametrize(
    ("cursor", "names", "message"),
    [(("b", -1), (), "must be valid"), (("c", 0), ("b",), "should contain the cursor topic: c")],
)
def test_an_invalid_cursor_is_refused(cluster, cursor, names, message):
    with pytest.raises(ApiError, match=message) as caught:
        ask(cluster, *names, cursor=cursor)
    assert caught.value.error == ErrorCode.INVALID_REQUEST


def test_replicas_of_fenced_brokers_are_offline():
    cluster = Cluster(brokers=2)
    cluster.create("t", partitions=1, factor=2)
    leader = cluster.partition("t").leader
    cluster.heartbeat(leader, want_fence=True)
    [partition] = ask(cluster, "t").topics[0].partitions
    assert partition.offline_replicas == [leader]
    assert partition.leader_id == 3 - leader


def test_a_page_asks_only_about_the_topics_that_it_shows():
    cluster = Cluster(brokers=1)
    for index in range(40):
        cluster.create(f"t{index:02}", partitions=1, factor=1)
    asked = []

    def may(name):
        asked.append(name)
        return name >= "t05"

    assert places(ask(cluster, limit=3, may=may)) == (
        [("t05", [0]), ("t06", [0]), ("t07", [0])],
        ("t08", 0),
    )
    assert asked == [f"t{index:02}" for index in range(9)]
    assert places(ask(cluster, limit=3, cursor=("t38", 0), may=may))[1] is None


def test_a_page_of_a_controller_is_short_enough_for_its_one_loop():
    cluster = Cluster(brokers=1)
    cluster.create("t", partitions=1200, factor=1)
    topics, cursor = places(ask(cluster, limit=2000))
    assert (len(topics[0][1]), cursor) == (1000, ("t", 1000))
