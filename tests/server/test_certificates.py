"""What a node says about its certificates: log, metrics, and the detail of `/readyz`."""

import http.client
import json
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme
from prometheus_client.parser import text_string_to_metric_families

from interop.kafka import HOST, Quorum, free_port, wait_for
from narrow import as_any
from quorate.config.node_file import load_config
from quorate.security.tls.reload import ReloadingContext, read_here
from quorate.server.certificates import CertificateState, security_detail
from quorate.server.node_security import POLL_S, NodeSecurity

CA = trustme.CA()
DAY_S = 86_400.0
LISTENER, PEERS = "listener CONTROLLER", "connections to controllers"
SOCKETS = "kafka_server_socket_server_metrics_"


def days_left(state):
    assert state.days_to_expiry is not None
    return state.days_to_expiry


class Loop:
    """Time that passes from timer to timer. What runs in a thread elsewhere runs at once."""

    def __init__(self):
        self.now = 0.0
        self.timers = []

    def time(self):
        return self.now

    def call_later(self, delay, call, *args):
        self.timers.append((self.now + delay, call, args))

    def create_task(self, job):
        with pytest.raises(StopIteration):
            job.send(None)

    async def run_in_executor(self, pool, call, *args):
        return call(*args)

    def pass_to_next(self):
        self.now, call, args = self.timers.pop(0)
        call(*args)


def watch(security, loop, dynamic=dict):
    security.watch(as_any(loop), dynamic, read_here)


def write_key(path, *names, **more):
    issued = CA.issue_cert(*names, organization_unit_name="node", **more)
    path.write_bytes(
        b"".join(one.bytes() for one in (issued.private_key_pem, *issued.cert_chain_pems))
    )
    path.chmod(0o600)


def tls(directory):
    write_key(directory / "node.pem", HOST)
    (directory / "ca.pem").write_bytes(CA.cert_pem.bytes())
    return {
        "listener.security.protocol.map": "CONTROLLER:SSL",
        "ssl.keystore.location": directory / "node.pem",
        "ssl.truststore.location": directory / "ca.pem",
    }


@pytest.fixture
def config(tmp_path):
    keys = {
        "process.roles": "controller",
        "node.id": 1,
        "listeners": "CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "log.dirs": tmp_path,
        **tls(tmp_path),
    }
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return load_config(str(path))


def test_a_broken_new_file_keeps_the_old_one_and_is_reported_until_it_is_repaired(
    config, tmp_path, caplog
):
    security, loop = NodeSecurity(config), Loop()
    watch(security, loop)
    before = security.certificates()
    assert set(before) == {LISTENER, PEERS}
    assert all(state.fault is None and days_left(state) > 0 for state in before.values())
    (tmp_path / "node.pem").write_text("broken")
    for _ in range(3):
        loop.pass_to_next()
    for state in security.certificates().values():
        assert state.fault is not None and "node.pem" in state.fault
        assert state.refused_changes == 1, "it is counted once, not at each look"
        assert days_left(state) > 0, "that of the certificate in use"
    assert (
        f"The changed certificates of {LISTENER} cannot be used, the old ones stay" in caplog.text
    )
    write_key(tmp_path / "node.pem", HOST)
    loop.pass_to_next()
    assert {state.fault for state in security.certificates().values()} == {None}
    assert {state.refused_changes for state in security.certificates().values()} == {1}


def test_a_dynamic_config_of_security_without_effect_is_named_once(config, tmp_path, caplog):
    """Kafka takes and shows them, too, and its controllers do not read them."""
    security, loop = NodeSecurity(config), Loop()
    own, other = "listener.name.controller.", "listener.name.external."
    useless = (
        *("scram-sha-512.sasl.jaas.config", "sasl.enabled.mechanisms", "ssl.client.auth"),
        "connections.max.reauth.ms",
    )
    dynamic = {f"{prefix}{key}": "secret" for prefix in (own, other) for key in useless}
    dynamic |= {f"{own}ssl.keystore.location": str(tmp_path / "node.pem"), "sasl.jaas.config": "x"}
    watch(security, loop, lambda: dynamic)
    loop.pass_to_next()
    warned = [line for line in caplog.messages if "has no effect in a controller" in line]
    assert sorted(line.split()[3] for line in warned) == sorted(f"{own}{key}" for key in useless)
    assert "secret" not in caplog.text


