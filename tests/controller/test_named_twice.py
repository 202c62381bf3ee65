"""Requests that name one thing twice: what each API answers, and that the cluster stays legal.

The rules are Kafka's, but for those that decision 7 lists: a client must not end or damage a controller.
"""

from typing import Any, NamedTuple

import pytest

from controller.any_api import WRITES, E, ask, leaf_codes
from controller.cluster import Cluster, directory
from controller.short_requests import (
    create_acls,
    create_partitions,
    create_token,
    create_topics,
    delete_topics,
    incremental,
    quotas,
    reassign,
    register,
    register_controller,
    replace,
    scram,
    update_features,
)
from quorate.base.ids import ZERO_UUID
from quorate.controller.token_config import TokenConfig
from quorate.metadata.image import ConfigResource, ScramKey
from quorate.security.authorizer import AuthorizerConfig
from quorate.wire import messages as m

NONE = E.NONE
BY_NAME = {row.name: row for row in WRITES}


class Case(NamedTuple):
    """A request that names something twice; `build` takes the cluster."""

    api: str
    what: str
    build: Any
    codes: list[E]
    """Of its items, in the order of the response."""
    records: list[str]
    """The types of the records, without `Record`."""
    then: Any = lambda cluster: True
    """What holds afterwards."""


def a_cluster():
    """Three brokers with two directories each, and topic `a`: its partition 0 is on 1 and 2, led by 1."""
    cluster = Cluster(
        authorizer=AuthorizerConfig(), tokens=TokenConfig(secret_key="secret"), level=30
    )
    for broker in (1, 2, 3):
        cluster.register(broker, log_dirs=[directory(broker, 0), directory(broker, 1)])
        cluster.unfence(broker)
    cluster.create("a", assignments=[(1, 2), (2, 1)])
    return cluster


def topic_id(cluster):
    return cluster.image.topics.ids["a"]


# -- topics -----------------------------------------------------------------------------------------
def retention(cluster, resource="b"):
    return cluster.image.configs[ConfigResource(2, resource)]["retention.ms"]


TOPICS = [
    Case("CreateTopics", "topic", lambda c: create_topics("bb"), [E.INVALID_REQUEST], []),
    Case(
        "CreateTopics",
        "names that collide with each other",
        lambda c: create_topics(("x.y", "x_y")),
        [NONE, NONE],
        ["Topic", "Partition"] * 2,
    ),
    Case(
        "CreateTopics",
        "config",
        lambda c: create_topics(configs=[("retention.ms", "1"), ("retention.ms", "2")]),
        [NONE],
        ["Topic", "Config", "Partition"],
        lambda c: retention(c) == "2",
    ),
    Case(
        "CreateTopics",
        "partition",
        lambda c: create_topics(assignments=[(0, (1,)), (0, (2,))]),
        [E.INVALID_REPLICA_ASSIGNMENT],
        [],
    ),
    Case(
        "CreateTopics",
        "replica",
        lambda c: create_topics(assignments=[(0, (1, 1))]),
        [E.INVALID_REPLICA_ASSIGNMENT],
        [],
    ),
    Case(
        "DeleteTopics",
        "name",
        lambda c: delete_topics(("a", ZERO_UUID), ("a", ZERO_UUID)),
        [E.INVALID_REQUEST],
        [],
    ),
    Case(
        "DeleteTopics",
        "id",
        lambda c: delete_topics((None, topic_id(c)), (None, topic_id(c))),
        [E.INVALID_REQUEST],
        [],
    ),
    Case(
        "DeleteTopics",
        "topic by name and id",
        lambda c: delete_topics((None, topic_id(c)), ("a", ZERO_UUID)),
        [E.INVALID_REQUEST],
        [],
    ),
    Case(
        "DeleteTopics",
        "id, and the topic by name",
        lambda c: delete_topics((None, topic_id(c)), (None, topic_id(c)), ("a", ZERO_UUID)),
        [E.INVALID_REQUEST] * 2,
        [],
    ),
    Case(
        "CreatePartitions",
        "topic",
        lambda c: create_partitions(3, "a", "a"),
        [E.INVALID_REQUEST],
        [],
    ),
    Case(
        "CreatePartitions",
        "replica",
        lambda c: create_partitions(3, "a", assignments=[(1, 1)]),
        [E.INVALID_REPLICA_ASSIGNMENT],
        [],
    ),
]


