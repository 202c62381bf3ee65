"""Delegation tokens through a Java broker: Kafka's tool asks, a Quorate controller decides."""

import base64
import re

import pytest

from interop.java import java_tool
from interop.kafka import Quorum
from interop.process import HOST, free_port, wait_for
from quorate.controller.token_secrets import token_hmac

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOOL = "org.apache.kafka.tools.DelegationTokenCommand"
SECRET = "the key of the cluster"
KEY = {"delegation.token.secret.key": SECRET}
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
BROKER = 11


def client_file(folder, user):
    path = folder / f"{user}.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} username="{user}" password="{user}-secret";\n'
    )
    return path


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """Its address for clients with a password, and the folder of their files."""
    folder = tmp_path_factory.mktemp("tokens")
    with Quorum(folder, {1: "quorate"}, config=KEY) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        node = quorum.add_broker(BROKER)
        node.stop()
        address = f"{HOST}:{free_port()}"
        users = " ".join(f'user_{name}="{name}-secret"' for name in ("alice", "bob"))
        node.config.update(
            {
                "listeners": f"PLAINTEXT://{node.address},SASL_PLAINTEXT://{address}",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
                "SASL_PLAINTEXT:SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULE} {users};",
            }
        )
        node.start()
        node.wait_until_started()
        yield address, folder


def ask(broker, user, *args):
    """What the tool prints."""
    address, folder = broker
    config = client_file(folder, user)
    run = java_tool(
        TOOL, "--bootstrap-server", address, "--command-config", str(config), *args, timeout=60
    )
    return run.stdout + run.stderr


def test_a_token_from_its_creation_to_its_end(broker):
    made = ask(
        broker, "alice", "--create", "--max-life-time-period", "-1", "--renewer-principal",
        "User:bob",
    )  # fmt: skip
    found = re.search(r"^(\S+)\s+(\S+)\s+User:alice\s+User:alice\s+\[User:bob\]", made, re.M)
    assert found, made
    token_id, secret = found.groups()
    assert base64.b64decode(secret) == token_hmac(SECRET, token_id)
    describe = ("--describe", "--owner-principal", "User:alice")
    wait_for(lambda: token_id in ask(broker, "alice", *describe), "the broker to know it", 30)
    renewed = ask(broker, "bob", "--renew", "--hmac", secret, "--renew-time-period", "60000")
    assert "Completed renew operation" in renewed
    refused = ask(broker, "bob", "--renew", "--hmac", "AAAA", "--renew-time-period", "-1")
    assert "DelegationTokenNotFoundException" in refused
    assert "Completed expire" in ask(
        broker, "alice", "--expire", "--hmac", secret, "--expiry-time-period", "-1"
    )
    wait_for(lambda: token_id not in ask(broker, "alice", *describe), "its removal", 30)


def test_a_token_for_another_needs_an_authorizer_that_allows_it(broker):
    """Without an authorizer everything is allowed: bob makes a token of alice."""
    made = ask(
        broker, "bob", "--create", "--max-life-time-period", "-1", "--owner-principal",
        "User:alice",
    )  # fmt: skip
    assert re.search(r"User:alice\s+User:bob", made), made
