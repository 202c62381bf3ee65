"""Clusters that do not answer: each tool says who was asked, what happened and what to try."""

from __future__ import annotations

import json
import re
import socket
import time

import click
import pytest

from cli.test_options import commands

TIMEOUT_MS = 300
ONE = {"topic": "t", "partition": 0}
PLAN = {"version": 1, "partitions": [ONE | {"replicas": [1]}], "topics": [{"topic": "t"}]}
CALLS: dict[str, list[tuple[str, ...]]] = {
    "metadata-quorum": [("describe", "--status"), ("describe", "--replication")],
    "features": [("describe",), ("upgrade", "--feature", "kraft.version=1")],
    "topics": [("--list",), ("--describe",), ("--delete", "--topic", "t")],
    "configs": [("--describe", "--entity-type", "topics", "--entity-name", "t")],
    "acls": [("--list",)],
    "cluster": [
        ("cluster-id",),
        ("list-endpoints",),
        ("registrations",),
        ("problems",),
        ("api-versions",),
    ],
    "leader-election": [("--election-type", "preferred", "--all-topic-partitions")],
    "reassign-partitions": [("--list",), ("--verify", "--reassignment-json-file", "FILE")],
    "log-dirs": [("--describe",)],
    "delegation-tokens": [("--describe",)],
    "metadata-shell": [("ls",)],
}
"""Calls of every tool that asks a cluster."""
ON_STDOUT = {"topics", "acls", "reassign-partitions"}
"""Whose scripts print the errors of their client on stdout."""
HAS_OWN_TIMEOUT = {"reassign-partitions"}
"""Where `--timeout` is Kafka's, of the moves between directories."""


def asks_a_cluster(command: click.Command) -> bool:
    """A hidden option is there to be refused."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    return any("--bootstrap-controller" in one.opts and not one.hidden for one in options)


def test_every_tool_that_asks_a_cluster_is_here():
    tools = {name.split()[0] for name, command in commands() if asks_a_cluster(command)}
    assert tools == set(CALLS)


def test_every_tool_that_asks_a_cluster_has_a_timeout():
    for name, command in commands():
        if asks_a_cluster(command):
            assert any("--timeout" in param.opts for param in command.params), name


@pytest.fixture
def silent():
    """The address of a port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield "{}:{}".format(*server.getsockname())


@pytest.fixture
def closed():
    """The address of a port at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "{}:{}".format(*server.getsockname())
    return address


@pytest.fixture
def ask(quorate, tmp_path):
    """Run a call of a tool against a node that does not answer."""
    (plan := tmp_path / "plan.json").write_text(json.dumps(PLAN))
    config = tmp_path / "client.properties"
    config.write_text(f"default.api.timeout.ms={TIMEOUT_MS}\nrequest.timeout.ms={TIMEOUT_MS}\n")

    def ask(tool, call, kind, address):
        words = [str(plan) if word == "FILE" else word for word in call]
        where = [f"--bootstrap-{kind}", address, "--command-config", str(config)]
        if tool not in HAS_OWN_TIMEOUT:
            where += ["--timeout", str(TIMEOUT_MS / 1000)]
        code, out, err = quorate(
            tool, *((*words, *where) if tool == "cluster" else (*where, *words))
        )
        return code, out if tool in ON_STDOUT else err + out if "problems" in call else err

    return ask


EACH = [
    pytest.param(tool, call, kind, id=f"{tool} {' '.join(call)} {kind}")
    for tool, calls in CALLS.items()
    for call in calls
    for kind in ("controller", "server")
    if (tool, kind) != ("metadata-shell", "server")  # brokers do not serve the metadata log
]


@pytest.mark.parametrize(("tool", "call", "kind"), EACH)
def test_a_closed_port(ask, closed, tool, call, kind):
    code, said = ask(tool, call, kind, closed)
    assert code == 1
    assert f"Cannot connect to {closed}: Connection refused" in said
    assert_says_what_to_try(said, kind)


@pytest.mark.parametrize(("tool", "call", "kind"), EACH)
def test_a_port_that_accepts_and_stays_silent(ask, silent, tool, call, kind):
    began = time.monotonic()
    code, said = ask(tool, call, kind, silent)
    assert code == 1
    assert re.search(rf"{silent} did not answer within \d+ ms", said)
    assert time.monotonic() - began < 20 * TIMEOUT_MS / 1000
    assert_says_what_to_try(said, kind)


def assert_says_what_to_try(said, kind):
    nodes = {"controller": "controllers", "server": "brokers"}[kind]
    assert f"are these addresses of {nodes}, and do the {nodes} run?" in said
    assert "Traceback" not in said
