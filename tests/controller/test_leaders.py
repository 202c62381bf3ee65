"""AlterPartition, ElectLeaders, periodic elections, reassignments."""

import pytest

from conformance.marker import kafka_scenario
from controller.cluster import TOPIC, Cluster
from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.building import at_once
from quorate.controller.elections import ELECT_LEADERS, ELECT_PREFERRED, ELECT_UNCLEAN
from quorate.controller.isr import ALTER_PARTITION
from quorate.controller.reassignments import ALTER_PARTITION_REASSIGNMENTS, list_reassignments
from quorate.controller.result import ApiError
from quorate.metadata.image import NO_LEADER, RECOVERED, RECOVERING
from quorate.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

PREFERRED, UNCLEAN = 0, 1


# -- AlterPartition ------------------------------------------------------------------------------
def alter(cluster, isr, *, broker_id=None, topic="orders", epochs=None, **fields):
    """The leader of partition 0 asks for this ISR; `fields` replace what it says."""
    known = cluster.image.topics.named(topic)
    partition = cluster.partition(topic)
    broker_id = partition.leader if broker_id is None else broker_id
    data = AlterPartitionRequest.TopicData
    brokers = cluster.image.cluster.brokers
    states = [
        data.PartitionData.BrokerState(
            broker_id=b,
            broker_epoch=(epochs or {}).get(b, brokers[b].epoch if b in brokers else -1),
        )
        for b in isr
    ]
    wanted = data.PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leader_recovery_state=partition.leader_recovery_state,
        new_isr_with_epochs=states,
    )
    for name, value in fields.items():
        setattr(wanted, name, value)
    topics = [data(topic_id=known.id, partitions=[wanted])]
    request = AlterPartitionRequest(
        broker_id=broker_id, broker_epoch=brokers[broker_id].epoch, topics=topics
    )
    return cluster.decide(ALTER_PARTITION, request, 3).topics[0].partitions[0]


@kafka_scenario("ReplicationControlManagerTest", "shrinkAndExpandIsr")
def test_the_leader_changes_the_isr():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2, 3)])
    shrunk = alter(cluster, [1, 3])
    assert (shrunk.error_code, shrunk.isr, shrunk.partition_epoch) == (0, [1, 3], 1)
    assert alter(cluster, [1, 2, 3]).isr == [1, 2, 3] == list(cluster.partition("orders").isr)
    assert cluster.partition("orders").leader_epoch == 0


@kafka_scenario(
    "ReplicationControlManagerTest",
    "invalidAlterPartitionRequests",
    "alterPartitionShouldRejectFencedBrokers",
    "alterPartitionShouldRejectBrokersWithStaleEpoch",
)
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"isr": [1], "leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ({"isr": [1], "partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ({"isr": [1], "leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"isr": [1], "broker_id": 2}, ErrorCode.INVALID_REQUEST),
        ({"isr": [1], "partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": []}, ErrorCode.INVALID_REQUEST),
        ({"isr": [1, 1]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [1, 9]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [1], "leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ({"isr": [1, 3]}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": [1, 2], "epochs": {2: 1}}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": [1], "partition_index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_change_of_the_isr_that_is_refused(fields, error):
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2, 3)])
    cluster.lose(3)
    before = cluster.partition("orders")
    if "partition_epoch" not in fields and "leader_epoch" not in fields:
        assert alter(cluster, [1, 2]).error_code == 0
        before = cluster.partition("orders")
    assert alter(cluster, **fields).error_code == error
    assert cluster.partition("orders") == before


@kafka_scenario("ReplicationControlManagerTest", "alterPartitionHandleUnknownTopicIdOrName")
def test_an_unknown_topic_and_an_old_broker():
    cluster = Cluster(1)
    data = AlterPartitionRequest.TopicData
    partitions = [data.PartitionData(partition_index=3)]
    topics = [data(topic_id=Uuid(b"x" * 16), partitions=partitions)]
    epoch = cluster.broker(1).epoch
    request = AlterPartitionRequest(broker_id=1, broker_epoch=epoch, topics=topics)
    [partition] = cluster.decide(ALTER_PARTITION, request, 3).topics[0].partitions
    assert (partition.partition_index, partition.error_code) == (3, ErrorCode.UNKNOWN_TOPIC_ID)
    request.broker_epoch += 1
    with pytest.raises(ApiError) as refused:
        cluster.decide(ALTER_PARTITION, request, 3)
    assert refused.value.error == ErrorCode.STALE_BROKER_EPOCH


