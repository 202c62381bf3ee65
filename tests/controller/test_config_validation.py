"""Which configs a topic, a group and a client metrics subscription may have."""

import pytest

from conformance.marker import kafka_scenario
from controller.cluster import BROKER, TOPIC, Cluster
from controller.test_configs import CLIENT_METRICS, DONE, GROUP, SET, change
from quorate.base.errors import ErrorCode
from quorate.controller.config_validation import REMOTE

REMOTE_ON = {"remote.log.storage.system.enable": "true"}


def refusal(cluster, kind, configs, name="orders"):
    """Why the configs are refused; None: they are not."""
    [(error, text)] = change(cluster, (kind, name, {k: (SET, v) for k, v in configs.items()}))
    assert error in (ErrorCode.NONE, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
    return text


@pytest.fixture
def cluster():
    cluster = Cluster(1)
    cluster.create("orders", 1, 1)
    return cluster


# -- topics ---------------------------------------------------------------------------------------
@kafka_scenario("ControllerConfigurationValidatorTest", "validTopicConfig", "invalidTopicConfig")
@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("segment.bytes", "67108864", None),
        ("segment.bytes", " +67108864 ", None),
        ("segment.bytes", "1", "1 for configuration segment.bytes: Value must be at least 1048576"),
        ("foobar", "abc", "Unknown topic config name: foobar"),
        ("retention.ms", "-2", "-2 for configuration retention.ms: Value must be at least -1"),
        ("retention.bytes", "-2", None),
        ("preallocate", " TRUE", None),
        (
            "preallocate",
            "yes",
            "yes for configuration preallocate: Expected value to be either true or false",
        ),
        ("min.cleanable.dirty.ratio", "1e-1", None),
        (
            "min.cleanable.dirty.ratio",
            "1.5",
            "1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "segment.bytes",
            "2147483648",
            "2147483648 for configuration segment.bytes: Not a number of type INT",
        ),
        ("cleanup.policy", "compact , delete,compact", None),
        ("cleanup.policy", "", None),
        (
            "cleanup.policy",
            "compact,other",
            "other for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "a,", "a for configuration cleanup.policy: String must be one of"),
        ("cleanup.policy", "compact,", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "compression.type",
            "brotli",
            "brotli for configuration compression.type: String must be one of: uncompressed, zstd, "
            "lz4, snappy, gzip, producer",
        ),
        ("compression.gzip.level", "-1", None),
        (
            "compression.gzip.level",
            "0",
            "0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        ("leader.replication.throttled.replicas", "0:1, 1:2", None),
        ("leader.replication.throttled.replicas", "*", None),
        (
            "leader.replication.throttled.replicas",
            "0:1,x",
            "[0:1, x] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in "
            "the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        (
            "min.compaction.lag.ms",
            "9223372036854775807",
            None,
        ),
    ],
)
def test_values_of_topics(cluster, key, value, text):
    found = refusal(cluster, TOPIC, {key: value})
    assert (found is None) == (text is None), found
    if text is not None:
        whole = text if text.startswith(("Unknown", "Configuration")) else f"Invalid value {text}"
        assert found.startswith(whole)


def test_the_smallest_compaction_lag_is_not_above_the_largest(cluster):
    """The largest one is that of the brokers, where the topic has none."""
    text = "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)"
    lags = {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}
    assert refusal(cluster, TOPIC, lags) == text
    strict = Cluster(1, file={"log.cleaner.max.compaction.lag.ms": "8"})
    strict.create("orders", 1, 1)
    assert refusal(strict, TOPIC, {"min.compaction.lag.ms": "9"}) == text
    change(strict, (BROKER, "", {"log.cleaner.max.compaction.lag.ms": "9"}))
    assert refusal(strict, TOPIC, {"min.compaction.lag.ms": "9"}) is None


@kafka_scenario("ControllerConfigurationValidatorTest", "disablingRemoteStorageTopicConfig")
def test_remote_storage_ends_with_the_remote_data():
    cluster = Cluster(1, file=REMOTE_ON)
    cluster.create("orders", 1, 1)
    assert refusal(cluster, TOPIC, {REMOTE: "false"}) is None
    assert refusal(cluster, TOPIC, {REMOTE: "true"}) is None
    text = refusal(cluster, TOPIC, {REMOTE: "false"})
    assert text.startswith("It is invalid to disable remote storage without deleting remote data. ")
    wanted = {REMOTE: "false", "remote.log.delete.on.disable": "true"}
    assert refusal(cluster, TOPIC, wanted) is None


@pytest.mark.parametrize(
    ("configs", "text"),
    [
        ({}, None),
        (
            {"cleanup.policy": "compact"},
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy "
            "being an empty list.",
        ),
        (
            {"retention.bytes": "5", "local.retention.bytes": "-1"},
            "Invalid value -1 for configuration local.retention.bytes: Value must not be -1 as "
            "retention.bytes value is set as 5.",
        ),
        (
            {"retention.ms": "5", "local.retention.ms": "6"},
            "Invalid value 6 for configuration local.retention.ms: Value must not be more than "
            "retention.ms property value: 5",
        ),
        ({"retention.ms": "-1", "local.retention.ms": "6"}, None),
        (
            {"remote.log.copy.disable": "true", "local.retention.ms": "6"},
            "When `remote.log.copy.disable` is set to true, the `local.retention.ms` and "
            "`retention.ms` must be set to the identical value because there will be no more logs "
            "copied to the remote storage.",
        ),
    ],
)
def test_remote_storage_and_its_retention(configs, text):
    cluster = Cluster(1, file=REMOTE_ON)
    cluster.create("orders", 1, 1)
    assert refusal(cluster, TOPIC, {REMOTE: "true", **configs}) == text


def test_remote_storage_needs_the_system(cluster):
    text = refusal(cluster, TOPIC, {REMOTE: "true"})
    assert text.startswith("Tiered Storage functionality is disabled in the broker. ")


# -- client metrics -------------------------------------------------------------------------------
@kafka_scenario(
    "ControllerConfigurationValidatorTest",
    "validClientMetricsConfig",
    "invalidIntervalClientMetricsConfig",
    "undefinedConfigClientMetricsConfig",
    "invalidMatchClientMetricsConfig",
)
@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("interval.ms", "2000", None),
        ("interval.ms", "99", "Invalid value 99 for interval.ms, interval must be between"),
        (
            "interval.ms",
            "3600001",
            "Invalid value 3600001 for interval.ms, interval must be between",
        ),
        ("random", "10", "Unknown client metrics configuration: random"),
        ("match", "client_id=1,client_source_port=12[0-9]", None),
        ("match", "10", "Illegal client matching pattern: 10"),
        ("match", "client_id=", "Illegal client matching pattern: client_id="),
        ("match", "client_id=[", "Illegal client matching pattern: client_id=["),
        *(
            ("match", f"client_id={text}", f"Illegal client matching pattern: client_id={text}")
            for text in (
                "{foo}",
                "(?P<x>a)",
                "[a[b]",
                "(a)(?#c)",
                "(a)(?(1)b)",
                "a{b}",
                "\\y",
                "(?a)b",
                "a{99999999999}",
                "(" * 3_000 + ")" * 3_000,
            )
        ),
        *(
            ("match", f"client_id={text}", None)
            for text in ("a{2}", "[^a-z]+", "(?:a|b)*", "(?i)app-.*", "a]", "\\d\\.")
        ),
        ("match", "a=b", "Illegal client matching pattern: a=b"),
        ("match", "client_id=a=b", "Illegal client matching pattern: client_id=a=b"),
        ("metrics", "a,,b", "Configuration 'metrics' values must not be empty."),
    ],
)
def test_values_of_client_metrics(cluster, key, value, text):
    found = refusal(cluster, CLIENT_METRICS, {key: value})
    assert found == text or (text is not None and found.startswith(text))


