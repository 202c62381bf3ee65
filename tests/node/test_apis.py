"""Requests to one controller: ApiVersions, features, registration, envelopes, refusals."""

import struct

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from node.world import LISTENER, World
from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.activation import Bootstrap
from quorate.controller.context import ControllerConfig
from quorate.formats.records import ConfigRecord, FeatureLevelRecord, encode_record
from quorate.node.apis import served
from quorate.node.node_io import NodeEffects
from quorate.node.requests import Call
from quorate.wire.codec import encode
from quorate.wire.header import WireRequest, decode_response, encode_request
from quorate.wire.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    ControllerRegistrationRequest,
    DefaultPrincipalData,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    EnvelopeRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    MetadataRequest,
    UpdateFeaturesRequest,
    VoteRequest,
)
from quorate.wire.registry import CONTROLLER_API_VERSIONS

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")


def bootstrap(**levels):
    records = [
        FeatureLevelRecord(name=name.replace("_", "."), feature_level=level)
        for name, level in levels.items()
    ]
    return Bootstrap(tuple(encode_record(record, 0) for record in records))


@pytest.fixture
def world():
    world = World(bootstrap=bootstrap(metadata_version=20, group_version=1))
    world.run_until(
        lambda: world.active and set(world.active.image.cluster.controllers) == {1, 2, 3}
    )
    world.run(100)
    return world


@pytest.fixture
def follower(world):
    return next(n for n in world.alive if n is not world.active)


# -- another partition, another cluster ----------------------------------------------------------
@kafka_scenario("ControllerApisTest", "fetchSentToKRaft")
@pytest.mark.parametrize(
    "request_",
    [VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest, FetchRequest],
)
@pytest.mark.parametrize(
    ("cluster_id", "error"),
    [
        (None, ErrorCode.INVALID_REQUEST),
        ("another", ErrorCode.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_the_cluster_is_checked_before_the_partition(world, request_, cluster_id, error):
    nothing = request_(cluster_id=cluster_id)
    assert world.ask(world.active.node_id, nothing).error_code == error


@kafka_scenario("ControllerApisTest", "fetchSnapshotSentToKRaft")
def test_another_cluster_is_refused_before_an_unknown_partition(world):
    topic = FetchSnapshotRequest.TopicSnapshot
    other = FetchSnapshotRequest(
        cluster_id="another", topics=[topic(name="x", partitions=[topic.PartitionSnapshot()])]
    )
    answer = world.ask(world.active.node_id, other)
    assert (answer.error_code, answer.topics) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])


@pytest.mark.parametrize("version", [4, 7, 11, 12])
def test_a_fetch_without_a_topic_id_is_refused(world, version):
    """Before version 13 (`RaftUtil.hasValidTopicPartition`); before 7 a response has no error."""
    topic = FetchRequest.FetchTopic
    partitions = [topic.FetchPartition(partition=0)]
    topics = [topic(topic="__cluster_metadata", partitions=partitions)]
    fetch = FetchRequest(replica_id=2, max_wait_ms=0, topics=topics)
    answer = world.ask(world.active.node_id, fetch, version)
    assert answer.error_code == (ErrorCode.INVALID_REQUEST if version >= 7 else ErrorCode.NONE)
    assert answer.responses == []


@kafka_guarantee("ControllerApisTest", "completableFutureExceptions")
def test_a_response_that_its_version_cannot_encode_closes_the_connection():
    """Before version 12 a Fetch response has no field for the leader."""
    topic = FetchResponse.FetchableTopicResponse
    leader = topic.PartitionData.LeaderIdAndEpoch(leader_id=1, leader_epoch=1)
    partition = topic.PartitionData(current_leader=leader)
    effects, fetch = NodeEffects(), FetchRequest()
    call = Call(5, WireRequest(1, 11, 9, None, fetch), LISTENER)
    effects.answer(call, FetchResponse(responses=[topic(partitions=[partition])]))
    (closed,) = effects.closed
    assert closed.token == 5 and effects.answers == []
    assert closed.reason.startswith("its response cannot be encoded: FetchResponse v11")


# -- ApiVersions ------------------------------------------------------------------------------
def test_api_versions_advertises_what_is_served(world):
    answer = world.ask(1, HELLO)
    advertised = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert advertised == {key: (low, high) for key, low, high in served()}
    assert all(CONTROLLER_API_VERSIONS[key] == advertised[key] for key in advertised)


def test_api_versions_has_the_ranges_and_levels_of_features(world):
    answer = world.ask(1, HELLO)
    ranges = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    assert ranges["kraft.version"] == (0, 1) and ranges["metadata.version"] == (7, 33)
    levels = {f.name: (f.min_version_level, f.max_version_level) for f in answer.finalized_features}
    assert levels == {"metadata.version": (20, 20), "group.version": (1, 1)}
    assert answer.finalized_features_epoch == world.nodes[1].controller.image_offset > 0


def test_before_version_4_a_feature_that_begins_at_zero_is_left_out(world):
    answer = world.ask(1, HELLO, 3)
    assert [f.name for f in answer.supported_features] == ["metadata.version"]


def test_an_unknown_version_is_answered_in_version_0(world):
    got = []
    token = world._answer_to(lambda frame: got.append(decode_response(frame, 18, 0)[1]))
    world.give(1, Call(token, WireRequest(18, 99, 5, None, None), LISTENER))
    world.run(2)
    assert got[0].error_code == ErrorCode.UNSUPPORTED_VERSION  # type: ignore[attr-defined]
    assert [(a.api_key, a.max_version) for a in got[0].api_keys] == [(18, 5)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["", "-x", "x.", "a b", "ünder"])
def test_an_invalid_client_name_is_refused(world, name):
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert world.ask(1, request).error_code == ErrorCode.INVALID_REQUEST
    assert world.ask(1, request, 2).error_code == ErrorCode.NONE


# -- registration -----------------------------------------------------------------------------
def registration(node_id):
    cls = ControllerRegistrationRequest
    return cls(
        controller_id=node_id,
        incarnation_id=Uuid(bytes([node_id]) * 16),
        listeners=[cls.Listener(name="CONTROLLER", host="there", port=9)],
        features=[
            cls.Feature(name="metadata.version", min_supported_version=7, max_supported_version=25)
        ],
    )


def test_a_registration_is_answered_when_it_is_committed(world):
    answer = world.ask(world.active.node_id, registration(9))
    assert answer.error_code == ErrorCode.NONE
    controller = world.active.image.cluster.controllers[9]
    assert controller.listeners[0][:3] == ("CONTROLLER", "there", 9)


def test_only_the_active_controller_registers(world, follower):
    answer = world.ask(follower.node_id, registration(9))
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


def test_a_leader_whose_registration_was_replaced_registers_again(world):
    """Otherwise DescribeCluster would name no controller until the leader restarts."""
    leader = world.active
    impostor = registration(leader.node_id)
    impostor.listeners[0].name = "OTHER"
    world.ask(leader.node_id, impostor)
    world.run(6000)
    assert world.active is leader
    found = world.ask(leader.node_id, DescribeClusterRequest(endpoint_type=2))
    assert found.controller_id == leader.node_id


@pytest.mark.parametrize(("asked", "expected"), [(True, 8096), (False, -(2**31))])
def test_authorized_operations_are_described_on_request(world, asked, expected):
    """As Kafka's controller without an authorizer: all operations."""
    request = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=asked)
    answer = world.ask(world.active.node_id, request)
    assert answer.cluster_authorized_operations == expected


