"""A quorum of three becomes secure, and changes its certificates, while clients write: nothing is lost."""

import os
import re
import signal
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from e2e.test_sasl import SCRAM, client_file, config
from interop.kafka import HOST, Quorum, free_port, wait_for
from quorate.base.errors import QuorateError
from quorate.client import Admin
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType
from quorate.client.admin.quotas import ANY_NAME
from quorate.security.tls.authority import Authority
from quorate.wire.header import encode_request
from quorate.wire.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from retries import DurabilityViolationError
from time_budget import one_day_in

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("secure-change")]

QUOTA = "producer_byte_rate"


class Writes:
    """Sets a quota of a new user, again and again, through whichever way `use` named last."""

    def __init__(self):
        self.confirmed = []
        self.failed = None
        self._open: dict[str, Any] = {}
        self._admin = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def use(self, **way):
        self._open, self._admin = way, None
        if not self._thread.is_alive():
            self._thread.start()

    def end(self):
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _write(self):
        number = 0
        while not self._stop.is_set():
            number += 1
            user = f"user-{number}"
            try:
                self._admin = admin = self._admin or Admin.open(**self._open)
                admin.alter_client_quota({"user": user}, {QUOTA: float(number)})
            except QuorateError as error:
                self.failed, self._admin = error, None
                continue
            self.confirmed.append(user)

    def wait_for_more(self, count):
        start = len(self.confirmed)
        wait_for(lambda: len(self.confirmed) >= start + count, "more writes", 60)

    def assert_kept(self):
        confirmed = list(self.confirmed)
        admin = Admin.open(**self._open)
        kept = {found.entity["user"] for found in admin.describe_client_quotas({"user": ANY_NAME})}
        admin.close()
        lost = [user for user in confirmed if user not in kept]
        if lost:
            raise DurabilityViolationError(f"{len(lost)} of {len(confirmed)} writes: {lost[:5]}")


class Changing:
    """The quorum, with a second port on each node, and its certificates."""

    def __init__(self, directory, kinds, mechanism):
        self.directory = directory
        self.mechanism = mechanism
        self.now = datetime.now(UTC)
        self.authorities = []
        self.quorum = Quorum(directory / "q", kinds)
        self.plain = {node.id: node.port for node in self.nodes}
        self.secure = {node.id: free_port() for node in self.nodes}
        self.writes = Writes()
        self.client = directory / "client.properties"

    @property
    def nodes(self):
        return list(self.quorum.nodes.values())

    def addresses(self, ports):
        return ",".join(f"{HOST}:{ports[node.id]}" for node in self.nodes)

    def trust_new_authority(self):
        """One more authority, whose certificates every node and client takes; the old ones stay."""
        self.authorities.append(Authority.create(self.now, 1))
        replace(self.directory / "ca.pem", b"".join(one.certificate for one in self.authorities))

    def issue(self, node, name="key.pem"):
        path = node.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, self.authorities[-1].issue("controller", (HOST,), self.now, 1))
        return str(path)

    def configure(self, node, names):
        """The listeners of the node, the first of which is that of its own connections."""
        ports = {"CONTROLLER": self.plain, "SECURE": self.secure}
        secure = {
            key.replace("name.controller.", "name.secure."): value
            for key, value in config(self.mechanism).items()
        }
        if "SECURE" not in names:
            secure = {}
        node.config = {
            **secure,
            "controller.listener.names": ",".join(names),
            "listeners": ",".join(f"{name}://{HOST}:{ports[name][node.id]}" for name in names),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
            "controller.quorum.bootstrap.servers": self.addresses(ports[names[0]]),
            "controller.quorum.fetch.timeout.ms": 5000,
            **dict.fromkeys(("ssl.keystore.type", "ssl.truststore.type"), "PEM"),
            "ssl.keystore.location": str(node.directory / "key.pem"),
            "ssl.truststore.location": str(self.directory / "ca.pem"),
        }
        node.port = ports[names[0]][node.id]

    def roll(self, *names):
        """Restart one node after the other; each is back before the next stops."""
        for node in self.nodes:
            node.kill(signal.SIGTERM)
            self.configure(node, names)
            node.start()
            node.wait_until_listening()
            self.writes.wait_for_more(3)
            self.wait_for_all()
        self.wait_for_all(names)

    def stop_java(self):
        """Let a node of ours lead: Java's controllers do not answer DescribeClientQuotas."""
        for node in self.nodes:
            if node.kind == "java":
                node.kill(signal.SIGTERM)
        self.writes.wait_for_more(3)

    def way(self):
        return {"bootstrap_controllers": self.addresses(self.secure), "properties": self.client}

    def wait_for_all(self, names=()):
        """Every voter has what was committed when this began, and is known by these listeners.

        A Java node that starts without an address of a voter at its own first listener ends itself.
        """
        way = self.way() if self.nodes[0].port in self.secure.values() else self.writes._open

        def caught_up():
            admin = Admin.open(**way)
            try:
                quorum = admin.describe_quorum()
            except QuorateError:
                return False
            finally:
                admin.close()
            known = [{each.name for each in found} for found in quorum.listeners.values()]
            return (
                len(quorum.voters) == len(known) == 3
                and all(found >= set(names) for found in known)
                and all(
                    quorum.high_watermark - voter.log_end_offset < 20 for voter in quorum.voters
                )
            )

        wait_for(caught_up, "three voters that follow", 60, every=0.2)

    def certificate(self, node):
        """The certificate that the node shows now."""
        context = ssl.create_default_context(cafile=self.directory / "ca.pem")
        with (
            socket.create_connection((HOST, self.secure[node.id]), 5) as raw,
            context.wrap_socket(raw, server_hostname=HOST) as peer,
        ):
            return peer.getpeercert(binary_form=True)


