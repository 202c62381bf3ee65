"""Scenarios of Kafka's replication control that no other file of these tests has."""

import pytest

from conformance.marker import kafka_scenario
from controller.cluster import BROKER, TOPIC, Cluster, directory
from controller.test_brokers_and_partitions import LOST, refused
from controller.test_configs import change, replace
from controller.test_leaders import PREFERRED, alter, elect, ongoing, reassign
from controller.test_topics import add, outcome
from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.directories import ASSIGN_REPLICAS_TO_DIRS
from quorate.controller.topic_deletion import DELETE_TOPICS
from quorate.controller.topics import CREATE_TOPICS
from quorate.formats.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    RegisterControllerRecord,
)
from quorate.metadata.image import NO_LEADER
from quorate.wire.messages import (
    AssignReplicasToDirsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)


def state(cluster, topic="orders", index=0):
    partition = cluster.partition(topic, index)
    return partition.leader, partition.isr, partition.elr


# -- topics and partitions -----------------------------------------------------------------------
@kafka_scenario(
    "ReplicationControlManagerTest", "excessiveNumberOfTopicsCannotBeCreatedWithAssignments"
)
def test_too_many_assigned_partitions_refuse_the_whole_request():
    error, text = refused(Cluster(1).create, "orders", assignments=[(1,)] * 10_001)
    assert error == ErrorCode.POLICY_VIOLATION
    assert text == "Excessively large number of partitions per request."


@kafka_scenario("ReplicationControlManagerTest", "createTopicsWithPolicyUnexpectedException")
def test_a_policy_that_fails_refuses_its_topic_only():
    def policy(topic):
        if topic.name == "broken":
            raise RuntimeError("unknown")

    cluster = Cluster(1, create_topic_policy=policy)
    assert outcome(cluster.create("broken", 1, 1)) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert cluster.create("sound", 1, 1).error_code == 0


@kafka_scenario("ReplicationControlManagerTest", "createTopicWithCollisionChars")
def test_a_name_with_a_dot_is_free_again_after_its_deletion():
    cluster = Cluster(1)
    first = cluster.create("a.b", 2, 1).topic_id
    cluster.decide(DELETE_TOPICS, DeleteTopicsRequest(topic_names=["a.b"]), 3)
    second = cluster.create("a_b", 4, 1)
    assert (second.error_code, second.num_partitions) == (0, 4) and second.topic_id != first


@kafka_scenario(
    "ReplicationControlManagerTest", "createTopicsISRInvariants", "createPartitionsISRInvariants"
)
def test_only_active_brokers_are_in_the_first_isr():
    """Of the assigned replicas 1 is active, 2 is fenced, 3 shuts down."""
    cluster = Cluster(4)
    cluster.create("held", assignments=[(3, 1)])
    cluster.lose(2)
    cluster.heartbeat(3, want_shut_down=True)
    assert cluster.broker(3).in_controlled_shutdown and not cluster.broker(3).fenced
    assert cluster.create("orders", assignments=[(2, 3, 1)]).error_code == 0
    assert state(cluster) == (1, (1,), ())
    assert add(cluster, 2, [(3, 1, 2)]) == (ErrorCode.NONE, None)
    assert state(cluster, index=1) == (1, (1,), ())


@kafka_scenario(
    "ReplicationControlManagerTest",
    "createPartitionsFailsWhenAllBrokersAreFencedOrInControlledShutdown",
    "createPartitionsFailsWithManualAssignmentWithAllFenced",
)
def test_without_an_active_broker_there_are_no_new_partitions():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.lose(2)
    cluster.heartbeat(1, want_shut_down=True)
    assert not cluster.broker(1).fenced
    nobody_usable = "All brokers are currently fenced, or have all their log directories cordoned."
    assert add(cluster, 2) == (ErrorCode.INVALID_REPLICATION_FACTOR, nobody_usable)
    error, text = add(cluster, 2, [(2, 1)])
    assert error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert text.endswith("are fenced or in controlled shutdown.")
    # A new active controller does not know of the shutdown beyond the registration.
    cluster.liveness.activate(cluster.image.cluster, {}, cluster.now_ms)
    nobody_active = (
        "Unable to replicate the partition 2 time(s): All brokers are currently fenced or in "
        "controlled shutdown."
    )
    assert add(cluster, 2) == (ErrorCode.INVALID_REPLICATION_FACTOR, nobody_active)


