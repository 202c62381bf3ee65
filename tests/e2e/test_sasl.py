"""Three controllers whose own connections use SASL."""

import re
import time
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from interop.kafka import Quorum
from interop.process import QUORATE, QuorateNode, run_tool, wait_for
from quorate.config.node_config import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS
from quorate.formats.files import parse_snapshot_name
from quorate.security.tls.authority import Authority
from time_budget import todays

PASSWORD = "Kx7-secret-of-controllers"
USER_PASSWORD = "Qp9-secret-of-alice"
OTHER_PASSWORD = "Lm4-next-secret"
WRONG_PASSWORD = "Zz3-wrong-secret"
MODULES = "org.apache.kafka.common.security"
SECRETS = (PASSWORD, USER_PASSWORD, OTHER_PASSWORD, WRONG_PASSWORD)


def jaas(mechanism, user, password, users=""):
    package = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return (
        f'{MODULES}.{package}LoginModule required username="{user}" password="{password}"{users};'
    )


USERS = f' user_controller="{PASSWORD}" user_alice="{USER_PASSWORD}"'


def config(mechanism, password=PASSWORD, **more):
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.controller.protocol": mechanism,
        f"listener.name.controller.{mechanism.lower()}.sasl.jaas.config": jaas(
            mechanism, "controller", password, USERS if mechanism == "PLAIN" else ""
        ),
        "quorate.metrics.listener": "127.0.0.1:0",
        **more,
    }


def client_file(path, mechanism, user="alice", password=USER_PASSWORD):
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={jaas(mechanism, user, password)}\n"
    )
    return str(path)


def tool(quorum, file, *args):
    return run_tool(
        [
            *(*QUORATE, "metadata-quorum", "--bootstrap-controller", quorum.bootstrap),
            *("--command-config", file, *args),
        ]
    )


def add_entry(quorum, file, principal):
    """Allow the principal what controllers need."""
    return run_tool(
        [
            *(*QUORATE, "acls", "--bootstrap-controller", quorum.bootstrap),
            *("--command-config", file, "--add", "--allow-principal", principal),
            *("--operation", "ClusterAction", "--cluster"),
        ]
    )


SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.idle.interval.ms": "0",
}
"""A snapshot comes after some writes, and the next one not soon."""


def write_snapshots(quorum, file):
    """Write until each node has a snapshot."""

    def all_have_one():
        added = add_entry(quorum, file, f"User:{uuid4()}")
        assert added.returncode == 0, added.stdout + added.stderr
        return all(map(has_snapshot, quorum.nodes.values()))

    wait_for(all_have_one, "a snapshot of each node")


def has_snapshot(node):
    logs = node.directory.glob("**/__cluster_metadata-0/*.checkpoint")
    found = (parse_snapshot_name(path.name) for path in logs)
    return any(each is not None and each.offset for each in found)


def change_password(quorum, file, user, password):
    return run_tool(
        [
            *(*QUORATE, "configs", "--bootstrap-controller", quorum.bootstrap),
            *("--command-config", file, "--alter", "--entity-type", "users"),
            *("--entity-name", user, "--add-config", f"SCRAM-SHA-512=[password={password}]"),
        ]
    )


def leader_epoch(quorum, file):
    """The epoch of the leader, once there is one that commits."""
    run = tool(quorum, file, "describe", "--status")
    found = re.search(r"LeaderEpoch:\s+(\d+)", run.stdout)
    return int(found[1]) if run.returncode == 0 and found else None


def commits(quorum, file):
    run = tool(quorum, file, "describe", "--replication")
    return run.returncode == 0 and run.stdout.count("Follower") == 2


def assert_no_secret(quorum, *runs):
    for node in quorum.nodes.values():
        for secret in SECRETS:
            assert secret not in node.log
    for run in runs:
        for secret in SECRETS:
            assert secret not in run.stdout + run.stderr


