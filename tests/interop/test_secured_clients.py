"""Clients of others, through a Java broker, with SCRAM credentials and ACLs in a Quorate quorum."""

import shutil

import pytest

from e2e.test_sasl import MODULES, PASSWORD, USER_PASSWORD, WRONG_PASSWORD
from interop.kafka import HOST, Quorum, free_port
from interop.others_clients import MECHANISM, FranzGo, KafkaPython, Librdkafka, RefusedError
from quorate.client import Admin
from quorate.client.admin.acls import AclBinding
from quorate.client.admin.topics import TopicCreation
from quorate.security.acl import AclOperation, AclResource
from time_budget import one_day_in

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.xdist_group("secured-clients")]

NAMES = ("KafkaPython", "Librdkafka", "FranzGo")
PREFIXED, ALLOW = 4, 3
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
KINDS = (
    KafkaPython,
    Librdkafka,
    pytest.param(
        FranzGo,
        marks=[
            one_day_in(3, 0),
            pytest.mark.skipif(shutil.which("go") is None, reason="franz-go needs Go"),
        ],
    ),
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The broker's listener with SASL. Alice may use the topics and groups, bob has no ACL."""
    port, plain = free_port(), free_port()
    listeners = {
        "listeners": f"PLAINTEXT://{HOST}:{plain},CLIENT://{HOST}:{port}",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CLIENT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.client.{MECHANISM.lower()}.sasl.jaas.config": (
            f"{MODULES}.scram.ScramLoginModule required;"
        ),
    }
    users = {"alice": USER_PASSWORD, "bob": PASSWORD}
    credentials = [
        word
        for name, password in users.items()
        for word in ("--add-scram", f"{MECHANISM}=[name={name},password={password}]")
    ]
    with Quorum(tmp_path_factory.mktemp("clients"), {1: "quorate"}, config=CONFIG) as quorum:
        quorum.format(*credentials)
        quorum.start()
        quorum.leader()
        quorum.add_broker(11, listeners).wait_until_started()
        allowed = [
            (AclResource.TOPIC, "orders-", AclOperation.WRITE),
            (AclResource.TOPIC, "orders-", AclOperation.READ),
            (AclResource.GROUP, "readers-", AclOperation.READ),
        ]
        with Admin.open(bootstrap_controllers=quorum.bootstrap) as admin:
            admin.create_topics(TopicCreation(f"orders-{name}", 1, 1) for name in NAMES)
            refused = admin.create_acls(
                AclBinding(kind, name, PREFIXED, "User:alice", "*", operation, ALLOW)
                for kind, name, operation in allowed
            )
            assert refused == (None, None, None)
        yield f"{HOST}:{port}"


@pytest.mark.parametrize("client", KINDS)
def test_a_client_with_an_acl_writes_and_reads(address, client):
    name = client.__name__
    alice = client(address, "alice", USER_PASSWORD)
    sent = [f"{name}-{number}" for number in range(5)]
    alice.produce(f"orders-{name}", sent)
    assert alice.consume(f"orders-{name}", f"readers-{name}", 5) == sent


@pytest.mark.parametrize("client", KINDS)
def test_a_client_without_an_acl_is_refused(address, client):
    with pytest.raises(RefusedError, match=r"(?i)topic.*authoriz"):
        client(address, "bob", PASSWORD).produce(f"orders-{client.__name__}", ["value"])


@pytest.mark.parametrize("client", KINDS)
def test_a_client_with_a_wrong_password_is_refused(address, client):
    with pytest.raises(RefusedError, match=r"(?i)authenticat"):
        client(address, "alice", WRONG_PASSWORD).produce(f"orders-{client.__name__}", ["value"])