# -- ISR and eligible leader replicas ------------------------------------------------------------
@kafka_scenario("ReplicationControlManagerTest", "alterPartitionShouldRejectShuttingDownBrokers")
def test_a_broker_that_shuts_down_does_not_join_an_isr():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2, 3)])
    alter(cluster, [1, 3])
    cluster.create("held", assignments=[(2, 3)])
    cluster.heartbeat(2, want_shut_down=True)
    assert alter(cluster, [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


@kafka_scenario("ReplicationControlManagerTest", "eligibleLeaderReplicas_ShrinkAndExpandIsr")
def test_an_isr_that_grows_to_the_minimum_ends_the_eligibility_of_others():
    cluster = Cluster(3, elr=True, file={"min.insync.replicas": "2"})
    cluster.create("orders", assignments=[(1, 2, 3)])
    alter(cluster, [1, 2])
    assert state(cluster) == (1, (1, 2), ())
    alter(cluster, [1])
    assert state(cluster) == (1, (1,), (2,))
    alter(cluster, [1, 3])
    assert state(cluster) == (1, (1, 3), ())


@kafka_scenario("ReplicationControlManagerTest", "eligibleLeaderReplicas_EffectiveMinIsr")
def test_min_isr_is_at_most_the_replication_factor():
    cluster = Cluster(3, elr=True)
    cluster.create("orders", assignments=[(1, 2, 3)], configs={"min.insync.replicas": "5"})
    assert state(cluster) == (1, (1, 2, 3), ())
    cluster.lose(3)
    assert state(cluster) == (1, (1, 2), (3,))


@kafka_scenario("ReplicationControlManagerTest", "eligibleLeaderReplicas_DeleteTopic")
def test_a_deleted_topic_leaves_no_eligible_replica_in_the_index():
    cluster = Cluster(3, elr=True, file={"min.insync.replicas": "2"})
    cluster.create("orders", assignments=[(1, 2, 3)])
    cluster.lose(2, 3)
    assert state(cluster) == (1, (1,), (2,)) or state(cluster) == (1, (1,), (3,))
    cluster.decide(DELETE_TOPICS, DeleteTopicsRequest(topic_names=["orders"]), 3)
    assert [list(cluster.head.index.topics_of(broker)) for broker in (1, 2, 3)] == [[], [], []]


@kafka_scenario("ReplicationControlManagerTest", "elrsRemovedOnMinIsrUpdate")
@kafka_scenario("QuorumControllerTest", "minIsrUpdateWithElr")
@pytest.mark.parametrize("alter_configs", [change, replace])
@pytest.mark.parametrize(("kind", "name"), [(BROKER, ""), (TOPIC, "orders")])
def test_another_min_isr_ends_the_eligibility_where_it_holds(kind, name, alter_configs):
    cluster = Cluster(3, elr=True, file={"min.insync.replicas": "2"})
    for topic in ("orders", "other"):
        cluster.create(topic, assignments=[(1, 2, 3)])
    cluster.lose(3)
    cluster.lose(2)
    alter_configs(cluster, (kind, name, {"min.insync.replicas": "1"}))
    assert state(cluster) == (1, (1,), ())
    assert state(cluster, "other") == (1, (1,), () if kind == BROKER else (2,))


@kafka_scenario("ReplicationControlManagerTest", "elrsRemovedShouldNotBumpPartitionEpochIfNoChange")
def test_a_partition_without_eligible_replicas_keeps_its_epoch():
    cluster = Cluster(2, elr=True)
    cluster.create("orders", assignments=[(1, 2)])
    before = cluster.partition("orders")
    cluster.write([ClearElrRecord()])
    assert cluster.partition("orders") == before


@kafka_scenario("QuorumControllerTest", "uncleanShutdownElrDisabled")
def test_without_elr_an_unclean_restart_of_the_last_one_in_sync_keeps_the_isr():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2, 3)])
    for broker_id in (3, 2, 1):
        cluster.lose(broker_id)
    assert state(cluster) == (NO_LEADER, (1,), ())
    cluster.register(1, previous_epoch=-1)
    assert state(cluster) == (NO_LEADER, (1,), ())
    cluster.unfence(1)
    assert state(cluster) == (1, (1,), ())


# -- elections and fencing -----------------------------------------------------------------------
@kafka_scenario("ReplicationControlManagerTest", "preferredElectionDoesNotTriggerUncleanElection")
def test_a_preferred_election_is_never_unclean():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.lose(2)
    cluster.lose(1)
    cluster.unfence(2)
    cluster.configure(TOPIC, "orders", unclean_leader_election_enable="true")
    assert elect(cluster, PREFERRED) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert cluster.records == [] and state(cluster) == (NO_LEADER, (1,), ())


@kafka_scenario("ReplicationControlManagerTest", "fenceMultipleBrokers")
@kafka_scenario("QuorumControllerTest", "fenceMultipleBrokers")
def test_brokers_that_fall_silent_together_are_fenced_one_after_the_other():
    cluster = Cluster(5)
    cluster.create("orders", assignments=[(1, 2, 3), (2, 3, 4), (3, 4, 5)])
    cluster.lose(1, 2, 3, 4)
    assert [b.id for b in cluster.image.cluster.brokers.values() if not b.fenced] == [5]
    assert state(cluster, index=2) == (5, (5,), ())
    for index in (0, 1):
        leader, isr, _ = state(cluster, index=index)
        assert leader == NO_LEADER and len(isr) == 1


# -- reassignment --------------------------------------------------------------------------------
@kafka_scenario(
    "ReplicationControlManagerTest",
    "disallowReplicationFactorChangeNoEffectWhenCancelAlterPartition",
)
def test_a_cancellation_may_change_the_replication_factor():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2)])
    assert reassign(cluster, [1, 2, 3]) == (ErrorCode.NONE, None)
    assert reassign(cluster, None, allows_change=False) == (ErrorCode.NONE, None)
    assert ongoing(cluster) == {} and cluster.partition("orders").replicas == (1, 2)


