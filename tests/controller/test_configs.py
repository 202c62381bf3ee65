"""IncrementalAlterConfigs and AlterConfigs: what is written, what is refused and why."""

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from controller.cluster import BROKER, TOPIC, Cluster
from narrow import not_none
from quorate.base.errors import ErrorCode
from quorate.controller.config_changes import MAX_VALUE, Operation
from quorate.controller.configs import (
    ALTER_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    IncrementalAlterConfigs,
)
from quorate.controller.policies import PolicyViolationError
from quorate.controller.result import MAX_RECORDS, ApiError
from quorate.formats.records import ClearElrRecord, ConfigRecord
from quorate.metadata.image import ConfigResource
from quorate.metadata.resource_types import CLIENT_METRICS_RESOURCE, GROUP_RESOURCE
from quorate.wire.messages import AlterConfigsRequest, IncrementalAlterConfigsRequest

LOGGER = 8
CLIENT_METRICS = CLIENT_METRICS_RESOURCE
GROUP = GROUP_RESOURCE
SET, DELETE, APPEND, SUBTRACT = Operation
DONE = (ErrorCode.NONE, None)


def change(cluster, *resources, validate_only=False, forwarded=False):
    """Each resource is (type, name, {config: value to set, or (operation, value)}); the outcomes."""
    cls = IncrementalAlterConfigsRequest.AlterConfigsResource
    message = IncrementalAlterConfigsRequest(
        resources=[
            cls(
                resource_type=kind,
                resource_name=name,
                configs=[
                    cls.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, (operation, value) in changes(configs)
                ],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    request = IncrementalAlterConfigs(message)
    response = INCREMENTAL_ALTER_CONFIGS.empty(request)
    if response is None:
        response = cluster.decide(INCREMENTAL_ALTER_CONFIGS, request, 1, forwarded=forwarded)
    return [(ErrorCode(one.error_code), one.error_message) for one in response.responses]


def changes(configs):
    return [(k, v if isinstance(v, tuple) else (SET, v)) for k, v in configs.items()]


def replace(cluster, *resources, validate_only=False):
    cls = AlterConfigsRequest.AlterConfigsResource
    request = AlterConfigsRequest(
        resources=[
            cls(
                resource_type=kind,
                resource_name=name,
                configs=[cls.AlterableConfig(name=k, value=v) for k, v in configs.items()],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    response = ALTER_CONFIGS.empty(request) or cluster.decide(ALTER_CONFIGS, request, 2)
    return [(ErrorCode(one.error_code), one.error_message) for one in response.responses]


def configs(cluster, kind, name):
    return dict(cluster.image.configs.get(ConfigResource(kind, name), {}))


@pytest.fixture
def cluster():
    cluster = Cluster(1)
    cluster.create("orders", 1, 1)
    return cluster


# -- what is written ------------------------------------------------------------------------------
@kafka_scenario("QuorumControllerTest", "configurationOperations")
@kafka_scenario(
    "ConfigurationControlManagerTest", "incrementalAlterConfigs", "incrementalAlterConfig", "replay"
)
def test_configs_of_several_resources_change_together(cluster):
    assert (
        change(
            cluster,
            (TOPIC, "orders", {"retention.ms": "5", "segment.ms": "7"}),
            (BROKER, "", {"background.threads": "3"}),
            (CLIENT_METRICS, "all", {"metrics": "*"}),
            (GROUP, "workers", {"consumer.session.timeout.ms": "50000"}),
        )
        == [DONE] * 4
    )
    assert configs(cluster, TOPIC, "orders") == {"retention.ms": "5", "segment.ms": "7"}
    change(cluster, (TOPIC, "orders", {"retention.ms": (DELETE, None), "segment.ms": "8"}))
    assert configs(cluster, TOPIC, "orders") == {"segment.ms": "8"}
    change(cluster, (TOPIC, "orders", {"segment.ms": None}))
    assert ConfigResource(TOPIC, "orders") not in cluster.image.configs


def test_a_value_that_is_there_already_is_written_only_for_brokers(cluster):
    both = (
        (TOPIC, "orders", {"retention.ms": "5", "segment.ms": (DELETE, None)}),
        (BROKER, "1", {"background.threads": "3"}),
    )
    change(cluster, *both)
    change(cluster, *both)
    assert [(record.resource_type, record.value) for record in cluster.records] == [(BROKER, "3")]


def test_a_change_is_only_tried_out(cluster):
    assert change(cluster, (TOPIC, "orders", {"retention.ms": "5"}), validate_only=True) == [DONE]
    assert replace(cluster, (TOPIC, "orders", {"retention.ms": "5"}), validate_only=True) == [DONE]
    assert not cluster.image.configs


@kafka_scenario("ConfigurationControlManagerTest", "incrementalAlterMultipleConfigValues")
@kafka_scenario("KafkaConfigSchemaTest", "getConfigValueDefault")
@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        (None, APPEND, "compact", "delete,compact"),
        ("compact", APPEND, "delete", "compact,delete"),
        ("compact", APPEND, "compact", "compact"),
        ("compact,delete", SUBTRACT, "delete", "compact"),
        ("compact,delete", SUBTRACT, "delete,compact,other", ""),
        ("delete", APPEND, "compact,,", "delete,compact"),
        (None, SUBTRACT, "delete", ""),
        ("compact", APPEND, ",", "compact"),
    ],
)
def test_lists_grow_and_shrink(cluster, before, operation, value, after):
    """From the default where the config is not set."""
    if before is not None:
        change(cluster, (TOPIC, "orders", {"cleanup.policy": before}))
    changed = {"cleanup.policy": (operation, value)}
    assert change(cluster, (TOPIC, "orders", changed)) == [DONE]
    assert configs(cluster, TOPIC, "orders")["cleanup.policy"] == after


@kafka_scenario("KafkaConfigSchemaTest", "isSplittable")
@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [
        (TOPIC, "orders", "retention.ms"),
        (TOPIC, "orders", "no.such.config"),
        (BROKER, "", "background.threads"),
        (CLIENT_METRICS, "all", "metrics"),  # Kafka's controller has no schema of these
    ],
)
def test_only_lists_grow(cluster, kind, name, key):
    text = f"Can't APPEND to key {key} because its type is not LIST."
    outcome = (ErrorCode.INVALID_CONFIG, text)
    assert change(cluster, (kind, name, {key: (APPEND, "1")})) == [outcome]


def test_an_operation_that_means_nothing_is_refused(cluster):
    [(error, text)] = change(cluster, (TOPIC, "orders", {"cleanup.policy": (9, "a")}))
    assert error == ErrorCode.INVALID_REQUEST and "Unknown operation type 9" in text
    [(error, text)] = change(cluster, (TOPIC, "orders", {"cleanup.policy": (APPEND, None)}))
    assert error == ErrorCode.INVALID_REQUEST and "Null value" in text


@kafka_scenario("ConfigurationControlManagerTest", "legacyAlterConfigs")
def test_alter_configs_leaves_only_what_it_names(cluster):
    change(cluster, (TOPIC, "orders", {"retention.ms": "5", "segment.ms": "7"}))
    wanted = {"segment.ms": "7", "max.message.bytes": "9"}
    assert replace(cluster, (TOPIC, "orders", wanted)) == [DONE]
    assert [(record.name, record.value) for record in cluster.records] == [
        ("max.message.bytes", "9"),
        ("retention.ms", None),
    ]
    assert configs(cluster, TOPIC, "orders") == wanted
    assert replace(cluster, (TOPIC, "orders", {})) == [DONE]
    assert not cluster.image.configs


def test_all_or_nothing_of_a_resource_changes(cluster):
    cluster.create("other", 1, 1)
    outcomes = change(
        cluster,
        (TOPIC, "orders", {"retention.ms": "5", "segment.ms": "x"}),
        (TOPIC, "other", {"retention.ms": "5"}),
    )
    text = "Invalid value x for configuration segment.ms: Not a number of type LONG"
    assert outcomes == [(ErrorCode.INVALID_CONFIG, text), DONE]
    assert configs(cluster, TOPIC, "orders") == {}
    assert configs(cluster, TOPIC, "other") == {"retention.ms": "5"}


@kafka_scenario(
    "EventHandlerExceptionInfoTest",
    "boundedListTooLongExceptionInfo",
    "boundedListTooLongExceptionFailureMessage",
)
def test_too_many_changes_fail_together(cluster):
    resources = [(GROUP, str(i), {"consumer.session.timeout.ms": "50000"}) for i in range(10_001)]
    with pytest.raises(ApiError, match="excessively large batch") as refused:
        change(cluster, *resources)
    assert refused.value.error == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize("kind", [TOPIC, GROUP, BROKER])
def test_more_configs_of_a_resource_than_a_batch_holds_are_refused_unseen(cluster, kind):
    values = {f"c{number}": "1" for number in range(MAX_RECORDS + 1)}
    name = {TOPIC: "orders", GROUP: "g", BROKER: ""}[kind]
    before = cluster.image
    for alter in (change, replace):
        with pytest.raises(ApiError, match="excessively large batch") as refused:
            alter(cluster, (kind, name, values))
        assert refused.value.error == ErrorCode.POLICY_VIOLATION
    assert cluster.image is before


# -- the request ----------------------------------------------------------------------------------
@kafka_scenario(
    "ControllerApisTest",
    "handleLegacyAlterConfigsErrors",
    "invalidIncrementalAlterConfigsResources",
)
@kafka_scenario("ControllerConfigurationValidatorTest", "unknownResourceType")
def test_resources_that_are_refused_to_everyone(cluster):
    duplicate = (TOPIC, "orders", {"retention.ms": "5"})
    outcomes = change(cluster, duplicate, (3, "x", {}), (GROUP, "g", {}), duplicate)
    assert sorted(outcomes, key=str) == sorted(
        [
            (ErrorCode.UNSUPPORTED_VERSION, "Unknown resource type 3."),
            (ErrorCode.INVALID_REQUEST, "Duplicate resource."),
            DONE,
        ],
        key=str,
    )
    assert not cluster.image.configs
    text = "Unexpected resource type BROKER_LOGGER."
    assert replace(cluster, (LOGGER, "1", {})) == [(ErrorCode.INVALID_REQUEST, text)]


def test_any_node_answers_a_request_that_changes_nothing():
    message = IncrementalAlterConfigsRequest()
    assert (
        not_none(INCREMENTAL_ALTER_CONFIGS.empty(IncrementalAlterConfigs(message))).responses == []
    )
    assert not_none(ALTER_CONFIGS.empty(AlterConfigsRequest())).responses == []


@kafka_scenario("QuorumControllerTest", "configResourceExistenceChecker")
@pytest.mark.parametrize(
    ("kind", "name", "error", "text"),
    [
        (TOPIC, "", ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        (
            TOPIC,
            "(<-invalid->)",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: '(<-invalid->)' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            TOPIC,
            "missing",
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'missing' does not exist.",
        ),
        (
            BROKER,
            "blah",
            ErrorCode.INVALID_REQUEST,
            "Unable to parse broker name as a base 10 number.",
        ),
        (BROKER, "-1", ErrorCode.INVALID_REQUEST, "Invalid negative broker ID."),
        (BROKER, "7", ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 7 found."),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        (GROUP, "", ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
    ],
)
@kafka_scenario("ConfigurationControlManagerTest", "incrementalAlterConfigsWithoutExistence")
@kafka_scenario(
    "ControllerConfigurationValidatorTest",
    "defaultTopicResourceIsRejected",
    "invalidTopicNameRejected",
    "invalidBrokerEntity",
    "invalidNegativeBrokerId",
    "invalidSubscriptionNameClientMetricsConfig",
    "invalidGroupNameGroupConfig",
)
def test_a_resource_that_cannot_have_configs(cluster, kind, name, error, text):
    assert change(cluster, (kind, name, {})) == [(error, text)]
    assert replace(cluster, (kind, name, {})) == [(error, text)]


# -- rules between a config and the cluster ---------------------------------------------------------
@kafka_scenario("ConfigurationControlManagerTest", "rejectMinIsrChangeWhenElrEnabled")
def test_with_elr_brokers_agree_on_min_insync_replicas():
    cluster = Cluster(2, elr=True)
    cluster.create("orders", 1, 2)
    key = "min.insync.replicas"
    refused = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    assert change(cluster, (BROKER, "1", {key: "1"})) == [(ErrorCode.INVALID_CONFIG, refused)]
    assert change(cluster, (BROKER, "", {key: "2"})) == [DONE]
    assert cluster.records[1:] == [ClearElrRecord(topic_name="")]
    refused = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert change(cluster, (BROKER, "", {key: (DELETE, None)})) == [
        (ErrorCode.INVALID_CONFIG, refused)
    ]
    assert replace(cluster, (BROKER, "", {})) == [(ErrorCode.INVALID_CONFIG, refused)]
    assert change(cluster, (TOPIC, "orders", {key: "1"})) == [DONE]
    assert cluster.records[1:] == [ClearElrRecord(topic_name="orders")]
    cluster.create("other", 1, 2, configs={key: "2"})
    assert ClearElrRecord(topic_name="other") in cluster.records


def test_without_elr_min_insync_replicas_is_a_config_like_others(cluster):
    assert change(cluster, (BROKER, "1", {"min.insync.replicas": "1"})) == [DONE]
    assert [type(record) for record in cluster.records] == [ConfigRecord]


@kafka_scenario(
    "ConfigurationControlManagerTest", "cordonedLogDirsFeature", "isCordonedLogDirsDisabled"
)
def test_cordoned_directories_need_a_level_that_knows_them():
    text = (
        "The cordoned.log.dirs configuration value cannot be set because it requires "
        "metadata.version >= 4.3-IV0"
    )
    for value in ("/a", (DELETE, None)):
        asked = (BROKER, "1", {"cordoned.log.dirs": value})
        refused = change(Cluster(1, level=29), asked, forwarded=True)
        assert refused == [(ErrorCode.INVALID_CONFIG, text)]
        assert change(Cluster(1, level=30), asked, forwarded=True) == [DONE]


@kafka_scenario("ConfigurationControlManagerTest", "isCordonedLogDirsInvalid")
def test_a_controller_that_is_asked_itself_only_uncordons_directories(cluster):
    def cordon(value, forwarded=False):
        return change(cluster, (BROKER, "1", {"cordoned.log.dirs": value}), forwarded=forwarded)

    refused = (
        ErrorCode.INVALID_CONFIG,
        "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the "
        "current configuration value.",
    )
    assert cordon("/a") == [refused]
    assert cordon("/a, /b", forwarded=True) == [DONE]
    assert cordon("/a,/c") == [refused]
    assert cordon(" /b ") == [DONE]
    assert cordon("") == [DONE]


def test_a_value_is_at_most_as_long_as_kafkas_records_allow(cluster):
    key = "ssl.cipher.suites"
    text = (
        "The configuration value cannot be added because it exceeds the maximum value size of "
        "32767 bytes."
    )
    assert change(cluster, (BROKER, "", {key: "x" * MAX_VALUE})) == [DONE]
    grown = change(cluster, (BROKER, "", {key: (APPEND, "y")}))
    assert grown == [(ErrorCode.INVALID_CONFIG, text)]


@pytest.mark.parametrize("letter", ["\xe9", "\u20ac", "\U0001f600"])
def test_the_length_of_a_value_is_counted_in_utf_8(cluster, letter):
    def append(value):
        return change(cluster, (BROKER, "", {"ssl.cipher.suites": (APPEND, value)}))

    half = letter * (MAX_VALUE // 2 // len(letter.encode()))
    assert append(half) == [DONE]
    [(error, text)] = append(f"{half}{letter}{letter}")
    assert error is ErrorCode.INVALID_CONFIG and text.endswith("32767 bytes.")
    assert append("x") == [DONE]


@kafka_scenario("ConfigurationControlManagerTest", "incrementalAlterConfigsWithPolicy")
def test_a_policy_sees_what_is_altered_and_may_refuse_it():
    asked = []

    def policy(change):
        asked.append(change)
        if change.configs.get("retention.ms") == "0":
            raise PolicyViolationError("keep something")
        if "segment.ms" in change.configs:
            raise RuntimeError("a defect of the policy")

    cluster = Cluster(1, alter_config_policy=policy)
    cluster.create("orders", 1, 1, configs={"max.message.bytes": "9"})
    assert change(
        cluster,
        (TOPIC, "orders", {"retention.ms": "0"}),
        (BROKER, "", {"segment.ms": "1"}),
        (GROUP, "g", {}),
    ) == [
        (ErrorCode.POLICY_VIOLATION, "keep something"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, None),
        DONE,
    ]
    replace(cluster, (TOPIC, "orders", {"retention.ms": "7"}))
    assert [(one.resource_type, one.resource_name, one.configs) for one in asked] == [
        (TOPIC, "orders", {"max.message.bytes": "9"}),
        (TOPIC, "orders", {"retention.ms": "0"}),
        (BROKER, "", {"segment.ms": "1"}),
        (GROUP, "g", {}),
        (TOPIC, "orders", {"retention.ms": "7"}),  # not the removal that was not named
    ]


# -- configs that Kafka no longer knows --------------------------------------------------------------
@kafka_guarantee(
    "MetadataLoaderTest",
    "unsupportedConfigFilteredInCommit",
    "unsupportedConfigFilteredInSnapshot",
)
@kafka_scenario(
    "ConfigurationControlManagerTest",
    "replayFiltersInvalidConfigs",
    "validateAlterConfigWithInvalidExistingConfigs",
)
@kafka_guarantee("MetadataBatchLoaderTest", "unsupportedConfigFilteredInBatch")
def test_a_config_of_an_older_release_does_not_hinder_a_change(cluster):
    """The image keeps it, so that it can be read and removed."""
    cluster.configure(TOPIC, "orders", message_format_version="2.8", retention_ms="5")
    assert change(cluster, (TOPIC, "orders", {"segment.ms": "7"})) == [DONE]
    assert replace(cluster, (TOPIC, "orders", {"segment.ms": "7"})) == [DONE]
    found = {"message.format.version": "2.8", "segment.ms": "7"}
    assert configs(cluster, TOPIC, "orders") == found
    removed = {"message.format.version": (DELETE, None)}
    assert change(cluster, (TOPIC, "orders", removed)) == [DONE]
    assert configs(cluster, TOPIC, "orders") == {"segment.ms": "7"}
