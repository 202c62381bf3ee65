"""TLS beside Kafka: a mixed quorum with client certificates and SASL_SSL, and the tools of both sides."""

import signal
import socket
import ssl
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate

from e2e.test_sasl import MODULES, PASSWORD, SECRETS, USER_PASSWORD, USERS, jaas
from e2e.test_secure_change import Writes, replace
from interop.kafka import METADATA_QUORUM, Quorum, java_tool, run_tool, wait_for
from interop.process import HOST, QUORATE
from quorate.client import Admin
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType
from quorate.security.tls.authority import Authority
from time_budget import one_day_in

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("tls")]

STORE_PASSWORD = "Hj4-secret-of-stores"


def key_store(authority, path, name):
    """A certificate for this machine, and its key, as PKCS12, which Java and Quorate read."""
    issued = authority.issue(name, ("localhost", HOST), datetime.now(UTC), 1)
    key = forms.load_pem_private_key(issued, None)
    certificate = load_pem_x509_certificate(issued)
    assert isinstance(key, EllipticCurvePrivateKey)
    lock = forms.BestAvailableEncryption(STORE_PASSWORD.encode())
    replace(path, pkcs12.serialize_key_and_certificates(b"node", key, certificate, None, lock))
    return path


def tls(keys, trusted):
    found = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
    if keys is not None:
        found |= {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(keys),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.key.password": STORE_PASSWORD,
        }
    return found


def client_file(path, mechanism, more):
    lines = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(mechanism, "alice", USER_PASSWORD),
        **more,
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return str(path)


class Stores:
    """The stores of a quorum and of a client, with one authority."""

    def __init__(self, directory):
        ours = Authority.create(datetime.now(UTC), 1)
        self.directory = directory
        self.trusted = directory / "ca.pem"
        self.trusted.write_bytes(ours.certificate)
        self.node = key_store(ours, directory / "node.p12", "controller")
        self.alice = key_store(ours, directory / "alice.p12", "alice")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return Stores(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def quorum(tmp_path_factory, stores):
    config = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "listener.name.controller.ssl.client.auth": "required",
        **tls(stores.node, stores.trusted),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": jaas(
            "PLAIN", "controller", PASSWORD, USERS
        ),
        "listener.name.controller.scram-sha-512.sasl.jaas.config": (
            f"{MODULES}.scram.ScramLoginModule required;"
        ),
    }
    kinds = {1: "quorate", 2: "java", 3: "quorate"}
    with Quorum(tmp_path_factory.mktemp("tls"), kinds, config=config) as made:
        made.format("--add-scram", f"SCRAM-SHA-512=[name=alice,password={USER_PASSWORD}]")
        made.start()
        made.wait_until_listening()
        yield made


def ours(address, file, *args):
    servers = ("--bootstrap-controller", address)
    return run_tool([*QUORATE, "metadata-quorum", *servers, "--command-config", file, *args])


def exit_code(node, file):
    return ours(node.address, file, "describe", "--status").returncode


def has_three_replicas(run):
    return run.returncode == 0 and run.stdout.count("Follower") == 2


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_both_kinds_replicate_and_our_tool_asks_each(quorum, stores, tmp_path, mechanism):
    file = client_file(tmp_path / "client.properties", mechanism, tls(stores.alice, stores.trusted))
    for node in quorum.nodes.values():
        wait_for(
            lambda node=node: has_three_replicas(
                ours(node.address, file, "describe", "--replication")
            ),
            f"three replicas, by {node.address}",
            60,
        )