SCRAM = (
    "--add-scram",
    f"SCRAM-SHA-512=[name=controller,password={PASSWORD}]",
    "--add-scram",
    f"SCRAM-SHA-512=[name=alice,password={USER_PASSWORD}]",
)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", todays(2, ["PLAIN", "SCRAM-SHA-512"]))
def test_a_quorum_elects_again_after_all_stopped(tmp_path, mechanism):
    """Cold start: until a high watermark is known, credentials and permissions come from the disk.

    The controllers may vote by an access control entry, and are super users at the first start only.
    With SCRAM their newest snapshot is older than the entry and than their password.
    """
    kinds = dict.fromkeys((1, 2, 3), "quorate")
    first_start = {AUTHORIZER: STANDARD_AUTHORIZER, SUPER_USERS: "User:controller;User:alice"}
    is_scram = mechanism != "PLAIN"
    if is_scram:
        first_start |= SNAPSHOTS
    with Quorum(tmp_path, kinds, config=config(mechanism, **first_start)) as quorum:
        quorum.format(*(SCRAM if mechanism != "PLAIN" else ()))
        quorum.start()
        file = client_file(tmp_path / "client.properties", mechanism)
        first = wait_for(lambda: leader_epoch(quorum, file), "a leader")
        wait_for(lambda: commits(quorum, file), "three replicas")
        password = PASSWORD
        if is_scram:
            write_snapshots(quorum, file)
            password = OTHER_PASSWORD
            changed = change_password(quorum, file, "controller", password)
            assert changed.returncode == 0, changed.stdout + changed.stderr
        added = add_entry(quorum, file, "User:controller")
        assert added.returncode == 0, added.stdout + added.stderr
        for node in quorum.nodes.values():
            node.kill()
            node.config |= config(mechanism, password) | {SUPER_USERS: "User:alice"}
        quorum.start()
        second = wait_for(lambda: leader_epoch(quorum, file), "a leader after the cold start")
        assert second > first
        wrong = client_file(tmp_path / "wrong.properties", mechanism, password=WRONG_PASSWORD)
        refused = tool(quorum, wrong, "describe", "--status")
        assert refused.returncode != 0
        assert "SASL_AUTHENTICATION_FAILED" in refused.stderr + refused.stdout
        other = "PLAIN" if mechanism != "PLAIN" else "SCRAM-SHA-256"
        off = tool(quorum, client_file(tmp_path / "o.properties", other), "describe", "--status")
        assert f"it offers {mechanism}" in off.stderr + off.stdout
        as_json = tool(quorum, file, "describe", "--status", "--json")
        assert as_json.returncode == 0
        assert_no_secret(quorum, refused, off, as_json)
        logs = "".join(node.log for node in quorum.nodes.values())
        assert "Refused the connection from" in logs


@pytest.mark.slow
def test_sessions_are_renewed_without_an_election(tmp_path):
    kinds = dict.fromkeys((1, 2, 3), "quorate")
    limits = {"connections.max.reauth.ms": "1500"}
    with Quorum(tmp_path, kinds, config=config("PLAIN", **limits)) as quorum:
        quorum.format()
        quorum.start()
        file = client_file(tmp_path / "client.properties", "PLAIN")
        first = wait_for(lambda: leader_epoch(quorum, file), "a leader")
        wait_for(lambda: commits(quorum, file), "three replicas")
        end = time.monotonic() + 3 * 1.5

        def three_sessions_later():
            assert leader_epoch(quorum, file) == first
            return time.monotonic() > end

        wait_for(three_sessions_later, "three sessions")
        assert not any("expired" in node.log for node in quorum.nodes.values())


def test_a_file_with_gssapi_is_refused_by_name(tmp_path):
    node = QuorateNode(1, tmp_path / "node", {"controller.quorum.voters": "1@localhost:19093"})
    node.config |= {"listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT"}
    node.start()
    assert node.wait_for_exit() == 1
    assert "GSSAPI (Kerberos), Kafka's default, is not supported: set sasl." in node.log


@pytest.mark.slow
def test_a_quorum_over_tls_logs_in_with_scram(tmp_path):
    """SASL_SSL: TLS first, then the same exchange."""
    pem = stores(tmp_path)
    tls = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "ssl.keystore.location": pem["keystore"],
        "ssl.truststore.location": pem["truststore"],
    }
    kinds = dict.fromkeys((1, 2, 3), "quorate")
    with Quorum(tmp_path, kinds, config=config("SCRAM-SHA-512", **tls)) as quorum:
        quorum.format(*SCRAM)
        quorum.start()
        file = tmp_path / "client.properties"
        client_file(file, "SCRAM-SHA-512")
        text = file.read_text().replace("SASL_PLAINTEXT", "SASL_SSL")
        file.write_text(f"{text}ssl.truststore.location={pem['truststore']}\n")
        wait_for(lambda: commits(quorum, str(file)), "three replicas")
        plaintext = client_file(tmp_path / "p.properties", "SCRAM-SHA-512")
        assert "TLS" in tool(quorum, plaintext, "describe", "--status").stderr
        assert_no_secret(quorum)


def stores(directory):
    """A certificate of this machine, and the authority that issued it, as PEM files."""
    now = datetime.now(UTC)
    authority = Authority.create(now, 1)
    keystore, truststore = directory / "key.pem", directory / "ca.pem"
    keystore.write_bytes(authority.issue("controller", ("127.0.0.1",), now, 1))
    truststore.write_bytes(authority.certificate)
    return {"keystore": keystore, "truststore": truststore}
