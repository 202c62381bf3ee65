"""ApiVersions version 5 (KIP-1242), and what a node says before it knows a metadata.version."""

import pytest

from node.test_apis import HELLO
from node.world import World
from quorate.base.errors import ErrorCode
from quorate.wire.messages import ApiVersionsRequest, DescribeClusterRequest


@pytest.fixture(scope="module")
def world():
    world = World()
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    world.run(100)
    return world


@pytest.fixture
def unknown():
    """A node that has no leader yet: it knows no metadata.version."""
    world = World()
    assert world.nodes[1].image.features.metadata_version is None
    return world


def hello(cluster_id=None, node_id=-1):
    return ApiVersionsRequest(
        client_software_name="test",
        client_software_version="1.0",
        cluster_id=cluster_id,
        node_id=node_id,
    )


@pytest.mark.parametrize(("cluster_id", "node_id"), [("other", -1), ("", -1), (None, 1), (None, 0)])
def test_half_of_the_pair_is_an_invalid_request(world, cluster_id, node_id):
    answer = world.ask(1, hello(cluster_id, node_id))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert world.ask(1, hello(cluster_id, node_id), 4).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("cluster_id", "node_id"), [(None, -1), ("other", 1), ("other", 99)])
def test_a_controller_does_not_compare_the_pair_with_its_own(world, cluster_id, node_id):
    """Only brokers answer REBOOTSTRAP_REQUIRED."""
    answer = world.ask(1, hello(cluster_id, node_id))
    assert answer.error_code == ErrorCode.NONE
    assert [f.name for f in answer.finalized_features] == ["metadata.version"]


def test_before_the_metadata_version_is_known_no_level_is_reported(unknown):
    """Kafka 4.3 reports metadata.version 7 then (KAFKA-19964)."""
    answer = unknown.ask(1, HELLO)
    assert (answer.finalized_features, answer.finalized_features_epoch) == ([], -1)
    assert {f.name for f in answer.supported_features} > {"metadata.version", "kraft.version"}


def test_before_the_metadata_version_is_known_no_cluster_is_described(unknown):
    answer = unknown.ask(1, DescribeClusterRequest(endpoint_type=2))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.error_message == (
        "There is no finalized MetadataVersion, so direct-to-controller communication is not "
        "supported."
    )
