"""The admin client on controllers of Kafka 4.3.1, Kafka 4.4.0 and Quorate, directly and through a broker.

The scenarios are those of Kafka's BootstrapControllersIntegrationTest, and the calls that KIP-919 lists
although Java's client refuses them on controllers.
"""

import pytest

from conformance.marker import kafka_scenario
from interop.kafka import Quorum
from interop.process import wait_for
from quorate.base.errors import ErrorCode
from quorate.client import (
    Admin,
    MismatchedEndpointTypeError,
    RequestFailedError,
    UnsupportedEndpointTypeError,
    UnsupportedVersionError,
)
from quorate.client.admin.acls import AclBinding, AclFilter
from quorate.client.admin.configs import (
    AlterConfigOp,
    ConfigEntrySource,
    OpType,
    Resource,
    ResourceType,
)
from quorate.client.admin.elections import ElectionType
from quorate.client.admin.quotas import ANY_NAME, EntityQuotas
from quorate.client.admin.reassignments import PartitionName
from quorate.client.admin.security import ScramInfo, ScramMechanism, ScramUpsertion
from quorate.client.admin.topics import NewPartitions, TopicCreation

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.xdist_group("admin-client")]

CONTROLLER, BROKER = 1, 11
WAYS = ["controllers", "servers"]


