"""CreateTopics, CreatePartitions, DeleteTopics, and where new replicas go."""

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from controller.cluster import BROKER, Cluster
from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.controller.new_partitions import CREATE_PARTITIONS
from quorate.controller.node_configs import ConfigSource
from quorate.controller.policies import NewTopic, PolicyViolationError
from quorate.controller.result import ApiError
from quorate.controller.topic_deletion import DELETE_TOPICS
from quorate.controller.topics import CREATE_TOPICS
from quorate.formats.records import AccessControlEntryRecord
from quorate.metadata.image import ConfigResource
from quorate.metadata.resource_types import TOPIC_RESOURCE
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import (
    ALLOW,
    CLUSTER_NAME,
    LITERAL,
    AuthorizerConfig,
    Requester,
)
from quorate.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)

NAME = "Topic name is invalid: "
MANUAL = "The manual partition assignment includes "


def outcome(result):
    return ErrorCode(result.error_code), result.error_message


# -- CreateTopics --------------------------------------------------------------------------------
@kafka_scenario("ReplicationControlManagerTest", "createTopics")
def test_a_topic_is_created_with_defaults_of_the_controllers_file():
    cluster = Cluster(3, num_partitions=2, default_replication_factor=3)
    created = cluster.create("orders")
    assert (created.num_partitions, created.replication_factor) == (2, 3)
    topic = cluster.image.topics.named("orders")
    assert topic.id == created.topic_id and sorted(topic.partitions) == [0, 1]
    for partition in topic.partitions.values():
        assert sorted(partition.replicas) == [1, 2, 3] == sorted(partition.isr)
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


@kafka_scenario("ReplicationControlManagerTest", "createTopics")
def test_records_of_a_topic_stand_in_kafkas_order():
    cluster = Cluster(1)
    cluster.create("orders", 1, 1, configs={"retention.ms": "5"})
    kinds = [type(record).__name__ for record in cluster.records]
    assert kinds == ["TopicRecord", "ConfigRecord", "PartitionRecord"]
    resource = ConfigResource(TOPIC_RESOURCE, "orders")
    assert dict(cluster.image.configs[resource]) == {"retention.ms": "5"}


@kafka_scenario("ControllerConfigurationValidatorTest", "nullTopicConfigValue")
def test_configs_without_value_are_refused():
    cluster = Cluster(1)
    asked = {"segment.bytes": None, "segment.jitter.ms": "10", "segment.ms": None}
    text = "Null value not supported for topic configs: segment.bytes,segment.ms"
    assert outcome(cluster.create("orders", 1, 1, configs=asked)) == (
        ErrorCode.INVALID_CONFIG,
        text,
    )


@kafka_scenario("ReplicationControlManagerTest", "createTopicsWithConfigs")
def test_a_topic_with_wrong_configs_is_not_created():
    """The configs are checked before the partitions are placed."""
    cluster = Cluster(0)
    refused = cluster.create("orders", 0, 0, configs={"retention.ms": "x"})
    text = "Invalid value x for configuration retention.ms: Not a number of type LONG"
    assert outcome(refused) == (ErrorCode.INVALID_CONFIG, text)


