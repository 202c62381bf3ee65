"""Eleven faults: logs, metrics and our tools alone name the node, the fault and what to do.

The section "Faults" of docs/operations.md says what names each of them; a test injects the fault,
and looks for each of these texts.
"""

import datetime
import json
import re
import socket
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from e2e import faulty_node
from e2e.test_metrics_page import ask, scrape
from interop.kafka import HOST, Quorum, free_port, wait_for
from interop.process import QUORATE, run_tool
from quorate.base.ids import Address
from quorate.broker.lifecycle import BrokerState
from quorate.cli.json_schemas import schema_of
from quorate.cli.quickstart.simulated_broker import QuickstartBroker, in_state, run_until, start
from quorate.cli.tools import cluster_partitions, cluster_problems
from quorate.client import Admin
from quorate.client.admin.reassignments import PartitionName
from quorate.client.admin.topics import TopicCreation

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("faults")]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
SILENT_AFTER_S = "2.5"


def texts_of(fault):
    """By where a text is found (log, metrics, problems, tool): the texts of the page's entry."""
    section = PAGE.read_text().partition("\n## Faults\n")[2].partition("\n## ")[0]
    entry = section.partition(f"\n### {fault}\n")[2].partition("\n### ")[0]
    assert entry, f"docs/operations.md has no entry '{fault}' below 'Faults'"
    found = re.findall(r"^\| (log|metrics|problems|tool) \|.*?\| `(.+)` \|$", entry, re.M)
    assert found, f"the entry '{fault}' names no text"
    return found


def missing(fault, seen):
    """The texts of the entry that were not seen; a word in capitals stands for a number or name."""
    return [
        (where, text)
        for where, text in texts_of(fault)
        if not re.search(re.sub(r"[A-Z]{4,}", r"\\S+", re.escape(text)), seen[where]())
    ]


def assert_named(fault, **seen):
    """Wait until each text of the entry was seen, in what the functions of `seen` return."""
    left: list[tuple[str, str]] = []

    def all_seen():
        left[:] = missing(fault, seen)
        return not left

    try:
        wait_for(all_seen, f"'{fault}' to be named", 30, 0.3)
    except AssertionError:
        raise AssertionError(
            f"{fault}: not named: {left} in {[seen[where]() for where, _ in left]}"
        ) from None


def problems(quorum, *words):
    """What `cluster problems` prints; its JSON has the same."""
    where = ("--bootstrap-controller", quorum.bootstrap, "--silent-after", SILENT_AFTER_S, *words)
    return run_tool([*QUORATE, "cluster", "problems", *where]).stdout


def metrics(node):
    return ask(node, "/metrics")[1]