@pytest.fixture(scope="module", params=["java", "java-4.4", "quorate"])
def quorum(request, tmp_path_factory):
    config = {
        "metadata.max.idle.interval.ms": 0,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    root = tmp_path_factory.mktemp("admin-client")
    with Quorum(root, {CONTROLLER: request.param}, config=config) as quorum:
        quorum.format("--release-version", "4.3")  # the broker is Kafka 4.3.1
        quorum.start()
        quorum.leader()
        quorum.add_broker(BROKER).wait_until_listening()
        yield quorum


@pytest.fixture
def metadata_level():
    """Of the cluster: 4.3-IV0."""
    return 30


@pytest.fixture
def admin(quorum):
    """Open a client of the controllers, or of the brokers; all are closed at the end."""
    made = []

    def admin(way, node=None):
        chosen = node or (CONTROLLER if way == "controllers" else BROKER)
        made.append(Admin.open(**{f"bootstrap_{way}": quorum.nodes[chosen].address}))
        return made[-1]

    yield admin
    for each in made:
        each.close()


def is_ours(quorum):
    return quorum.nodes[CONTROLLER].kind == "quorate"


@kafka_scenario(
    "BootstrapControllersIntegrationTest",
    "putBrokersInBootstrapControllersConfig",
    "putControllersInBootstrapBrokersConfig",
)
def test_brokers_are_no_controllers_and_controllers_no_brokers(admin):
    with pytest.raises(MismatchedEndpointTypeError) as caught:
        admin("controllers", BROKER).describe_cluster()
    assert caught.value.reason == (
        "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
        "CONTROLLER"
    )
    with pytest.raises(MismatchedEndpointTypeError, match="is a controller, but a broker"):
        admin("servers", CONTROLLER).describe_cluster()


@kafka_scenario(
    "BootstrapControllersIntegrationTest",
    "describeClusterByControllers",
    "describeCluster",
    "describeFeaturesByControllers",
    "describeFeatures",
    "describeMetadataQuorumByControllers",
    "describeMetadataQuorum",
)
@pytest.mark.parametrize("way", WAYS)
def test_descriptions(quorum, admin, metadata_level, way):
    client = admin(way)
    found = client.describe_cluster()
    assert found.cluster_id == quorum.cluster_id
    assert set(found.nodes) == {CONTROLLER if way == "controllers" else BROKER}
    assert client.describe_quorum().leader_id == CONTROLLER
    assert client.describe_features().finalized["metadata.version"] >= metadata_level
    [node] = client.api_versions()
    assert (node.error, {3, 60} & {api.key for api in node.apis}) == (
        None,
        {60} if way == "controllers" else {3, 60},
    )


@kafka_scenario(
    "BootstrapControllersIntegrationTest", "updateFeaturesByControllers", "updateFeatures"
)
@pytest.mark.parametrize("way", WAYS)
def test_a_feature_that_nobody_has(admin, way):
    try:
        error = admin(way).update_features({"foo.bar.feature": 1})["foo.bar.feature"]
    except RequestFailedError as refused:
        error = refused
    assert error.code == ErrorCode.INVALID_UPDATE_VERSION
    assert error.reason.endswith("does not support this feature.")


@kafka_scenario(
    "BootstrapControllersIntegrationTest", "usingBootstrapControllersOnUnsupportedAdminApi"
)
def test_calls_that_only_brokers_answer(admin):
    with pytest.raises(UnsupportedEndpointTypeError):
        admin("controllers").describe_log_dirs([BROKER])
    with pytest.raises(UnsupportedEndpointTypeError):
        admin("controllers").list_groups()
    assert admin("servers").describe_log_dirs([BROKER])[BROKER][0].error is None
    assert isinstance(admin("servers").list_groups(), tuple)


@kafka_scenario(
    "BootstrapControllersIntegrationTest",
    "incrementalAlterConfigsByControllers",
    "incrementalAlterConfigs",
)
@pytest.mark.parametrize("way", WAYS)
def test_configs_of_nodes(admin, way):
    client = admin(way)
    node_id = CONTROLLER if way == "controllers" else BROKER
    own, default = (Resource(ResourceType.BROKER, name) for name in (str(node_id), ""))
    names = "max.connections", "max.connection.creation.rate"
    changes = {
        own: [AlterConfigOp(names[0], OpType.SET, "1000")],
        default: [AlterConfigOp(name, OpType.SET, "2000") for name in names],
    }
    assert client.incremental_alter_configs(changes) == dict.fromkeys(changes)

    def values():
        found = client.describe_configs([own, default])
        return {
            (resource.name, entry.name): (entry.value, entry.source)
            for resource, entries in found.items()
            for entry in entries
            if entry.name in names
        }

    shared = ("2000", ConfigEntrySource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    expected = {
        (own.name, names[0]): ("1000", ConfigEntrySource.DYNAMIC_BROKER_CONFIG),
        (own.name, names[1]): shared,
        ("", names[0]): shared,
        ("", names[1]): shared,
    }
    wait_for(lambda: values() == expected, "the configs", 20)
    undo = {
        resource: [AlterConfigOp(name, OpType.DELETE) for name in names]
        for resource in (own, default)
    }
    assert client.incremental_alter_configs(undo) == dict.fromkeys(undo)
    rate = next(e for e in client.describe_configs([own])[own] if e.name == "max.connections")
    assert not rate.is_read_only


def test_loggers_of_a_controller(admin):
    client = admin("controllers")
    loggers = Resource(ResourceType.BROKER_LOGGER, str(CONTROLLER))
    known = [entry.name for entry in client.describe_configs([loggers])[loggers]]
    change = {loggers: [AlterConfigOp(known[0], OpType.SET, "DEBUG")]}
    assert client.incremental_alter_configs(change) == {loggers: None}
    found = {entry.name: entry.value for entry in client.describe_configs([loggers])[loggers]}
    assert found[known[0]] == "DEBUG"


@kafka_scenario("BootstrapControllersIntegrationTest", "aclsByControllers", "acls")
@pytest.mark.parametrize("way", WAYS)
def test_acls(admin, way):
    client = admin(way)
    binding = AclBinding(2, f"topic-{way}", 3, "User:alice", "*", 3, 3)
    wanted = AclFilter(resource_type=2, resource_name=binding.resource_name, pattern_type=3)
    assert client.create_acls([binding]) == (None,)
    wait_for(lambda: client.describe_acls(wanted) == (binding,), "the entry", 20)
    assert client.delete_acls([wanted]) == ((binding,),)
    wait_for(lambda: client.describe_acls(wanted) == (), "no entry", 20)


@pytest.mark.parametrize("way", WAYS)
def test_topics_and_their_partitions(quorum, admin, way):
    client, through_broker = admin(way), admin("servers")
    name = f"topic-{way}"
    created = client.create_topics([TopicCreation(name, 2, 1), TopicCreation("bad!")])
    assert (created[name].partitions, created["bad!"].code) == (
        2,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    )
    assert client.create_partitions({name: NewPartitions(3)}) == {name: None}

    def described(reader):
        found = reader.describe_topics([name])[name]
        return not isinstance(found, RequestFailedError) and len(found.partitions) == 3

    wait_for(lambda: described(through_broker), "the topic on the broker", 20)
    if way == "controllers" and not is_ours(quorum):
        with pytest.raises(UnsupportedVersionError):
            client.describe_topics([name])
    else:
        assert described(client)
        assert name in [topic.name for topic in client.list_topics()]
    partition = PartitionName(name, 0)
    assert client.list_partition_reassignments([partition]) == {}
    refused = client.alter_partition_reassignments({partition: [99]})[partition]
    assert refused.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    cancelled = client.alter_partition_reassignments({partition: None})[partition]
    assert cancelled.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    elected = client.elect_leaders(ElectionType.PREFERRED, [partition])[partition]
    assert elected.code == ErrorCode.ELECTION_NOT_NEEDED
    assert client.elect_leaders(ElectionType.PREFERRED) == {}
    deleted = client.delete_topics([name, "none"])
    assert deleted[name] is None
    assert deleted["none"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("way", WAYS)
def test_quotas_and_credentials(quorum, admin, way):
    client = admin(way)
    entity = {"user": f"user-{way}"}
    client.alter_client_quota(entity, {"producer_byte_rate": 1024.0})
    if way == "controllers" and not is_ours(quorum):
        with pytest.raises(UnsupportedVersionError):
            client.describe_client_quotas({"user": ANY_NAME})
    else:
        wait_for(
            lambda: EntityQuotas(entity, {"producer_byte_rate": 1024.0})
            in client.describe_client_quotas({"user": ANY_NAME}, strict=True),
            "the quota", 20,
        )  # fmt: skip
    user = entity["user"]
    upsertion = ScramUpsertion(user, ScramMechanism.SCRAM_SHA_256, 4096, b"secret")
    assert client.alter_user_scram_credentials([upsertion]) == {user: None}
    reader = client if way == "servers" or is_ours(quorum) else admin("servers")
    expected = {user: (ScramInfo(ScramMechanism.SCRAM_SHA_256, 4096),)}
    wait_for(lambda: reader.describe_user_scram_credentials([user]) == expected, "it", 20)


@pytest.mark.parametrize("way", WAYS)
def test_a_broker_that_is_not_registered(admin, way):
    with pytest.raises(RequestFailedError, match="99") as caught:
        admin(way).unregister_broker(99)
    assert caught.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED
