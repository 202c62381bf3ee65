"""Mutual TLS without SASL beside Kafka: stores of keytool, and principals that both authorizers know."""

import shutil
import subprocess

import pytest

from interop.kafka import METADATA_QUORUM, Quorum, java_tool, run_tool, wait_for
from interop.process import HOST, QUORATE

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("ssl")]

PASSWORD = "Hj4-secret-of-stores"
NAMES = {
    "controller": r"UID=17+CN=controller, OU=Metadata, O=Example, C=DE",
    "alice": r'UID=\#7+CN=alice, OU=\u00d6l \+ Gas, O="Quorate, <\u4e2d\u6587>; Ltd", DC=example',
}
RULES = "RULE:^[^,]*CN=(controller),OU=.*$/$1/U,DEFAULT"
STORES = {"controller": "JKS", "alice": "PKCS12"}


def keytool(*words):
    assert shutil.which("keytool"), "no keytool on the PATH: it comes with Java"
    run = subprocess.run(("keytool", *words), capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A key and a certificate for each name, and a store that trusts both certificates."""
    directory = tmp_path_factory.mktemp("stores")
    trusted = directory / "trusted.jks"
    found = {}
    for name, kind in STORES.items():
        store = directory / f"{name}.{kind.lower()}"
        access = ("-keystore", str(store), "-storepass", PASSWORD, "-alias", name)
        subject = NAMES[name].encode().decode("raw_unicode_escape")
        keytool(
            *("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-storetype", kind),
            *(*access, "-dname", subject, "-keypass", PASSWORD),
            *("-ext", f"san=ip:{HOST},dns:localhost"),
        )
        pem = directory / f"{name}.pem"
        keytool("-exportcert", "-rfc", *access, "-file", str(pem))
        keytool(
            *("-importcert", "-noprompt", "-storetype", "JKS", "-keystore", str(trusted)),
            *("-storepass", PASSWORD, "-alias", name, "-file", str(pem)),
        )
        found[name] = {
            "ssl.keystore.type": kind,
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
            "ssl.truststore.type": "JKS",
            "ssl.truststore.location": str(trusted),
            "ssl.truststore.password": PASSWORD,
        }
    return found


@pytest.fixture(scope="module")
def quorum(tmp_path_factory, keys):
    config = {
        "listener.security.protocol.map": "CONTROLLER:SSL",
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": RULES,
        **keys["controller"],
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:CONTROLLER",
    }
    kinds = {1: "quorate", 2: "java", 3: "quorate"}
    with Quorum(tmp_path_factory.mktemp("ssl"), kinds, config=config) as made:
        made.format()
        made.start()
        made.wait_until_listening()
        yield made


@pytest.fixture(scope="module")
def files(keys, tmp_path_factory):
    """The properties file of each name, for the tools."""
    directory = tmp_path_factory.mktemp("clients")
    found = {}
    for name, lines in keys.items():
        path = directory / f"{name}.properties"
        text = {"security.protocol": "SSL", **lines}
        path.write_text("".join(f"{key}={value}\n" for key, value in text.items()))
        found[name] = str(path)
    return found


def ours(tool, node, file, *words):
    where = ("--bootstrap-controller", node.address, "--command-config", file)
    first = [words[0]] if tool == "cluster" else []
    return run_tool([*QUORATE, tool, *first, *where, *words[len(first) :]])


def test_both_kinds_replicate_and_take_a_name_for_the_same_principal(quorum, files):
    """The controllers are super users by a rule; alice is known by her whole name."""

    def has_followers():
        run = ours(
            "metadata-quorum", quorum.nodes[1], files["controller"], "describe", "--replication"
        )
        return run.returncode == 0 and run.stdout.count("Follower") == 2

    wait_for(has_followers, "three replicas", 90)
    for node in quorum.nodes.values():
        refused = ours("cluster", node, files["alice"], "list-endpoints")
        assert refused.returncode == 1, node
        assert "CLUSTER_AUTHORIZATION_FAILED" in refused.stderr + refused.stdout
    principal = r"User:CN=alice+UID=\#7,OU=Öl \+ Gas,O=Quorate\, \<中文\>\; Ltd,DC=example"
    added = ours(
        "acls", quorum.nodes[1], files["controller"],
        *("--add", "--allow-principal", principal, "--operation", "alter", "--cluster"),
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    for node in quorum.nodes.values():
        wait_for(
            lambda node=node: (
                ours("cluster", node, files["alice"], "list-endpoints").returncode == 0
            ),
            f"{node} to let alice in",
        )


def test_the_tool_of_kafka_asks_every_node(quorum, files):
    for node in quorum.nodes.values():
        run = java_tool(
            METADATA_QUORUM,
            *("--bootstrap-controller", node.address, "--command-config", files["controller"]),
            *("describe", "--status"),
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert "LeaderId" in run.stdout


def test_a_client_without_a_certificate_is_refused_by_both(quorum, files, tmp_path):
    with open(files["alice"], encoding="utf-8") as file:
        text = "".join(line for line in file if "ssl.key" not in line)
    bare = tmp_path / "bare.properties"
    bare.write_text(text)
    for node in quorum.nodes.values():
        run = ours("cluster", node, str(bare), "list-endpoints")
        assert run.returncode == 1
        assert "ssl.client.auth=required there" in run.stderr
