"""What a reassignment adds and removes, when it is complete, and what a cancellation brings back."""

import pytest

from conformance.marker import kafka_scenario
from controller.cluster import Cluster
from controller.test_leaders import alter, ongoing, reassign
from controller.test_partition_changes import V1, changed, partition
from quorate.base.errors import ErrorCode
from quorate.controller.reassignments import ALTER_PARTITION_REASSIGNMENTS
from quorate.metadata.image import RECOVERING
from quorate.wire.messages import AlterPartitionReassignmentsRequest


def cluster_with(replicas):
    cluster = Cluster(0)
    for number in range(10):
        cluster.register(number)
        cluster.unfence(number)
    cluster.create("orders", assignments=[replicas])
    return cluster


@kafka_scenario(
    "PartitionReassignmentReplicasTest",
    "noneAddedOrRemoved",
    "additions",
    "removals",
    "additionsAndRemovals",
    "rearrangement",
)
@pytest.mark.parametrize(
    ("old", "new", "replicas", "adding", "removing"),
    [
        ((3, 2, 1), (3, 2, 1), None, [], []),
        ((3, 2, 1), (3, 6, 2, 1, 5), [3, 6, 2, 1, 5], [5, 6], []),
        ((3, 2, 1, 0), (7, 3, 1, 9), [7, 3, 1, 9, 0, 2], [7, 9], [0, 2]),
        ((3, 2, 1, 0), (3, 1), None, [], [0, 2]),
        ((3, 2, 1, 0), (0, 1, 3, 2), [0, 1, 3, 2], [], []),
    ],
)
def test_what_a_reassignment_adds_and_removes(old, new, replicas, adding, removing):
    cluster = cluster_with(old)
    reassign(cluster, list(new))
    found = cluster.partition("orders")
    under_way = ongoing(cluster).get(("orders", 0))
    if adding:
        assert under_way == (replicas, adding, removing)
    else:  # complete at once
        assert under_way is None and found.replicas == tuple(replicas or new)


@kafka_scenario(
    "PartitionReassignmentReplicasTest",
    "doesNotCompleteReassignment",
    "doesNotCompleteReassignmentIfNoneOngoing",
    "canCompleteReassignmentAllNewReplicas",
    "canCompleteReassignmentSomeNewReplicas",
    "isReassignmentInProgress",
    "canCompleteReassignmentIfIsrDoesNotHaveAnExistingTargetReplica",
    "canCompleteReassignmentIfIsrDoesNotHaveBothExistingTargetReplica",
    "doesNotCompleteReassignmentIfIsrDoesNotHaveAnAddingTargetReplica",
    "canCompleteReassignmentWhenReplicationFactorIncreasesAndMissingAnExistingTargetReplicaFromIsr",
    "doesNotCompleteReassignmentWhenReplicationFactorIncreasesAndMissingAnAddingReplicaFromIsr",
    "doesNotCompleteReassignmentWhenReplicationFactorDecreasesAndMissingAnExistingTargetReplicaFromIsr",
    "doesNotCompleteReassignmentWhenReplicationFactorDecreasesAndMissingAnAddingReplicasFromISR",
)
@pytest.mark.parametrize(
    ("old", "new", "isr", "completed"),
    [
        ((0, 1, 2), (3, 4, 5), (0, 1, 2, 3, 4), None),
        ((0, 1, 2), (0, 1, 2), (0, 1, 2), None),
        ((0, 1, 2), (3, 4, 5), (0, 1, 2, 3, 4, 5), (3, 4, 5)),
        ((0, 1, 2), (0, 1, 3), (0, 1, 2, 3), (0, 1, 3)),
        ((0, 1, 2), (0, 1, 3), (0, 2, 3), (0, 3)),
        ((0, 1, 2), (0, 1, 3), (2, 3), (3,)),
        ((0, 1, 2), (0, 1, 3), (0, 1, 2), None),
        ((0, 1, 2, 3), (1, 2, 3, 4, 5), (0, 1, 2, 4, 5), (1, 2, 4, 5)),
        ((0, 1, 2, 3), (1, 2, 3, 4, 5), (0, 1, 2, 3, 5), None),
        ((0, 1, 2, 3, 4), (2, 3, 4, 5), (0, 1, 2, 3, 5), None),
        ((0, 1, 2, 3, 4), (2, 3, 4, 5), (0, 1, 2, 3, 4), None),
    ],
)
def test_when_a_reassignment_is_complete(old, new, isr, completed):
    """The new replicas are in sync; where there are fewer than before, all that stay are."""
    removing, adding = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    before = partition(
        (*new, *removing), old, old[0], removing_replicas=removing, adding_replicas=adding
    )
    found = changed(before, V1, isr=isr)
    if completed is None:
        assert "replicas" not in found and "adding_replicas" not in found
    else:
        assert (found["replicas"], found["isr"]) == (list(new), list(completed))
        assert (found["adding_replicas"], found["removing_replicas"]) == ([], [])