@pytest.mark.parametrize("protocol", [-32768, -1, 4, 32767])
def test_a_registration_that_no_node_could_apply_is_refused(world, protocol):
    """Committed, it would end every node of the quorum, and again at each start."""
    request = registration(9)
    request.listeners[0].security_protocol = protocol
    answer = world.ask(world.active.node_id, request)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert 9 not in world.active.image.cluster.controllers


@pytest.mark.parametrize("change", [{"port": 0}, {"host": ""}])
def test_a_registration_without_an_address_is_refused(world, change):
    """Admin clients would be sent there; Kafka's controller refuses it too."""
    request = registration(9)
    for name, value in change.items():
        setattr(request.listeners[0], name, value)
    answer = world.ask(world.active.node_id, request)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == ErrorCode.INVALID_REQUEST.message
    assert 9 not in world.active.image.cluster.controllers


@kafka_scenario("ClusterControlManagerTest", "registerControlWithUnsupportedMetadataVersion")
def test_registration_needs_a_metadata_version_that_knows_it():
    world = World(bootstrap=bootstrap(metadata_version=14))
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    answer = world.ask(world.leader.node_id, registration(9))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    answer = world.ask(world.leader.node_id, DescribeClusterRequest(endpoint_type=2))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


# -- features ---------------------------------------------------------------------------------
def update(*updates, validate_only=False):
    key = UpdateFeaturesRequest.FeatureUpdateKey
    return UpdateFeaturesRequest(
        feature_updates=[
            key(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ],
        validate_only=validate_only,
    )


UP, SAFE, UNSAFE = 1, 2, 3


def levels_of(world):
    features = world.active.image.features
    return int(features.metadata_version), dict(features.levels)


@kafka_scenario(
    "FeatureControlManagerTest",
    "updateFeatures",
    "replay",
    "replayRecords",
    "canUpgradeToHigherVersion",
)
@kafka_scenario("FeatureControlManagerTest", "applyMetadataVersionChangeRecord")
def test_levels_go_up_together(world):
    request = update(("metadata.version", 24, UP), ("transaction.version", 2, UP))
    assert world.ask(world.active.node_id, request).error_code == ErrorCode.NONE
    assert levels_of(world) == (24, {"group.version": 1, "transaction.version": 2})


def test_an_update_is_decided_on_the_levels_that_are_being_written(world):
    """Or the second upgrade, decided on level 20, would lower what the first has written."""
    first, second = (
        world.call(world.active.node_id, update(("metadata.version", level, UP)))
        for level in (24, 21)
    )
    world.run_until(lambda: first and second)
    assert first[0].error_code == ErrorCode.NONE
    assert "without setting the upgrade type" in second[0].error_message
    assert levels_of(world)[0] == 24
    again = world.ask(world.active.node_id, update(("metadata.version", 25, UP)))
    assert (again.error_code, levels_of(world)[0]) == (ErrorCode.NONE, 25)


def test_up_to_version_1_every_feature_has_its_own_result(world):
    answer = world.ask(world.active.node_id, update(("metadata.version", 21, UP)), 1)
    assert [(r.feature, r.error_code) for r in answer.results] == [("metadata.version", 0)]


def test_validate_only_changes_nothing(world):
    request = update(("metadata.version", 24, UP), validate_only=True)
    assert world.ask(world.active.node_id, request).error_code == ErrorCode.NONE
    assert levels_of(world)[0] == 20


@kafka_scenario("FeatureControlManagerTest", "createFeatureLevelRecords")
def test_a_feature_goes_down_when_it_is_said_to(world):
    request = update(("group.version", 0, SAFE))
    assert world.ask(world.active.node_id, request).error_code == ErrorCode.NONE
    assert levels_of(world)[1] == {}


def test_version_0_cannot_downgrade_a_feature(world):
    """Kafka's controller ignores AllowDowngrade: without an upgrade type, an update is an UPGRADE."""
    request = update(("group.version", 0, UP))
    request.feature_updates[0].allow_downgrade = True
    answer = world.ask(world.active.node_id, request, 0)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "without setting the upgrade type" in answer.error_message
    assert levels_of(world)[1] == {"group.version": 1}


@kafka_scenario("FeatureControlManagerTest", "canUseSafeDowngradeIfMetadataDidNotChange")
def test_the_metadata_version_goes_down_where_no_metadata_is_lost(world):
    request = update(("metadata.version", 18, SAFE))
    assert world.ask(world.active.node_id, request).error_code == ErrorCode.NONE
    assert levels_of(world)[0] == 18


@kafka_scenario("QuorumFeaturesTest", "localSupportedFeature", "reasonNotSupported")
@kafka_scenario(
    "FeatureControlManagerTest",
    "updateFeatures",
    "cannotDowngradeToHigherVersion",
    "cannotUnsafeDowngradeToHigherVersion",
    "cannotUpgradeToLowerVersion",
    "cannotUseSafeDowngradeIfMetadataChanged",
    "unsafeDowngradeIsTemporarilyDisabled",
    "cannotDowngradeBeforeMinimumKraftVersion",
)
@kafka_guarantee("FeatureControlManagerTest", "canUseUnsafeDowngradeIfMetadataChanged")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("metadata.version", 6, UNSAFE), "only supports versions 7-33"),
        (("metadata.version", 21, UNSAFE), "downgrade to a newer version"),
        (("metadata.version", 99, UP), "only supports versions 7-33"),
        (("metadata.version", 18, UP), "without setting the upgrade type"),
        (("metadata.version", 16, SAFE), "might delete metadata"),
        (("metadata.version", 16, UNSAFE), "not supported in this version"),
        (("metadata.version", 21, SAFE), "downgrade to a newer version"),
        (("group.version", -1, SAFE), "cannot be less than 0"),
        (("group.version", 1, 9), "does not support the given upgrade type"),
        (("eligible.leader.replicas.version", 1, UP), "metadata.version"),
        (("no.such.feature", 1, UP), "does not support this feature"),
        (("no.such.feature", 0, SAFE), "Feature no.such.feature not found."),
        (("kraft.version", 2, UP), "only supports versions 0-1"),
    ],
)
def test_an_update_that_cannot_be(world, change, why):
    answer = world.ask(world.active.node_id, update(change))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert why in answer.error_message and "failed for all features" in answer.error_message
    assert levels_of(world) == (20, {"group.version": 1})