# -- directories ---------------------------------------------------------------------------------
@kafka_scenario("ReplicationControlManagerTest", "handleDirectoriesCordoned")
def test_what_is_cordoned_is_written_where_it_changes():
    cluster = Cluster()
    one, two = directory(1, 1), directory(1, 2)
    cluster.register(1, log_dirs=[one, two])
    cluster.unfence(1)
    assert cluster.broker(1).cordoned_directories is None
    for asked, is_change in (
        (None, False),
        ([one], True),
        ([one], False),
        ([two, one], True),
        ([one, two], False),
        ([], True),
    ):
        cluster.heartbeat(1, cordoned_log_dirs=asked)
        changes = [type(record) for record in cluster.records]
        assert changes == [BrokerRegistrationChangeRecord] * is_change, asked
    assert cluster.broker(1).cordoned_directories == ()


def assign(cluster, broker_id, *placed):
    """placed: (directory, topic id, partition); the errors in the same order."""
    data = AssignReplicasToDirsRequest.DirectoryData
    cls = data.TopicData
    request = AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=cluster.broker(broker_id).epoch,
        directories=[
            data(
                id=where,
                topics=[cls(topic_id=topic, partitions=[cls.PartitionData(partition_index=index)])],
            )
            for where, topic, index in placed
        ],
    )
    response = cluster.decide(ASSIGN_REPLICAS_TO_DIRS, request)
    return [d.topics[0].partitions[0].error_code for d in response.directories]


@kafka_scenario("ReplicationControlManagerTest", "handleAssignReplicasToDirs")
def test_each_replica_is_assigned_or_refused_on_its_own():
    cluster = Cluster()
    one, two, only = directory(1, 1), directory(1, 2), directory(2)
    cluster.register(1, log_dirs=[one, two])
    cluster.register(2, log_dirs=[only])
    for broker_id in (1, 2):
        cluster.unfence(broker_id)
    a = cluster.create("a", assignments=[(1, 2)] * 3).topic_id
    c = cluster.create("c", assignments=[(2,)]).topic_id
    errors = assign(
        cluster,
        1,
        (one, a, 0),
        (two, a, 1),
        (LOST, a, 2),
        (two, Uuid(b"u" * 16), 1),
        (one, a, 137),
        (one, c, 0),
    )
    assert errors == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    assert [cluster.partition("a", index).directories[0] for index in range(3)] == [one, two, LOST]
    assert [cluster.partition("a", index).leader for index in range(3)] == [1, 1, 2]


@kafka_scenario("ControllerApisTest", "assignReplicasToDirs")
@kafka_scenario("ReplicationControlManagerTest", "handleAssignReplicasToDirsFailsOnOlderMv")
def test_directories_are_assigned_from_their_level_on():
    cluster = Cluster(level=16)
    cluster.register(1, log_dirs=[])
    topic = Uuid(b"t" * 16)
    error, _ = refused(assign, cluster, 1, (directory(1), topic, 0))
    assert error == ErrorCode.UNSUPPORTED_VERSION


# -- the rest ------------------------------------------------------------------------------------
@kafka_scenario("ReplicationControlManagerTest", "invalidCreateTopicsWithValidateOnlyFlag")
def test_validate_only_refuses_alike():
    cluster = Cluster(1)
    topic = CreateTopicsRequest.CreatableTopic(name="a", num_partitions=1, replication_factor=4)
    answers = []
    for validate_only in (True, False):
        request = CreateTopicsRequest(topics=[topic], validate_only=validate_only)
        answers.append(outcome(cluster.decide(CREATE_TOPICS, request).topics[0]))
    assert answers[0] == answers[1]
    assert answers[0][0] == ErrorCode.INVALID_REPLICATION_FACTOR and cluster.records == []


@kafka_scenario("ReplicationControlManagerTest", "validateGoodManualPartitionAssignments")
@pytest.mark.parametrize("assignments", [[(1,)], [(1, 2, 3)], [(3, 1), (2, 3)]])
def test_a_sound_assignment_is_taken_as_it_is(assignments):
    cluster = Cluster(3)
    assert cluster.create("orders", assignments=assignments).error_code == 0
    for index, replicas in enumerate(assignments):
        assert cluster.partition("orders", index).replicas == replicas


@kafka_scenario("QuorumControllerTest", "isNodeIdRegisteredWithDynamicQuorum")
def test_a_registered_controller_may_have_configs_of_its_own():
    cluster = Cluster(1)
    asked = (BROKER, "100", {"log.cleaner.threads": "2"})
    [(error, text)] = change(cluster, asked)
    assert (error, text) == (ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 100 found.")
    cluster.write([RegisterControllerRecord(controller_id=100, incarnation_id=Uuid(b"i" * 16))])
    assert change(cluster, asked) == [(ErrorCode.NONE, None)]