def test_a_recovered_leader_says_so():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.configure(TOPIC, "orders", unclean_leader_election_enable="true")
    cluster.lose(2)
    cluster.unfence(2)
    cluster.lose(1)
    assert cluster.partition("orders").leader_recovery_state == RECOVERING
    assert alter(cluster, [2], leader_recovery_state=RECOVERED).error_code == 0
    assert cluster.partition("orders").leader_recovery_state == RECOVERED


# -- elections -----------------------------------------------------------------------------------
def elect(cluster, kind, topic="orders", index=0):
    partitions = [ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[index])]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=partitions)
    response = cluster.decide(ELECT_LEADERS, request)
    return ErrorCode(response.replica_election_results[0].partition_result[0].error_code)


def moved():
    """The leader of a partition of (1, 2) is 2, and 1 is back in the ISR."""
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.lose(1)
    cluster.unfence(1)
    assert elect(cluster, PREFERRED) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    alter(cluster, [1, 2])
    assert cluster.partition("orders").leader == 2
    return cluster


@kafka_scenario("ReplicationControlManagerTest", "electPreferredLeaders")
def test_the_preferred_leader_is_elected():
    cluster = moved()
    assert elect(cluster, PREFERRED) == ErrorCode.NONE
    assert (cluster.partition("orders").leader, cluster.partition("orders").leader_epoch) == (1, 2)
    assert elect(cluster, PREFERRED) == ErrorCode.ELECTION_NOT_NEEDED


@kafka_scenario("ReplicationControlManagerTest", "electUncleanLeaders_WithoutElr")
def test_an_unclean_election_is_asked_for():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    assert elect(cluster, UNCLEAN) == ErrorCode.ELECTION_NOT_NEEDED
    cluster.lose(2)
    cluster.lose(1)
    assert elect(cluster, UNCLEAN) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    cluster.unfence(2)
    assert cluster.partition("orders").leader == NO_LEADER
    assert elect(cluster, UNCLEAN) == ErrorCode.NONE
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (2, (2,))


def test_unknown_partitions_and_types():
    cluster = Cluster(1)
    cluster.create("orders", 1, 1)
    assert elect(cluster, PREFERRED, "none") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect(cluster, PREFERRED, index=3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(ApiError, match="Unknown election type 7"):
        elect(cluster, 7)


@kafka_scenario("ReplicationControlManagerTest", "electPreferredLeaders")
def test_all_partitions_are_asked_for_and_only_those_that_change_are_named():
    cluster = moved()
    cluster.create("other", 1, 1)
    request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None)
    results = cluster.decide(ELECT_LEADERS, request).replica_election_results
    found = {r.topic: [p.partition_id for p in r.partition_result] for r in results}
    assert found == {"orders": [0], "other": []}


@kafka_scenario("QuorumControllerTest", "balancePartitionLeaders")
@kafka_scenario("ReplicationControlManagerTest", "balancePartitionLeaders")
def test_preferred_leaders_return_by_period():
    cluster = moved()
    assert cluster.decide(ELECT_PREFERRED, None) is False
    assert cluster.partition("orders").leader == 1
    cluster.decide(ELECT_PREFERRED, None)
    assert cluster.records == []


@kafka_scenario(
    "ReplicationControlManagerTest", "maybeTriggerUncleanLeaderElectionForLeaderlessPartitions"
)
def test_unclean_leaders_are_elected_by_period_where_the_topic_allows_it():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.lose(2)
    cluster.lose(1)
    cluster.unfence(2)
    cluster.decide(ELECT_UNCLEAN, None)
    assert cluster.records == []
    cluster.configure(TOPIC, "orders", unclean_leader_election_enable="true")
    cluster.decide(ELECT_UNCLEAN, None)
    assert cluster.partition("orders").leader == 2