def test_the_dynamic_configs_of_the_node_name_other_stores(config, tmp_path, caplog):
    """As in Kafka, only those with the prefix of the listener count, and a broken one keeps the old."""
    security, loop = NodeSecurity(config), Loop()
    dynamic: dict[str, Any] = {}
    watch(security, loop, lambda: dynamic)

    def contexts():
        return [one.context for one in security._certificates.values()]

    first = contexts()
    write_key(tmp_path / "new.pem", HOST)
    dynamic = {"ssl.keystore.location": str(tmp_path / "new.pem"), "ssl.client.auth": "required"}
    loop.pass_to_next()
    assert contexts() == first
    place = "listener.name.controller.ssl.keystore.location"
    dynamic = {place: str(tmp_path / "absent.pem")}
    for _ in range(2):
        loop.pass_to_next()
    assert contexts() == first
    assert {state.refused_changes for state in security.certificates().values()} == {1}
    assert "absent.pem" in caplog.text
    dynamic = {place: str(tmp_path / "new.pem")}
    loop.pass_to_next()
    second = contexts()
    assert not set(first) & set(second)
    assert {state.fault for state in security.certificates().values()} == {None}
    write_key(tmp_path / "new.pem", HOST)
    loop.pass_to_next()
    assert not set(second) & set(contexts())
    dynamic = {}
    (tmp_path / "new.pem").unlink()
    loop.pass_to_next()
    assert {state.fault for state in security.certificates().values()} == {None}


def test_inline_stores_of_dynamic_configs_take_the_place_of_files(config, tmp_path):
    """A key is refused until its certificate is there: Kafka would use it, and fail each handshake."""
    security, loop = NodeSecurity(config), Loop()
    dynamic: dict[str, Any] = {}
    watch(security, loop, lambda: dynamic)
    prefix = "listener.name.controller.ssl."
    write_key(tmp_path / "new.pem", HOST)
    key, begin, chain = (tmp_path / "new.pem").read_text().partition("-----BEGIN CERTIFICATE-----")

    def faults():
        loop.pass_to_next()
        return {state.fault for state in security.certificates().values()}

    inline = {f"{prefix}keystore.key": key, f"{prefix}keystore.certificate.chain": begin + chain}
    dynamic = dict(inline)
    assert faults() == {"ssl.keystore.key: set ssl.keystore.location or this key, not both"}
    dynamic = {**inline, f"{prefix}keystore.location": ""}
    assert faults() == {None}
    other = (tmp_path / "node.pem").read_text().partition(begin)
    dynamic |= {f"{prefix}keystore.key": other[0]}
    assert faults() == {
        "ssl.keystore.key: the private key does not belong to the first certificate"
    }
    dynamic |= {f"{prefix}keystore.certificate.chain": begin + other[2]}
    assert faults() == {None}
    dynamic |= {f"{prefix}truststore.certificates": "none", f"{prefix}truststore.location": ""}
    assert "holds no certificate" in str(*faults() - {None})
    dynamic = {}
    assert faults() == {None}


def test_a_key_store_of_a_dynamic_config_that_others_can_read_is_warned_of(
    config, tmp_path, caplog
):
    security, loop = NodeSecurity(config), Loop()
    place = "listener.name.controller.ssl.keystore.location"
    dynamic: dict[str, Any] = {}
    watch(security, loop, lambda: dynamic)
    for name, mode in (("closed", 0o600), ("open", 0o640), ("broken", 0o604)):
        write_key(path := tmp_path / f"{name}.pem", HOST)
        if name == "broken":
            path.write_text("broken")
        path.chmod(mode)
        dynamic = {place: str(path)}
        for _ in range(2):
            loop.pass_to_next()
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert [text.partition(":")[0] for text in warnings] == [
        f"{tmp_path / name}.pem holds the private key of {place}, and {who} can read it (mode {mode})"
        for name, who, mode in (("open", "its group", "0640"), ("broken", "everybody", "0604"))
    ]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"], ids=["NUL", "half a surrogate pair"])
def test_a_dynamic_config_with_a_name_that_no_file_has_keeps_the_old_stores(config, name):
    """Any client with ALTER_CONFIGS can set it."""
    security, loop = NodeSecurity(config), Loop()
    keys = [
        f"listener.name.controller.ssl.{store}.location" for store in ("keystore", "truststore")
    ]
    dynamic: dict[str, Any] = {}
    watch(security, loop, lambda: dynamic)
    for key in keys:
        dynamic = {key: name}
        loop.pass_to_next()
        faults = [state.fault for state in security.certificates().values() if state.fault]
        assert faults and all("no file has such a name" in fault for fault in faults)


