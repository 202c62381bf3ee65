"""The admin client on three controllers, without any broker that serves it."""

import pytest

from conformance.marker import kafka_scenario
from interop.kafka import HOST, Quorum, wait_for
from quorate.base.ids import Address
from quorate.broker.lifecycle import BrokerState
from quorate.cli.quickstart.simulated_broker import QuickstartBroker, in_state, run_until, start
from quorate.client import Admin
from quorate.client.admin.configs import (
    AlterConfigOp,
    ConfigEntrySource,
    OpType,
    Resource,
    ResourceType,
)
from quorate.client.admin.reassignments import PartitionName
from quorate.client.admin.topics import TopicCreation

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NAMES = "max.connections", "max.connection.creation.rate"
THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
DEFAULT = Resource(ResourceType.BROKER, "")


@pytest.fixture(scope="module", params=[1, 3], ids=["one controller", "three controllers"])
def quorum(request, tmp_path_factory):
    ids = range(1, request.param + 1)
    root = tmp_path_factory.mktemp("controllers")
    config = {"min.insync.replicas": 2}
    with Quorum(root, dict.fromkeys(ids, "quorate"), config=config) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        yield quorum


@pytest.fixture
def admin(quorum):
    quorum.leader()
    with Admin.open(bootstrap_controllers=quorum.bootstrap) as admin:
        ids = {node.id for node in quorum.controllers}
        wait_for(lambda: set(admin.describe_cluster().nodes) == ids, "all to be registered")
        yield admin


def entries_of(admin, resource):
    return {entry.name: entry for entry in admin.describe_configs([resource])[resource]}


@kafka_scenario(
    "BootstrapControllersIntegrationTest",
    "incrementalAlterConfigsBySingleControllerWithDynamicQuorum",
    "incrementalAlterConfigsByAllControllersWithDynamicQuorum",
)
def test_each_controller_takes_its_own_value_before_the_shared_one(quorum, admin):
    shared = ConfigEntrySource.DYNAMIC_DEFAULT_BROKER_CONFIG
    for node in quorum.controllers:
        own = Resource(ResourceType.BROKER, str(node.id))
        limit, rate = str(1000 + node.id), str(2000 + node.id)
        changes = {
            own: [AlterConfigOp(NAMES[0], OpType.SET, limit)],
            DEFAULT: [AlterConfigOp(name, OpType.SET, rate) for name in NAMES],
        }
        assert admin.incremental_alter_configs(changes) == dict.fromkeys(changes)

        def seen(resource):
            entries = map(entries_of(admin, resource).get, NAMES)
            return [entry and (entry.value, entry.source) for entry in entries]

        expected = {
            own: [(limit, ConfigEntrySource.DYNAMIC_BROKER_CONFIG), (rate, shared)],
            DEFAULT: [(rate, shared), (rate, shared)],
        }
        wait_for(
            lambda own=own, expected=expected: (
                {each: seen(each) for each in (own, DEFAULT)} == expected
            ),
            f"the configs of {node}",
        )


@kafka_scenario("BootstrapControllersIntegrationTest", "quotaConfigsIsReadOnlyShouldBeFalse")
def test_throttles_of_a_controller_may_be_changed(admin):
    own = Resource(ResourceType.BROKER, "1")
    change = {own: [AlterConfigOp(name, OpType.SET, "16800") for name in THROTTLES]}
    assert admin.incremental_alter_configs(change) == {own: None}

    def seen():
        entries = map(entries_of(admin, own).get, THROTTLES)
        return [entry and (entry.value, entry.is_read_only) for entry in entries]

    wait_for(lambda: seen() == [("16800", False)] * 3, "the throttles")


@kafka_scenario("BootstrapControllersIntegrationTest", "describeConfigs")
def test_the_default_of_min_insync_replicas_is_in_the_metadata(admin):
    """The first active controller writes it, as eligible leader replicas depend on it (KIP-966)."""

    def entry():
        return entries_of(admin, DEFAULT).get("min.insync.replicas")

    found = wait_for(entry, "the config")
    assert (found.value, found.source) == ("2", ConfigEntrySource.DYNAMIC_DEFAULT_BROKER_CONFIG)


@kafka_scenario("BootstrapControllersIntegrationTest", "alterReassignmentsWithBootstrapControllers")
def test_reassignments_without_new_replicas(quorum, admin):
    controllers = [Address(HOST, node.port) for node in quorum.controllers]
    brokers = [QuickstartBroker(i, quorum.cluster_id, controllers) for i in (10, 11, 12)]
    start(brokers)
    run_until(brokers, lambda: 1 << 60, lambda: in_state(brokers, BrokerState.RUNNING))
    before = {0: [10, 11, 12], 1: [11, 12, 10], 2: [12, 11, 10]}
    after = {0: (12, 11, 10), 1: (10, 11, 12), 2: (11, 12)}
    admin.create_topics([TopicCreation("foo", assignments=before)])
    targets = {PartitionName("foo", index): replicas for index, replicas in after.items()}
    assert admin.alter_partition_reassignments(targets) == dict.fromkeys(targets)
    wait_for(lambda: admin.list_partition_reassignments() == {}, "the end of the moves")

    def placed():
        found = admin.describe_topics(["foo"])["foo"]
        return {each.index: each.replicas for each in found.partitions}

    wait_for(lambda: placed() == after, "the controller that is asked to apply them")
    for broker in brokers:
        broker.close()
