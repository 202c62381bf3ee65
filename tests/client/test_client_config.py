"""A tool's `--command-config`: Kafka's client properties, and how wrong values are refused."""

import pytest

from node.test_config import wrong
from quorate.client.config import client_config
from quorate.client.keys import RANGES
from quorate.node.config import ConfigError
from quorate.node.kafka_keys import rules
from quorate.node.settings_file import read_settings

CHOICES = [
    ("client.dns.lookup", "x", "must be one of: use_all_dns_ips, resolve_canonical"),
    ("metrics.recording.level", "info", "String must be one of: INFO, DEBUG, TRACE"),
    ("metadata.recovery.strategy", "x", "must be one of (case insensitive): REBOOTSTRAP, NONE"),
]


def told(path, key, value):
    path.write_text(f"{key}={value}\n")
    try:
        client_config(read_settings(path), controllers="localhost:1")
    except ConfigError as error:
        return error.reason
    return "accepted"


@pytest.mark.parametrize(("key", "rule"), list(rules(RANGES)))
def test_a_value_that_kafkas_clients_refuse_is_refused_in_their_words(tmp_path, key, rule):
    value, shown, why = wrong(rule)
    said = told(tmp_path / "p", key, value)
    assert said.startswith(f"Invalid value {shown} for configuration {key}") and why in said


@pytest.mark.parametrize(("key", "value", "why"), CHOICES)
def test_a_choice_that_there_is_not(tmp_path, key, value, why):
    assert why in told(tmp_path / "p", key, value)


def test_the_file_of_a_node_serves_its_tools_too(tmp_path):
    assert told(tmp_path / "p", "retries", " 3 ") == "accepted"
    assert told(tmp_path / "p", "metadata.recovery.strategy", "None") == "accepted"
    assert told(tmp_path / "p", "node.id", "1") == "accepted"