@kafka_scenario("ReplicationControlManagerTest", "createTopicsWithConfigs")
@kafka_scenario(
    "KafkaConfigSchemaTest",
    "resolveEffectiveTopicConfig",
    "resolveEffectiveDynamicInternalTopicConfig",
    "translateConfigSources",
)
def test_created_topics_report_the_configs_in_force():
    """Those of the topic, of the active controller, of all brokers, of the file, and defaults."""
    file = {"log.retention.hours": "2", "log.roll.hours": "3", "num.partitions": "1"}
    cluster = Cluster(1, file=file)
    cluster.configure(BROKER, "3000", log_segment_bytes="1048577", log_flush_interval_ms="8")
    cluster.configure(BROKER, "", log_segment_bytes="1048578", log_roll_ms="9")
    cluster.configure(BROKER, "1", compression_type="zstd")
    created = cluster.create("orders", configs={"flush.ms": " 7 ", "internal.segment.bytes": "5"})
    found = {one.name: (one.value, one.config_source) for one in created.configs}
    assert list(found) == sorted(found) and len(found) == 34
    assert found["flush.ms"] == (" 7 ", ConfigSource.TOPIC)
    assert found["internal.segment.bytes"] == ("5", ConfigSource.TOPIC)
    assert found["segment.bytes"] == ("1048577", ConfigSource.DYNAMIC_BROKER)
    assert found["segment.ms"] == ("9", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert found["retention.ms"] == ("7200000", ConfigSource.STATIC_BROKER)
    assert found["compression.type"] == ("producer", ConfigSource.DEFAULT)
    assert not any(one.is_sensitive or one.read_only for one in created.configs)
    assert created.topic_config_error_code == 0
    plain = cluster.create("plain")
    assert "internal.segment.bytes" not in {one.name for one in plain.configs}


@kafka_scenario("ControllerApisTest", "createTopics")
def test_configs_are_reported_to_who_may_describe_them():
    cluster = Cluster(1, authorizer=AuthorizerConfig(super_users=frozenset({"User:admin"})))
    creation = AccessControlEntryRecord(
        id=ZERO_UUID,
        resource_type=AclResource.CLUSTER,
        resource_name=CLUSTER_NAME,
        pattern_type=LITERAL,
        principal="User:alice",
        host="*",
        operation=AclOperation.CREATE,
        permission_type=ALLOW,
    )
    cluster.write([creation])
    cluster.requester = Requester("User:admin", "10.0.0.7")
    assert cluster.create("shown", 1, 1).configs
    cluster.requester = Requester("User:alice", "10.0.0.7")
    created = cluster.create("hidden", 1, 1)
    assert created.error_code == 0 and created.topic_id in cluster.image.topics.by_id
    assert created.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert created.configs == [] and created.num_partitions == created.replication_factor == -1


@kafka_scenario("ReplicationControlManagerTest", "createTopicsWithPolicy")
def test_a_policy_may_refuse_a_topic():
    asked = []

    def policy(topic):
        asked.append(topic)
        if topic.name == "refused":
            raise PolicyViolationError("not this one")

    cluster = Cluster(2, create_topic_policy=policy)
    assert cluster.create("placed", 3, 2, configs={"flush.ms": "7"}).error_code == 0
    assert cluster.create("assigned", assignments=[[2, 1]]).error_code == 0
    refused = cluster.create("refused", 1, 1)
    assert outcome(refused) == (ErrorCode.POLICY_VIOLATION, "not this one")
    assert asked[:2] == [
        NewTopic("placed", 3, 2, None, {"flush.ms": "7"}),
        NewTopic("assigned", None, None, {0: [2, 1]}, {}),
    ]
    assert "refused" not in cluster.image.topics.ids


@kafka_scenario("ControllerApisTest", "createTopics")
@kafka_scenario("ReplicationControlManagerTest", "validateNewTopicNames", "topicNameCollision")
@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION, NAME + "the empty string is not allowed"),
        (".", ErrorCode.INVALID_TOPIC_EXCEPTION, NAME + "'.' is not allowed"),
        (
            "a" * 250,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            NAME + f"the length of '{'a' * 250}' is longer than the max allowed length 249",
        ),
        (
            "a b",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            NAME + "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'",
        ),
        ("known", ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'known' already exists."),
        (
            "known_one",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'known_one' collides with existing topic: known.one",
        ),
        (
            "__cluster_metadata",
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ],
)
def test_a_name_that_is_refused(name, error, text):
    cluster = Cluster(1)
    cluster.create("known", 1, 1)
    cluster.create("known.one", 1, 1)
    assert outcome(cluster.create(name, 1, 1)) == (error, text)
    assert cluster.records == []


@pytest.mark.parametrize(
    ("partitions", "factor", "error", "text"),
    [
        (
            1,
            0,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            0,
            1,
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            1,
            3,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot "
            "be reached because only 2 broker(s) are registered or some brokers have all their log "
            "directories cordoned.",
        ),
    ],
)
def test_counts_that_are_refused(partitions, factor, error, text):
    assert outcome(Cluster(2).create("orders", partitions, factor)) == (error, text)


def test_without_an_unfenced_broker_there_is_no_topic():
    cluster = Cluster()
    cluster.register(1)
    assert outcome(cluster.create("orders", 1, 1)) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all "
        "their log directories cordoned.",
    )


