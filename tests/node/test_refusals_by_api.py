"""What every API answers without permission, and every write away from the active controller."""

from typing import Any

import pytest

from conformance.marker import kafka_scenario
from node.world import World
from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.activation import Bootstrap
from quorate.formats.records import FeatureLevelRecord, encode_record
from quorate.node.api_row import ApiRow
from quorate.node.apis import API_TABLE
from quorate.security.acl import AclResource
from quorate.security.authorizer import AuthorizerConfig
from quorate.wire import messages as m
from quorate.wire.registry import APIS
from quorate.wire.schema import Message

EVE = "User:eve"
SOME_ID = Uuid(bytes(15) + b"\x07")
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=33)
OF_THE_CLUSTER = [
    row
    for row in API_TABLE.values()
    if row.acl is not None and row.acl.resource is AclResource.CLUSTER
]
WRITES = [row for row in API_TABLE.values() if row.operation is not None]
_Config = m.IncrementalAlterConfigsRequest.AlterConfigsResource
_Reassigned = m.AlterPartitionReassignmentsRequest.ReassignableTopic
ITEMS: dict[str, dict[str, Any]] = {
    "CreateTopics": {"topics": [m.CreateTopicsRequest.CreatableTopic(name="a")]},
    "DeleteTopics": {
        "topics": [m.DeleteTopicsRequest.DeleteTopicState(topic_id=SOME_ID)],
        "timeout_ms": 60_000,
    },
    "CreatePartitions": {
        "topics": [m.CreatePartitionsRequest.CreatePartitionsTopic(name="a", assignments=None)],
        "timeout_ms": 60_000,
    },
    "CreateAcls": {"creations": [m.CreateAclsRequest.AclCreation()]},
    "DeleteAcls": {"filters": [m.DeleteAclsRequest.DeleteAclsFilter()]},
    "AlterConfigs": {
        "resources": [m.AlterConfigsRequest.AlterConfigsResource(resource_type=2)],
    },
    "IncrementalAlterConfigs": {"resources": [_Config(resource_type=2)]},
    "ElectLeaders": {"topic_partitions": None},
    "AlterPartition": {"topics": [m.AlterPartitionRequest.TopicData(topic_id=SOME_ID)]},
    "AlterPartitionReassignments": {
        "topics": [_Reassigned(name="a", partitions=[_Reassigned.ReassignablePartition()])]
    },
    "AlterClientQuotas": {"entries": [m.AlterClientQuotasRequest.EntryData()]},
    "AlterUserScramCredentials": {
        "deletions": [m.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="a")]
    },
    "UpdateFeatures": {
        "feature_updates": [m.UpdateFeaturesRequest.FeatureUpdateKey(feature="a")],
    },
}
"""An item for each request that would ask for nothing without; time where the default is none."""


@pytest.fixture(scope="module")
def world():
    """Nodes may ask each other anything; eve nothing."""
    config = AuthorizerConfig(frozenset({"User:ANONYMOUS"}))
    world = World(authorizer=config, bootstrap=Bootstrap((encode_record(LEVEL, 0),)))
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    world.run(3_000)
    return world


def request_of(row: ApiRow) -> Message:
    return APIS[row.key].request(**ITEMS.get(row.name, {}))


def errors(item: Any) -> set[ErrorCode]:
    """Every error code of a response that is not 0."""
    found = {ErrorCode(getattr(item, "error_code", 0))}
    for field in item.schema.fields:
        if field.type_name == "array" and field.holds_structs:
            for each in getattr(item, field.name) or ():
                found |= errors(each)
    return found - {ErrorCode.NONE}


@kafka_scenario(
    "ControllerApisTest",
    "unauthorizedFetch",
    "unauthorizedFetchSnapshot",
    "unauthorizedVote",
    "unauthorizedBeginQuorumEpoch",
    "unauthorizedEndQuorumEpoch",
    "unauthorizedDescribeQuorum",
    "unauthorizedHandleAlterPartitionRequest",
    "unauthorizedHandleBrokerHeartBeatRequest",
    "unauthorizedHandleUnregisterBroker",
    "unauthorizedBrokerRegistration",
    "unauthorizedHandleAlterClientQuotas",
    "unauthorizedHandleAlterPartitionReassignments",
    "unauthorizedHandleAllocateProducerIds",
    "unauthorizedHandleListPartitionReassignments",
    "unauthorizedControllerRegistrationRequest",
    "unauthorizedDescribeClusterRequest",
    "electLeadersAuthorization",
)
@pytest.mark.parametrize("row", OF_THE_CLUSTER, ids=lambda row: row.name)
def test_without_permission_on_the_cluster_an_api_does_nothing(world, row):
    for node in list(world.alive):
        head = node.controller.head.image
        answer = world.ask(node.node_id, request_of(row), principal=EVE)
        assert errors(answer) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
        assert node.controller.head.image is head


@kafka_scenario(
    "ControllerApisTest",
    "electLeadersHandledByController",
    "deleteTopicsReturnsNotController",
    "notControllerErrorPreventsDeletingTopics",
    "allocateProducerIdsReturnsNotController",
)
@pytest.mark.parametrize("row", WRITES, ids=lambda row: row.name)
def test_a_standby_refuses_a_write(world, row):
    if row.name == "CreateDelegationToken":
        return  # refused before, without a login
    standby = next(node for node in world.alive if node is not world.active)
    answer = world.ask(standby.node_id, request_of(row))
    assert errors(answer) == {ErrorCode.NOT_CONTROLLER}


def test_every_request_with_items_is_one_of_the_table():
    """Without an item in its lists a request might succeed at once, and prove nothing."""
    assert set(ITEMS) <= {row.name for row in API_TABLE.values()}
