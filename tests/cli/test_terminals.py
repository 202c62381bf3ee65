"""Terminals and pipes of every kind: narrow, without colours, in another encoding, closed."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from cli.test_admin_tools import acl
from cli.test_metadata_quorum import USUAL
from cli.test_topics import broker
from client.fake_node import FakeNode
from client.test_admin import BROKER
from formats.filled_records import data_batch
from narrow import as_any
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.cli import columns, main
from quorate.cli.quickstart import live_view
from quorate.wire.messages import (
    DescribeAclsResponse,
    DescribeClientQuotasResponse,
    DescribeClusterResponse,
    DescribeDelegationTokenResponse,
    FetchResponse,
)

__all__ = ["broker"]
WIDTH = 40
TOKEN = DescribeDelegationTokenResponse.DescribedDelegationToken
NODE = DescribeClusterResponse.DescribeClusterBroker
HOST = "controller-1.of-a-cluster-with-a-long-name.example.com"
CONFIG = "node.id=1\nprocess.roles=controller\nsasl.mechanism.controller.protocol=GSSAPI\n"

TABLES = {
    "metadata-quorum": ("describe", "--replication"),
    "metadata-quorum, ages": ("describe", "--replication", "--human-readable"),
    "cluster, endpoints": ("list-endpoints",),
    "cluster, registrations": ("registrations",),
    "delegation-tokens": ("--describe",),
}
"""The tables of the tools that ask a cluster."""


@pytest.fixture
def node():
    names: dict[str, Any] = {"principal_type": "User", "principal_name": "a-user-with-a-long-name"}
    token = TOKEN(**names, token_id="0123456789" * 3, hmac=bytes(range(48)))
    answers = {
        "DescribeQuorumRequest": [USUAL],
        "FetchRequest": [FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)],
        "DescribeDelegationTokenRequest": [DescribeDelegationTokenResponse(tokens=[token, token])],
    }
    with FakeNode(answers, BROKER) as node:
        at = {1: node.address, 7: Address(HOST, 9093)}
        nodes = [NODE(broker_id=n, host=host, port=port) for n, (host, port) in at.items()]
        answers["DescribeClusterRequest"] = [
            DescribeClusterResponse(cluster_id="c", controller_id=1, endpoint_type=2, brokers=nodes)
        ]
        yield node


def narrow(monkeypatch, width=WIDTH):
    monkeypatch.setattr(columns, "terminal_width", lambda: width)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_fits_a_terminal_of_40_columns(quorate, node, tmp_path, monkeypatch, table):
    """Also the longest value is there, over several lines."""
    (config := tmp_path / "client.properties").write_text("client.id=x\n")
    where = ("--bootstrap-controller", node.address, "--command-config", config)
    name = table.partition(",")[0]
    words = (*TABLES[table], *where) if name == "cluster" else (*where, *TABLES[table])
    monkeypatch.setattr("time.time", lambda: 6.0)
    wide = quorate(name, *words)
    narrow(monkeypatch)
    code, out, err = quorate(name, *words)
    assert (code, err) == (0, wide.err)
    messages = set(wide.out.splitlines()) & set(out.splitlines())
    assert max(map(len, wide.out.splitlines())) > WIDTH
    assert max(len(line) for line in out.splitlines() if line not in messages) <= WIDTH
    joined = out.replace("\n  ", "")
    rules = {word for word in wide.out.split() if not word.strip("-")}
    assert [word for word in wide.out.split() if word not in joined and word not in rules] == []


FOLDED: dict[str, tuple[str, ...]] = {
    "topics": ("--describe",),
    "topics, states": ("--describe", "--under-replicated-partitions"),
    "configs": ("--describe", "--topic", "orders", "--all"),
    "configs, quotas": ("--describe", "--entity-type", "users", "--entity-type", "clients"),
    "acls": ("--list",),
    "acls, of a principal": ("--list", "--principal", "User:a"),
    "reassign-partitions": ("--list",),
    "metadata-quorum": ("describe", "--status"),
    "cluster": ("api-versions",),
}
"""Texts of Kafka's tools; a narrow terminal gets their fields in lines of their own."""