def test_of_a_feature_that_is_named_twice_the_last_counts(world):
    request = update(("metadata.version", 99, UP), ("metadata.version", 21, UP))
    assert world.ask(world.active.node_id, request).error_code == ErrorCode.NONE
    assert levels_of(world)[0] == 21


def min_insync(broker, value):
    return ConfigRecord(
        resource_type=4, resource_name=broker, name="min.insync.replicas", value=value
    )


@kafka_scenario("ConfigurationControlManagerTest", "maybeGenerateElrSafetyRecords", "elrUpgrade")
@kafka_scenario("FeatureControlManagerTest", "upgradeElrFeatureLevel")
@pytest.mark.parametrize(("of_all", "then"), [(None, "1"), ("2", "2")])
def test_with_eligible_leader_replicas_all_brokers_need_as_many_in_sync(of_all, then):
    """As Kafka's controller: the cluster gets its own min.insync.replicas, a broker loses its."""
    first = bootstrap(metadata_version=25)
    configs = [min_insync("5", "3"), *([] if of_all is None else [min_insync("", of_all)])]
    values = [encode_record(record, 0) for record in configs]
    world = World(bootstrap=Bootstrap((*first.values, *values)))
    world.run_until(
        lambda: world.active and set(world.active.image.cluster.controllers) == {1, 2, 3}
    )
    request = update(("eligible.leader.replicas.version", 1, UP))
    assert world.ask(world.leader.node_id, request).error_code == ErrorCode.NONE
    found = world.leader.image.configs
    assert {resource.name: dict(found[resource]) for resource in found} == {
        "": {"min.insync.replicas": then}
    }


def test_every_registered_controller_must_know_the_level(world):
    world.ask(world.active.node_id, registration(9))
    answer = world.ask(world.active.node_id, update(("metadata.version", 26, UP)))
    assert "Controller 9 only supports versions 7-25" in answer.error_message


@kafka_scenario("QuorumFeaturesTest", "isControllerId")
def test_a_voter_that_never_registered_may_not_know_the_level():
    world = World(bootstrap=bootstrap(metadata_version=20))
    world.run_until(lambda: world.active)
    absent = next(n for n in world.alive if n is not world.active).node_id
    world.cut.add(absent)
    world.run_until(lambda: len(world.leader.image.cluster.controllers) == 2)
    answer = world.ask(world.leader.node_id, update(("metadata.version", 21, UP)))
    assert f"controller {absent} has not registered" in answer.error_message


def test_no_kraft_version_is_raised_where_another_feature_is_refused(world):
    """Kafka raises it (decision 7). It comes first: the order is that of a Java hash map."""
    answer = world.ask(
        world.active.node_id, update(("kraft.version", 1, UP), ("share.version", 1, UNSAFE))
    )
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "share.version. Can't downgrade to a newer version." in answer.error_message
    world.run(1_000)
    assert world.active.core.voters.kraft_version == 0


def test_kraft_version_is_upgraded_in_the_log(world):
    world.run(3000)
    for validate_only in (True, False):
        request = update(("kraft.version", 1, UP), validate_only=validate_only)
        assert world.ask(world.active.node_id, request).error_code == ErrorCode.NONE
        assert world.active.core.voters.kraft_version == (0 if validate_only else 1)
    world.run(200)
    levels = {f.name: f.max_version_level for f in world.ask(1, HELLO).finalized_features}
    assert levels["kraft.version"] == 1
    answer = world.ask(world.active.node_id, update(("kraft.version", 0, SAFE)))
    assert "Can't downgrade" in answer.error_message


def test_an_upgrade_with_another_feature_waits_for_both(world):
    world.run(3000)
    request = update(("kraft.version", 1, UP), ("metadata.version", 21, UP))
    assert world.ask(world.active.node_id, request).error_code == ErrorCode.NONE
    assert levels_of(world)[0] == 21 and world.active.core.voters.kraft_version == 1


def test_only_the_active_controller_updates(world, follower):
    answer = world.ask(follower.node_id, update(("metadata.version", 21, UP)))
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    active = world.active.node_id
    assert answer.error_message == f"The active controller appears to be node {active}."


# -- envelopes and unknown APIs ----------------------------------------------------------------
PRINCIPAL = b"\0\0" + encode(DefaultPrincipalData(type="User", name="ANONYMOUS"), 0)