def test_the_tool_of_kafka_asks_a_node_of_ours(quorum, stores, tmp_path):
    file = client_file(
        tmp_path / "client.properties", "SCRAM-SHA-512", tls(stores.alice, stores.trusted)
    )
    node = quorum.of_kind("quorate")[0]
    wait_for(
        lambda: has_three_replicas(ours(node.address, file, "describe", "--replication")), "all", 60
    )
    run = java_tool(
        METADATA_QUORUM,
        *("--bootstrap-controller", node.address, "--command-config", file),
        *("describe", "--status"),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "LeaderId" in run.stdout


def test_no_log_of_ours_has_a_secret(quorum):
    for node in quorum.of_kind("quorate"):
        assert not any(secret in node.log for secret in (*SECRETS, STORE_PASSWORD))


def test_a_client_without_a_certificate_is_refused_by_both(quorum, stores, tmp_path):
    file = client_file(tmp_path / "client.properties", "PLAIN", tls(None, stores.trusted))
    for node in quorum.nodes.values():
        run = ours(node.address, file, "describe", "--status")
        assert run.returncode == 1, node
        assert "ssl.client.auth=required there" in run.stderr, node


def certificate(node, trusted):
    """The certificate that the node shows now."""
    context = ssl.create_default_context(cafile=trusted)
    with (
        socket.create_connection((HOST, node.port), 5) as raw,
        context.wrap_socket(raw, server_hostname=HOST) as peer,
    ):
        return peer.getpeercert(binary_form=True)


class NewAuthority:
    """A second authority, and what takes it to the nodes: ours by changed files, Java's by configs."""

    def __init__(self, quorum, stores, directory):
        self.quorum, self.stores = quorum, stores
        self.nodes, [self.java] = list(quorum.nodes.values()), quorum.of_kind("java")
        self.authority = Authority.create(datetime.now(UTC), 1)
        alice = key_store(self.authority, directory / "alice.p12", "alice")
        self.old, self.new = (
            client_file(directory / name, "PLAIN", tls(keys, stores.trusted))
            for name, keys in (("old.properties", stores.alice), ("new.properties", alice))
        )
        self.writes = Writes()
        self.use(self.old)

    def use(self, file):
        self.way = {"bootstrap_controllers": self.quorum.bootstrap, "properties": file}
        self.writes.use(**self.way)

    def status(self):
        with Admin.open(**self.way) as admin:
            return admin.describe_quorum()

    def trust(self, certificates, name):
        """Let every node trust these certificates."""
        path = self.stores.directory / name
        path.write_bytes(certificates)
        replace(self.stores.trusted, certificates)
        self._set_at_java("truststore", path)
        return path

    def show(self):
        """Let every node show a new certificate."""
        key_store(self.authority, self.stores.node, "controller")
        path = key_store(self.authority, self.stores.directory / "java.p12", "controller")
        self._set_at_java("keystore", path)

    def _set_at_java(self, key, path):
        place = f"listener.name.controller.ssl.{key}.location"
        operation = AlterConfigOp(place, OpType.SET, str(path))
        with Admin.open(**self.way) as admin:
            admin.incremental_alter_configs(
                {Resource(ResourceType.BROKER, str(self.java.id)): [operation]}
            )

    def wait_for_each(self, is_so, what):
        for node in self.nodes:
            wait_for(lambda node=node: is_so(node), f"{node} to {what}")

    def restart(self, node):
        """Let every other node connect to it anew, and it to them."""
        node.kill(signal.SIGTERM)
        self.writes.wait_for_more(20)
        node.start()
        wait_for(
            lambda: has_three_replicas(
                ours(self.quorum.bootstrap, self.new, "describe", "--replication")
            ),
            "three replicas",
            60,
        )


@one_day_in(2, 1)
def test_certificates_of_a_new_authority_replace_all_on_a_running_quorum(quorum, stores, tmp_path):
    """Old authority, both, the new one: no election and no lost write, and both kinds fetch."""
    new = NewAuthority(quorum, stores, tmp_path)
    try:
        new.writes.wait_for_more(5)
        epoch = new.status().leader_epoch
        both = new.trust(stores.trusted.read_bytes() + new.authority.certificate, "both.pem")
        new.wait_for_each(lambda node: exit_code(node, new.new) == 0, "trust the new authority")
        shown = {node.id: certificate(node, both) for node in new.nodes}
        new.show()
        new.wait_for_each(
            lambda node: certificate(node, both) != shown[node.id], "show its new certificate"
        )
        new.writes.wait_for_more(20)
        assert new.status().leader_epoch == epoch, "no election"
        new.restart(new.java)  # its own connections show what is new after a start only
        new.use(new.new)
        epoch = new.status().leader_epoch
        new.trust(new.authority.certificate, "new.pem")
        new.wait_for_each(lambda node: exit_code(node, new.old) == 1, "refuse the old authority")
        new.writes.wait_for_more(20)
        assert new.status().leader_epoch == epoch, "no election"
        new.restart(quorum.nodes[new.status().leader_id])
        new.java.kill(signal.SIGTERM)  # a leader of ours answers for quotas
        new.writes.wait_for_more(20)
    finally:
        new.writes.end()
    new.writes.assert_kept()
