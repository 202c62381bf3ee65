"""Properties files that Kafka refuses are refused by us in its words, and no others."""

from pathlib import Path

import pytest

from client.test_client_config import CHOICES, verdict
from config.test_config import BROKER, BROKER_REFUSALS, GOOD, REFUSALS, node_rules, wrong
from config.test_unused_keys import GROUP_ACCEPTED, GROUP_REFUSALS
from interop.java import libs
from interop.process import run_tool
from quorate.client.config import RANGES
from quorate.client.value_ranges import value_rules
from quorate.config.node_file import load_config
from quorate.config.settings import ConfigError

pytestmark = [pytest.mark.interop, pytest.mark.slow]

OWN_WORDS = {
    # Kafka names the older synonym, or nothing at all.
    ("node.id", "x"): "Invalid value x for configuration broker.id: Not a number of type INT",
    ("node.id", "1_0"): "Invalid value 1_0 for configuration broker.id: Not a number of type INT",
    ("node.id", "2147483648"): "configuration broker.id: Not a number of type INT",
    ("listeners", "nonsense"): "Unable to parse a listener name from nonsense",
    ("listener.security.protocol.map", "nonsense"): "begin 0, end -1, length 8",
    ("controller.quorum.bootstrap.servers", "h:70000"): "port out of range:70000",
    ("controller.quorum.voters", "1@h:70000"): "port out of range:70000",
    ("node.id", "1\u00a0"): "configuration broker.id: Not a number of type INT",
    ("max.connections.per.ip.overrides", "h"): "begin 0, end -1, length 1",
    ("max.connections.per.ip.overrides", "a:1,,b:2"): "begin 0, end -1, length 0",
    ("log.cleaner.threads", "0"): "/ by zero",
    ("group.share.assignors", "simple,range"): "Class range cannot be found",
    # Kafka notices later, when it binds the port, or never.
    ("listeners", "CONTROLLER://h:99999"): "accepted",
    ("controller.quorum.voters", "1@h:1,1@h:2"): "accepted",
    ("quorate.metrics.listener", "nonsense"): "accepted",
}
"""Where ours are better; with a part of what Kafka says."""

ACCEPTED = [
    {},
    {"log.dirs": "a,b,a", "process.roles": "controller,controller"},
    {"listeners": "CONTROLLER://:9093", "controller.quorum.voters": "1@localhost:9093"},
    {"listeners": "CONTROLLER://[::1]:9093,C2://127.0.0.1:9093",
     "controller.listener.names": "CONTROLLER,C2"},
    {"listeners": "CONTROLLER://a:1,C2://:2", "controller.listener.names": "CONTROLLER,C2",
     "advertised.listeners": "C2://b:1"},
    {"controller.quorum.voters": "1@0.0.0.0:1, 2@[::1]:2 ,3@C://h:3"},
    {"listener.security.protocol.map": "controller:PLAINTEXT , B:ssl"},
    {"node.id": "+1", "broker.id": "1"},
    {"metadata.log.max.snapshot.interval.ms": " 0 "},
    {"controller.quorum.auto.join.enable": "TRUE"},
    {"inter.broker.listener.name": "i", "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,"
     "I:SASL_SSL", "listener.name.i.sasl.enabled.mechanisms": "GSSAPI"},
    {"security.inter.broker.protocol": "SASL_PLAINTEXT"},
    {"early.start.listeners": " CONTROLLER "},
    {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "localhost:5, ::1:+6"},
    {"connections.max.idle.ms": "-1", "connection.failed.authentication.delay.ms": "5"},
    {"log.retention.hours": "-1", "log.roll.ms": "1", "log.cleaner.threads": "127"},
    {"log.retention.minutes": "0", "log.retention.ms": "-1", "log.cleanup.policy": ""},
    {"replica.fetch.wait.max.ms": "30000", "compression.gzip.level": "-1"},
    {"remote.log.manager.task.retry.jitter": " 5.e-1f", "log.cleaner.io.buffer.load.factor": "NaN"},
    {"group.coordinator.rebalance.protocols": "share,classic"},
]  # fmt: skip


def test_kafka_says_the_same_of_every_file(tmp_path):
    cases = [(GOOD, change) for change, _ in REFUSALS + GROUP_REFUSALS]
    cases += [(BROKER, change) for change, _ in BROKER_REFUSALS]
    cases += [(GOOD, change) for change in ACCEPTED + GROUP_ACCEPTED]
    cases += [(GOOD, {key: wrong(rule)[0]}) for key, rule in node_rules()]
    cases += [(BROKER, {})]
    paths = [
        write(tmp_path / str(index), base | change) for index, (base, change) in enumerate(cases)
    ]
    source = Path(__file__).with_name("ConfigMessages.java")
    run = run_tool(["java", "-cp", f"{libs()}/*", str(source), *map(str, paths)], timeout=120)
    assert run.returncode == 0, run
    said = [line.removeprefix("requirement failed: ") for line in run.stdout.splitlines()]
    assert len(said) == len(cases)
    for (_, change), path, theirs in zip(cases, paths, said, strict=True):
        expected = [part for key, part in OWN_WORDS.items() if key in change.items()]
        if expected:
            assert expected[0] in theirs, change
            assert ours(path) != "accepted", change
        else:
            assert ours(path) == theirs, change


def test_kafkas_admin_client_says_the_same_of_a_command_config(tmp_path):
    cases = [{key: wrong(rule)[0]} for key, rule in value_rules(RANGES)]
    cases += [{key: value} for key, value, _ in CHOICES]
    cases += [{}, {"retries": "0"}, {"metadata.recovery.strategy": "none"}]
    paths = [write(tmp_path / str(index), case) for index, case in enumerate(cases)]
    source = Path(__file__).with_name("ClientConfigMessages.java")
    run = run_tool(["java", "-cp", f"{libs()}/*", str(source), *map(str, paths)], timeout=120)
    assert run.returncode == 0, run
    for case, path, theirs in zip(cases, paths, run.stdout.splitlines(), strict=True):
        [(key, value)] = case.items() or [("client.id", "")]
        assert verdict(path, key, value) == theirs, case


def write(path, values):
    lines = [f"{key}={value}\n" for key, value in values.items() if value is not None]
    path.write_text("".join(lines))
    return path


def ours(path):
    try:
        load_config(path)
    except ConfigError as error:
        return error.reason
    return "accepted"
