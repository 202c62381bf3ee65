"""`quorate storage check` with several faults at once: each has its row, what only follows has none."""

import pytest

from cli.test_storage_check import Controller
from quorate.config.collecting import CollectingSettings
from quorate.config.node_config import SETTINGS
from quorate.config.paths import PATH_KEYS
from quorate.config.properties_file import read_as
from quorate.config_definitions.definition import ConfigType, broker_configs
from quorate.formats.records import FeatureLevelRecord, encode_record
from quorate.server.preflight import findings

_NUMBERS = (ConfigType.INT, ConfigType.LONG, ConfigType.SHORT, ConfigType.DOUBLE)


@pytest.fixture
def controller(tmp_path):
    return Controller(tmp_path, "a-first/node1")


def rows(controller, **keys):
    controller.write(**keys)
    return [one for one in findings(read_as(CollectingSettings, controller.path)) if one.blocks]


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


FAULTS: dict[str, dict[str, str | None]] = {
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


@pytest.mark.parametrize("key", PATH_KEYS)
def test_a_name_that_no_file_can_have_is_one_row_among_others(controller, key):
    controller.keys[key] = "/no\\u0000where"
    assert abouts(controller, num_io_threads="x") == sorted([key, "num.io.threads"])


def test_each_key_of_tls_and_of_a_login_has_its_row(controller):
    found = abouts(
        controller,
        listeners="CONTROLLER://localhost:9093,OTHER://localhost:9094,THIRD://localhost:9095",
        controller_listener_names="CONTROLLER,OTHER,THIRD",
        listener_security_protocol_map="CONTROLLER:SSL,OTHER:SASL_PLAINTEXT,THIRD:SSL",
        ssl_keystore_location="/nowhere/key.p12",
        ssl_truststore_location="/nowhere/trust.p12",
        ssl_client_auth="often",
        ssl_enabled_protocols="SSLv3",
        ssl_provider="Mine",
        ssl_principal_mapping_rules="RULE:wrong",
        sasl_enabled_mechanisms="PLAIN,GSSAPI,SCRAM-SHA-256",
        **{
            "listener.name.other.plain.sasl.jaas.config": "no module",
            "sasl.login.class": "com.example.Login",
            "sasl.server.max.receive.size": "much",
        },
    )
    assert found.count("ssl.keystore.location") == 2  # of CONTROLLER, and of THIRD
    assert sorted(set(found)) == [
        "listener.name.other.plain.sasl.jaas.config",
        "listener.name.other.scram-sha-256.sasl.jaas.config",
        "sasl.enabled.mechanisms",
        "sasl.login.class",
        "sasl.server.max.receive.size",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.keystore.location",
        "ssl.principal.mapping.rules",
        "ssl.provider",
        "ssl.truststore.location",
    ]


def test_each_directory_and_the_log_have_their_rows(controller, tmp_path):
    segment = next(controller.home.glob("*/*.log"))
    segment.chmod(0o600)
    segment.write_bytes(b"x" * 100 + segment.read_bytes())
    (controller.home / "bootstrap.checkpoint").unlink(missing_ok=True)
    (controller.home / "bootstrap.checkpoint").write_bytes(b"damage" * 20)
    more = [str(tmp_path / name) for name in ("one", "two")]
    found = rows(controller, node_id="77", log_dirs=",".join((str(controller.home), *more)))
    homes = [one.reason for one in found if one.about == str(controller.home)]
    directories = [one.reason for one in found if one.about == "log.dirs"]
    assert len(homes) == 2 and "bootstrap.checkpoint" in homes[1]
    assert "Stored node id 1" in directories[0]
    assert [name for name in more if name in str(directories[1:])] == more


def test_each_reference_without_a_value_has_its_row(controller):
    found = abouts(
        controller,
        config_providers="env,mine",
        config_providers_env_class="org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        config_providers_mine_class="com.example.Provider",
        num_partitions="${env:QUORATE_NO_SUCH_NAME}",
        log_dirs="${env:QUORATE_NO_SUCH_NAME}",
        num_io_threads="${mine:x}",
        broker_session_timeout_ms="x",
    )
    assert found == [
        "broker.session.timeout.ms",
        "config.providers.mine.class",
        "log.dirs",
        "num.partitions",
    ]


def test_each_level_beyond_ours_has_one_row(controller):
    levels = [("metadata.version", 34), ("group.version", 99), ("metadata.version", 34)]
    for name, level in levels:
        record = FeatureLevelRecord(name=name, feature_level=level)
        controller.append(encode_record(record, 0))
    first, second = (one.reason for one in rows(controller))
    assert "metadata.version has level 34" in first and "group.version has level 99" in second


def test_the_command_prints_every_row(controller, quorate):
    faulty(controller, "broker.session.timeout.ms", "super.users", "log.cleaner.threads")
    controller.write()
    outcome = quorate("storage", "check", "-c", controller.path)
    assert outcome.code == 1
    assert outcome.out.count("\nyes ") == 3
    assert "\nno " not in outcome.out  # a key that blocks is not called ignored
    assert f"{controller.path}, line " in outcome.out