@kafka_scenario(
    "ReplicationControlManagerTest",
    "validateBadManualPartitionAssignments",
    "manualPartitionAssignmentOnAllFencedBrokers",
)
@pytest.mark.parametrize(
    ("assignments", "text"),
    [
        ([()], MANUAL + "an empty replica list."),
        ([(1, 9)], MANUAL + "broker 9, but no such broker is registered."),
        ([(1, 1)], MANUAL + "the broker 1 more than once."),
        (
            [(1,), (1, 2)],
            MANUAL + "a partition with 2 replica(s), but this is not consistent with previous "
            "partitions, which have 1 replica(s).",
        ),
        (
            [(3,)],
            "All brokers specified in the manual partition assignment for partition 0 are fenced or "
            "in controlled shutdown.",
        ),
    ],
)
def test_assignments_that_are_refused(assignments, text):
    cluster = Cluster(2)
    cluster.register(3)
    result = cluster.create("orders", assignments=assignments)
    assert outcome(result) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def test_a_refused_topic_does_not_affect_the_others_of_the_request():
    cluster = Cluster(1)
    topic = CreateTopicsRequest.CreatableTopic
    names = ["a", "b", "b", "c"]
    topics = [topic(name=name, num_partitions=1, replication_factor=1) for name in names]
    response = cluster.decide(CREATE_TOPICS, CreateTopicsRequest(topics=topics))
    found = {result.name: outcome(result) for result in response.topics}
    assert found["b"] == (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assert {name for name, (error, _) in found.items() if not error} == {"a", "c"}
    assert set(cluster.image.topics.ids) == {"a", "c"}


@kafka_scenario("ReplicationControlManagerTest", "excessiveNumberOfTopicsCannotBeCreated")
def test_too_many_partitions_refuse_the_whole_request():
    cluster = Cluster(1)
    with pytest.raises(ApiError, match="Excessively large number of partitions"):
        cluster.create("orders", 10_001, 1)


@kafka_scenario("ReplicationControlManagerTest", "createTopicsWithValidateOnlyFlag")
def test_validate_only_answers_alike_and_writes_nothing():
    cluster = Cluster(1)
    topic = CreateTopicsRequest.CreatableTopic(name="a", num_partitions=3, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], validate_only=True)
    [result] = cluster.decide(CREATE_TOPICS, request).topics
    assert (result.error_code, result.num_partitions) == (0, 3)
    assert cluster.records == []


# -- placement -----------------------------------------------------------------------------------
@kafka_guarantee("ReplicationControlManagerTest", "kRaftClusterDescriber")
@kafka_scenario("ClusterControlManagerTest", "placeReplicas")
def test_leaders_and_replicas_are_spread_evenly():
    cluster = Cluster(6)
    cluster.create("orders", 60, 3)
    partitions = cluster.image.topics.named("orders").partitions.values()
    leaders = [partition.leader for partition in partitions]
    replicas = [replica for partition in partitions for replica in partition.replicas]
    assert {leaders.count(broker) for broker in range(1, 7)} == {10}
    assert {replicas.count(broker) for broker in range(1, 7)} == {30}


def test_the_replicas_of_a_partition_are_in_different_racks():
    cluster = Cluster()
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    for broker_id, rack in racks.items():
        cluster.register(broker_id, rack=rack)
        cluster.unfence(broker_id)
    cluster.create("orders", 40, 3)
    for partition in cluster.image.topics.named("orders").partitions.values():
        assert {racks[replica] for replica in partition.replicas} == {"a", "b", "c"}


def test_a_fenced_broker_gets_replicas_only_when_the_others_are_used_up_and_leads_nothing():
    cluster = Cluster(3)
    cluster.lose(3)
    cluster.create("two", 20, 2)
    cluster.create("three", 20, 3)
    two, three = (cluster.image.topics.named(name).partitions.values() for name in ("two", "three"))
    assert {replica for p in two for replica in p.replicas} == {1, 2}
    assert {p.replicas[-1] for p in three} == {3} and {p.leader for p in three} == {1, 2}
    assert all(3 not in p.isr for p in three)


