"""TLS beside Kafka: a mixed quorum with client certificates and SASL_SSL, and the tools of both sides."""

import pytest
import trustme
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate

from e2e.test_sasl import MODULES, PASSWORD, SECRETS, USER_PASSWORD, USERS, jaas
from interop.kafka import METADATA_QUORUM, Quorum, java_tool, run_tool, wait_for
from interop.process import HOST, QUORATE

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("tls")]

STORE_PASSWORD = "Hj4-secret-of-stores"


def key_store(authority, path, name):
    """A certificate for this machine, and its key, as PKCS12, which Java and Quorate read."""
    issued = authority.issue_cert("localhost", HOST, common_name=name)
    key = forms.load_pem_private_key(issued.private_key_pem.bytes(), None)
    certificate = load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    assert isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey)
    lock = forms.BestAvailableEncryption(STORE_PASSWORD.encode())
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"node", key, certificate, None, lock))
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
        ours = trustme.CA()
        self.trusted = directory / "ca.pem"
        self.trusted.write_bytes(ours.cert_pem.bytes())
        self.node = key_store(ours, directory / "node.p12", "controller")
        self.alice = key_store(ours, directory / "alice.p12", "alice")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return Stores(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def quorum(tmp_path_factory, stores):
    config = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "ssl.client.auth": "required",
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