def test_a_certificate_that_expires_soon_is_logged_daily(config, caplog):
    now = days_left(NodeSecurity(config).certificates()[LISTENER])

    def wall_s():
        return later.now + start

    later = Loop()
    start = 0.0
    lifetime = days_left(NodeSecurity(config, wall_s).certificates()[LISTENER])
    assert lifetime > now
    start = (lifetime - 14.5) * DAY_S
    security = NodeSecurity(config, wall_s)
    watch(security, later)
    assert "expires" not in caplog.text
    while later.now < 2 * DAY_S + POLL_S:
        later.pass_to_next()
    lines = [line for line in caplog.messages if LISTENER in line]
    assert [line.rpartition("expires in ")[2] for line in lines] == [
        "13.5 days: renew it",
        "12.5 days: renew it",
    ]
    start = (lifetime + 1) * DAY_S
    caplog.clear()
    watch(NodeSecurity(config, wall_s), Loop())
    assert f"The certificate of {LISTENER} has expired: renew it" in caplog.text


def test_a_new_certificate_that_expires_soon_is_logged_at_once(config, tmp_path, caplog):
    security, loop = NodeSecurity(config), Loop()
    watch(security, loop)
    loop.pass_to_next()
    soon = datetime.now(UTC) + timedelta(days=3)
    write_key(tmp_path / "node.pem", HOST, not_after=soon)
    loop.pass_to_next()
    assert f"The certificate of {LISTENER} expires in 3.0 days: renew it" in caplog.text


def test_an_unforeseen_error_does_not_end_the_look_at_the_files(config, monkeypatch, caplog):
    security, loop = NodeSecurity(config), Loop()
    watch(security, loop)
    monkeypatch.setattr(ReloadingContext, "change", lambda source, values: 1 / 0)
    for _ in range(3):
        loop.pass_to_next()
    assert caplog.text.count("The look at the certificates has failed") == 3


def test_the_detail_of_readyz_has_nothing_where_nothing_is_secured():
    assert security_detail({}, {}) == {}
    states = {
        LISTENER: CertificateState(12.34, None, 0),
        PEERS: CertificateState(None, "ssl.keystore.location: broken", 2),
    }
    assert security_detail({"CONTROLLER": 3}, states) == {
        "failedAuthentications": {"CONTROLLER": 3},
        "certificates": {
            LISTENER: {"daysToExpiry": 12.3},
            PEERS: {"fault": "ssl.keystore.location: broken"},
        },
    }


class Pages:
    """The pages of a node's metrics listener."""

    def __init__(self, address):
        self.address = address

    def text(self, path):
        client = http.client.HTTPConnection(self.address, timeout=5)
        try:
            client.request("GET", path)
            return client.getresponse().read().decode()
        finally:
            client.close()

    def detail(self):
        return json.loads(self.text("/readyz"))

    def samples(self):
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(self.text("/metrics"))
            for sample in family.samples
        }


@pytest.mark.slow
def test_a_running_node_shows_it(tmp_path):
    pages = Pages(f"{HOST}:{free_port()}")
    config = {**tls(tmp_path), "quorate.metrics.listener": pages.address}
    with Quorum(tmp_path, {1: "quorate"}, config=config) as quorum:
        quorum.format()
        quorum.start()
        quorum.wait_until_listening()
        node = quorum.nodes[1]
        failed = pages.samples()[SOCKETS + "failed_authentication_total", "CONTROLLER"]
        with socket.create_connection((HOST, node.port), 5) as raw:
            raw.sendall(b"\0\0\0\x10\0\x12\0\3")
            assert raw.recv(10) == b""
        samples = pages.samples()
        assert samples[SOCKETS + "failed_authentication_total", "CONTROLLER"] == failed + 1
        assert samples["quorate_certificate_days_to_expiry", LISTENER] > 0
        assert samples["quorate_certificate_fault", LISTENER] == 0
        detail = pages.detail()
        assert detail["failedAuthentications"] == {"CONTROLLER": failed + 1}
        assert set(detail["certificates"]) == {LISTENER, PEERS}
        (tmp_path / "node.pem").write_text("broken")
        wait_for(lambda: "fault" in pages.detail()["certificates"][LISTENER], "the fault")
        samples = pages.samples()
        assert samples["quorate_certificate_fault", LISTENER] == 1
        assert samples["quorate_certificate_refused_changes_total", LISTENER] == 1
        assert pages.detail()["ready"] is True, "the old certificate works"
        assert "cannot be used, the old ones stay" in node.log