# -- groups ---------------------------------------------------------------------------------------
@kafka_scenario("ControllerConfigurationValidatorTest", "validGroupConfig", "invalidGroupConfig")
@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("consumer.session.timeout.ms", "50000", None),
        ("foobar", "abc", "Unknown group config name: foobar"),
        (
            "consumer.session.timeout.ms",
            "44999",
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            "share.heartbeat.interval.ms",
            "15001",
            "share.heartbeat.interval.ms must be less than or equal to "
            "group.share.max.heartbeat.interval.ms",
        ),
        (
            "streams.num.standby.replicas",
            "3",
            "streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas",
        ),
        ("consumer.assignment.interval.ms", "15000", None),
        (
            "consumer.assignment.interval.ms",
            "15001",
            "consumer.assignment.interval.ms must be less than or equal to "
            "group.consumer.max.assignment.interval.ms",
        ),
        ("share.auto.offset.reset", "earliest", None),
        ("share.auto.offset.reset", "by_duration:P1DT2H", None),
        (
            "share.auto.offset.reset",
            "by_duration:PT-1S",
            "Invalid value by_duration:PT-1S for configuration share.auto.offset.reset: Invalid value "
            "`by_duration:PT-1S` for configuration share.auto.offset.reset. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
        ("share.isolation.level", "read_committed", None),
    ],
)
def test_values_of_groups(cluster, key, value, text):
    assert refusal(cluster, GROUP, {key: value}) == text


