"""What the comparison with a Java controller (`tests/differential`) has found, as decisions."""

import pytest

from conformance.marker import kafka_scenario
from controller.cluster import BROKER, TOPIC, Cluster, directory
from controller.test_configs import CLIENT_METRICS, GROUP, replace
from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, Uuid
from quorate.controller.brokers import UNREGISTER_BROKER
from quorate.controller.building import at_once
from quorate.controller.configs import INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigs
from quorate.controller.features import UPDATE_FEATURES, finalized_levels
from quorate.controller.isr import ALTER_PARTITION
from quorate.controller.new_partitions import CREATE_PARTITIONS
from quorate.controller.reassignments import not_listed
from quorate.controller.topic_deletion import DELETE_TOPICS
from quorate.controller.topics import CREATE_TOPICS
from quorate.formats.records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
)
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import ALLOW, LITERAL, AuthorizerConfig, Requester
from quorate.wire.messages import (
    AlterPartitionRequest,
    BrokerRegistrationRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)

DENIED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
BOTH = "You may not specify both topic name and topic id."
TRANSACTIONS = "transaction.version"
SUPPLIED = "The provided topic name maps to an ID that was already supplied."


# -- AlterConfigs --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "name", "unknown", "first"),
    [
        (CLIENT_METRICS, "m1", ("log.dir", "process.roles"), "process.roles"),
        (TOPIC, "orders", ("log.dir", "process.roles"), "process.roles"),
        (GROUP, "g1", ("retention.ms", "log.dir"), "log.dir"),
    ],
)
def test_of_several_unknown_configs_the_first_one_of_a_hash_map_is_named(
    kind, name, unknown, first
):
    cluster = Cluster(1)
    cluster.create("orders", 1, 1)
    for names in (unknown, reversed(unknown)):
        [(_, text)] = replace(cluster, (kind, name, dict.fromkeys(names, "1")))
        assert text.endswith(f": {first}")


# -- DeleteTopics --------------------------------------------------------------------------------
def delete(cluster, *topics):
    state = DeleteTopicsRequest.DeleteTopicState
    request = DeleteTopicsRequest(topics=[state(name=n, topic_id=i) for n, i in topics])
    found = cluster.decide(DELETE_TOPICS, request, 6).responses
    return [(r.name, r.topic_id, r.error_code, r.error_message) for r in found]


def allow(cluster, principal, name, operation):
    number = len(cluster.image.acls)
    record = AccessControlEntryRecord(
        id=Uuid(number.to_bytes(16, "big")),
        resource_type=AclResource.TOPIC,
        resource_name=name,
        pattern_type=LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=ALLOW,
    )
    cluster.write([record])


def test_who_may_not_describe_a_topic_does_not_learn_whether_it_exists():
    cluster = Cluster(1, authorizer=AuthorizerConfig(super_users=frozenset({"User:admin"})))
    cluster.requester = Requester("User:admin", "10.0.0.7")
    cluster.create("hidden", 1, 1)
    seen = cluster.create("seen", 1, 1).topic_id
    allow(cluster, "User:alice", "seen", AclOperation.DESCRIBE)
    cluster.requester = Requester("User:alice", "10.0.0.7")
    names = ("absent", "hidden", "seen")
    assert delete(cluster, *((name, ZERO_UUID) for name in names)) == [
        (name, ZERO_UUID, *DENIED) for name in names
    ]
    assert delete(cluster, (None, seen)) == [("seen", seen, *DENIED)]


def test_a_topic_that_is_named_by_id_and_by_name_stays():
    cluster = Cluster(1)
    topic_id = cluster.create("orders", 1, 1).topic_id
    found = delete(cluster, (None, topic_id), ("orders", ZERO_UUID))
    assert found == [("orders", topic_id, ErrorCode.INVALID_REQUEST, SUPPLIED)]
    assert "orders" in cluster.image.topics.ids


def test_an_entry_with_a_name_and_an_id_does_not_count_for_the_others():
    cluster = Cluster(1)
    topic_id = cluster.create("orders", 1, 1).topic_id
    found = delete(cluster, ("orders", topic_id), ("orders", ZERO_UUID))
    assert found == [
        ("orders", topic_id, ErrorCode.INVALID_REQUEST, BOTH),
        ("orders", topic_id, ErrorCode.NONE, None),
    ]
    assert not cluster.image.topics.ids


