"""The keys of SASL: their forms, and what is refused by name."""

import re

import pytest

from quorate.client.config import client_security
from quorate.config import sasl_keys
from quorate.config.node_file import load_config
from quorate.config.settings import ConfigError, Settings
from quorate.config.unsupported import check_servable

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required;"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
GOOD = {
    "node.id": "1",
    "process.roles": "controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.quorum.voters": "1@localhost:9093",
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": PLAIN,
    "listener.name.controller.scram-sha-512.sasl.jaas.config": SCRAM,
}


@pytest.fixture
def load(tmp_path):
    def load(**changed):
        path = tmp_path / "server.properties"
        values = {**GOOD, **{key.replace("__", "."): value for key, value in changed.items()}}
        lines = [f"{key}={value}\n" for key, value in values.items() if value is not None]
        path.write_text("".join(lines))
        return load_config(path)

    return load


def test_the_keys_of_a_listener(load):
    config = load(
        **{
            "connections.max.reauth.ms": "9000",
            "listener.name.controller.scram-sha-512.connections.max.reauth.ms": "5000",
            "sasl.server.max.receive.size": "1000",
            "connection.failed.authentication.delay.ms": "7",
        }
    )
    check_servable(config)
    listener = config.sasl.listeners["CONTROLLER"]
    assert listener.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert listener.jaas["PLAIN"].text == PLAIN
    assert listener.max_reauth_ms == {"PLAIN": 9000, "SCRAM-SHA-512": 5000}
    assert listener.max_receive_bytes == 1000
    assert config.sasl.failure_delay_ms == 7
    assert not any("sasl" in warning for warning in config.warnings)
    assert "PlainLoginModule" not in repr(config)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            {"sasl.enabled.mechanisms": None},
            r"sasl.enabled.mechanisms: GSSAPI \(Kerberos\), Kafka's",
        ),
        ({"sasl.mechanism.controller.protocol": None}, "controller.protocol: GSSAPI"),
        ({"sasl.enabled.mechanisms": "DIGEST-MD5"}, "Invalid value DIGEST-MD5"),
        (
            {"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"},
            "OAUTHBEARER on the listener CONTROLLER needs listener.name.controller.oauthbearer.sasl",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
                "listener.name.controller.oauthbearer.sasl.jaas.config": "x",
            },
            "OAUTHBEARER needs sasl.oauthbearer.jwks.endpoint.url",
        ),
        (
            {"listener.name.controller.plain.sasl.jaas.config": None, "sasl.jaas.config": PLAIN},
            "sasl.jaas.config without this prefix has no effect",
        ),
        ({"sasl.mechanism.controller.protocol": "SCRAM-SHA-256"}, "SCRAM-SHA-256 on the listener"),
        (
            {"listener.name.controller.plain.sasl.login.class": "com.example.Login"},
            "names a Java class, which Quorate cannot run",
        ),
        ({"listener.name.controller.sasl.oauthbearer.jwks.endpoint.url": "ftp://x"}, "a file: or"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "ftp://x"}, "It should be a file: or https: URL"),
    ],
)
def test_what_is_refused_by_name(load, changed, why):
    config = load(**changed)
    with pytest.raises(ConfigError, match=why):
        check_servable(config)


def test_unsecured_tokens_need_the_class_of_kafka(load):
    package = "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    prefix = "listener.name.controller.oauthbearer.sasl."
    config = load(
        **{
            "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
            f"{prefix}jaas.config": "x",
            f"{prefix}server.callback.handler.class": (
                f"{package}OAuthBearerUnsecuredValidatorCallbackHandler"
            ),
        }
    )
    check_servable(config)
    assert config.sasl.listeners["CONTROLLER"].unsecured_tokens


P = "listener.name.controller."
OAUTH = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.controller.protocol": "OAUTHBEARER",
    f"{P}oauthbearer.sasl.jaas.config": "x",
    "sasl.oauthbearer.jwks.endpoint.url": "file:///plain",
}
FIELDS = {
    "sasl.oauthbearer.jwks.endpoint.url": ("jwks_url", "file:///a", "file:///b", "file:///c"),
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": ("refresh_ms", 5001, 5002, 5003),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": ("retry_backoff_ms", 1, 2, 3),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": ("retry_backoff_max_ms", 1, 2, 3),
    "sasl.oauthbearer.expected.audience": ("audience", ("a",), ("b",), ("c",)),
    "sasl.oauthbearer.expected.issuer": ("issuer", "a", "b", "c"),
    "sasl.oauthbearer.clock.skew.seconds": ("clock_skew_s", 1, 2, 3),
    "sasl.oauthbearer.sub.claim.name": ("subject_claim", "a", "b", "c"),
    "sasl.oauthbearer.scope.claim.name": ("scope_claim", "a", "b", "c"),
    "sasl.oauthbearer.token.endpoint.url": ("token_url", "file:///a", "file:///b", "file:///c"),
}


@pytest.mark.parametrize("key", [key for key in sasl_keys.FORMS if key.startswith("sasl.oauth")])
def test_a_key_of_tokens_holds_for_mechanism_listener_and_node_in_this_order(load, key):
    """As `ConfigurationUtils` and `valuesWithPrefixOverride`: the most specific form goes first."""
    if key in sasl_keys.CLASSES:
        return
    field, *values = FIELDS[key]
    texts = [value[0] if isinstance(value, tuple) else value for value in values]
    changed = dict(OAUTH)
    for form, text, value in zip(("", P, f"{P}oauthbearer."), texts, values, strict=True):
        changed[form + key] = str(text)
        config = load(**changed)
        check_servable(config)
        assert getattr(config.sasl.listeners["CONTROLLER"].oauth, field) == value
        assert not any(key in warning for warning in config.warnings)


