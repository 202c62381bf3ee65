"""The tables do not keep the values that Kafka hides."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from interop.java import libs
from quorate.formats.json_text import to_json
from quorate.formats.records import ConfigRecord
from quorate.spark.tables.secrets import is_secret_config, shown_record

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
OF_PLUGINS = (
    *("my.plugin.api.token", "aws.secret.access.key", "ldap.bind.passwd", "confluent.credentials"),
    *("remote.log.storage.manager.impl.prefix.s3.secret.key", "SSL.KEY.PASSWORD", ""),
    *("listener.name.ext.my.token", "listener.name.ext.", "listener.name.ext", "retention.ms2"),
)
PASSWORDS = (
    *("ssl.key.password", "ssl.keystore.key", "ssl.keystore.password", "ssl.truststore.password"),
    *("ssl.keystore.certificate.chain", "ssl.truststore.certificates", "sasl.jaas.config"),
    *("delegation.token.secret.key", "sasl.oauthbearer.assertion.private.key.passphrase"),
    "sasl.oauthbearer.client.credentials.client.secret",
)
LISTENERS = (
    *(f"listener.name.ext.{name}" for name in (*PASSWORDS, "ssl.keystore.location", "listeners")),
    "listener.name.ext.scram-sha-256.sasl.jaas.config",
    "listener.name.ext.plain.sasl.login.class",
    "listener.name.a.b.ssl.keystore.location",
)
OF_3_9 = {
    *("message.downconversion.enable", "message.format.version"),
    *("message.timestamp.difference.max.ms", "log.message.downconversion.enable"),
    *("log.message.format.version", "log.message.timestamp.difference.max.ms"),
    "inter.broker.protocol.version",
}


@pytest.mark.parametrize("name", [*PASSWORDS, *OF_PLUGINS])
def test_passwords_and_what_kafka_does_not_know_are_secret(name):
    assert is_secret_config(BROKER, name)
    assert is_secret_config(BROKER, f"listener.name.ext.{name}")
    assert is_secret_config(TOPIC, name) and is_secret_config(GROUP, name)
    assert is_secret_config(0, name) and is_secret_config(99, name)


@pytest.mark.parametrize(
    ("resource_type", "name"),
    [
        (BROKER, "log.retention.ms"),
        (BROKER, "follower.replication.throttled.rate"),
        (BROKER, "listener.name.ext.ssl.keystore.location"),
        (BROKER, "listener.name.ext.plain.sasl.login.class"),
        (TOPIC, "retention.ms"),
        (TOPIC, "message.format.version"),
        (GROUP, "consumer.session.timeout.ms"),
        (CLIENT_METRICS, "interval.ms"),
        (BROKER_LOGGER, "org.apache.kafka"),
    ],
)
def test_other_configs_that_kafka_knows_are_shown(resource_type, name):
    assert not is_secret_config(resource_type, name)


@pytest.mark.interop
@pytest.mark.slow
def test_kafka_hides_the_same():
    source = Path(__file__).with_name("HiddenConfigs.java")
    asked = "".join(f"{name}\n" for name in (*OF_PLUGINS, *LISTENERS))
    command = ["java", "-cp", f"{libs()}/*", str(source)]
    run = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run
    said = [line.split(" ") for line in run.stdout.splitlines()]
    assert len(said) > 2000
    wrong = [
        (resource_type, name, word)
        for resource_type, name, word in said
        if name not in OF_3_9 and is_secret_config(int(resource_type), name) != (word == "hidden")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("listener.name.ext.ssl.truststore.certificates", "TOP", "[hidden]"),
        ("aws.secret.access.key", "TOP", "[hidden]"),
        ("aws.secret.access.key", None, None),
        ("log.retention.ms", "1000", "1000"),
    ],
)
def test_the_record_of_a_secret_config_is_kept_without_its_value(name, value, kept):
    record = ConfigRecord(resource_type=BROKER, resource_name="1", name=name, value=value)
    fields = json.loads(to_json(record, 0))
    shown = json.loads(shown_record("ConfigRecord", to_json(record, 0)))
    assert shown == {**fields, "value": kept}
