"""`early.start.listeners`: the other listeners of a controller open when its authorizer knows the entries.

Source: `KafkaConfig.earlyStartListeners`, `SocketServer.enableRequestProcessing`.
"""

import subprocess
import sys

import pytest

from conformance.marker import kafka_scenario
from interop.kafka import HOST, Quorum, free_port, wait_for
from quorate.base.ids import Address
from quorate.client.connection import Connection
from quorate.client.errors import ConnectError, NoResponseError

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "controller.listener.names": "CONTROLLER,LATE",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,LATE:PLAINTEXT",
    "early.start.listeners": "CONTROLLER",
}


def answers(port: int, timeout_ms: int) -> bool:
    """Whether the listener answers ApiVersions in time."""
    try:
        Connection(Address(HOST, port), "late", timeout_ms).close()
    except (ConnectError, NoResponseError):
        return False
    return True


@kafka_scenario("StandardAuthorizerTest", "startWithEarlyStartListeners")
def test_a_late_listener_opens_when_the_entries_are_known(tmp_path):
    with Quorum(tmp_path, dict.fromkeys((1, 2), "quorate"), config=CONFIG) as quorum:
        one, other = quorum.controllers
        late = {node.id: free_port() for node in (one, other)}
        for node in (one, other):
            node.config["listeners"] = f"CONTROLLER://{node.address},LATE://{HOST}:{late[node.id]}"
        quorum.format()
        one.start()
        wait_for(lambda: answers(one.port, 1_000), "the first listener")
        assert not answers(late[one.id], 300), "it opened without a leader"
        other.start()
        wait_for(lambda: answers(late[one.id], 1_000), "the other listener")


LATE_FAILS = """
import socket, sys
from quorate.server import sockets

class Closed(socket.socket):
    def getsockname(self):
        return ("127.0.0.1", 1)

bind = sockets.bind

def one_closed(config):
    bound = bind(config)
    bound.sockets["LATE"].close()
    bound.sockets["LATE"] = Closed()
    bound.sockets["LATE"].close()
    return bound

sockets.bind = one_closed
sys.argv[0] = "quorate"
from quorate.cli.main import main
main()
"""
"""Starts a node whose second listener cannot listen: its socket is closed."""


@pytest.mark.parametrize("early", ["CONTROLLER", "CONTROLLER,LATE"])
def test_a_listener_that_cannot_open_ends_the_node(tmp_path, early):
    """Kafka's controller handles it as a failed start, and exits with 1 (`ControllerServer.startup`)."""
    config = CONFIG | {"early.start.listeners": early}
    with Quorum(tmp_path, {1: "quorate"}, config=config) as quorum:
        [node] = quorum.controllers
        node.config["listeners"] = f"CONTROLLER://{node.address},LATE://{HOST}:{free_port()}"
        quorum.format()
        command = [sys.executable, "-c", LATE_FAILS, "server-start", str(node.properties)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 1
    assert "Cannot open the listener LATE: " in run.stderr
    assert "Traceback" not in run.stderr