# -- reassignment --------------------------------------------------------------------------------
def reassign(cluster, replicas, *, allows_change=True, topic="orders"):
    cls = AlterPartitionReassignmentsRequest.ReassignableTopic
    partition = cls.ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=allows_change,
        topics=[cls(name=topic, partitions=[partition])],
    )
    [result] = cluster.decide(ALTER_PARTITION_REASSIGNMENTS, request).responses[0].partitions
    return ErrorCode(result.error_code), result.error_message


def ongoing(cluster):
    request = ListPartitionReassignmentsRequest(topics=None)
    found = at_once(list_reassignments(cluster.image, request))
    return {
        (t.name, p.partition_index): (p.replicas, p.adding_replicas, p.removing_replicas)
        for t in found.topics
        for p in t.partitions
    }


@kafka_scenario("ReplicationControlManagerTest", "reassignPartitions")
def test_a_reassignment_adds_catches_up_and_removes():
    cluster = Cluster(4)
    cluster.create("orders", assignments=[(1, 2)])
    assert reassign(cluster, [3, 4]) == (ErrorCode.NONE, None)
    assert ongoing(cluster) == {("orders", 0): ([3, 4, 1, 2], [3, 4], [1, 2])}
    assert alter(cluster, [1, 2, 3]).error_code == 0
    assert ongoing(cluster) != {}
    assert alter(cluster, [1, 2, 3, 4]).error_code == ErrorCode.NEW_LEADER_ELECTED
    partition = cluster.partition("orders")
    assert (partition.replicas, partition.isr, partition.leader) == ((3, 4), (3, 4), 3)
    assert ongoing(cluster) == {}


def test_a_reassignment_that_only_removes_is_complete_at_once():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2, 3)])
    assert reassign(cluster, [2, 3]) == (ErrorCode.NONE, None)
    partition = cluster.partition("orders")
    assert (partition.replicas, partition.isr, partition.leader) == ((2, 3), (2, 3), 2)


@kafka_scenario("ReplicationControlManagerTest", "cancelReassignPartitions")
def test_a_reassignment_is_cancelled():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2)])
    assert reassign(cluster, None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    reassign(cluster, [2, 3])
    assert reassign(cluster, None) == (ErrorCode.NONE, None)
    partition = cluster.partition("orders")
    assert sorted(partition.replicas) == [1, 2] and partition.leader == 1
    assert ongoing(cluster) == {}


@kafka_scenario(
    "ReplicationControlManagerTest",
    "reassignPartitionsHandlesNewReassignmentThatRemovesPreviouslyAddingReplicas",
)
def test_a_reassignment_replaces_the_one_under_way():
    """Kafka 4.3.1 leaves 3 in both sets: it waits for a replica that it removes, without end."""
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2)])
    reassign(cluster, [1, 3])
    assert ongoing(cluster) == {("orders", 0): ([1, 3, 2], [3], [2])}
    reassign(cluster, [1, 2])
    partition = cluster.partition("orders")
    assert (partition.replicas, partition.isr) == ((1, 2), (1, 2))
    assert ongoing(cluster) == {}


def test_a_replica_that_a_later_reassignment_names_is_not_removed():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2)])
    reassign(cluster, [1, 3])
    reassign(cluster, [1, 3, 2])
    assert ongoing(cluster) == {("orders", 0): ([1, 3, 2], [3], [])}
    alter(cluster, [1, 2, 3])
    assert cluster.partition("orders").replicas == (1, 3, 2)


def test_a_cancellation_that_would_be_unclean_is_refused():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2)])
    reassign(cluster, [3])
    alter(cluster, [1, 3])
    cluster.lose(1)
    assert ongoing(cluster) == {}  # 3 is in sync: with 1 gone the reassignment is complete


@kafka_scenario("ReplicationControlManagerTest", "alterPartitionDisallowReplicationFactorChange")
@pytest.mark.parametrize(
    ("replicas", "fields", "error", "text"),
    [
        (
            [],
            {},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            [1, 2, 3],
            {"allows_change": False},
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor is changed from 2 to 3",
        ),
        (
            [1],
            {"topic": "none"},
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "Unable to find a topic named none.",
        ),
    ],
)
def test_a_reassignment_that_is_refused(replicas, fields, error, text):
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2)])
    assert reassign(cluster, replicas, **fields) == (error, text)