def envelope(message, version, **fields):
    frame = encode_request(message, version, 77, "admin")
    return EnvelopeRequest(
        request_data=frame[4:],
        client_host_address=bytes(4),
        **{"request_principal": PRINCIPAL, **fields},
    )


def describe():
    topic = DescribeQuorumRequest.TopicData
    part = topic.PartitionData()
    return DescribeQuorumRequest(topics=[topic(topic_name="__cluster_metadata", partitions=[part])])


def test_an_envelope_is_opened_and_its_answer_wrapped(world):
    answer = world.ask(world.active.node_id, envelope(describe(), 2))
    assert answer.error_code == ErrorCode.NONE
    correlation, inner = decode_response(answer.response_data, 55, 2)
    assert correlation == 77
    assert inner.topics[0].partitions[0].leader_id == world.active.node_id  # type: ignore[attr-defined]


def test_a_standby_refuses_the_envelope_itself(world, follower):
    message = update(("metadata.version", 21, UP))
    # CreateTopics is not served by any Quorate node, DescribeQuorum's refusal is of another kind.
    for inside in (
        envelope(message, 2),
        envelope(MetadataRequest(), 12),
        envelope(describe(), 2),
    ):
        answer = world.ask(follower.node_id, inside)
        assert answer.error_code == ErrorCode.NOT_CONTROLLER and answer.response_data is None


def test_a_refusal_of_the_core_is_the_inner_response(world):
    foreign = envelope(AddRaftVoterRequest(cluster_id="another"), 1)
    inner = decode_response(world.ask(world.active.node_id, foreign).response_data, 80, 1)[1]
    assert inner.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (envelope(VoteRequest(), 2), ErrorCode.INVALID_REQUEST),
        (
            EnvelopeRequest(request_data=b"nonsense", request_principal=PRINCIPAL),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            EnvelopeRequest(
                request_data=b"nonsense",
                client_host_address=bytes(16),
                request_principal=PRINCIPAL,
            ),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        *(
            (
                envelope(describe(), 2, request_principal=of),
                ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            )
            for of in (None, b"", b"\0", b"\0\1" + PRINCIPAL[2:], PRINCIPAL[:-2])
        ),
        (
            EnvelopeRequest(
                request_data=struct.pack(">hhih", 55, 2, 1, -1).ljust(65_537, b"\0"),
                client_host_address=bytes(16),
                request_principal=PRINCIPAL,
            ),
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_an_envelope_that_is_refused(world, request_, error):
    assert world.ask(world.active.node_id, request_).error_code == error


def test_an_api_that_is_not_served_closes_the_connection(world):
    world.call(1, MetadataRequest())
    world.run(2)
    assert ["not served" in reason for reason in world.closed.values()] == [True]


def test_a_level_that_is_not_committed_is_not_reported_as_in_force(world):
    """To "lower" kraft.version to what the log says already takes no record: only its commit."""
    world.run(3000)
    leader = world.active
    world.cut |= {n.node_id for n in world.alive if n is not leader}
    raised = world.call(leader.node_id, update(("kraft.version", 1, UP)))
    world.run(5)
    lowered = world.call(leader.node_id, update(("kraft.version", 1, SAFE)))
    world.run(100)
    assert leader.core.voters.kraft_version == 1
    assert (raised, lowered) == ([], [])
    world.cut.clear()
    world.run_until(lambda: raised and lowered)
    assert raised[0].error_code == lowered[0].error_code == ErrorCode.NONE


def test_a_leader_sleeps_while_a_change_of_kraft_version_waits_for_its_commit(world):
    """Its own writes are due meanwhile, and wait for the end of the decision."""
    world.run(3000)
    leader = world.active
    world.cut |= {n.node_id for n in world.alive if n is not leader}
    changed = world.call(leader.node_id, update(("kraft.version", 1, UP)))
    world.run(ControllerConfig(1, "").max_idle_ms + 100)
    assert changed == []
    steps = 0
    step = leader.controller.step

    def counted(*arguments):
        nonlocal steps
        steps += 1
        return step(*arguments)

    leader.controller.step = counted
    world.run(100)
    assert steps < 10 and leader.wake_at_ms > world.now_ms


def test_an_update_in_doubt_is_answered_with_not_controller(world):
    leader = world.active
    world.cut |= {n.node_id for n in world.alive if n is not leader}
    lost = world.call(leader.node_id, update(("metadata.version", 24, UP)))
    world.run_until(lambda: lost)
    assert lost[0].error_code == ErrorCode.NOT_CONTROLLER
    assert lost[0].error_message == "No controller appears to be active."