LONG = 2**63 - 1


@pytest.mark.parametrize(
    "text",
    [
        f"PT{LONG}S",
        f"PT{LONG}.999999999S",
        "P106751991167300D",
        "PT2562047788015215H",
        f"P-106751991167300DT{LONG}S",
        "P-1DT25H",
        "PT-0.0S",
        "-PT-1S",
        "-PT-0.5S",
        "-PT0S",
        "pt1,5s",
        "+PT+1.S",
        f"PT{'0' * 500}1S",
    ],
    ids=lambda text: text[:40],
)
def test_durations_that_java_reads(cluster, text):
    """`java.time.Duration.parse` of Java 17 takes each of them."""
    assert refusal(cluster, GROUP, {"share.auto.offset.reset": f"by_duration:{text}"}) is None


@pytest.mark.parametrize(
    "text",
    [
        f"PT{LONG + 1}S",
        "P106751991167301D",
        f"PT{LONG}M",
        "PT2562047788015216H",
        f"PT1M{LONG}S",
        f"P-1DT1M{LONG}S",
        f"PT-{LONG + 1}.5S",
        f"-PT-{LONG + 1}S",
        f"PT{'9' * 5_000}S",
        "PT-0.5S",
        f"PT{LONG}S-1D",
        "P-1DT86399.999999999S",
        "-PT1S",
        "PT1S.",
        "PT\uff11S",
        "P1D1",
        "P",
        "P1DT",
    ],
    ids=lambda text: text[:40],
)
def test_durations_that_java_refuses_or_that_are_negative(cluster, text):
    """A number beyond a long is none, also one that a later part would make small enough."""
    found = refusal(cluster, GROUP, {"share.auto.offset.reset": f"by_duration:{text}"})
    assert found is not None and "The value must be either" in found


def test_a_session_is_longer_than_the_interval_of_heartbeats():
    file = {"group.consumer.max.heartbeat.interval.ms": "60000"}
    heartbeat = {"consumer.heartbeat.interval.ms": "45000"}
    text = "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    assert refusal(Cluster(1, file=file), GROUP, heartbeat) == text


def test_a_dynamic_config_of_brokers_is_the_default_of_topics(cluster):
    """A wrong one is ignored, as brokers ignore it; that of a broker does not count."""
    assert change(cluster, (BROKER, "", {"log.cleaner.max.compaction.lag.ms": "x"})) == [DONE]
    assert change(cluster, (BROKER, "1", {"log.cleaner.max.compaction.lag.ms": "8"})) == [DONE]
    assert refusal(cluster, TOPIC, {"min.compaction.lag.ms": "9"}) is None
