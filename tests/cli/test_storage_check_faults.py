"""`quorate storage check` with several faults at once: each has its row, what only follows has none."""

import pytest

from cli.test_storage_check import Controller
from quorate.config.collecting import CollectingSettings
from quorate.config.node_config import SETTINGS
from quorate.config.properties_file import read_settings
from quorate.config_definitions.definition import ConfigType, broker_configs
from quorate.server.preflight import findings

_NUMBERS = (ConfigType.INT, ConfigType.LONG, ConfigType.SHORT, ConfigType.DOUBLE)


@pytest.fixture
def controller(tmp_path):
    return Controller(tmp_path, "a-first/node1")


def rows(controller, **keys):
    controller.write(**keys)
    return [
        one
        for one in findings(read_settings(controller.path, (), CollectingSettings))
        if one.blocks
    ]


def abouts(controller, **keys):
    return sorted(one.about for one in rows(controller, **keys))


def test_every_number_and_flag_that_is_wrong_has_one_row(controller):
    wrong = {
        name
        for name, definition in broker_configs().items()
        if definition.type in (*_NUMBERS, ConfigType.BOOLEAN)
    } | SETTINGS.keys()
    assert len(wrong) > 200
    controller.keys |= dict.fromkeys(wrong, "wrong")
    assert abouts(controller) == sorted(wrong)


FAULTS = {
    "process.roles": {"process.roles": "controler"},
    "node.id": {"node.id": "-1"},
    "controller.listener.names": {"controller.listener.names": None},
    "listeners": {"listeners": "CONTROLLER//localhost:9093"},
    "listener.security.protocol.map": {"listener.security.protocol.map": "CONTROLLER:PLAIN"},
    "advertised.listeners": {"advertised.listeners": "CONTROLLER://0.0.0.0:9093"},
    "controller.quorum.bootstrap.servers": {"controller.quorum.bootstrap.servers": "localhost"},
    "controller.quorum.voters": {"controller.quorum.voters": "1@localhost"},
    "log.dirs": {"log.dirs": ""},
    "super.users": {"super.users": "Bob"},
    "early.start.listeners": {"early.start.listeners": "OTHER"},
    "broker.session.timeout.ms": {"broker.session.timeout.ms": "x"},
    "log.cleaner.threads": {"log.cleaner.threads": "many"},
    "replica.socket.timeout.ms": {"replica.socket.timeout.ms": "1"},
    "queued.max.request.bytes": {"queued.max.request.bytes": "1"},
    "max.connections.per.ip": {"max.connections.per.ip": "0"},
    "max.connections.per.ip.overrides": {"max.connections.per.ip.overrides": "localhost"},
    "connections.max.idle.ms": {"connections.max.idle.ms": "1"},
    "group.coordinator.rebalance.protocols": {"group.coordinator.rebalance.protocols": "consumer"},
    "group.consumer.max.session.timeout.ms": {"group.consumer.max.session.timeout.ms": "1"},
    "offsets.topic.compression.codec": {"offsets.topic.compression.codec": "9"},
    "quorate.create.topic.policy": {"quorate.create.topic.policy": "no-module"},
    "quorate.alter.config.policy": {"quorate.alter.config.policy": "no_module:name"},
    "quorate.principal.builder": {"quorate.principal.builder": "no_module:name"},
    "quorate.metrics.listener": {"quorate.metrics.listener": "here"},
    "quorate.metrics.open.paths": {"quorate.metrics.open.paths": "healthz"},
    "quorate.metrics.credentials.file": {"quorate.metrics.credentials.file": "/nowhere"},
    "quorate.authorizer.log.level": {"quorate.authorizer.log.level": "LOUD"},
    "quorate.authorizer.log.format": {"quorate.authorizer.log.format": "xml"},
    "authorizer.class.name": {"authorizer.class.name": "com.example.Authorizer"},
    "principal.builder.class": {"principal.builder.class": "com.example.Builder"},
    "create.topic.policy.class.name": {"create.topic.policy.class.name": "com.example.Topics"},
    "client.quota.callback.class": {"client.quota.callback.class": "com.example.Quotas"},
}
"""What the row is about -> keys of the file that cause it and nothing else; None: without the key."""


def faulty(controller, *names):
    for name in names:
        for key, value in FAULTS[name].items():
            controller.keys.pop(key, None)
            if value is not None:
                controller.keys[key] = value


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_one_row_and_nothing_that_only_follows(controller, name):
    faulty(controller, name)
    assert abouts(controller) in ([name], [f"{name}.class.name"])


_APART = (
    *("quorate.principal.builder", "quorate.create.topic.policy"),  # in the place of a Java class
    *("max.connections.per.ip", "early.start.listeners"),  # open, as another key has a fault
)


def test_all_faults_together_have_the_same_rows(controller):
    names = [name for name in FAULTS if name not in _APART]
    faulty(controller, *names)
    assert abouts(controller) == sorted(names)


@pytest.mark.parametrize("first", FAULTS)
def test_no_fault_hides_a_wrong_number_a_class_or_the_directory(controller, first):
    faulty(controller, first)
    (controller.home / "meta.properties").unlink()
    found = abouts(controller, num_io_threads="x", client_quota_callback_class="com.example.Quotas")
    directories = [] if first == "log.dirs" else ["log.dirs"]
    assert sorted({first, "num.io.threads", "client.quota.callback.class", *directories}) == found


def test_each_wrong_entry_of_a_list_has_its_row(controller):
    found = rows(
        controller,
        super_users="Bob;User:alice;Eve",
        controller_quorum_bootstrap_servers="localhost:9093,one,two",
        quorate_metrics_open_paths="one,two,/three",
    )
    assert len(found) == 6
    assert (
        sum("Bob" in one.reason for one in found) == sum("Eve" in one.reason for one in found) == 1
    )


def test_the_command_prints_every_row(controller, quorate):
    faulty(controller, "broker.session.timeout.ms", "super.users", "log.cleaner.threads")
    controller.write()
    outcome = quorate("storage", "check", "-c", controller.path)
    assert outcome.code == 1
    assert outcome.out.count("\nyes ") == 3
    assert f"{controller.path}, line " in outcome.out