@pytest.mark.parametrize("text", FOLDED)
def test_the_fields_of_kafkas_texts_fit_too(quorate, broker, monkeypatch, text):
    quotas = DescribeClientQuotasResponse.EntryData
    who = quotas.EntityData(entity_type="user", entity_name="a-user-with-a-long-name")
    rate = quotas.ValueData(key="producer_byte_rate", value=1048576.0)
    broker.answers |= {
        "DescribeAclsRequest": [DescribeAclsResponse(resources=[acl(), acl(host="10.0.0.1")])],
        "DescribeQuorumRequest": [USUAL],
        "DescribeClientQuotasRequest": [
            DescribeClientQuotasResponse(entries=[quotas(entity=[who], values=[rate])])
        ],
    }
    name, where = text.partition(",")[0], ("--bootstrap-server", broker.address)
    words = (*FOLDED[text], *where) if name == "cluster" else (*where, *FOLDED[text])
    wide = quorate(name, *words)
    narrow(monkeypatch)
    code, out, err = quorate(name, *words)
    assert (code, err) == (0, "") == (wide.code, wide.err)
    assert max(map(len, wide.out.splitlines())) > WIDTH >= max(map(len, out.splitlines()))
    assert re.sub(r"\s", "", out) == re.sub(r"\s", "", wide.out)
    narrow(monkeypatch, 2000)
    assert quorate(name, *words).out == wide.out


def test_a_wide_terminal_and_a_pipe_have_the_same_table(quorate, node, monkeypatch):
    words = ("metadata-quorum", "--bootstrap-controller", node.address, *TABLES["metadata-quorum"])
    piped = [line.expandtabs().rstrip() for line in quorate(*words).out.splitlines()]
    narrow(monkeypatch, 300)
    assert quorate(*words).out.splitlines() == piped


def test_the_live_table_fits_and_has_no_colour_where_none_is_wanted(monkeypatch):
    from rich.console import Console

    monkeypatch.setenv("NO_COLOR", "1")
    nodes = {n: SimpleNamespace(id=n, address=f"{HOST}:{9093 + n}") for n in (1, 2)}
    supervisor = SimpleNamespace(nodes=nodes, pid_of=lambda node: None if node.id == 1 else 77)
    screen = StringIO()
    Console(file=screen, width=WIDTH, force_terminal=True).print(
        live_view._table(as_any(supervisor), None)
    )
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", screen.getvalue())
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert "…" not in shown


def on_a_terminal(words, **environment):
    """What a command prints on a pseudo terminal."""
    mine, its = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "quorate", *words],
        stdout=its,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=os.environ | environment,
    ) as process:
        os.close(its)
        pieces = []
        while True:
            try:
                piece = os.read(mine, 65536)
            except OSError:  # Linux's end of a terminal that no process has open
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(mine)
    return process.returncode, b"".join(pieces).decode().replace("\r\n", "\n")


def test_the_width_is_that_of_the_terminal(tmp_path):
    (config := tmp_path / "controller.properties").write_text(CONFIG)
    words = ("storage", "check", "-c", str(config))
    code, out = on_a_terminal(words, COLUMNS=str(WIDTH))
    rows = out.partition("Quorate cannot run")[0]
    assert code == 1 and "blocks: yes" in rows
    assert max(map(len, rows.splitlines())) <= WIDTH
    assert "blocks  about" in on_a_terminal(words, COLUMNS="2000")[1]


@pytest.mark.parametrize(("encoding", "shown"), [("iso-8859-1", rb"\u03bb"), ("cp437", rb"\u03bb")])
def test_what_an_encoding_lacks_is_escaped(tmp_path, encoding, shown):
    """A name with a Greek letter, on a terminal that has none of them."""
    (config := tmp_path / "λ.properties").write_text(CONFIG)
    run = subprocess.run(
        [sys.executable, "-m", "quorate", "storage", "check", "-c", str(config)],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
    )
    assert (run.returncode, run.stderr) == (1, b"")
    assert shown in run.stdout


@pytest.mark.parametrize("copies", [1, 600])
def test_a_dump_has_the_encoding_of_the_terminal(tmp_path, copies):
    """Also where several processes print a long file."""
    value = "é λ".encode() + b"." * 9000
    batches = [data_batch(n, [(b"k", value)]) for n in range(copies)]
    (path := tmp_path / "00000000000000000000.log").write_bytes(b"".join(batches))
    words = ("dump-log", "--print-data-log", "--files", str(path))

    def printed(*more, encoding):
        command = [sys.executable, "-m", "quorate", *words, *more]
        with (out := tmp_path / "out").open("wb") as stream:
            environment = os.environ | {"PYTHONIOENCODING": encoding}
            subprocess.run(command, stdout=stream, env=environment, check=True)
        return out.read_bytes()

    assert printed(encoding="iso-8859-1").count(b"payload: \xe9 \\u03bb....") == copies
    assert printed(encoding="utf8").count("payload: é λ....".encode()) == copies
    assert printed("--json", encoding="iso-8859-1").count('"é λ....'.encode()) == copies


@pytest.mark.slow
@pytest.mark.parametrize("name", main.TOOLS)
def test_a_closed_pipe_ends_every_tool_quietly(name):
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [sys.executable, "-m", "quorate", name, "--help"], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (run.returncode, run.stderr) == (0, b"")