class Proxy:
    """Forwards connections to a port, but not those of the controllers that were cut off."""

    def __init__(self, port):
        self._to = (HOST, port)
        self._open = []
        self.cut_off = set()
        """Ids of controllers."""
        self._server = socket.create_server((HOST, 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self._server.accept()
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near):
        try:
            first = near.recv(65536)
            far = socket.create_connection(self._to, 5)
        except OSError:
            near.close()
            return
        if any(first[14:].startswith(f"{name}{i}".encode() + b"\0") for i in self.cut_off
               for name in ("", "raft-client-")):  # fmt: skip
            near.close()
            far.close()
            return
        far.sendall(first)
        self._open += [near, far]
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    @staticmethod
    def _copy(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        for each in (one, other):
            each.close()

    def cut(self, node_id):
        """Cut a controller off; the others connect again."""
        self.cut_off.add(node_id)
        for each in self._open:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self._open.clear()


def make_faulty(node):
    """Let the node run with switches of faults in its directory (faulty_node.py)."""
    words = [sys.executable, faulty_node.__file__, str(node.directory), "server-start"]
    node.server_command = lambda *args: [*words, str(node.properties), *args]


@contextmanager
def switched(node, fault):
    (node.directory / fault).touch()
    yield
    (node.directory / fault).unlink()


@pytest.fixture(scope="module")
def proxies():
    return {}


@pytest.fixture(scope="module")
def quorum(tmp_path_factory, proxies):
    """Three voters; everybody reaches the first two through proxies."""
    root = tmp_path_factory.mktemp("faults")
    with Quorum(root, dict.fromkeys((1, 2, 3), "quorate"), static=True) as quorum:
        for node in quorum.controllers:
            node.config["quorate.metrics.listener"] = f"{HOST}:{free_port()}"
            make_faulty(node)
        proxies |= {i: Proxy(quorum.nodes[i].port) for i in (1, 2)}
        ports = {node.id: node.port for node in quorum.controllers}
        ports |= {i: proxy.port for i, proxy in proxies.items()}
        voters = ",".join(f"{i}@{HOST}:{port}" for i, port in ports.items())
        for node in quorum.controllers:
            node.config["controller.quorum.voters"] = voters
            node.config["advertised.listeners"] = f"CONTROLLER://{HOST}:{ports[node.id]}"
        quorum.format("--release-version", "4.0")
        quorum.start()
        quorum.leader()
        yield quorum


@pytest.fixture
def third(quorum):
    """Controller 3, a follower that has caught up."""
    if not quorum.nodes[3].is_alive:
        quorum.nodes[3].stop()
        quorum.nodes[3].start()
    if quorum.leader().id == 3:
        quorum.hand_over(quorum.nodes[1])
    quorum.wait_for_commit_by_all()
    return quorum.nodes[3]


def test_a_healthy_quorum_has_no_problem(quorum, third):
    seen: list[Any] = []

    def healthy():
        seen[:] = [problems(quorum)]
        return seen == ["No problem is visible.\n"]

    try:
        wait_for(healthy, "no problem", 20, 0.3)
    except AssertionError:
        raise AssertionError(seen) from None


def test_a_cut_link(quorum, third, proxies):
    for proxy in proxies.values():
        proxy.cut(3)
    try:
        assert_named(
            "Cut link",
            problems=lambda: problems(quorum),
            log=lambda: third.log[third.log_start :],
            metrics=lambda: metrics(quorum.leader()),
        )
        found = json.loads(problems(quorum, "--json"))
        assert [each["node"] for each in found] == ["controller 3"]
        [row] = found
        assert set(row) == set(schema_of("cluster")["$defs"]["problems"]["items"]["required"])
        assert row["runbook"] == "Cut link"
    finally:
        for proxy in proxies.values():
            proxy.cut_off.clear()


def test_a_wedged_follower(quorum, third):
    third.freeze()
    try:
        assert_named(
            "Wedged follower",
            problems=lambda: problems(quorum),
            metrics=lambda: metrics(quorum.leader()),
        )
    finally:
        third.thaw()


def test_a_wrong_address(quorum, third):
    third.kill(15)
    third.config["advertised.listeners"] = f"CONTROLLER://{HOST}:{free_port()}"
    third.start()
    try:
        assert_named("Wrong address", problems=lambda: problems(quorum))
    finally:
        third.kill(15)
        third.config["advertised.listeners"] = f"CONTROLLER://{third.address}"
        third.start()


def test_a_slow_disk(quorum, third):
    """The query of the page, over two scrapes of each node."""
    [(where, query)] = texts_of("Slow disk")
    names = re.findall(r"rate\((\w+)\[5m\]\)", query)
    limit = float(query.rpartition("> ")[2])
    assert (where, len(names)) == ("metrics", 2)

    def read(node):
        found = scrape(node)
        return [found[name,] for name in names]

    with switched(third, "slow"):
        before = {node: read(node) for node in quorum.controllers}
        wait_for(lambda: read(third)[1] >= before[third][1] + 2, "two syncs")
        now = {node: read(node) for node in quorum.controllers}
    slow = {
        node: (now[node][0] - before[node][0]) / max(now[node][1] - before[node][1], 1)
        for node in now
    }
    assert slow[third] > limit, slow
    assert max(slow, key=slow.__getitem__) is third


def test_a_full_disk(quorum, third):
    with switched(third, "full"):
        assert_named(
            "Full disk",
            log=lambda: third.log[third.log_start :],
            problems=lambda: problems(quorum),
        )


def test_a_version_mismatch(quorum, third):
    third.kill(15)
    (third.directory / "older").touch()
    third.start()

    def upgrade():
        """What is refused once the older release has registered. Before that it would succeed."""
        where = ("--bootstrap-controller", quorum.bootstrap)
        level = ("--feature", "metadata.version=30")
        return _output("features", *where, "upgrade", *level, "--dry-run")

    try:
        assert_named(
            "Version mismatch",
            problems=lambda: problems(quorum),
            tool=upgrade,
        )
    finally:
        third.kill(15)
        (third.directory / "older").unlink()
        third.start()


def _output(*words):
    run = run_tool([*QUORATE, *words])
    return run.stdout + run.stderr


def test_a_ghost_registration(quorum, third):
    quorum.write(1)  # registers a controller that does not exist
    assert_named("Ghost registration", problems=lambda: problems(quorum))


def test_a_fenced_broker_and_a_stuck_reassignment(quorum, third):
    controllers = [Address(HOST, node.port) for node in quorum.controllers]
    alive, gone = (QuickstartBroker(i, quorum.cluster_id, controllers) for i in (11, 12))
    both = (alive, gone)
    start(both)
    run_until(both, lambda: 1 << 60, lambda: in_state(both, BrokerState.RUNNING))
    ended = threading.Event()

    def go_on():
        while not ended.wait(0.05):
            alive.step(int(time.monotonic() * 1000), lambda: 1 << 60)

    heart = threading.Thread(target=go_on)
    heart.start()
    try:
        with Admin.open(bootstrap_controllers=quorum.bootstrap) as admin:
            least = {"min.insync.replicas": "2"}
            admin.create_topics([TopicCreation("orders", assignments={0: [11]}, configs=least)])
            admin.alter_partition_reassignments({PartitionName("orders", 0): [11, 12]})
            assert_named(
                "Fenced broker",
                metrics=lambda: metrics(quorum.leader()),
                problems=lambda: problems(quorum),
            )
            assert_named(
                "Stuck reassignment",
                problems=lambda: problems(quorum),
                tool=lambda: _output(
                    "reassign-partitions", "--bootstrap-controller", quorum.bootstrap, "--list"
                ),
            )
            assert_named("Shrunken ISR", problems=lambda: problems(quorum))
    finally:
        ended.set()
        heart.join()
        for each in both:
            each.close()


def test_an_expired_certificate(tmp_path):
    authority = trustme.CA()
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    issued = authority.issue_cert(HOST, not_after=past)
    keys = tmp_path / "node.pem"
    keys.write_bytes(
        b"".join(one.bytes() for one in (issued.private_key_pem, *issued.cert_chain_pems))
    )
    keys.chmod(0o600)
    (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes())
    config = {
        "listener.security.protocol.map": "CONTROLLER:SSL",
        "ssl.keystore.location": keys,
        "ssl.truststore.location": tmp_path / "ca.pem",
        "quorate.metrics.listener": f"{HOST}:{free_port()}",
    }
    properties = tmp_path / "client.properties"
    properties.write_text(
        f"security.protocol=SSL\nssl.truststore.location={tmp_path / 'ca.pem'}\n"
        "ssl.truststore.type=PEM\n"
    )
    with Quorum(tmp_path, {1: "quorate"}, config=config) as quorum:
        [node] = quorum.controllers
        quorum.format()
        quorum.start()
        quorum.wait_until_listening()
        words = ("--bootstrap-controller", node.address, "--command-config", str(properties))
        assert_named(
            "Expired certificate",
            log=lambda: node.log,
            metrics=lambda: metrics(node),
            tool=lambda: _output("metadata-quorum", *words, "describe", "--status"),
        )


def test_the_page_and_the_tool_name_the_same_entries():
    text = PAGE.read_text()
    headings = set(re.findall(r"^##+ (.+)$", text, re.M))
    modules = (cluster_problems, cluster_partitions)
    source = "".join(Path(str(module.__file__)).read_text() for module in modules)
    named = set(re.findall(r'^ +"([A-Z]\w+(?: \w+)?)",$', source, re.M))
    assert {"Cut link", "Wedged follower", "Stuck reassignment"} <= named <= headings