def test_a_partition_that_is_named_twice_is_changed_twice():
    """Kafka decides both on the same partition, and its controller ends: the second change has no
    directories for its replicas."""
    cluster = cluster_with((1, 2))
    cls = AlterPartitionReassignmentsRequest.ReassignableTopic
    wanted = [
        cls.ReassignablePartition(partition_index=0, replicas=replicas)
        for replicas in ([3, 4], [2, 1])
    ]
    topics = [cls(name="orders", partitions=wanted), cls(name="orders", partitions=wanted[:1])]
    found = cluster.decide(
        ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest(topics=topics)
    )
    codes = [one.error_code for topic in found.responses for one in topic.partitions]
    assert codes == [ErrorCode.NONE] * 3
    apart = cluster_with((1, 2))
    for replicas in ([3, 4], [2, 1], [3, 4]):
        reassign(apart, replicas)
    together, one_by_one = cluster.partition("orders"), apart.partition("orders")
    assert together.replicas == one_by_one.replicas
    assert set(together.adding_replicas) == {3, 4}
    assert len(together.directories) == len(together.replicas)


@kafka_scenario("PartitionReassignmentReplicasTest", "originalReplicas")
@kafka_scenario(
    "PartitionReassignmentRevertTest", "noneAddedOrRemoved", "someRemoving", "someAdding"
)
@kafka_scenario("PartitionReassignmentRevertTest", "someRemovingAndAdding")
@pytest.mark.parametrize(
    ("new", "isr", "kept"),
    [
        ((4, 5, 3, 2, 1), (3, 2), (3, 2)),
        ((4, 5, 3, 2, 1), (4, 3, 2), (3, 2)),
        ((4, 5, 3, 1), (4, 3, 2), (3, 2)),
        ((4, 5), (4, 3), (3,)),
    ],
)
def test_a_cancellation_brings_the_replicas_of_before_back(new, isr, kept):
    cluster = cluster_with((3, 2, 1))
    assert reassign(cluster, None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    reassign(cluster, list(new))
    alter(cluster, list(isr))
    assert reassign(cluster, None) == (ErrorCode.NONE, None)
    found = cluster.partition("orders")
    assert set(found.replicas) == {1, 2, 3} and found.isr == kept
    assert not found.adding_replicas and not found.removing_replicas


@kafka_scenario("PartitionReassignmentRevertTest", "isrSpecialCase")
@pytest.mark.parametrize("is_unclean", [False, True])
def test_a_cancellation_without_a_replica_in_sync_is_an_unclean_election(is_unclean):
    file = {"unclean.leader.election.enable": "true"} if is_unclean else {}
    cluster = Cluster(5, file=file)
    cluster.create("orders", assignments=[(3, 2, 1)])
    reassign(cluster, [4, 5, 3, 1])
    alter(cluster, [3, 4])
    cluster.lose(3)
    assert cluster.partition("orders").isr == (4,)
    error, _ = reassign(cluster, None)
    if is_unclean:
        found = cluster.partition("orders")
        assert (error, len(found.isr)) == (ErrorCode.NONE, 1)
        assert found.leader_recovery_state == RECOVERING and found.leader in {1, 2}
    else:
        assert error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
