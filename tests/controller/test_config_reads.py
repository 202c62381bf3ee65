"""DescribeConfigs and ListConfigResources."""

import pytest

from controller.cluster import BROKER, TOPIC, Cluster
from controller.test_configs import CLIENT_METRICS, GROUP, LOGGER
from quorate.base.errors import ErrorCode
from quorate.config_definitions.definition import ConfigType
from quorate.controller.building import at_once
from quorate.controller.config_reads import describe_configs, list_config_resources
from quorate.controller.node_configs import ConfigSource
from quorate.wire.messages import DescribeConfigsRequest, ListConfigResourcesRequest

NODE = "3000"
LEVELS = {"root": "WARN", "quorate": "INFO"}


def ask(cluster, *resources, keys=None, synonyms=True, documentation=False, may=lambda *_: True):
    cls = DescribeConfigsRequest
    request = cls(
        resources=[
            cls.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            )
            for kind, name in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    configs = cluster.config.configs
    return at_once(describe_configs(cluster.image, request, configs, LEVELS, may)).results


def describe(cluster, kind, name, **options):
    """The configs of one resource by name."""
    [result] = ask(cluster, (kind, name), **options)
    assert (result.error_code, result.error_message) == (0, "")
    assert (result.resource_type, result.resource_name) == (kind, name)
    names = [one.name for one in result.configs]
    assert names == sorted(set(names))
    return {one.name: one for one in result.configs}


def line(entry):
    return [(one.name, one.value, ConfigSource(one.source)) for one in entry.synonyms]


@pytest.fixture
def cluster():
    file = {"log.retention.hours": "2", "log.segment.bytes": "2000000", "node.id": NODE}
    cluster = Cluster(1, file=file)
    cluster.create("orders", 1, 1)
    return cluster


# -- topics ---------------------------------------------------------------------------------------
def test_a_topics_configs_with_every_value_in_line(cluster):
    cluster.configure(TOPIC, "orders", segment_bytes=" 3000000", preallocate="TRUE")
    cluster.configure(BROKER, NODE, log_segment_bytes="4000000")
    cluster.configure(BROKER, "", log_segment_bytes="5000000")
    found = describe(cluster, TOPIC, "orders")
    assert len(found) == 33  # without internal.segment.bytes
    entry = found["segment.bytes"]
    assert (entry.value, entry.config_source) == ("3000000", ConfigSource.TOPIC)
    assert entry.config_type == ConfigType.INT and not entry.read_only and not entry.is_sensitive
    assert line(entry) == [
        ("segment.bytes", "3000000", ConfigSource.TOPIC),
        ("log.segment.bytes", "4000000", ConfigSource.DYNAMIC_BROKER),
        ("log.segment.bytes", "5000000", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.segment.bytes", "2000000", ConfigSource.STATIC_BROKER),
        ("log.segment.bytes", "1073741824", ConfigSource.DEFAULT),
    ]
    assert found["preallocate"].value == "true"
    assert found["max.message.bytes"].config_source == ConfigSource.DEFAULT
    assert line(found["max.message.bytes"]) == [
        ("message.max.bytes", "1048588", ConfigSource.DEFAULT)
    ]
    assert found["remote.storage.enable"].value == "false" and not line(
        found["remote.storage.enable"]
    )


def test_a_config_in_another_unit_has_no_source(cluster):
    """Kafka's line of values begins at the broker's first name for the config."""
    entry = describe(cluster, TOPIC, "orders")["retention.ms"]
    assert (entry.value, entry.config_source) == ("7200000", ConfigSource.DEFAULT)
    assert line(entry) == []
    cluster.configure(BROKER, "", log_retention_ms="9")
    entry = describe(cluster, TOPIC, "orders")["retention.ms"]
    assert (entry.value, entry.config_source) == ("9", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert line(entry) == [
        ("log.retention.ms", "9", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "2", ConfigSource.STATIC_BROKER),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]


def test_a_topics_own_configs_that_others_have_not(cluster):
    cluster.configure(TOPIC, "orders", internal_segment_bytes="5", message_format_version="2.8")
    found = describe(cluster, TOPIC, "orders")
    assert found["internal.segment.bytes"].value == "5"
    unknown = found["message.format.version"]
    assert unknown.is_sensitive and unknown.value is None and unknown.synonyms[0].value is None
    assert unknown.config_type == ConfigType.UNKNOWN


def test_only_what_is_asked_for(cluster):
    assert list(describe(cluster, TOPIC, "orders", keys=["flush.ms", "none"])) == ["flush.ms"]
    assert len(describe(cluster, TOPIC, "orders", keys=[])) == 33
    entry = describe(cluster, TOPIC, "orders", synonyms=False)["segment.bytes"]
    assert entry.synonyms == [] and entry.config_source == ConfigSource.STATIC_BROKER
    assert entry.documentation is None
    found = describe(cluster, TOPIC, "orders", documentation=True)
    assert all(one.documentation for one in found.values())


# -- brokers --------------------------------------------------------------------------------------
def test_a_nodes_own_configs(cluster):
    file = {
        "node.id": NODE,
        "ssl.key.password": "hunter2",
        "listener.name.x.ssl.keystore.password": "hunter2",
        "listener.name.x.ssl.keystore.location": "/x",
        "plugin.key": "hunter2",
        "unstable.api.versions.enable": "TRUE",
        "log.roll.ms": "7",
    }
    cluster = Cluster(1, file=file)
    cluster.configure(BROKER, NODE, background_threads="3", ssl_keystore_location="/ignored")
    cluster.configure(BROKER, "", background_threads="4", num_io_threads="x", node_id="9")
    cluster.configure(BROKER, "1", background_threads="5")
    throttle = "leader.replication.throttled.rate"
    cluster.configure(BROKER, NODE, leader_replication_throttled_rate=" 7 ")
    found = describe(cluster, BROKER, NODE, documentation=True)
    threads = found["background.threads"]
    assert (threads.value, threads.config_source) == ("3", ConfigSource.DYNAMIC_BROKER)
    assert not threads.read_only and threads.documentation
    assert [value for _, value, _ in line(threads)] == ["3", "4", "10"]
    assert found["node.id"].read_only and found["node.id"].value == NODE
    assert found["num.io.threads"].value == "8"
    for name in ("ssl.key.password", "listener.name.x.ssl.keystore.password", "plugin.key"):
        assert found[name].is_sensitive and found[name].value is None
        assert {one.value for one in found[name].synonyms} == {None}
    assert "hunter2" not in str(found)
    assert found["ssl.keystore.location"].value is None
    of_listener = found["listener.name.x.ssl.keystore.location"]
    assert of_listener.value == "/x" and of_listener.config_type == ConfigType.STRING
    assert of_listener.read_only  # as Kafka says it, although it is not
    # Kafka parses what it describes of every node. What only its file or a quota sets, it shows as it is.
    assert found["unstable.api.versions.enable"].value == "TRUE"
    assert found[throttle].value == " 7 " and found[throttle].config_type == ConfigType.LONG
    assert "unclean.leader.election.interval.ms" not in found  # internal, and not set
    assert [name for name, _, _ in line(found["log.roll.ms"])] == ["log.roll.ms", "log.roll.hours"]
    assert found["log.roll.hours"].value == "168"


def test_the_dynamic_defaults_of_all_brokers(cluster):
    assert describe(cluster, BROKER, "") == {}
    cluster.configure(BROKER, "", background_threads="4", log_roll_hours="9")
    cluster.configure(BROKER, NODE, background_threads="3")
    found = describe(cluster, BROKER, "")
    assert list(found) == ["background.threads"]  # log.roll.hours does not change dynamically
    assert line(found["background.threads"]) == [
        ("background.threads", "4", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    ]


# -- others ---------------------------------------------------------------------------------------
def test_groups_and_client_metrics_need_not_exist(cluster):
    found = describe(cluster, GROUP, "workers", documentation=True)
    assert len(found) == 17 and all(one.documentation for one in found.values())
    session = found["consumer.session.timeout.ms"]
    assert (session.value, session.config_source) == ("45000", ConfigSource.DEFAULT)
    assert line(session) == [("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT)]
    isolation = found["share.isolation.level"]
    assert line(isolation) == [("share.isolation.level", "read_uncommitted", ConfigSource.DEFAULT)]
    cluster.configure(GROUP, "workers", consumer_session_timeout_ms="50000")
    session = describe(cluster, GROUP, "workers")["consumer.session.timeout.ms"]
    assert (session.value, session.config_source) == ("50000", ConfigSource.GROUP)

    found = describe(cluster, CLIENT_METRICS, "all")
    assert {name: one.value for name, one in found.items()} == {
        "interval.ms": "300000",
        "match": "",
        "metrics": "",
    }
    cluster.configure(CLIENT_METRICS, "all", metrics="a,b")
    entry = describe(cluster, CLIENT_METRICS, "all")["metrics"]
    assert line(entry) == [("metrics", "a,b", ConfigSource.CLIENT_METRICS)]


def test_loggers_of_this_node(cluster):
    found = describe(cluster, LOGGER, NODE)
    assert {name: one.value for name, one in found.items()} == LEVELS
    assert found["root"].config_source == ConfigSource.DYNAMIC_BROKER_LOGGER


@pytest.mark.parametrize(
    ("kind", "name", "error", "text"),
    [
        (TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            TOPIC,
            "",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (
            BROKER,
            "1",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 3000 or empty string, but received 1",
        ),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (
            LOGGER,
            "1",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 3000 but received 1",
        ),
        (
            CLIENT_METRICS,
            "",
            ErrorCode.INVALID_REQUEST,
            "Client metrics subscription name must not be empty",
        ),
        (GROUP, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
    ],
)
def test_resources_that_are_not_described(cluster, kind, name, error, text):
    refused, fine = ask(cluster, (kind, name), (TOPIC, "orders"))
    assert (ErrorCode(refused.error_code), refused.error_message) == (error, text)
    assert refused.configs == [] and fine.error_code == 0


def test_a_resource_that_is_named_twice_is_described_once(cluster):
    results = ask(cluster, *[(BROKER, NODE), (TOPIC, "orders")] * 1_000)
    assert [one.resource_type for one in results] == [BROKER, TOPIC]


def test_an_unknown_type_fails_the_request(cluster):
    results = ask(cluster, (TOPIC, "orders"), (3, "x"))
    text = ErrorCode.INVALID_REQUEST.message
    assert [(one.error_code, one.error_message) for one in results] == [(42, text)] * 2


# -- ListConfigResources --------------------------------------------------------------------------
def listed(cluster, *types, version=1):
    request = ListConfigResourcesRequest(resource_types=list(types))
    response = at_once(list_config_resources(cluster.image, request, version))
    found = [(one.resource_type, one.resource_name) for one in response.config_resources]
    return ErrorCode(response.error_code), found


def test_resources_are_listed_by_type(cluster):
    cluster.configure(GROUP, "workers", consumer_session_timeout_ms="50000")
    cluster.configure(CLIENT_METRICS, "all", metrics="*")
    cluster.configure(TOPIC, "orders", flush_ms="7")
    everything = [(GROUP, "workers"), (CLIENT_METRICS, "all"), (LOGGER, "1"), (BROKER, "1")]
    assert listed(cluster) == (ErrorCode.NONE, [*everything, (TOPIC, "orders")])
    found = listed(cluster, TOPIC, GROUP)
    assert found == (ErrorCode.NONE, [(GROUP, "workers"), (TOPIC, "orders")])
    assert listed(cluster, version=0) == (ErrorCode.NONE, [(CLIENT_METRICS, "all")])
    assert listed(cluster, TOPIC, 3) == (ErrorCode.UNSUPPORTED_VERSION, [])