# -- partitions -------------------------------------------------------------------------------------
def alter_partition(cluster, *isrs, index=0):
    partition = cluster.partition("a", index)
    cls = m.AlterPartitionRequest.TopicData
    state = cls.PartitionData.BrokerState
    partitions = [
        cls.PartitionData(
            partition_index=index,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[state(broker_id=broker) for broker in isr],
        )
        for isr in isrs
    ]
    return m.AlterPartitionRequest(
        broker_id=partition.leader,
        broker_epoch=cluster.broker(partition.leader).epoch,
        topics=[cls(topic_id=topic_id(cluster), partitions=partitions)],
    )


def while_reassigned(cluster):
    """Partition 0 goes from 1 and 2 to 2 and 3, and 3 is in sync in the first of two changes."""
    row = BY_NAME["AlterPartitionReassignments"]
    ask(cluster, row, reassign((0, (2, 3))), 1)
    return alter_partition(cluster, (1, 2, 3), (1,))


def elect_leaders(cluster, kind=0, indexes=(0, 0)):
    """Broker 1 has come back and does not lead its partition."""
    cluster.lose(1)
    cluster.unfence(1)
    ask(cluster, BY_NAME["AlterPartition"], alter_partition(cluster, (1, 2)), 3)
    cls = m.ElectLeadersRequest.TopicPartitions
    topics = [cls(topic="a", partitions=list(indexes))]
    return m.ElectLeadersRequest(election_type=kind, topic_partitions=topics)


def assign(cluster, *numbers):
    cls = m.AssignReplicasToDirsRequest.DirectoryData
    data = cls.TopicData.PartitionData
    return m.AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=cluster.broker(1).epoch,
        directories=[
            cls(
                id=directory(1, number),
                topics=[
                    cls.TopicData(topic_id=topic_id(cluster), partitions=[data(partition_index=0)])
                ],
            )
            for number in numbers
        ],
    )


CHANGE = "PartitionChange"
PARTITIONS = [
    Case(
        "AlterPartitionReassignments",
        "partition",
        lambda c: reassign((0, (2, 3)), (0, (3, 1))),
        [NONE, NONE],
        [CHANGE] * 2,
        lambda c: set(c.partition("a").replicas) == {1, 2, 3},
    ),
    Case(
        "AlterPartitionReassignments",
        "partition, the second time to cancel",
        lambda c: reassign((0, (2, 3)), (0, None)),
        [NONE, NONE],
        [CHANGE] * 2,
        lambda c: set(c.partition("a").replicas) == {1, 2},
    ),
    Case(
        "AlterPartitionReassignments",
        "replica",
        lambda c: reassign((0, (3, 3))),
        [E.INVALID_REPLICA_ASSIGNMENT],
        [],
    ),
    Case(
        "AlterPartition",
        "partition",
        lambda c: alter_partition(c, (1,), (1, 2)),
        [NONE, E.INVALID_UPDATE_VERSION],
        [CHANGE],
        lambda c: c.partition("a").isr == (1,),
    ),
    Case(
        "AlterPartition",
        "partition whose reassignment the first change completes",
        while_reassigned,
        [E.NEW_LEADER_ELECTED, E.FENCED_LEADER_EPOCH],
        [CHANGE],
        lambda c: c.partition("a").replicas == (2, 3) == c.partition("a").isr,
    ),
    Case(
        "AlterPartition",
        "replica",
        lambda c: alter_partition(c, (1, 1)),
        [E.INVALID_REQUEST],
        [],
    ),
    Case(
        "ElectLeaders",
        "partition",
        elect_leaders,
        [NONE, NONE],
        [CHANGE] * 2,
        lambda c: c.partition("a").leader == 1,
    ),
    Case(
        "AssignReplicasToDirs",
        "partition, in two directories",
        lambda c: assign(c, 0, 1),
        [NONE, NONE],
        [CHANGE] * 2,
        lambda c: c.partition("a").directories[0] == directory(1, 1),
    ),
    Case(
        "AssignReplicasToDirs",
        "directory",
        lambda c: assign(c, 0, 0),
        [NONE, NONE],
        [CHANGE] * 2,
        lambda c: c.partition("a").directories[0] == directory(1, 0),
    ),
]


