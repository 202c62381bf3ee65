"""An authorizer on every API: on the principal of the connection, and on the one in an Envelope."""

import pytest

from conformance.marker import kafka_scenario
from node.world import World, snapshots_of
from quorate.base.errors import ErrorCode
from quorate.controller.activation import Bootstrap
from quorate.formats.records import FeatureLevelRecord, encode_record
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import ALLOW, LITERAL, AuthorizerConfig
from quorate.wire.codec import encode
from quorate.wire.header import decode_response, encode_request
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterConfigsRequest,
    ApiVersionsRequest,
    CreateAclsRequest,
    CreateTopicsRequest,
    DefaultPrincipalData,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    EnvelopeRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    UpdateFeaturesRequest,
)

ADMIN, ALICE = "User:admin", "User:alice"
DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)


@pytest.fixture
def world():
    """Nodes may ask each other anything; clients are alice and the admin."""
    config = AuthorizerConfig(super_users=frozenset({ADMIN, "User:ANONYMOUS"}))
    world = World(authorizer=config, bootstrap=Bootstrap((encode_record(LEVEL, 0),)))
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    return world


def allow(world, operation, resource=AclResource.CLUSTER, name="kafka-cluster", host="10.0.0.7"):
    creation = CreateAclsRequest.AclCreation(
        resource_type=resource,
        resource_name=name,
        resource_pattern_type=LITERAL,
        principal=ALICE,
        host=host,
        operation=operation,
        permission_type=ALLOW,
    )
    request = CreateAclsRequest(creations=[creation])
    [result] = world.ask(world.active.node_id, request, principal=ADMIN).results
    assert result.error_code == 0
    world.run_until(lambda: all(node.image.acls for node in world.alive))


def quota():
    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="user", entity_name="bob")],
                ops=[entry.OpData(key="producer_byte_rate", value=1.0)],
            )
        ]
    )


def test_a_write_needs_its_permission(world):
    leader = world.active.node_id
    assert world.ask(leader, quota(), principal=ALICE).entries[0].error_code == DENIED
    assert not world.active.image.client_quotas
    allow(world, AclOperation.ALTER_CONFIGS)
    assert world.ask(leader, quota(), principal=ALICE).entries[0].error_code == 0
    assert world.ask(leader, UpdateFeaturesRequest(), principal=ALICE).error_code == DENIED


def test_reads_and_requests_to_the_raft_layer_need_theirs_on_standbys_too(world):
    topic = DescribeQuorumRequest.TopicData
    part = topic.PartitionData()
    quorum = DescribeQuorumRequest(
        topics=[topic(topic_name="__cluster_metadata", partitions=[part])]
    )
    for node in list(world.alive):
        assert world.ask(node.node_id, quorum, principal=ALICE).error_code == DENIED
        cluster = DescribeClusterRequest(endpoint_type=2)
        assert world.ask(node.node_id, cluster, principal=ALICE).error_code == DENIED
    allow(world, AclOperation.DESCRIBE)
    assert world.ask(world.active.node_id, quorum, principal=ALICE).error_code == 0


def test_quotas_that_are_not_described_are_null(world):
    """`DescribeClientQuotasRequest.getErrorResponse`."""
    asked = DescribeClientQuotasRequest()
    answer = world.ask(world.active.node_id, asked, principal=ALICE)
    assert (answer.error_code, answer.entries) == (DENIED, None)


def test_an_old_metadata_version_is_named_before_a_permission_is_asked_for():
    """`ControllerApis.handleDescribeCluster`."""
    config = AuthorizerConfig(super_users=frozenset({ADMIN, "User:ANONYMOUS"}))
    world = World(
        authorizer=config, bootstrap=Bootstrap((encode_record(LEVEL.replace(feature_level=14), 0),))
    )
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    answer = world.ask(
        world.leader.node_id, DescribeClusterRequest(endpoint_type=2), principal=ALICE
    )
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "current MetadataVersion" in answer.error_message


def test_everybody_may_ask_for_the_versions(world):
    hello = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    assert world.ask(1, hello, principal=ALICE).error_code == 0


