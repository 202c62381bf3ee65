"""The keys of SASL: their forms, and what is refused by name."""

import pytest

from quorate.config.node_file import load_config
from quorate.config.settings import ConfigError
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
    assert config.sasl.max_receive_bytes == 1000
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