def test_the_empty_name_is_a_name():
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = delete(Cluster(1), ("", ZERO_UUID))
    assert found == [("", ZERO_UUID, unknown, unknown.message)]


# -- CreateTopics, CreatePartitions --------------------------------------------------------------
def test_topics_that_are_refused_do_not_count_for_the_size_of_a_request():
    cluster = Cluster(1, authorizer=AuthorizerConfig())
    cluster.requester = Requester("User:alice", "10.0.0.7")
    topic = CreateTopicsRequest.CreatableTopic(
        name="large", num_partitions=10_001, replication_factor=1
    )
    [found] = cluster.decide(CREATE_TOPICS, CreateTopicsRequest(topics=[topic]), 7).topics
    assert found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_new_partitions_have_as_many_replicas_as_partition_0():
    cluster = Cluster(3)
    topic_id = cluster.create("orders", assignments=[(1,)] * 5).topic_id
    for index in range(1, 5):
        change = PartitionChangeRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=[1, 2, 3],
            directories=[directory(broker) for broker in (1, 2, 3)],
        )
        cluster.write([change])
    cls = CreatePartitionsRequest.CreatePartitionsTopic
    request = CreatePartitionsRequest(topics=[cls(name="orders", count=6, assignments=None)])
    [found] = cluster.decide(CREATE_PARTITIONS, request, 3).results
    assert (found.error_code, found.error_message) == (ErrorCode.NONE, None)
    assert len(cluster.partition("orders", 5).replicas) == 1


def test_a_created_topic_has_no_text():
    assert Cluster(1).create("orders", 1, 1).error_message is None


# -- brokers -------------------------------------------------------------------------------------
def test_a_broker_that_is_unfenced_after_a_shutdown_is_in_service_again():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.heartbeat(1, want_shut_down=True)
    cluster.heartbeat(2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.broker(1).in_controlled_shutdown
    cluster.unfence(1)
    found = cluster.heartbeat(1)
    assert not found.is_fenced and not found.should_shut_down


def test_another_registration_ends_a_controlled_shutdown():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.heartbeat(1, want_shut_down=True)
    known = cluster.broker(1).incarnation_id
    cluster.register(1, incarnation_id=known, previous_epoch=cluster.broker(1).epoch)
    assert not cluster.heartbeat(1).should_shut_down


def test_what_a_broker_has_applied_counts_again_after_a_change_of_its_registration():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.heartbeat(2)
    cluster.heartbeat(3)
    cluster.heartbeat(1, want_shut_down=True)
    cluster.heartbeat(2, want_fence=True)
    cluster.unfence(2)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_broker_that_comes_back_after_it_was_unregistered_is_eligible_no_more():
    cluster = Cluster(2, elr=True)
    cluster.configure(TOPIC, "orders", min_insync_replicas="2")
    cluster.create("orders", assignments=[(1, 2)])
    cluster.lose(1)
    assert cluster.partition("orders").elr == (1,)
    cluster.decide(UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=1), 0)
    cluster.register(1)
    assert cluster.partition("orders").elr == ()


def test_a_broker_may_say_that_no_directory_is_cordoned():
    cluster = Cluster(1)
    for _ in range(2):
        cluster.heartbeat(1, cordoned_log_dirs=[])
    changes = [
        r
        for r in cluster.records
        if isinstance(r, BrokerRegistrationChangeRecord) and r.cordoned_log_dirs == []
    ]
    assert cluster.broker(1).cordoned_directories == () and changes == []


def test_of_a_listener_that_is_there_twice_the_last_one_counts():
    cls = BrokerRegistrationRequest.Listener
    cluster = Cluster()
    cluster.register(1, listeners=[cls(name="A", host=h, port=9092) for h in ("one", "two")])
    assert [e.host for e in cluster.records[-1].end_points] == ["two"]


def test_a_recovery_state_that_means_nothing_is_refused():
    cluster = Cluster(2)
    topic_id = cluster.create("orders", assignments=[(1, 2)]).topic_id
    data = AlterPartitionRequest.TopicData
    partition = data.PartitionData(
        new_isr=[1], leader_recovery_state=5, leader_epoch=0, partition_epoch=0
    )
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=cluster.broker(1).epoch,
        topics=[data(topic_id=topic_id, partitions=[partition])],
    )
    [topic] = cluster.decide(ALTER_PARTITION, request, 2).topics
    assert topic.partitions[0].error_code == ErrorCode.INVALID_REQUEST