def replace(path, data):
    """As certificates are renewed: the file is never half of one."""
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.chmod(0o600)
    os.replace(part, path)


OURS = dict.fromkeys((1, 2, 3), "quorate"), "SCRAM-SHA-512"
MIXED = {1: "quorate", 2: "java", 3: "quorate"}, "PLAIN"
"""Java nodes that start know no credential of SCRAM before they have read the log."""


@pytest.fixture(scope="module")
def changing(tmp_path_factory, request):
    made = Changing(tmp_path_factory.mktemp("change"), *request.param)
    made.trust_new_authority()
    for node in made.nodes:
        made.issue(node)
        made.configure(node, ["CONTROLLER"])
    client_file(made.client, made.mechanism)
    text = made.client.read_text().replace("SASL_PLAINTEXT", "SASL_SSL")
    made.client.write_text(f"{text}ssl.truststore.location={made.directory / 'ca.pem'}\n")
    with made.quorum:
        made.quorum.format(*SCRAM)
        made.quorum.start()
        made.quorum.leader()
        made.writes.use(bootstrap_controllers=made.addresses(made.plain))
        yield made
        made.writes.end()


@pytest.mark.parametrize(
    "changing",
    [
        pytest.param(OURS, id="ours"),
        pytest.param(MIXED, id="mixed", marks=[pytest.mark.interop, one_day_in(2, 1)]),
    ],
    indirect=True,
)
def test_plaintext_becomes_sasl_ssl_in_three_rolls(changing):
    writes = changing.writes
    changing.roll("CONTROLLER", "SECURE")
    changing.roll("SECURE", "CONTROLLER")
    writes.use(**changing.way())
    changing.roll("SECURE")
    writes.wait_for_more(20)
    changing.stop_java()
    writes.assert_kept()
    for node in changing.nodes:
        with socket.socket() as probe:
            assert probe.connect_ex((HOST, changing.plain[node.id])) != 0


def epoch_of(changing):
    with Admin.open(**changing.way()) as admin:
        return admin.describe_quorum().leader_epoch


def skip_unless_secure(changing):
    if changing.nodes[0].port not in changing.secure.values():
        pytest.skip("the test before has failed")


LOGIN = b"".join(
    encode_request(request, 1, number, "flood")
    for number, request in enumerate(
        (
            SaslHandshakeRequest(mechanism="SCRAM-SHA-512"),
            SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=nonce"),
            SaslAuthenticateRequest(auth_bytes=b"c=biws,r=nonce,p=AAAA"),
        )
    )
)
"""A user that exists, and a proof that is wrong."""
FLOODING = 32
"""Threads: enough for one core, though each login is answered after 100 ms."""
RECONNECTING = 30


