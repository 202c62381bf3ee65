"""Requests of many items: a decision takes them in steps, and reads go on in between."""

import pytest

from node.test_apis import envelope
from node.world import World
from quorate.controller.activation import Bootstrap
from quorate.controller.building import ROWS, at_once
from quorate.controller.result import PAUSE_EVERY
from quorate.formats.records import FeatureLevelRecord, encode_record
from quorate.node.long_answers import dropped_in_steps
from quorate.security.authorizer import AuthorizerConfig
from quorate.security.principal import ANONYMOUS
from quorate.wire.codec import encode
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from quorate.wire.source_decode import STEP_BYTES

HELLO = ApiVersionsRequest(client_software_name="t", client_software_version="1")
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)


@pytest.fixture(scope="module")
def world():
    world = World((1,), bootstrap=Bootstrap((encode_record(LEVEL, 0),)))
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    return world


MANY = 10 * PAUSE_EVERY


def _resource(number):
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name="retention.ms", config_operation=0, value="1")
    return resource(resource_type=2, resource_name=f"unknown{number}", configs=[change])


def _user(number):
    entry = AlterClientQuotasRequest.EntryData
    entity = entry.EntityData(entity_type="user", entity_name=f"user{number}")
    op = entry.OpData(key="producer_byte_rate", value=1.0, remove=False)
    return entry(entity=[entity], ops=[op])


LARGE = [
    (
        "topics",
        DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=f"t{i}") for i in range(MANY)],
            timeout_ms=60_000,
        ),
    ),
    ("configs", IncrementalAlterConfigsRequest(resources=[_resource(i) for i in range(MANY)])),
    (
        "configs of no kind",
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequest.AlterConfigsResource(resource_name=str(i))
                for i in range(MANY)
            ]
        ),
    ),
    (
        "all configs of no kind",
        AlterConfigsRequest(
            resources=[
                AlterConfigsRequest.AlterConfigsResource(resource_name=str(i)) for i in range(MANY)
            ]
        ),
    ),
    ("quotas", AlterClientQuotasRequest(entries=[_user(i) for i in range(MANY)])),
    (
        "quotas of nobody",
        AlterClientQuotasRequest(
            entries=[AlterClientQuotasRequest.EntryData() for _ in range(MANY)]
        ),
    ),
    (
        "refused topics",
        CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=f"t{i}", num_partitions=1, replication_factor=1
                )
                for i in range(MANY)
            ]
        ),
    ),
    (
        "passwords",
        AlterUserScramCredentialsRequest(
            deletions=[
                AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=f"u{i}")
                for i in range(MANY)
            ]
        ),
    ),
    (
        "elections in topics without partitions",
        ElectLeadersRequest(
            election_type=0,
            topic_partitions=[
                ElectLeadersRequest.TopicPartitions(topic=f"t{i}") for i in range(MANY)
            ],
            timeout_ms=60_000,
        ),
    ),
    (
        "reassignments in topics without partitions",
        AlterPartitionReassignmentsRequest(
            topics=[
                AlterPartitionReassignmentsRequest.ReassignableTopic(name=f"t{i}")
                for i in range(MANY)
            ]
        ),
    ),
    (
        "elections",
        ElectLeadersRequest(
            election_type=0,
            topic_partitions=[
                ElectLeadersRequest.TopicPartitions(topic="none", partitions=list(range(MANY)))
            ],
            timeout_ms=60_000,
        ),
    ),
]


@pytest.mark.parametrize(("name", "request_"), LARGE)
def test_reads_go_on_while_a_request_with_many_items_is_decided(world, name, request_):
    """No step decides more than PAUSE_EVERY of them; a request of 1 MiB may name 45,000."""
    got = world.call(1, request_)
    reads = 0
    while not got:
        world.ask(1, HELLO)
        reads += 1
    assert reads >= MANY // PAUSE_EVERY, name


@pytest.fixture(scope="module")
def authorizing():
    config = AuthorizerConfig(super_users=frozenset({ANONYMOUS}))
    world = World((1, 2, 3), bootstrap=Bootstrap((encode_record(LEVEL, 0),)), authorizer=config)
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    return world


@pytest.mark.parametrize(("name", "request_"), LARGE)
@pytest.mark.parametrize("on_standby", [True, False])
def test_reads_go_on_while_a_request_with_many_items_is_refused(
    authorizing, name, request_, on_standby
):
    """A standby refuses it as a whole, and the active controller one without permission: with a row for
    each item."""
    active = authorizing.leader.node_id
    node_id = active % 3 + 1 if on_standby else active
    got = authorizing.call(node_id, request_, principal=ANONYMOUS if on_standby else "User:nobody")
    reads = 0
    while not got:
        authorizing.ask(node_id, HELLO)
        reads += 1
    assert reads >= MANY // ROWS, name


def test_reads_go_on_while_what_is_in_an_envelope_is_decoded(world):
    inside = dict(LARGE)["quotas of nobody"].replace(
        entries=[AlterClientQuotasRequest.EntryData()] * 4 * STEP_BYTES
    )
    got = world.call(1, envelope(inside, 1))
    pauses = len(encode(inside, 1)) // (2 * STEP_BYTES)
    for _ in range(pauses):
        world.ask(1, HELLO)
    assert not got
    world.run_until(lambda: got)
    assert got[0].error_code == 0


def test_a_long_request_of_an_unknown_version_has_nothing_to_drop():
    assert at_once(dropped_in_steps(None)) is None
