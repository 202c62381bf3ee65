"""A tool's `--command-config`: Kafka's client properties, and how wrong values are refused."""

import pytest

from config.test_config import wrong
from quorate.client.config import RANGES, client_config
from quorate.client.value_ranges import value_rules
from quorate.config.properties_file import read_settings
from quorate.config.settings import ConfigError

CHOICES = [
    ("client.dns.lookup", "x", "must be one of: use_all_dns_ips, resolve_canonical"),
    ("metrics.recording.level", "info", "String must be one of: INFO, DEBUG, TRACE"),
    ("metadata.recovery.strategy", "x", "must be one of (case insensitive): REBOOTSTRAP, NONE"),
]


def verdict(path, key, value):
    path.write_text(f"{key}={value}\n")
    try:
        client_config(read_settings(path), controllers="localhost:1")
    except ConfigError as error:
        return error.reason
    return "accepted"


@pytest.mark.parametrize(("key", "rule"), list(value_rules(RANGES)))
def test_a_wrong_value_is_refused_with_the_message_of_kafkas_clients(tmp_path, key, rule):
    value, shown, why = wrong(rule)
    said = verdict(tmp_path / "p", key, value)
    assert said.startswith(f"Invalid value {shown} for configuration {key}") and why in said


@pytest.mark.parametrize(("key", "value", "why"), CHOICES)
def test_an_unknown_choice_is_refused(tmp_path, key, value, why):
    assert why in verdict(tmp_path / "p", key, value)


def test_a_nodes_file_also_configures_its_tools(tmp_path):
    assert verdict(tmp_path / "p", "retries", " 3 ") == "accepted"
    assert verdict(tmp_path / "p", "metadata.recovery.strategy", "None") == "accepted"
    assert verdict(tmp_path / "p", "node.id", "1") == "accepted"