# -- nodes ------------------------------------------------------------------------------------------
def heartbeat(cluster, name):
    """The broker names the same directory twice in this field."""
    request = m.BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=cluster.broker(1).epoch, current_metadata_offset=1 << 40
    )
    return request.replace(**{name: [directory(1, 0)] * 2})


def hosts(node):
    return [(listener.name, listener.host) for listener in node.listeners]


def range_of(node, name="metadata.version"):
    return [(found.min, found.max) for found in node.features if found.name == name]


NODES = [
    Case(
        "BrokerRegistration",
        "listener",
        lambda c: register(listeners=("A", "A")),
        [NONE],
        ["RegisterBroker"],
        lambda c: hosts(c.broker(4)) == [("A", "h1")],
    ),
    Case(
        "BrokerRegistration",
        "feature",
        lambda c: register(("metadata.version", 7, 40)),
        [NONE],
        ["RegisterBroker"],
        lambda c: range_of(c.broker(4)) == [(7, 40)],
    ),
    Case(
        "BrokerRegistration",
        "feature, the first time with a wrong range",
        lambda c: register(("made.up", 1, 1), ("made.up", 0, 1)),
        [E.UNSUPPORTED_VERSION],
        [],
    ),
    Case(
        "BrokerRegistration",
        "feature, the second time with a wrong range",
        lambda c: register(("metadata.version", 7, 8)),
        [E.UNSUPPORTED_VERSION],
        [],
    ),
    Case(
        "BrokerRegistration",
        "directory",
        lambda c: register(numbers=(0, 1, 0)),
        [E.INVALID_REGISTRATION],
        [],
    ),
    Case(
        "ControllerRegistration",
        "listener and feature",
        lambda c: register_controller(("metadata.version", 7, 40), listeners=("A", "A")),
        [NONE],
        ["RegisterController"],
        lambda c: (
            hosts(c.image.cluster.controllers[3001]) == [("A", "h1")]
            and range_of(c.image.cluster.controllers[3001]) == [(7, 40)]
        ),
    ),
    Case(
        "BrokerHeartbeat",
        "failed directory",
        lambda c: heartbeat(c, "offline_log_dirs"),
        [NONE],
        ["BrokerRegistrationChange"],
        lambda c: c.broker(1).directories == (directory(1, 1),),
    ),
    Case(
        "BrokerHeartbeat",
        "cordoned directory",
        lambda c: heartbeat(c, "cordoned_log_dirs"),
        [NONE],
        ["BrokerRegistrationChange"],
        lambda c: set(c.broker(1).cordoned_directories) == {directory(1, 0)},
    ),
]


