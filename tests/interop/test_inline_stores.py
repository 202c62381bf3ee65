"""Stores in the text of dynamic configs (KIP-651), at a Java controller and at ours."""

import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from interop.kafka import Quorum, run_tool, wait_for
from interop.process import HOST, QUORATE
from quorate.client import Admin
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType
from quorate.security.tls.authority import Authority
from time_budget import one_day_in

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("tls"), one_day_in(2, 0)]

KEY, CHAIN, TRUST = (
    *("ssl.keystore.key", "ssl.keystore.certificate.chain"),
    "ssl.truststore.certificates",
)
REFUSED = {"java": "could not be applied: [", "quorate": "cannot be used, the old ones stay: "}
BEGIN = "-----BEGIN CERTIFICATE-----"


def issued(authority):
    """Key and chain of a certificate for this machine."""
    text = authority.issue("controller", ("localhost", HOST), datetime.now(UTC), 1).decode()
    key, _, chain = text.partition(BEGIN)
    return {KEY: key, CHAIN: BEGIN + chain}


def on_one_line(values):
    return {key: " ".join(text.split("\n")) for key, text in values.items()}


class Two:
    """A Java controller and one of ours, whose files have inline stores."""

    def __init__(self, directory):
        self.old, self.new = (Authority.create(datetime.now(UTC), 1) for _ in range(2))
        self.both = (self.old.certificate + self.new.certificate).decode()
        self.of_file = issued(self.old)
        config = {
            "listener.security.protocol.map": "CONTROLLER:SSL",
            "ssl.client.auth": "required",
            **dict.fromkeys(("ssl.keystore.type", "ssl.truststore.type"), "PEM"),
            **on_one_line(self.of_file | {TRUST: self.old.certificate.decode()}),
        }
        self.quorum = Quorum(directory, {1: "quorate", 2: "java"}, config=config)
        self.nodes = list(self.quorum.nodes.values())
        self.files: dict[Authority, Path] = {}
        for authority in (self.old, self.new):
            path = directory / f"{len(self.files)}.properties"
            own = directory / f"{len(self.files)}.pem"
            own.write_bytes(authority.issue("admin", (), datetime.now(UTC), 1))
            path.write_text(
                f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location={own}\n"
                "ssl.truststore.type=PEM\n"
                f"ssl.truststore.certificates={' '.join(self.both.split(chr(10)))}\n"
            )
            self.files[authority] = path

    def alter(self, values, operation=OpType.SET):
        """Set configs of both nodes. Kafka's controllers check no stores before they commit them."""
        changes = [
            AlterConfigOp(f"listener.name.controller.{key}", operation, text)
            for key, text in values.items()
        ]
        with self.admin() as admin:
            found = admin.incremental_alter_configs(
                {Resource(ResourceType.BROKER, str(node.id)): changes for node in self.nodes}
            )
        assert set(found.values()) == {None}

    def admin(self):
        return Admin.open(
            bootstrap_controllers=self.quorum.bootstrap, properties=self.files[self.old]
        )

    def certificate(self, node):
        """The certificate that the node shows now, in DER."""
        context = ssl.create_default_context(cadata=self.both)
        context.load_cert_chain(str(self.files[self.old]).replace("properties", "pem"))
        with (
            socket.create_connection((HOST, node.port), 5) as raw,
            context.wrap_socket(raw, server_hostname=HOST) as peer,
        ):
            return peer.getpeercert(binary_form=True)

    def wait_until_shown(self, chain):
        for node in self.nodes:
            wait_for(
                lambda node=node: self.certificate(node) == ssl.PEM_cert_to_DER_cert(chain),
                f"{node} to show its new certificate",
            )

    def takes(self, node, authority):
        words = ("--bootstrap-controller", node.address, "--command-config")
        run = run_tool([*QUORATE, "cluster", "list-endpoints", *words, str(self.files[authority])])
        return run.returncode == 0


def test_inline_stores_of_dynamic_configs_count_at_both(tmp_path):
    two = Two(tmp_path)
    with two.quorum as quorum:
        quorum.format()
        quorum.start()
        quorum.wait_until_listening()
        own = issued(two.new)
        two.alter({**on_one_line(own), TRUST: two.both})
        two.wait_until_shown(own[CHAIN])
        assert all(two.takes(node, two.new) for node in two.nodes)
        two.alter({KEY: "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"})
        for node in two.nodes:
            wait_for(lambda node=node: REFUSED[node.kind] in node.log, f"{node} to refuse the key")
        two.wait_until_shown(own[CHAIN])
        two.alter(dict.fromkeys((KEY, CHAIN), ""), OpType.DELETE)
        two.wait_until_shown(two.of_file[CHAIN])
        for node in two.nodes:
            assert not any(line in node.log for line in own[KEY].splitlines()[1:-1])