# -- configs and features ------------------------------------------------------------------------
def alter(cluster, *resources):
    cls = IncrementalAlterConfigsRequest.AlterConfigsResource
    message = IncrementalAlterConfigsRequest(
        resources=[
            cls(
                resource_type=kind,
                resource_name=name,
                configs=[
                    cls.AlterableConfig(name=key, config_operation=operation, value="1")
                    for key, operation in changes
                ],
            )
            for kind, name, changes in resources
        ]
    )
    found = cluster.decide(INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigs(message), 1)
    return [(r.resource_type, r.error_code, r.error_message) for r in found.responses]


def test_each_resource_of_an_unknown_type_is_refused():
    refused = (64, ErrorCode.UNSUPPORTED_VERSION, "Unknown resource type 64.")
    assert alter(Cluster(), (64, "", ()), (64, "", ())) == [refused] * 2


def test_of_several_mistakes_the_first_one_in_javas_order_is_reported():
    cluster = Cluster(1)
    cluster.create("orders", 1, 1)
    changes = (("local.retention.bytes", 2), ("compression.lz4.level", 3))
    text = "Can't SUBTRACT to key compression.lz4.level because its type is not LIST."
    assert alter(cluster, (TOPIC, "orders", changes)) == [(TOPIC, ErrorCode.INVALID_CONFIG, text)]


@pytest.mark.parametrize(
    ("text", "is_allowed"), [("true", True), ("TRUE", True), ("yes", False), (" true ", False)]
)
def test_only_the_word_true_allows_unclean_elections(text, is_allowed):
    cluster = Cluster(1, file={"unclean.leader.election.enable": "true"})
    cluster.create("orders", 1, 1)
    cluster.configure(BROKER, "", unclean_leader_election_enable=text)
    found = cluster.config.configs.unclean_leader_election(cluster.image, "orders")
    assert found is is_allowed


def update(cluster, *updates, version=1):
    cls = UpdateFeaturesRequest.FeatureUpdateKey
    rows = [cls(feature=name, max_version_level=level) for name, level in updates]
    return cluster.decide(UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=rows), version)


@kafka_scenario("QuorumFeaturesTest", "reasonNotSupported")
@kafka_scenario("FeatureControlManagerTest", "updateFeaturesErrorCases")
def test_every_broker_must_know_the_level_of_a_feature():
    cluster, feature = Cluster(), BrokerRegistrationRequest.Feature
    known = feature(name="metadata.version", min_supported_version=7, max_supported_version=30)
    others = [
        feature(name=name, max_supported_version=1) for name in ("kraft.version", TRANSACTIONS)
    ]
    cluster.register(5, features=[known, *others])
    for name, level, reason in (
        ("group.version", 1, "Broker 5 does not support this feature."),
        (TRANSACTIONS, 2, "Broker 5 only supports versions 0-1"),
    ):
        found = update(cluster, (name, level))
        assert found.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert found.error_message.endswith(f"version {level} for feature {name}. {reason}")
    assert update(cluster, (TRANSACTIONS, 1)).error_code == ErrorCode.NONE
    again = update(cluster, (TRANSACTIONS, 0))
    assert "without setting the upgrade type" in again.error_message


@kafka_scenario("FeatureControlManagerTest", "replayKraftVersionFeatureLevel")
def test_a_record_does_not_say_the_kraft_version():
    cluster = Cluster()
    cluster.write([FeatureLevelRecord(name="kraft.version", feature_level=1)])
    assert finalized_levels(cluster.image.features, 0) == {"metadata.version": 30}


def test_the_result_of_each_feature_has_a_text():
    [found] = update(Cluster(), ("group.version", 1)).results
    assert (found.feature, found.error_message) == ("group.version", "NONE")


def test_of_several_features_the_first_one_in_javas_order_is_reported():
    found = update(Cluster(), ("metadata.version", 99), ("kraft.version", 99))
    assert "for feature kraft.version" in found.error_message


# -- reassignments -------------------------------------------------------------------------------
def test_a_refused_list_of_reassignments_repeats_what_was_asked():
    cls = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    request = ListPartitionReassignmentsRequest(topics=[cls(name="a", partition_indexes=[3])])
    found = at_once(not_listed(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no"))
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in found.topics] == [
        ("a", [3])
    ]
