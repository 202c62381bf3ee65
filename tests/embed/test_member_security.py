"""Members that ask each other for certificates and passwords, and refuse everybody else."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest

from embed.test_guarantees import Journal, free_address, run, until
from quorate.base.errors import QuorateError
from quorate.client.connection import ClientSecurity, Connection
from quorate.client.errors import LoginError, TlsRefusedError
from quorate.embed import Member, create
from quorate.embed.arguments import parse_address
from quorate.embed.first_start import is_unconfirmed
from quorate.security.jaas import JaasText
from quorate.security.sasl.login import login_of
from quorate.security.tls.authority import Authority
from quorate.security.tls.contexts import client_context
from quorate.security.tls.explain import explain, is_refusal
from quorate.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse

SECRET = "Kx7-secret-of-members"
MODULES = "org.apache.kafka.common.security"
USERS = f'user_member="{SECRET}" user_guest="{SECRET}"'
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def jaas(mechanism, user="member", password=SECRET, users=USERS):
    package = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return (
        f'{MODULES}.{package}LoginModule required username="{user}" password="{password}" {users};'
    )


def sasl(mechanism, protocol="SASL_PLAINTEXT"):
    return {
        "listener.security.protocol.map": f"CONTROLLER:{protocol}",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.controller.protocol": mechanism,
        f"listener.name.controller.{mechanism.lower()}.sasl.jaas.config": jaas(mechanism),
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, now = tmp_path_factory.mktemp("pem"), datetime.now(UTC)
    authority = Authority.create(now, 1)
    (folder / "ca.pem").write_bytes(authority.certificate)
    (folder / "member.pem").write_bytes(authority.issue("member", ["127.0.0.1"], now, 1))
    return {
        "listener.security.protocol.map": "CONTROLLER:SSL",
        "ssl.keystore.location": str(folder / "member.pem"),
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.controller.ssl.client.auth": "required",
    }


async def start(path, settings, count=3):
    founders = {number: free_address() for number in range(1, count + 1)}
    for number in founders:
        create(path / str(number), number, "secured", founders)
    return [
        await Member.start(path / str(number), Journal(), address, settings=settings)
        for number, address in founders.items()
    ], founders


def ask(address, security):
    """Ask for the quorum, from another thread."""
    topic = DescribeQuorumRequest.TopicData
    partition = topic.PartitionData(partition_index=0)
    request = DescribeQuorumRequest(
        topics=[topic(topic_name="__cluster_metadata", partitions=[partition])]
    )
    with Connection(parse_address(address), "test", 5000, security) as connection:
        return connection.call(request, DescribeQuorumResponse, 5000).error_code


@pytest.mark.parametrize("kind", ["SSL", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "both"])
def test_members_commit(kind, tmp_path, files, caplog):
    if kind == "SSL":
        settings = files
    elif kind == "both":
        settings = {**files, **sasl("SCRAM-SHA-512", "SASL_SSL")}
    else:
        settings = sasl(kind)

    async def scenario():
        members, _ = await start(tmp_path, settings)
        await until(lambda: any(member.leads for member in members))
        leader = next(member for member in members if member.leads)
        await leader.propose(b"x")
        await until(lambda: all(member.applied_offset > 0 for member in members))
        for member in members:
            await member.stop(0.5)  # the last one has no majority to hand over to

    with caplog.at_level(logging.DEBUG):
        run(scenario)
    assert SECRET not in caplog.text


def test_others_are_refused(tmp_path, files, caplog):
    trust = {"ssl.truststore.location": files["ssl.truststore.location"]}

    async def scenario():
        members, founders = await start(tmp_path, files, 1)
        tls = ClientSecurity(client_context(trust), explain, is_refusal)
        with pytest.raises(TlsRefusedError, match=r"ssl\.client\.auth=required there"):
            await asyncio.to_thread(ask, founders[1], tls)
        own = ClientSecurity(client_context(files), explain, is_refusal)
        assert await asyncio.to_thread(ask, founders[1], own) == 0
        await members[0].stop()

    run(scenario)
    assert "it sent no certificate, but ssl.client.auth=required here" in caplog.text


def test_only_super_users_may_send_requests_where_there_is_an_authorizer(tmp_path):
    settings = sasl("SCRAM-SHA-512") | {
        "authorizer.class.name": STANDARD,
        "super.users": "User:member",
    }

    def login(user, password=SECRET):
        text = jaas("SCRAM-SHA-512", user, password, "")
        value = JaasText("sasl.jaas.config", text, "here")
        return ClientSecurity(login=login_of("SCRAM-SHA-512", value, None))

    async def scenario():
        members, founders = await start(tmp_path, settings, 1)
        assert await asyncio.to_thread(ask, founders[1], login("member")) == 0
        assert await asyncio.to_thread(ask, founders[1], login("guest")) == 31
        with pytest.raises(LoginError, match="invalid credentials"):
            await asyncio.to_thread(ask, founders[1], login("member", "wrong"))
        await members[0].stop()

    run(scenario)


def test_a_founder_that_lost_its_disk_is_refused_over_tls(tmp_path, files, monkeypatch):
    # Handshakes of a machine under load take longer than a founder waits for answers.
    monkeypatch.setattr("quorate.embed.first_start._PATIENCE_S", 20.0)

    def has_run(members):
        """The others know that member 3 has followed or led."""
        voters = [voter for one in members[:2] for voter in one.node.control.voters]
        return not any(is_unconfirmed(voter) for voter in voters if voter.key.id == 3)

    async def scenario():
        members, founders = await start(tmp_path, files)
        await until(lambda: any(member.leads for member in members))
        await until(lambda: has_run(members))
        await members[2].stop()
        leader = next(member for member in members[:2] if member.leads or member.leader_id >= 0)
        await until(lambda: leader.leader_id in (1, 2))
        create(tmp_path / "anew", 3, "secured", founders)
        with pytest.raises(QuorateError, match="Member 3 has run before"):
            await Member.start(tmp_path / "anew", Journal(), founders[3], settings=files)
        for member in members[:2]:
            await member.stop()

    run(scenario)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listener.security.protocol.map": "CONTROLLER:SSL"}, r"ssl\.keystore\.location"),
        ({"listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT"}, "GSSAPI"),
        ({"authorizer.class.name": "org.example.Mine"}, "StandardAuthorizer only"),
    ],
)
def test_settings_that_a_member_cannot_keep_are_refused(tmp_path, settings, message):
    async def scenario():
        address = free_address()
        create(tmp_path / "1", 1, "refused", {1: address})
        with pytest.raises(QuorateError, match=message):
            await Member.start(tmp_path / "1", Journal(), address, settings=settings)

    run(scenario)
