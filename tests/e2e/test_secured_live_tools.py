"""`metadata-shell` and `cluster events --follow` on one running controller behind SASL_SSL."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from interop.kafka import HOST, Node, Quorum, free_port
from interop.process import QUORATE, run_tool
from quorate.security.tls.authority import Authority

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("secured live tools")]
SECRET, WRONG = "Kx7-secret-of-shell", "Zz3-wrong-secret"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SHELL = (*QUORATE, "metadata-shell")


class Secured(NamedTuple):
    """A controller, and the client properties of who may ask it and of who may not."""

    node: Node
    client: Path
    wrong: Path
    plaintext: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    now = datetime.now(UTC)
    authority = Authority.create(now, 1)
    (folder / "node.pem").write_bytes(authority.issue("node", [HOST], now, 1))
    (folder / "ca.pem").write_bytes(authority.certificate)
    users = f' user_node="{SECRET}" user_operator="{SECRET}"'
    config = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "ssl.keystore.location": folder / "node.pem",
        "ssl.truststore.location": folder / "ca.pem",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": _jaas("node", SECRET, users),
        "quorate.audit.dir": folder / "audit",
        "quorate.metrics.listener": f"{HOST}:{free_port()}",
    }
    with Quorum(folder / "quorum", {1: "quorate"}, config=config) as quorum:
        quorum.format()
        quorum.start()
        quorum.wait_until_listening()
        node = quorum.nodes[1]
        yield Secured(
            node,
            _properties(folder / "client.properties", node, SECRET),
            _properties(folder / "wrong.properties", node, WRONG),
            _properties(folder / "plaintext.properties", node, SECRET, "SASL_PLAINTEXT"),
        )
        assert SECRET not in node.log and WRONG not in node.log


def _jaas(user: str, password: str, users: str = "") -> str:
    return f'{MODULE} username="{user}" password="{password}"{users};'


def _properties(path: Path, node: Node, password: str, protocol: str = "SASL_SSL") -> Path:
    path.write_text(
        f"bootstrap.controllers={node.address}\nsecurity.protocol={protocol}\n"
        f"sasl.mechanism=PLAIN\nsasl.jaas.config={_jaas('operator', password)}\n"
        f"ssl.truststore.location={path.with_name('ca.pem')}\n"
    )
    return path


@pytest.mark.parametrize("option", [None, "-q", "-C"])
def test_the_shell_reads_a_quorum_behind_sasl_ssl(secured: Secured, option: str | None) -> None:
    """The file alone names the controllers, or an option does."""
    where = () if option is None else (option, secured.node.address)
    run = run_tool([*SHELL, *where, "--config", str(secured.client), "cat", "/control/leader/id"])
    assert (run.returncode, run.stdout) == (0, "1\n"), run
    assert "leader 1: offset " in run.stderr


def test_the_interactive_shell_reads_on(secured: Secured) -> None:
    with subprocess.Popen(
        [*SHELL, "--config", str(secured.client)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    ) as shell:  # fmt: skip
        assert shell.stdin is not None and shell.stdout is not None
        shell.stdin.write("cat /image/clientQuotas\npwd\n")
        while shell.stdout.readline() != "/\n":
            assert shell.poll() is None
        set_quota(secured, "seen-by-the-shell")
        shell.stdin.write("find /image/clientQuotas\nexit\n")
        rest = shell.communicate()[0]
    assert shell.returncode == 0 and "seen-by-the-shell" in rest


def test_a_refused_login_and_a_wrong_protocol_are_named(secured: Secured) -> None:
    refused = run_tool([*SHELL, "--config", str(secured.wrong), "ls"])
    assert refused.returncode == 1 and "SASL_AUTHENTICATION_FAILED" in refused.stderr
    assert SECRET not in refused.stderr and WRONG not in refused.stderr
    plain = run_tool([*SHELL, "--config", str(secured.plaintext), "--timeout", "0.3", "ls"])
    assert plain.returncode == 1 and "TLS" in plain.stderr
    for run in (refused, plain):
        assert "Traceback" not in run.stderr


def set_quota(secured: Secured, user: str) -> None:
    entity = ("--alter", "--entity-type", "users", "--entity-name", user)
    where = ("--bootstrap-controller", secured.node.address)
    words = (*where, "--command-config", str(secured.client), *entity)
    run = run_tool([*QUORATE, "configs", *words, "--add-config", "producer_byte_rate=1024"])
    assert run.returncode == 0, run


@pytest.mark.parametrize("source", ["page", "folder"])
def test_events_appear_as_they_happen_until_ctrl_c(secured: Secured, source: str) -> None:
    """Each line is written whole and at once, and nothing follows Ctrl-C."""
    config = secured.node.config
    where = config["quorate.metrics.listener" if source == "page" else "quorate.audit.dir"]
    words = ("--follow", "--json", "--api", "AlterClientQuotas", str(where))
    with subprocess.Popen(
        [*QUORATE, "cluster", "events", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as events:  # fmt: skip
        assert events.stdout is not None
        for number in range(2):
            user = f"{source}-{number}"
            set_quota(secured, user)
            while user not in str(entry := json.loads(events.stdout.readline())):
                assert entry["request"] == "AlterClientQuotas"
            assert (entry["principal"], entry["result"]) == ("User:operator", "NONE")
        events.send_signal(signal.SIGINT)
        out, err = events.communicate(timeout=30)
    assert (out, err) == ("", "")
    assert events.returncode == 130
