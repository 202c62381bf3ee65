"""A node's configuration: the meaning of Kafka's file, and the errors of wrong ones."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_guarantee, kafka_scenario
from quorate.base.ids import Address, Listener, ReplicaKey, Uuid
from quorate.client.value_ranges import ValueRule
from quorate.config.node_config import NodeConfig
from quorate.config.node_file import load_config
from quorate.config.properties_file import read_settings
from quorate.config.raft_config import raft_config, resolved_listeners
from quorate.config.settings import ConfigError, parse_properties
from quorate.config.unsupported import check_servable
from quorate.config_definitions.definition import broker_configs
from quorate.config_definitions.values import parse

GOOD = {
    "process.roles": "controller",
    "node.id": "1",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "log.dirs": "data",
}
BROKER = GOOD | {"process.roles": "broker", "listeners": "PLAINTEXT://localhost:9092"}


@pytest.fixture
def load(tmp_path):
    def load(base=GOOD, *overrides, **changes):
        values = dict(base) | {key.replace("_", "."): value for key, value in changes.items()}
        path = tmp_path / "server.properties"
        lines = [f"{key}={value}\n" for key, value in values.items() if value is not None]
        path.write_text("".join(lines))
        return load_config(path, overrides)

    return load


def refusal(load, *args, **changes) -> str:
    with pytest.raises(ConfigError) as caught:
        load(*args, **changes)
    return str(caught.value)


def test_a_minimal_configuration_has_kafkas_defaults(load):
    config = load()
    assert (config.node_id, config.roles, config.log_dirs) == (1, {"controller"}, ("data",))
    assert config.metadata_log_dir == "data"
    assert config.bootstrap_servers == (Address("localhost", 9093),)
    assert config.static_voters == ()
    assert config.warnings == ()
    raft = raft_config(config, "cluster", Uuid(bytes(16)))
    assert (raft.election_timeout_ms, raft.fetch_timeout_ms) == (1000, 2000)
    assert (raft.election_backoff_max_ms, raft.request_timeout_ms) == (1000, 2000)
    assert (raft.retry_backoff_ms, raft.fetch_max_bytes, raft.auto_join) == (20, 1048576, False)
    assert raft.retry_backoff_max_ms == 0, "constant, as Kafka's"
    assert (config.segment_bytes, raft.answer_max_bytes) == (1073741824, 1048576)
    assert config.metadata_max_retention_bytes == 104857600
    assert config.metadata_log_max_record_bytes_between_snapshots == 20971520


@pytest.mark.parametrize(
    ("asked", "segment", "answered"), [(500, 1000, 500), (1 << 30, 1000, 1000)]
)
def test_a_fetch_response_is_limited_by_the_fetch_size_and_the_segment_size(
    load, asked, segment, answered
):
    sizes = {
        "controller.quorum.fetch.max.bytes": asked,
        "internal.metadata.log.segment.bytes": segment,
    }
    raft = raft_config(load(**sizes), "cluster", Uuid(bytes(16)))
    assert raft.answer_max_bytes == answered


@pytest.mark.parametrize(
    "fetch_timeout, wait", [("2000", 500), ("60000", 500), ("1000", 250), ("400", 100), ("1", 1)]
)
def test_a_fetch_waits_a_quarter_of_the_fetch_timeout_at_most(load, fetch_timeout, wait):
    config = load(**{"controller.quorum.fetch.timeout.ms": fetch_timeout})
    assert raft_config(config, "cluster", Uuid(bytes(16))).fetch_max_wait_ms == wait


@kafka_scenario("KafkaRaftLogTest", "segmentMsConfigIsSetInMetadataLog")
def test_every_numeric_key_reaches_its_field(load):
    values = {
        "controller.quorum.election.timeout.ms": 11,
        "controller.quorum.fetch.timeout.ms": 12,
        "controller.quorum.election.backoff.max.ms": 13,
        "controller.quorum.append.linger.ms": 14,
        "controller.quorum.request.timeout.ms": 15,
        "controller.quorum.retry.backoff.ms": 16,
        "controller.quorum.retry.backoff.max.ms": 160,
        "controller.quorum.fetch.max.bytes": 17,
        "controller.quorum.fetch.snapshot.max.bytes": 18,
        "metadata.log.max.record.bytes.between.snapshots": 2**40,
        "metadata.log.max.snapshot.interval.ms": 0,
        "metadata.log.segment.bytes": 8 * 1024 * 1024,
        "metadata.log.segment.ms": 20,
        "metadata.max.retention.bytes": -1,
        "metadata.max.retention.ms": 2**41,
        "metadata.max.idle.interval.ms": 0,
        "socket.request.max.bytes": 21,
        "connections.max.idle.ms": 122,
        "max.connections": 23,
    }
    config = load(GOOD | {key: str(value) for key, value in values.items()})
    for key, value in values.items():
        assert getattr(config, key.replace(".", "_")) == value, key


def test_an_override_takes_precedence_over_the_file(load):
    config = load(GOOD, "node.id=7", "controller.quorum.fetch.timeout.ms = 5")
    assert (config.node_id, config.controller_quorum_fetch_timeout_ms) == (7, 5)


@pytest.mark.parametrize(
    "key",
    [
        "controller.quorum.append.linger.ms",
        "internal.metadata.max.batch.size.in.bytes",
        "internal.metadata.delete.delay.millis",
    ],
)
def test_a_key_without_effect_is_a_warning_with_its_source(load, key):
    (warning,) = load(GOOD | {key: str(2**30)}).warnings
    assert warning.startswith(f"{key} has no effect: ")
    assert re.search(r" \(.*, line \d+\)$", warning)


@pytest.mark.parametrize(
    ("authorizer", "early", "late"),
    [
        ("org.apache.kafka.metadata.authorizer.StandardAuthorizer", "CONTROLLER", {"OTHER"}),
        ("org.apache.kafka.metadata.authorizer.StandardAuthorizer", "", {"OTHER"}),
        ("org.apache.kafka.metadata.authorizer.StandardAuthorizer", "OTHER,CONTROLLER", set()),
        ("org.apache.kafka.metadata.authorizer.StandardAuthorizer", None, set()),
        (None, "CONTROLLER", set()),
    ],
)
def test_listeners_that_do_not_start_early_wait_for_the_authorizer(load, authorizer, early, late):
    """But for the one of the quorum: without a leader the authorizer knows nothing."""
    two = {
        "listeners": "CONTROLLER://localhost:9093,OTHER://localhost:9094",
        "controller.listener.names": "CONTROLLER,OTHER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,OTHER:PLAINTEXT",
        "authorizer.class.name": authorizer,
        "early.start.listeners": early,
    }
    assert load(GOOD | two).late_listeners == late


def test_broker_id_replaces_node_id(load):
    assert load(GOOD | {"broker.id": "3", "node.id": None}).node_id == 3
    assert "You must set `node.id` to the same value as `broker.id`" in refusal(
        load, GOOD | {"broker.id": "3"}
    )


def test_static_voters_are_sorted_and_carry_the_default_listener(load):
    config = load(
        GOOD
        | {
            "controller.quorum.voters": "2@b:9094,1@[::1]:9093",
            "controller.quorum.bootstrap.servers": None,
        }
    )
    assert [voter.key for voter in config.static_voters] == [ReplicaKey(1), ReplicaKey(2)]
    assert config.static_voters[0].listeners == (Listener("CONTROLLER", "::1", 9093),)


@pytest.mark.parametrize(
    ("listeners", "advertised", "expected"),
    [
        ("CONTROLLER://localhost:9093", None, ("localhost", 9093)),
        ("CONTROLLER://0.0.0.0:9093", "CONTROLLER://out.example:19093", ("out.example", 19093)),
        ("CONTROLLER://0.0.0.0:9093", None, ("me", 9093)),
        ("CONTROLLER://[::]:9093", None, ("me", 9093)),
        ("CONTROLLER://:0", None, ("me", 4444)),
        ("CONTROLLER://[::1]:9093", None, ("::1", 9093)),
    ],
)
def test_a_controller_advertises_these_endpoints(load, listeners, advertised, expected):
    config = load(GOOD | {"listeners": listeners, "advertised.listeners": advertised})
    resolved = resolved_listeners(config, {"CONTROLLER": 4444}, "me")
    assert resolved == (Listener("CONTROLLER", *expected),)


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "[::]"])
def test_a_wildcard_listener_takes_its_address_from_the_static_voters(load, everywhere):
    config = load(
        GOOD
        | {
            "listeners": f"CONTROLLER://{everywhere}:9093",
            "controller.quorum.voters": "1@host:19093",
        }
    )
    assert config.advertised_listeners == (Listener("CONTROLLER", "host", 19093),)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "0", "000.0.000.0", "[::]", "::", "[0:0:0:0:0:0:0:0]", "[::ffff:0.0.0.0]"]
)
def test_no_spelling_of_all_interfaces_is_advertised(load, host):
    """Kafka refuses 0.0.0.0 only."""
    with pytest.raises(ConfigError, match="cannot use the nonroutable meta-address"):
        load(GOOD | {"advertised.listeners": f"CONTROLLER://{host}:1"})
    voters = {
        "controller.quorum.voters": f"1@{host}:9093",
        "controller.quorum.bootstrap.servers": None,
    }
    config = load(GOOD | voters | {"advertised.listeners": "CONTROLLER://h:1"})
    with pytest.raises(ConfigError, match="is not routeable"):
        check_servable(config)


REFUSALS = [
    ({"node.id": None}, 'Missing required configuration "node.id" which has no default value.'),
    ({"node.id": "x"}, "Invalid value x for configuration node.id: Not a number of type INT"),
    ({"node.id": "-1"}, "Invalid value -1 for configuration node.id: Value must be at least 0"),
    ({"node.id": "1_0"}, "Not a number of type INT"),
    ({"node.id": "2147483648"}, "Not a number of type INT"),
    ({"metadata.log.segment.ms": "x"}, "Not a number of type LONG"),
    ({"metadata.log.segment.bytes": "8388607"}, "Value must be at least 8388608"),
    ({"controller.quorum.fetch.max.bytes": "0"}, "Value must be at least 1"),
    (
        {"controller.quorum.auto.join.enable": "yes"},
        "Expected value to be either true or false",
    ),
    ({"process.roles": None}, 'Missing required configuration "process.roles"'),
    ({"process.roles": ""}, "Valid values include: [broker, controller]"),
    (
        {"process.roles": "king"},
        "Invalid value king for configuration process.roles: "
        "String must be one of: broker, controller",
    ),
    ({"controller.listener.names": None}, 'configuration "controller.listener.names"'),
    ({"controller.listener.names": "OTHER"}, "No security protocol defined for listener"),
    ({"listeners": "nonsense"}, "Unable to parse nonsense to a broker endpoint"),
    ({"listeners": "CONTROLLER://h:99999"}, "is not between 0 and 65535"),
    (
        {"listeners": "CONTROLLER://a:1,PLAINTEXT://b:2"},
        "must only contain KRaft controller listeners",
    ),
    ({"listeners": "CONTROLLER://a:1,controller://b:2"}, "must have a different name"),
    (
        {"listeners": "CONTROLLER://a:1,C2://b:1", "controller.listener.names": "CONTROLLER,C2"},
        "must have a different port",
    ),
    ({"controller.listener.names": "CONTROLLER,PLAINTEXT"}, "must only contain values appearing"),
    (
        {"listener.security.protocol.map": "CONTROLLER:FOO"},
        "Invalid security protocol `FOO` defined in listener.security.protocol.map",
    ),
    ({"listener.security.protocol.map": "nonsense"}, "is not of the form NAME:PROTOCOL"),
    (
        {"inter.broker.listener.name": "CONTROLLER"},
        "must not contain an explicitly set inter.broker.listener.name configuration value",
    ),
    (
        {"advertised.listeners": "CONTROLLER://0.0.0.0:1"},
        "cannot use the nonroutable meta-address 0.0.0.0",
    ),
    ({"controller.quorum.bootstrap.servers": None}, "either controller.quorum.bootstrap.servers"),
    (
        {"controller.quorum.bootstrap.servers": "nonsense"},
        "Failed to parse host name from nonsense",
    ),
    ({"controller.quorum.bootstrap.servers": "h:70000"}, "Failed to parse host port from h:70000"),
    ({"controller.quorum.voters": "1"}, "should be in the form `{id}@{host}:{port}`"),
    ({"controller.quorum.voters": "a@h:1"}, "Failed to parse voter ID as an integer from a"),
    ({"controller.quorum.voters": "1@h"}, "Failed to parse host name from entry 1@h"),
    ({"controller.quorum.voters": "1@h:70000"}, "Failed to parse host port from entry 1@h:70000"),
    (
        {"controller.quorum.voters": "2@h:1,3@h:2"},
        "the node id 1 must be included in the set of voters controller.quorum.voters=Set(2, 3)",
    ),
    ({"controller.quorum.voters": "1@h:1,1@h:2"}, "names voter 1 twice"),
    ({"log.dirs": ""}, "Configuration 'log.dirs' must not be empty"),
    ({"queued.max.request.bytes": "5"}, "must be larger or equal to socket.request.max.bytes"),
    ({"quorate.metrics.listener": "nonsense"}, "It should be of the form host:port"),
    ({"listener.security.protocol.map": ":SSL"}, "provided listener name is null or empty string"),
    ({"log.dir": ""}, "Configuration 'log.dir' must not be empty."),
    ({"inter.broker.listener.name": "controller"}, "must not contain an explicitly set inter"),
    (
        {"inter.broker.listener.name": "foo"},
        "Listener with name FOO defined in inter.broker.listener.name not found in "
        "listener.security.protocol.map.",
    ),
    ({"inter.broker.listener.name": ""}, "The provided listener name is null or empty string"),
    (
        {"inter.broker.listener.name": "SSL", "security.inter.broker.protocol": "SSL"},
        "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
    ),
    (
        {
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
        },
        "must be included in sasl.enabled.mechanisms when SASL is used for inter-broker",
    ),
    (
        {"early.start.listeners": "controller"},
        "early.start.listeners contains listener controller, but this is not contained in",
    ),
    ({"max.connections.per.ip": "0"}, "can be set to zero only if max.connections.per.ip.over"),
    ({"max.connections.per.ip.overrides": "a b:5"}, "contains invalid addresses : a b"),
    ({"max.connections.per.ip.overrides": "h"}, "'h' is not of the form host:connections"),
    ({"max.connections.per.ip.overrides": "h:x"}, 'For input string: "x"'),
    ({"max.connections.per.ip.overrides": "h:9999999999"}, 'For input string: "9999999999"'),
    ({"max.connections.per.ip.overrides": "a:1,,b:2"}, "'' is not of the form host:connections"),
    ({"message.max.bytes": "1" * 5000}, "Not a number of type INT"),
    ({"node.id": "1\u00a0"}, "Not a number of type INT"),
    (
        {"connections.max.idle.ms": "100"},
        "connection.failed.authentication.delay.ms=100 should always be less than "
        "connections.max.idle.ms=100 to prevent failed authentication responses from timing out",
    ),
    ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
    ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
    ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited (-1) or, greater than"),
    ({"log.retention.minutes": "0"}, "log.retention.ms must be unlimited (-1) or, greater than"),
    ({"log.cleaner.threads": "128"}, "must be at least 1MB per cleaner thread."),
    ({"log.cleaner.threads": "0"}, "must be at least 1MB per cleaner thread."),
    ({"replica.fetch.wait.max.ms": "30001"}, "replica.socket.timeout.ms should always be at leas"),
    ({"replica.lag.time.max.ms": "499"}, "less than or equal to replica.lag.time.max.ms"),
    ({"group.coordinator.rebalance.protocols": "share"}, "Disabling the 'classic' protocol is"),
    ({"early.start.listeners": ","}, "'early.start.listeners' values must not be empty."),
    ({"log.cleanup.policy": "x"}, "String must be one of: compact, delete"),
    ({"compression.type": "x"}, "must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
    ({"compression.gzip.level": "0"}, "Value must be between 1 and 9 or equal to -1"),
    ({"offsets.topic.replication.factor": "40000"}, "Not a number of type SHORT"),
    ({"log.cleaner.min.cleanable.ratio": "1e0x"}, "Not a number of type DOUBLE"),
]


@kafka_scenario("KafkaRaftLogTest", "config")
@kafka_guarantee(
    "QuorumStateTest",
    "initializeWithEmptyLocalId",
    "noLocalIdInitializationFailsIfElectionStateHasVotedCandidate",
)
@pytest.mark.parametrize(("change", "message"), REFUSALS, ids=[str(c) for c, _ in REFUSALS])
def test_a_wrong_value_is_refused_with_the_allowed_values(load, change, message):
    assert message in refusal(load, GOOD | change)


def node_rules():
    """Each numeric or boolean key of a node, its type, and the lowest and highest value."""
    for key, definition in broker_configs().items():
        bounds = re.fullmatch(r"\[(\S+),\.\.\.(?:,(\S+))?\]|", definition.allowed)
        if bounds and definition.type.name in ("BOOLEAN", "SHORT", "INT", "LONG", "DOUBLE"):
            least, most = bounds.groups()
            yield key, ValueRule(definition.type.name, least or "", most or "")


def test_keys_have_kafkas_types_and_ranges(load):
    """Those that the node uses, and those that it does not."""
    found = [(key, wrong(rule)) for key, rule in node_rules()]
    assert len(found) == len(dict(found)) == 265
    for key, (value, shown, why) in found:
        expected = f"Invalid value {shown} for configuration {key}: {why}"
        assert refusal(load, GOOD | {key: value}).startswith(expected)


def test_defaults_are_kafkas():
    """But for the buffers, which the operating system sizes, keys of the authorizer and of a KIP alone, and
    ours."""
    ours = {field.name.replace("_", "."): field for field in fields(NodeConfig) if field.metadata}
    others = {
        key
        for key, field in ours.items()
        if not key.startswith("quorate.")
        if (definition := broker_configs().get(key)) is None
        or field.default != parse(definition, definition.default)
    }
    assert others == {
        "allow.everyone.if.no.acl.found",
        "controller.quorum.retry.backoff.max.ms",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
    }


def wrong(rule):
    """A value just outside, how it is shown, and what is said of it."""
    if rule.most:
        value = str(int(rule.most) + 1) if rule.type != "DOUBLE" else "2.0"
        return value, value, f"Value must be no more than {rule.most}"
    if rule.least:
        value = str(int(rule.least) - 1)
        return value, value, f"Value must be at least {rule.least}"
    if rule.type == "BOOLEAN":
        return "x", "x", "Expected value to be either true or false"
    return "x", "x", f"Not a number of type {rule.type}"


def test_a_trailing_comma_in_the_protocol_map_is_ignored(load):
    config = load(GOOD | {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,"})
    assert config.security_protocols == {"CONTROLLER": "PLAINTEXT"}


BROKER_REFUSALS = [
    ({"controller.quorum.voters": "1@h:1"}, "the node id 1 must not be included"),
    (
        {"controller.quorum.auto.join.enable": "true"},
        "is only supported when process.roles contains the 'controller' role",
    ),
    (
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
        "Controller listener with name CONTROLLER defined in controller.listener.names not found",
    ),
    (
        {"listeners": "PLAINTEXT://h:1,CONTROLLER://h:2"},
        "must not contain a value appearing in the 'listeners' configuration",
    ),
]


@pytest.mark.parametrize(("change", "message"), BROKER_REFUSALS, ids=lambda c: str(c)[:40])
def test_a_broker_only_file_has_its_own_rules(load, change, message):
    assert load(BROKER).is_controller is False
    assert message in refusal(load, BROKER | change)


def test_a_refusal_names_the_source_of_the_value(load, tmp_path):
    path = tmp_path / "server.properties"
    assert refusal(load, GOOD | {"node.id": "x"}).endswith(f"({path}, line 2)")
    assert refusal(load, GOOD, "node.id=y").endswith("(--override node.id=y)")


def test_a_file_that_does_not_parse_names_line_and_column(tmp_path):
    path = tmp_path / "p"
    path.write_text("node.id=1\nlog.dirs=/d\\u12\n")
    with pytest.raises(ConfigError) as refused:
        read_settings(path)
    said = f"Not a properties file: Malformed \\uxxxx encoding. ({path}, line 2, column 12)"
    assert str(refused.value) == said


def test_the_last_of_two_lines_with_a_key_counts(tmp_path):
    path = tmp_path / "p"
    path.write_text("node.id=1\n# node.id=5\nnode.id : x\n")
    settings = read_settings(path)
    assert (settings.text("node.id"), settings.where("node.id")) == ("x", f"{path}, line 3")


def test_a_duplicate_list_value_is_ignored_with_a_warning(load):
    config = load(GOOD | {"log.dirs": "a,b,a", "process.roles": "controller,controller"})
    assert (config.log_dirs, config.roles) == (("a", "b"), {"controller"})
    assert [note.partition(" are")[0] for note in config.warnings] == [
        "Duplicate values of process.roles",
        "Duplicate values of log.dirs",
    ]


def test_unknown_keys_are_warnings_and_typing_errors_get_a_hint(load):
    warnings = load(
        GOOD | {"controller.quorum.voter": "1@h:1", "num.io.threads": "3", "log.retention.ms": "1"}
    ).warnings
    assert len(warnings) == 2
    assert (
        "controller.quorum.voter is ignored; did you mean controller.quorum.voters?"
        in (warnings[0])
    )
    assert warnings[1].endswith("log.retention.ms, num.io.threads")


@pytest.mark.parametrize("override", ["node.id", "=1", ""])
def test_an_override_without_a_value_is_refused(load, override):
    assert "must have the form key=value" in refusal(load, GOOD, override)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="No such file or directory"):
        load_config(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="Is a directory"):
        load_config(tmp_path)


def test_a_broken_escape_is_refused_with_its_line(tmp_path):
    path = tmp_path / "p"
    path.write_text("a=1\nb=\\u00zz\n")
    with pytest.raises(ConfigError, match=r"Not a properties file.*line 2"):
        read_settings(path)


def test_quorate_supports_controllers_only_and_no_kerberos(load):
    check_servable(load())
    with pytest.raises(ConfigError, match="contains 'broker', but Quorate runs controllers only"):
        check_servable(load(BROKER))
    nowhere = GOOD | {"controller.quorum.voters": "1@0.0.0.0:1"}
    with pytest.raises(ConfigError, match=r"Host string \(0.0.0.0\) of voter 1 is not routeable"):
        check_servable(load(nowhere))
    secure = GOOD | {"listener.security.protocol.map": "CONTROLLER:SASL_SSL"}
    with pytest.raises(ConfigError, match=r"sasl.enabled.mechanisms: GSSAPI \(Kerberos\)"):
        check_servable(load(secure))


@kafka_scenario(
    "StandardAuthorizerTest",
    "getConfiguredSuperUsers",
    "getDefaultResult",
    "configure",
)
def test_the_standard_authorizer_is_served_and_no_other(load):
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    keys = {"authorizer.class.name": standard, "super.users": "User:admin; User:CN=a,O=b;"}
    config = load(GOOD | keys | {"allow.everyone.if.no.acl.found": "true"})
    check_servable(config)
    assert config.super_users == {"User:admin", "User:CN=a,O=b"}
    assert config.allow_everyone_if_no_acl_found
    with pytest.raises(ConfigError, match=r"Quorate has Kafka's org\..*StandardAuthorizer only"):
        check_servable(load(GOOD | {"authorizer.class.name": "com.example.Own"}))
    with pytest.raises(ConfigError, match="principalType:principalName"):
        load(GOOD | {"super.users": "admin"})
    check_servable(load(GOOD | {"authorizer.class.name": " "}))


@given(st.dictionaries(st.text(st.characters(codec="latin-1"), min_size=1), st.text("ab\\:=# \t")))
def test_escaped_properties_round_trip(values):
    def escape(text: str) -> str:
        return "".join(f"\\u{ord(char):04x}" for char in text)

    text = "".join(f"{escape(key)}={escape(value)}\n" for key, value in values.items())
    found = parse_properties(text.encode("latin-1"), "p")
    assert {key: one.value for key, one in found.items()} == values


@given(st.binary(max_size=200))
def test_arbitrary_properties_raise_only_config_errors(tmp_path_factory, data):
    path: Path = tmp_path_factory.getbasetemp() / "fuzz.properties"
    path.write_bytes(data)
    with pytest.raises(ConfigError):
        load_config(path)
