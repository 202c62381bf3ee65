"""Delegation tokens through a Java broker: Kafka's tool asks, a Quorate controller decides.

What brokers alone answer in Kafka, a Quorate controller answers itself: as the broker does.
"""

import base64
import re

import pytest

from differential import channel
from differential.channel import Channel
from interop.java import java_tool
from interop.kafka import Quorum
from interop.process import HOST, free_port, wait_for
from quorate.base.errors import ErrorCode
from quorate.controller.token_secrets import token_hmac
from quorate.security.acl import AclOperation
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeClientQuotasRequest,
    DescribeDelegationTokenRequest,
    DescribeUserScramCredentialsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from quorate.wire.schema import Struct

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOOL = "org.apache.kafka.tools.DelegationTokenCommand"
SECRET = "the key of the cluster"
CONFIG = {
    "delegation.token.secret.key": SECRET,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
BROKER = 11
DESCRIBE, DESCRIBE_CONFIGS, DESCRIBE_TOKENS = (
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.DESCRIBE_TOKENS,
)


def client_file(folder, user):
    path = folder / f"{user}.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} username="{user}" password="{channel.PASSWORD}";\n'
    )
    return path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The quorum, and the ports of the controller and the broker for clients with a password."""
    folder = tmp_path_factory.mktemp("tokens")
    with Quorum(folder, {1: "quorate"}, config=CONFIG) as quorum:
        controller, ports = quorum.nodes[1], (free_port(), free_port())
        controller.config.update(channel.keys())
        controller.config["listeners"] = (
            f"CONTROLLER://{controller.address},{channel.LISTENER}://{HOST}:{ports[0]}"
        )
        quorum.format()
        quorum.start()
        quorum.leader()
        node = quorum.add_broker(BROKER)
        node.stop()
        users = " ".join(f'user_{name}="{channel.PASSWORD}"' for name in channel.LOGINS)
        node.config.update(
            {
                "listeners": f"PLAINTEXT://{node.address},SASL_PLAINTEXT://{HOST}:{ports[1]}",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
                "SASL_PLAINTEXT:SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULE} {users};",
            }
        )
        node.start()
        node.wait_until_started()
        yield quorum, ports


@pytest.fixture
def broker(cluster):
    """Its address for clients with a password, and the folder of their files."""
    quorum, ports = cluster
    return f"{HOST}:{ports[1]}", quorum.root


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
    """Without an entry about alice everything is allowed: bob makes a token of hers."""
    made = ask(
        broker, "bob", "--create", "--max-life-time-period", "-1", "--owner-principal",
        "User:alice",
    )  # fmt: skip
    assert re.search(r"User:alice\s+User:bob", made), made


def plain(value):
    """Comparable: the order of structs, throttling and the text of a refusal are not fixed (decision 7).

    To who may not describe them, a broker names no users: it repeats the error as often as users are asked
    for.
    """
    if isinstance(value, Struct):
        names = {field.name for field in type(value).schema.fields} - {"throttle_time_ms"}
        if getattr(value, "error_code", 0) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            names -= {"error_message", "results"}
        return {name: plain(getattr(value, name)) for name in sorted(names)}
    if isinstance(value, list):
        return sorted((plain(each) for each in value if not is_controller(each)), key=repr)
    return value


def is_controller(value):
    """A controller lists controllers, too, which have configs and loggers (decision 7)."""
    return isinstance(value, ListConfigResourcesResponse.ConfigResource) and (
        (value.resource_name, value.resource_type) in (("1", 4), ("1", 8))
    )


def answers(cluster, user, request, version):
    """Of the controller and of the broker; user: who logs in, None for a listener without logins."""
    quorum, ports = cluster
    if user is None:
        ports = quorum.nodes[1].port, quorum.nodes[BROKER].port
    found = []
    for port in ports:
        connection = Channel(port)
        try:
            if user is not None:
                connection.log_in_with_password(user)
            found.append(plain(connection.ask(request, version)))
        finally:
            connection.close()
    return found


def acl(resource, name, user, operation):
    return CreateAclsRequest.AclCreation(
        resource_type=resource,
        resource_name=name,
        resource_pattern_type=3,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=3,
    )


@pytest.fixture(scope="module")
def described(cluster):
    """Tokens, credentials, quotas and configs, and entries that let some users describe some of them."""
    quorum, ports = cluster
    create = CreateDelegationTokenRequest
    made = []
    for requester, owner in (("alice", None), ("alice", "carol"), ("bob", "alice"), ("bob", None)):
        connection = Channel(ports[0])
        connection.log_in_with_password(requester)
        request = create(
            owner_principal_type=owner and "User",
            owner_principal_name=owner,
            renewers=[create.CreatableRenewers(principal_type="User", principal_name="admin")],
            max_lifetime_ms=-1,
        )
        answer = connection.ask(request, 3)
        assert isinstance(answer, CreateDelegationTokenResponse)
        made.append(answer)
        connection.close()
    alter, quotas, configs = (
        AlterUserScramCredentialsRequest,
        AlterClientQuotasRequest,
        IncrementalAlterConfigsRequest,
    )
    entry, resource = quotas.EntryData, configs.AlterConfigsResource
    requests = [
        CreateAclsRequest(
            creations=[
                acl(6, "*", "nobody", DESCRIBE),
                acl(6, made[3].token_id, "carol", DESCRIBE),
                acl(7, "User:carol", "admin", DESCRIBE_TOKENS),
                acl(7, "User:alice", "nobody", DESCRIBE_TOKENS),
                acl(4, "kafka-cluster", "alice", DESCRIBE),
                acl(4, "kafka-cluster", "alice", DESCRIBE_CONFIGS),
            ]
        ),
        alter(
            upsertions=[
                alter.ScramCredentialUpsertion(
                    name=name, mechanism=2, iterations=4096, salt=b"s", salted_password=b"p"
                )
                for name in ("alice", "bob")
            ]
        ),
        quotas(
            entries=[
                entry(
                    entity=[
                        entry.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity
                    ],
                    ops=[entry.OpData(key=key, value=1e9)],
                )
                for key, *entity in (
                    ("request_percentage", ("user", "alice")),
                    ("request_percentage", ("user", None)),
                    ("request_percentage", ("user", "bob"), ("client-id", None)),
                    ("connection_creation_rate", ("ip", "192.0.2.1")),
                )
            ]
        ),
        configs(
            resources=[
                resource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[resource.AlterableConfig(name=key, value=value)],
                )
                for kind, name, key, value in (
                    (16, "m1", "interval.ms", "1000"),
                    (32, "g1", "consumer.session.timeout.ms", "50000"),
                )
            ]
        ),
    ]
    controller = Channel(quorum.nodes[1].port)
    for change in requests:
        version = type(change).schema.versions[1]
        text = repr(plain(controller.ask(change, version)))
        assert not re.search(r"error_code': [^0]", text), text
    controller.close()
    everything = ListConfigResourcesRequest(resource_types=[16, 32])
    wait_for(lambda: equal(answers(cluster, None, everything, 1)), "the broker to know it", 30)


def equal(pair):
    return pair[0] == pair[1]


def component(kind, match_type, match=None):
    return DescribeClientQuotasRequest.ComponentData(
        entity_type=kind, match_type=match_type, match=match
    )


def tokens_of(*names):
    owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    return DescribeDelegationTokenRequest(
        owners=[owner(principal_type="User", principal_name=name) for name in names]
    )


def credentials_of(*names):
    user = DescribeUserScramCredentialsRequest.UserName
    return DescribeUserScramCredentialsRequest(users=[user(name=name) for name in names])


READS = [
    DescribeDelegationTokenRequest(owners=None),
    tokens_of(),
    tokens_of("alice"),
    tokens_of("carol", "bob", "bob"),
    tokens_of("admin"),
    tokens_of("nobody"),
    DescribeUserScramCredentialsRequest(users=None),
    credentials_of(),
    credentials_of("alice"),
    credentials_of("bob", "alice", "carol"),
    credentials_of("alice", "alice", ""),
    *(
        DescribeClientQuotasRequest(components=components, strict=strict)
        for strict in (False, True)
        for components in (
            [],
            [component("user", 0, "alice")],
            [component("user", 1)],
            [component("user", 2)],
            [component("user", 2), component("client-id", 1)],
            [component("ip", 0, "192.0.2.1")],
            [component("ip", 2), component("user", 2)],
            [component("user", 2), component("user", 1)],
            [component("planet", 2)],
            [component("user", 3)],
            [component("", 2)],
        )
    ),
    *(
        ListConfigResourcesRequest(resource_types=types)
        for types in ([], [2], [4], [8], [16], [32], [32, 16, 16], [0], [99])
    ),
]


def is_answered(request, version, user):
    """A broker gives no answer to who may not ask for the credentials of all users (decision 7)."""
    if type(request) is DescribeUserScramCredentialsRequest and request.users is None:
        return user in (None, "alice")
    return version > 0 or not getattr(request, "resource_types", None)  # without types in version 0


@pytest.mark.parametrize("user", [None, *channel.LOGINS])
def test_a_controller_describes_as_a_broker_does(cluster, described, user):
    """alice may describe the cluster, bob may not; each sees other tokens."""
    differ = []
    for request in READS:
        low, high = type(request).schema.versions
        for version in range(low, high + 1):
            if is_answered(request, version, user):
                ours, theirs = answers(cluster, user, request, version)
                if ours != theirs:
                    differ.append((request, version, ours, theirs))
    assert not differ, "\n".join(map(repr, differ))