class Flood:
    """Logins that fail, as fast as this process can send them, from `with` on."""

    def __init__(self, changing, node):
        self.refused = [0] * FLOODING
        self._context = ssl.create_default_context(cafile=changing.directory / "ca.pem")
        self._address = HOST, changing.secure[node.id]
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._one, args=[n]) for n in range(FLOODING)]

    def _one(self, number):
        while not self._over.is_set():
            with (
                socket.create_connection(self._address, 10) as raw,
                self._context.wrap_socket(raw, server_hostname=HOST) as peer,
            ):
                peer.sendall(LOGIN)
                answer = b"".join(iter(lambda: peer.recv(65536), b""))
            self.refused[number] += b"invalid credentials" in answer

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join(30)


@pytest.mark.parametrize("changing", [pytest.param(OURS, id="ours")], indirect=True)
def test_a_flood_of_failing_logins_causes_no_election_and_loses_no_write(changing):
    skip_unless_secure(changing)
    epoch = epoch_of(changing)
    [leader] = [node for node in changing.nodes if node.id == leader_of(changing)]
    with Flood(changing, leader) as flood:
        wait_for(lambda: min(flood.refused) >= 10, "failing logins", 60)
        changing.writes.wait_for_more(20)
    assert epoch_of(changing) == epoch
    changing.writes.assert_kept()


@pytest.mark.parametrize("changing", [pytest.param(OURS, id="ours")], indirect=True)
def test_clients_that_log_in_again_at_once_cause_no_second_election(changing):
    """After kill -9 of the leader. `python -m bench reconnects` has 1,000 of them."""
    skip_unless_secure(changing)
    epoch = epoch_of(changing)
    [leader] = [node for node in changing.nodes if node.id == leader_of(changing)]
    clients = [Admin.open(**changing.way()) for _ in range(RECONNECTING)]
    with ThreadPoolExecutor(RECONNECTING) as pool:

        def quorums():
            return list(pool.map(lambda client: client.describe_quorum(), clients))

        assert {one.leader_id for one in quorums()} == {leader.id}
        leader.kill()
        assert {one.leader_epoch for one in quorums()} == {epoch + 1}
    for client in clients:
        client.close()
    changing.writes.wait_for_more(20)
    assert epoch_of(changing) == epoch + 1
    leader.start()
    changing.wait_for_all()
    changing.writes.assert_kept()


@pytest.mark.parametrize("changing", [pytest.param(OURS, id="ours")], indirect=True)
@one_day_in(2, 0)
def test_certificates_change_on_a_running_quorum(changing):
    """By file, by dynamic config, and not by a broken file; the connections that are open stay."""
    skip_unless_secure(changing)
    writes, nodes = changing.writes, changing.nodes
    epoch = epoch_of(changing)
    first = {node.id: changing.certificate(node) for node in nodes}
    changing.trust_new_authority()
    for node in nodes:
        changing.issue(node)
    for node in nodes:
        wait_for(lambda n=node: changing.certificate(n) != first[n.id], "the new file to be used")
    second = {node.id: changing.certificate(node) for node in nodes}
    with Admin.open(**changing.way()) as admin:
        for node in nodes:
            place = changing.issue(node, "dynamic.pem")
            key = "listener.name.secure.ssl.keystore.location"
            resource = Resource(ResourceType.BROKER, str(node.id))
            admin.incremental_alter_configs({resource: [AlterConfigOp(key, OpType.SET, place)]})
    for node in nodes:
        wait_for(lambda n=node: changing.certificate(n) != second[n.id], "the dynamic config")
    third = {node.id: changing.certificate(node) for node in nodes}
    for node in nodes:
        replace(node.directory / "dynamic.pem", b"broken")
    for node in nodes:
        wait_for(lambda n=node: "cannot be used, the old ones stay" in n.log, "the refusal")
    assert {node.id: changing.certificate(node) for node in nodes} == third
    writes.wait_for_more(20)
    assert epoch_of(changing) == epoch, "no election"
    # New connections between the nodes are made with the new certificates.
    for node in nodes:
        changing.issue(node, "dynamic.pem")
        wait_for(lambda n=node: changing.certificate(n) != third[n.id], "the repaired file")
    [leader] = [n for n in nodes if n.id == leader_of(changing)]
    leader.kill()
    leader.start()
    writes.wait_for_more(20)
    changing.wait_for_all()
    writes.assert_kept()
    for node in nodes:
        assert not re.search("Traceback|Cannot log in", node.log[node.log_start :])


def leader_of(changing):
    with Admin.open(**changing.way()) as admin:
        return admin.describe_quorum().leader_id