def test_the_other_keys_of_a_listener(load):
    config = load(
        **{
            "sasl.enabled.mechanisms": "GSSAPI",
            f"{P}sasl.enabled.mechanisms": "PLAIN",
            f"{P}sasl.server.max.receive.size": "77",
            f"{P}connections.max.reauth.ms": "9",
        }
    )
    check_servable(config)
    listener = config.sasl.listeners["CONTROLLER"]
    assert listener.mechanisms == ("PLAIN",)
    assert listener.max_receive_bytes == 77
    assert listener.max_reauth_ms == {"PLAIN": 9}
    assert not any(P in warning for warning in config.warnings)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (f"{P}plain.sasl.server.max.receive.size", "it is read as sasl.server.max.receive.size or"),
        (f"{P}sasl.mechanism.controller.protocol", "read as sasl.mechanism.controller.protocol ("),
        (f"{P}connection.failed.authentication.delay.ms", "read as connection.failed"),
        (f"{P}plain.sasl.oauthbearer.expected.audience", "read as sasl.oauthbearer.expected"),
        ("sasl.jaas.config", "read as listener.name.<listener>.<mechanism>.sasl.jaas.config ("),
        (f"{P}sasl.jaas.config", "read as listener.name.<listener>.<mechanism>.sasl.jaas.config ("),
        (f"{P}PLAIN.sasl.jaas.config", "are in lower case in a key"),
        ("listener.name.CONTROLLER.sasl.enabled.mechanisms", "are in lower case in a key"),
        ("listener.name.CONTROLLER.ssl.client.auth", "are in lower case in a key"),
        ("plain.sasl.jaas.config", "Quorate does not use it"),
        (f"{P}sasl.unheard.of", "Quorate does not use it"),
        ("sasl.oauthbearer.scope", "Quorate does not use it"),
        ("ssl.unheard.of", "Quorate does not use it"),
    ],
)
def test_a_key_of_security_that_is_not_read_has_a_line(load, key, why):
    found = [text for text in load(**{key: "1"}).warnings if text.startswith(f"The key {key} is ")]
    assert len(found) == 1
    assert why in found[0]


@pytest.mark.parametrize("key", ["listener.name.clients.sasl.jaas.config", "sasl.kerberos.kinit"])
def test_a_key_for_brokers_has_no_line_of_its_own(load, key):
    assert not any(text.startswith("The key") for text in load(**{key: "1"}).warnings)


MINE = "com.example.Mine"


@pytest.mark.parametrize("value", [MINE, "com.example.OAuthBearerValidatorCallbackHandler"])
@pytest.mark.parametrize("form", ["", P, f"{P}plain.", f"{P}scram-sha-512.", f"{P}oauthbearer."])
@pytest.mark.parametrize("key", sorted(sasl_keys.CLASSES))
def test_a_class_of_others_is_refused_in_every_form(load, key, form, value):
    config = load(**{form + key: value})
    with pytest.raises(ConfigError, match=re.escape(f"{form}{key}={value} names a Java class")):
        check_servable(config)


@pytest.mark.parametrize(
    ("key", "mechanism", "value"),
    [
        (key, mechanism, value)
        for key, classes in sasl_keys.CLASSES.items()
        for mechanism, values in classes.items()
        for value in values
    ],
)
def test_a_class_of_kafka_is_accepted_for_its_mechanism(load, key, mechanism, value):
    check_servable(load(**{f"{P}{mechanism.lower()}.{key}": value}))
    if mechanism == "PLAIN":
        config = load(**{f"{P}oauthbearer.{key}": value})
        with pytest.raises(ConfigError, match="names a Java class"):
            check_servable(config)


@pytest.mark.parametrize("key", sorted(sasl_keys.CLASSES))
def test_a_client_refuses_classes_of_others(key):
    values = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": PLAIN.replace(";", " username=a password=b;"),
    }
    assert client_security(Settings(values, {})) is not None
    with pytest.raises(ConfigError, match=re.escape(f"{key}={MINE} names a Java class")):
        client_security(Settings({**values, key: MINE}, {}))


def test_a_plaintext_listener_asks_for_nothing(load):
    config = load(
        **{
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": None,
            "sasl.mechanism.controller.protocol": None,
        }
    )
    check_servable(config)
    assert config.sasl.listeners == {}


@pytest.mark.parametrize("mechanism", [None, "GSSAPI", "WHAT"])
def test_only_the_first_controller_listener_needs_a_mechanism_for_peers(load, mechanism):
    """A node logs in at its peers through their first listener (`KafkaRaftManager`)."""
    config = load(
        **{
            "controller.listener.names": "OPEN,CONTROLLER",
            "listeners": "OPEN://localhost:9092,CONTROLLER://localhost:9093",
            "listener.security.protocol.map": "OPEN:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "controller.quorum.voters": "1@localhost:9092",
            "sasl.mechanism.controller.protocol": mechanism,
        }
    )
    check_servable(config)
    assert config.sasl.listeners["CONTROLLER"].mechanisms == ("PLAIN", "SCRAM-SHA-512")
