"""The table of Kafka's configs, and values by type."""

import pytest

from conformance.marker import kafka_scenario
from quorate.config_definitions.definition import (
    ConfigType,
    Synonym,
    UpdateMode,
    broker_configs,
    broker_quotas,
    client_metrics_configs,
    group_configs,
    is_supported,
    topic_configs,
)
from quorate.config_definitions.values import (
    ConfigValueError,
    parse,
    parse_all,
    text_of,
    to_text,
)
from quorate.controller.config_reads import documentation

ALL = (topic_configs, group_configs, client_metrics_configs, broker_configs, broker_quotas)


def test_every_line_of_the_table_is_read():
    counts = [len(definitions()) for definitions in ALL]
    assert counts == [34, 17, 3, 360, 3]
    found = topic_configs()["retention.ms"]
    assert found.type is ConfigType.LONG and found.default == "604800000"
    assert found.mode is None and found.allowed == "[-1,...]" and not found.is_internal
    assert found.synonyms == (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", 60_000),
        Synonym("log.retention.hours", 3_600_000),
    )
    assert topic_configs()["internal.segment.bytes"].is_internal
    assert broker_configs()["cordoned.log.dirs"].mode is UpdateMode.PER_BROKER
    assert broker_configs()["node.id"].mode is UpdateMode.READ_ONLY
    assert broker_configs()["node.id"].default is None


def test_the_brokers_configs_in_place_of_others_exist():
    for definitions in (topic_configs(), group_configs()):
        for definition in definitions.values():
            assert all(synonym.name in broker_configs() for synonym in definition.synonyms)


@pytest.mark.parametrize("definitions", ALL)
def test_each_default_is_allowed(definitions):
    """So a resource that sets nothing is never refused."""
    optional = {
        name: definition
        for name, definition in definitions().items()
        if definition.default is not None or definition.allowed.startswith("distinct")
    }
    assert parse_all(optional, {}).keys() == optional.keys()


@kafka_scenario("KafkaConfigSchemaTest", "translateConfigTypes")
def test_types_have_the_numbers_of_describe_configs():
    names = [
        "UNKNOWN",
        "BOOLEAN",
        "STRING",
        "INT",
        "SHORT",
        "LONG",
        "DOUBLE",
        "LIST",
        "CLASS",
        "PASSWORD",
    ]
    assert [kind.name for kind in sorted(ConfigType)] == names


@kafka_scenario("KafkaConfigSchemaTest", "isSensitive")
def test_passwords_are_sensitive():
    found = {name for name, one in broker_configs().items() if one.is_sensitive}
    assert {"ssl.key.password", "sasl.jaas.config", "delegation.token.secret.key"} < found
    assert "ssl.keystore.location" not in found


def test_kafka_knows_any_config_of_a_broker_and_defined_ones_of_others():
    assert is_supported(2, "retention.ms") and not is_supported(2, "message.format.version")
    assert is_supported(4, "whatever")
    assert is_supported(16, "match") and not is_supported(16, "retention.ms")
    assert is_supported(32, "share.isolation.level") and not is_supported(32, "match")
    assert not is_supported(8, "root")


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("preallocate", " TRUE", "true"),
        ("retention.ms", "+7", "7"),
        ("cleanup.policy", "compact , delete,compact", "compact,delete"),
        ("cleanup.policy", "", ""),
        ("min.cleanable.dirty.ratio", ".5", "0.5"),
        ("min.cleanable.dirty.ratio", "0.0001", "1.0E-4"),
        ("min.cleanable.dirty.ratio", "1", "1.0"),
        ("compression.type", " zstd ", "zstd"),
        ("segment.bytes", "nonsense", "nonsense"),
        ("internal.segment.bytes", None, None),
    ],
)
def test_values_are_shown_as_java_writes_them(name, text, shown):
    assert text_of(topic_configs()[name], text) == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1e-3, "0.001"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-2.5e-5, "-2.5E-5"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_decimal_numbers(value, text):
    assert to_text(value) == text


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        (
            "log.dirs",
            "",
            "Configuration 'log.dirs' must not be empty. Valid values include: any non-empty value",
        ),
        (
            "group.coordinator.rebalance.protocols",
            "",
            "Configuration 'group.coordinator.rebalance.protocols' must not be empty. Valid values "
            "include: [consumer, classic, share, streams]",
        ),
        (
            "offsets.topic.replication.factor",
            "40000",
            "Invalid value 40000 for configuration offsets.topic.replication.factor: Not a number of "
            "type SHORT",
        ),
        (
            "remote.log.metadata.manager.class.name",
            " ",
            "Invalid value  for configuration remote.log.metadata.manager.class.name: String must be "
            "non-empty",
        ),
        (
            "group.consumer.migration.policy",
            "x",
            "Invalid value x for configuration group.consumer.migration.policy: String must be one of "
            "(case insensitive): DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL",
        ),
        (
            "log.cleaner.io.buffer.load.factor",
            "x",
            "Invalid value x for configuration log.cleaner.io.buffer.load.factor: Not a number of type "
            "DOUBLE",
        ),
    ],
)
def test_values_that_are_refused(name, text, why):
    with pytest.raises(ConfigValueError) as refused:
        parse(broker_configs()[name], text)
    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("kind", "definitions"),
    [
        (2, topic_configs),
        (4, broker_configs),
        (16, client_metrics_configs),
        (32, group_configs),
    ],
)
def test_each_config_has_a_sentence(kind, definitions):
    texts = documentation(kind)
    assert texts.keys() == definitions().keys()
    assert all(text.endswith(".") and text[0].isupper() for text in texts.values())
    assert documentation(8) == {}