# -- CreatePartitions ----------------------------------------------------------------------------
def add(cluster, count, assignments=None, name="orders"):
    topic = CreatePartitionsRequest.CreatePartitionsTopic
    given = assignments and [
        topic.CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignments
    ]
    request = CreatePartitionsRequest(topics=[topic(name=name, count=count, assignments=given)])
    return outcome(cluster.decide(CREATE_PARTITIONS, request).results[0])


@kafka_scenario("ReplicationControlManagerTest", "createPartitions")
def test_new_partitions_continue_the_numbers_with_the_topics_replication_factor():
    cluster = Cluster(3)
    cluster.create("orders", 2, 2)
    assert add(cluster, 5) == (ErrorCode.NONE, None)
    partitions = cluster.image.topics.named("orders").partitions
    assert sorted(partitions) == [0, 1, 2, 3, 4]
    assert {len(partition.replicas) for partition in partitions.values()} == {2}


@kafka_scenario("ReplicationControlManagerTest", "createPartitions")
@pytest.mark.parametrize(
    ("count", "assignments", "error", "text"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            1,
            None,
            ErrorCode.INVALID_PARTITIONS,
            "The topic orders currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            4,
            [(1, 2)],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            3,
            [(1,)],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            MANUAL + "a partition with 1 replica(s), but this is not consistent with previous "
            "partitions, which have 2 replica(s).",
        ),
    ],
)
def test_new_partitions_that_are_refused(count, assignments, error, text):
    cluster = Cluster(2)
    cluster.create("orders", 2, 2)
    assert add(cluster, count, assignments) == (error, text)


def test_partitions_of_an_unknown_topic():
    error, text = add(Cluster(1), 2)
    assert (error, text) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)


# -- DeleteTopics --------------------------------------------------------------------------------
def delete(cluster, *topics, version=6):
    state = DeleteTopicsRequest.DeleteTopicState
    request = DeleteTopicsRequest(topics=[state(name=n, topic_id=i) for n, i in topics])
    return cluster.decide(DELETE_TOPICS, request, version).responses


@kafka_scenario("ControllerApisTest", "deleteTopicsByName", "deleteTopicsById")
@kafka_scenario("ReplicationControlManagerTest", "deleteTopics")
def test_topics_are_deleted_by_name_and_by_id_with_their_configs():
    cluster = Cluster(1)
    one = cluster.create("one", 1, 1, configs={"retention.ms": "5"}).topic_id
    two = cluster.create("two", 1, 1).topic_id
    found = delete(cluster, ("one", ZERO_UUID), (None, two))
    assert {(r.name, r.topic_id, r.error_code) for r in found} == {("one", one, 0), ("two", two, 0)}
    assert not cluster.image.topics.ids and not cluster.image.configs


@kafka_scenario("ControllerApisTest", "deleteTopicsByName", "invalidDeleteTopicsRequest")
@kafka_scenario("ReplicationControlManagerTest", "deleteTopics")
def test_deletions_that_are_refused():
    cluster = Cluster(1)
    known = cluster.create("known", 1, 1).topic_id
    found = delete(
        cluster,
        (None, ZERO_UUID),
        ("both", known),
        ("twice", ZERO_UUID),
        ("twice", ZERO_UUID),
        ("absent", ZERO_UUID),
    )
    assert {(r.name, *outcome(r)) for r in found} == {
        (None, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."),
        ("both", ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."),
        ("twice", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        (
            "absent",
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
    }
    assert "known" in cluster.image.topics.ids


@kafka_scenario("ControllerApisTest", "deleteTopicsDisabled")
@pytest.mark.parametrize(
    ("version", "error"),
    [(2, ErrorCode.INVALID_REQUEST), (6, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_deletion_can_be_disabled(version, error):
    cluster = Cluster(1, delete_topic_enable=False)
    cluster.create("known", 1, 1)
    with pytest.raises(ApiError) as refused:
        delete(cluster, ("known", ZERO_UUID), version=version)
    assert refused.value.error == error


def test_many_names_are_looked_up_in_linear_time():
    """One step looks at PAUSE_EVERY names; counting each in the whole request took minutes."""
    cluster = Cluster(1)
    names = [f"t{i}" for i in range(60_000)]
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
    response = cluster.decide(DELETE_TOPICS, DeleteTopicsRequest(topics=topics))
    assert [result.name for result in response.responses] == names