@kafka_scenario("ControllerApisTest", "createTopics")
def test_topics_are_created_by_permission_on_their_names(world):
    topic = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[topic(name=name, num_partitions=1, replication_factor=1) for name in ("a", "b")]
    )
    allow(world, AclOperation.CREATE, AclResource.TOPIC, "a")
    results = world.ask(world.active.node_id, request, principal=ALICE).topics
    errors = {result.name: ErrorCode(result.error_code) for result in results}
    assert errors == {
        "a": ErrorCode.INVALID_REPLICATION_FACTOR,  # allowed; there is no broker
        "b": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


@kafka_scenario(
    "ControllerApisTest",
    "unauthorizedHandleIncrementalAlterConfigs",
    "handleLegacyAlterConfigsErrors",
)
def test_configs_are_altered_by_permission_on_each_resource(world):
    """On topics and groups by name, on the cluster for all else."""
    cls = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            cls(resource_type=kind, resource_name=name)
            for kind, name in ((2, "a"), (32, "g"), (4, ""), (16, "s"), (8, "1"))
        ]
    )
    replacing = AlterConfigsRequest.AlterConfigsResource
    legacy = AlterConfigsRequest(resources=[replacing(resource_type=4, resource_name="")])
    leader = world.active.node_id

    def ask():
        results = world.ask(leader, request, principal=ALICE).responses
        return {
            one.resource_type: (ErrorCode(one.error_code), one.error_message) for one in results
        }

    found = ask()
    for kind, error in (
        (2, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (32, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (4, DENIED),
        (16, DENIED),
        (8, DENIED),
    ):
        assert found[kind] == (error, error.message)
    assert world.ask(leader, legacy, principal=ALICE).responses[0].error_code == DENIED
    allow(world, AclOperation.ALTER_CONFIGS, AclResource.TOPIC, "a")
    assert ask()[2][0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    allow(world, AclOperation.ALTER_CONFIGS)
    found = ask()
    assert found[4][0] == found[16][0] == 0 and found[32][0] != 0
    assert world.ask(leader, legacy, principal=ALICE).responses[0].error_code == 0


def test_loggers_need_cluster_action_on_standbys_too(world):
    cls = IncrementalAlterConfigsRequest.AlterConfigsResource
    allow(world, AclOperation.CLUSTER_ACTION)
    for node in list(world.alive):
        request = IncrementalAlterConfigsRequest(
            resources=[cls(resource_type=8, resource_name=str(node.node_id))]
        )
        assert world.ask(node.node_id, request, principal=ALICE).responses[0].error_code == 0


def test_configs_are_described_by_permission_on_each_resource(world):
    cls = DescribeConfigsRequest.DescribeConfigsResource
    kinds = ((2, "a"), (32, "g"), (4, ""), (16, "s"))
    request = DescribeConfigsRequest(
        resources=[cls(resource_type=kind, resource_name=name) for kind, name in kinds]
    )
    leader = world.active.node_id

    def ask():
        results = world.ask(leader, request, principal=ALICE).results
        return {one.resource_type: ErrorCode(one.error_code) for one in results}

    assert ask() == {
        2: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        32: ErrorCode.GROUP_AUTHORIZATION_FAILED,
        4: DENIED,
        16: DENIED,
    }
    listing = ListConfigResourcesRequest()
    assert world.ask(leader, listing, principal=ALICE).error_code == DENIED
    allow(world, AclOperation.DESCRIBE_CONFIGS)
    allow(world, AclOperation.DESCRIBE_CONFIGS, AclResource.GROUP, "g")
    assert ask() == {2: ErrorCode.TOPIC_AUTHORIZATION_FAILED, 32: 0, 4: 0, 16: 0}
    assert world.ask(leader, listing, principal=ALICE).error_code == 0


def test_in_an_envelope_the_inner_principal_counts(world):
    """The broker needs CLUSTER_ACTION for the Envelope, its client ALTER_CONFIGS."""
    data = DefaultPrincipalData(type="User", name="alice")
    request = EnvelopeRequest(
        request_data=encode_request(quota(), 1, 7, "client")[4:],
        request_principal=bytes(2) + encode(data, 0),
        client_host_address=bytes((10, 0, 0, 7)),
    )
    leader = world.active.node_id
    assert world.ask(leader, request, principal=ALICE).error_code == DENIED

    def inner():
        response = world.ask(leader, request)
        answer = decode_response(response.response_data, 49, 1)[1]
        assert isinstance(answer, AlterClientQuotasResponse)
        return answer.entries[0].error_code

    assert inner() == DENIED
    allow(world, AclOperation.ALTER_CONFIGS)
    assert inner() == 0


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (bytes(15) + b"\1", "0:0:0:0:0:0:0:1"),
        (bytes(10) + b"\xff\xff\x0a\0\0\x07", "10.0.0.7"),
    ],
)
def test_the_address_in_an_envelope_has_javas_form(world, address, host):
    """An entry that allows a Java cluster's client, allows it here."""
    allow(world, AclOperation.ALTER_CONFIGS, host=host)
    data = DefaultPrincipalData(type="User", name="alice")
    request = EnvelopeRequest(
        request_data=encode_request(quota(), 1, 7, "client")[4:],
        request_principal=bytes(2) + encode(data, 0),
        client_host_address=address,
    )
    response = world.ask(world.active.node_id, request)
    answer = decode_response(response.response_data, 49, 1)[1]
    assert isinstance(answer, AlterClientQuotasResponse)
    assert answer.entries[0].error_code == 0


@kafka_scenario("MetadataLoaderTest", "catchingUpState")
@kafka_scenario("StandardAuthorizerTest", "completeInitialLoad")
def test_a_node_decides_by_its_entries_once_it_has_what_is_committed():
    """Those of its snapshot may be old: since then alice may have lost her permission."""
    config = AuthorizerConfig(super_users=frozenset({ADMIN, "User:ANONYMOUS"}))
    bootstrap = Bootstrap((encode_record(LEVEL, 0),))
    world = World(authorizer=config, bootstrap=bootstrap, policy=SnapshotPolicy(max_bytes=1))
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    allow(world, AclOperation.ALTER)
    standby = next(node for node in world.alive if node is not world.active)
    cluster = DescribeClusterRequest(endpoint_type=2)

    def said():
        return world.ask(standby.node_id, cluster, principal=ALICE).error_code

    assert said() == 0
    end = world.leader.core.high_watermark
    world.run_until(lambda: snapshots_of(standby)[-1].offset >= end)
    world.crash(standby.node_id)
    world.cut.add(standby.node_id)
    world.start(standby.node_id)
    world.run(100)
    assert standby.image.acls and said() == DENIED
    world.cut.clear()
    world.run_until(lambda: standby.core.leader.leader_id > 0)
    world.run(100)
    assert said() == 0