# -- settings ---------------------------------------------------------------------------------------
def delete_acls(cluster):
    ask(cluster, BY_NAME["CreateAcls"], create_acls(1), 3)
    cls = m.DeleteAclsRequest.DeleteAclsFilter
    one = cls(
        resource_type_filter=2,
        resource_name_filter="a",
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    every = one.replace(resource_name_filter=None, pattern_type_filter=1)
    return m.DeleteAclsRequest(filters=[one, every])


def scram_with_a_user(cluster, upsertions=(), deletions=()):
    ask(cluster, BY_NAME["AlterUserScramCredentials"], scram([("u", 1)]), 0)
    return scram(upsertions, deletions)


def is_user(cluster):
    return ScramKey(1, "u") in cluster.image.scram


RETENTION_1 = [("retention.ms", 0, "1")]
SETTINGS = [
    Case(
        "IncrementalAlterConfigs",
        "resource",
        lambda c: incremental((2, "a", RETENTION_1), (2, "a", RETENTION_1), (2, "a", RETENTION_1)),
        [E.INVALID_REQUEST],
        [],
    ),
    Case(
        "IncrementalAlterConfigs",
        "config",
        lambda c: incremental((2, "a", [*RETENTION_1, ("retention.ms", 0, "2")])),
        [NONE],
        ["Config"],
        lambda c: retention(c, "a") == "2",
    ),
    Case(
        "IncrementalAlterConfigs",
        "config, the second time to delete it",
        lambda c: incremental((2, "a", [*RETENTION_1, ("retention.ms", 1, None)])),
        [NONE],
        [],
    ),
    Case(
        "AlterConfigs",
        "resource",
        lambda c: replace((2, "a", []), (2, "a", [])),
        [E.INVALID_REQUEST],
        [],
    ),
    Case(
        "AlterConfigs",
        "config",
        lambda c: replace((2, "a", [("retention.ms", "1"), ("retention.ms", "2")])),
        [NONE],
        ["Config"],
        lambda c: retention(c, "a") == "2",
    ),
    Case(
        "AlterClientQuotas",
        "entity: the first change is made, and refused",
        lambda c: quotas(
            ([("user", "u")], [("producer_byte_rate", 1.0)]),
            ([("user", "u")], [("producer_byte_rate", 2.0)]),
        ),
        [E.INVALID_REQUEST],
        ["ClientQuota"],
    ),
    Case(
        "AlterClientQuotas",
        "key",
        lambda c: quotas(
            ([("user", "u")], [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)])
        ),
        [E.INVALID_REQUEST],
        [],
    ),
    Case(
        "AlterClientQuotas",
        "type of an entity",
        lambda c: quotas(([("user", "u"), ("user", "v")], [("producer_byte_rate", 1.0)])),
        [NONE],
        ["ClientQuota"],
        lambda c: list(c.image.client_quotas) == [(("user", "v"),)],
    ),
    Case("CreateAcls", "binding", lambda c: create_acls(2), [NONE, NONE], ["AccessControlEntry"]),
    Case(
        "DeleteAcls",
        "binding that two filters match",
        delete_acls,
        [NONE, NONE],
        ["RemoveAccessControlEntry"],
    ),
    Case(
        "AlterUserScramCredentials",
        "user, for two mechanisms",
        lambda c: scram([("u", 1), ("u", 2)]),
        [E.DUPLICATE_RESOURCE],
        [],
    ),
    Case(
        "AlterUserScramCredentials",
        "user, to set and to delete",
        lambda c: scram_with_a_user(c, [("u", 2)], [("u", 1)]),
        [E.DUPLICATE_RESOURCE],
        [],
        is_user,
    ),
    Case(
        "AlterUserScramCredentials",
        "user, to delete twice",
        lambda c: scram_with_a_user(c, [], [("u", 1), ("u", 1)]),
        [E.DUPLICATE_RESOURCE],
        [],
        is_user,
    ),
    Case("CreateDelegationToken", "renewer", lambda c: create_token(), [NONE], ["DelegationToken"]),
    Case(
        "UpdateFeatures",
        "feature",
        lambda c: update_features(("group.version", 9), ("group.version", 1)),
        [NONE],
        ["FeatureLevel"],
        lambda c: c.image.features.levels["group.version"] == 1,
    ),
]
CASES = [*TOPICS, *PARTITIONS, *NODES, *SETTINGS]
NAME_ONE_THING = {
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "UnregisterBroker",
    "AllocateProducerIds",
    "UnregisterController",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.api}: {case.what}")
def test_a_request_that_names_something_twice(case):
    cluster = a_cluster()
    row = BY_NAME[case.api]
    message = case.build(cluster)
    response = ask(cluster, row, message, type(message).schema.versions[1])
    records = [type(record).__name__.removesuffix("Record") for record in cluster.records]
    assert (leaf_codes(response), records) == (case.codes, case.records)
    assert case.then(cluster)


def test_every_api_that_may_name_something_twice_has_a_case():
    assert {case.api for case in CASES} | NAME_ONE_THING == {row.name for row in WRITES}
    assert NAME_ONE_THING.isdisjoint(case.api for case in CASES)
