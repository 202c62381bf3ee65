"""The keys of TLS and SASL: the tables of docs/security.md, what a node reads, and what it warns of."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from quorate.config import sasl_keys
from quorate.config.node_file import config_of, unknown_keys
from quorate.config.security_settings import TLS_KEYS, listener_values
from quorate.config.settings import Settings
from quorate.config.unsupported import unsupported
from quorate.config_definitions.definition import broker_configs
from quorate.security.tls.contexts import client_context, server_context
from quorate.security.tls.stores import StoreError
from quorate.server.node_security import NodeSecurity

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
ROW = re.compile(r"^\| (`[^|]*) \| ([^|]*) \|$", re.M)
NODE = {
    "node.id": "1",
    "process.roles": "controller",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
    "log.dirs": "/data",
}


def table(heading):
    """Key -> what the page says of it."""
    text = PAGE.partition(f"## {heading}\n")[2].partition("\n##")[0]
    return {
        key: what
        for names, what in ROW.findall(text)
        for key in re.findall(r"`([a-z.A-Z]+)`", names)
    }


TLS, SASL = table("Keys"), table("Keys of SASL")


class Recorder(Mapping[str, Any]):
    """Notes which keys are read."""

    def __init__(self, values):
        self.values_of, self.read = values, set()

    def __getitem__(self, key):
        self.read.add(key)
        return self.values_of[key]

    def __iter__(self):
        return iter(self.values_of)

    def __len__(self):
        return len(self.values_of)


def settings(**keys):
    return Settings({**NODE, **keys}, {})


def test_the_table_of_tls_has_every_key_that_kafka_and_the_node_have():
    kafkas = {key for key in broker_configs() if key.startswith("ssl.")}
    assert kafkas <= set(TLS)
    assert set(TLS) == TLS_KEYS


def test_the_code_reads_the_keys_of_the_table_and_no_other():
    recorders = [Recorder({}), Recorder({"ssl.keystore.location": "/none"}), Recorder({})]
    pem = Recorder({"ssl.keystore.key": "x", "ssl.keystore.certificate.chain": "y"})
    for make, values in (
        (client_context, recorders[0]),
        (server_context, recorders[1]),
        (server_context, recorders[2]),
        (server_context, pem),
    ):
        try:
            make(values)
        except StoreError:
            continue
    read = set().union(*(one.read for one in (*recorders, pem)))
    assert read <= TLS_KEYS
    assert {"ssl.keystore.key", "ssl.truststore.location", "ssl.cipher.suites"} <= read


@pytest.mark.parametrize("key", sorted(key for key, what in TLS.items() if "Refused" in what))
def test_what_the_table_refuses_is_refused(key, tmp_path):
    with pytest.raises(StoreError, match=re.escape(key)):
        client_context({key: "org.example.Mine"})


def test_another_principal_builder_is_refused():
    config = config_of(settings(**{"principal.builder.class": "org.example.Mine"}))
    assert [error.key for error in unsupported(config)] == ["principal.builder.class"]


def test_the_table_of_sasl_has_the_keys_that_the_code_reads():
    known = set()
    for key in SASL:
        if key.startswith("."):
            known.add("sasl.oauthbearer" + key)
        elif "LISTENER" not in key and "." in key:
            known.add(key)
    page = PAGE.partition("## SASL\n")[2]
    for key in sasl_keys.FORMS:
        assert key in known or f"`{key}" in page, key
    for key in known:
        assert key in sasl_keys.FORMS, key


@pytest.mark.parametrize(
    "key", sorted(key for key, what in SASL.items() if "but for Kafka's" in what)
)
def test_what_the_table_of_sasl_refuses_is_refused(key):
    config = config_of(
        settings(
            **{
                "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                ("sasl.oauthbearer" + key if key.startswith(".") else key): "org.example.Mine",
            }
        )
    )
    assert config.sasl.problem is not None
    assert key in str(config.sasl.problem)


@pytest.mark.parametrize("prefix", ["", "listener.name.controller."])
def test_no_key_of_tls_is_said_to_be_ignored(prefix):
    assert unknown_keys(settings(**{prefix + key: "x" for key in TLS_KEYS})) == []
    assert unknown_keys(settings(**{prefix + "ssl.unheard.of": "x"})) == [prefix + "ssl.unheard.of"]


PLAIN_KEY, OWN_KEY = "ssl.client.auth", "listener.name.controller.ssl.client.auth"


@pytest.mark.parametrize(
    ("protocol", "keys", "asks", "warns"),
    [
        ("SSL", {PLAIN_KEY: "required"}, "required", False),
        ("SASL_SSL", {PLAIN_KEY: "required"}, None, True),
        ("SASL_SSL", {PLAIN_KEY: "none"}, None, False),
        ("SASL_SSL", {OWN_KEY: "required"}, "required", False),
        ("SASL_SSL", {PLAIN_KEY: "none", OWN_KEY: "requested"}, "requested", False),
        ("SASL_SSL", {}, None, False),
        ("PLAINTEXT", {PLAIN_KEY: "required"}, "required", False),
    ],
)
def test_sasl_ssl_asks_for_certificates_with_the_prefix_of_the_listener_only(
    protocol, keys, asks, warns
):
    """As Kafka does (KIP-684): a file shared with brokers often has the plain key for theirs."""
    assert listener_values(keys, "CONTROLLER", protocol).get(PLAIN_KEY) == asks
    config = config_of(
        settings(**{"listener.security.protocol.map": f"CONTROLLER:{protocol}", **keys})
    )
    found = [one for one in config.warnings if PLAIN_KEY in one]
    assert bool(found) == warns
    assert all(OWN_KEY in one for one in found)


def test_a_plaintext_node_reads_no_store():
    """A file that is shared with a broker may name stores that are not on this machine."""
    NodeSecurity(config_of(settings(**{"ssl.keystore.location": "/none"})))
