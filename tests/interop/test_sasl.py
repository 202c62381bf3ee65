"""SASL beside Kafka: a mixed quorum over SASL_PLAINTEXT, and the tools of both sides."""

import pytest

from e2e.test_sasl import (
    MODULES,
    PASSWORD,
    SECRETS,
    USER_PASSWORD,
    USERS,
    WRONG_PASSWORD,
    client_file,
    jaas,
)
from interop.kafka import METADATA_QUORUM, Quorum, java_tool, run_tool, wait_for
from interop.process import QUORATE

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("sasl")]

CONFIG = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": jaas("PLAIN", "controller", PASSWORD, USERS),
    "listener.name.controller.scram-sha-512.sasl.jaas.config": (
        f"{MODULES}.scram.ScramLoginModule required;"
    ),
    "connections.max.reauth.ms": "4000",
}


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    kinds = {1: "quorate", 2: "java", 3: "quorate"}
    with Quorum(tmp_path_factory.mktemp("sasl"), kinds, config=CONFIG) as made:
        made.format("--add-scram", f"SCRAM-SHA-512=[name=alice,password={USER_PASSWORD}]")
        made.start()
        made.wait_until_listening()
        yield made


def ours(quorum, file, *args):
    servers = ("--bootstrap-controller", quorum.bootstrap)
    return run_tool([*QUORATE, "metadata-quorum", *servers, "--command-config", file, *args])


def has_three_replicas(run):
    return run.returncode == 0 and run.stdout.count("Follower") == 2


def test_both_kinds_replicate_with_plain_and_renew_their_sessions(quorum, tmp_path):
    file = client_file(tmp_path / "plain.properties", "PLAIN")
    wait_for(
        lambda: has_three_replicas(ours(quorum, file, "describe", "--replication")),
        "three replicas",
        60,
    )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_tool_of_kafka_logs_in_at_our_nodes(quorum, tmp_path, mechanism):
    """It asks one of ours, and so logs in there."""
    file = client_file(tmp_path / "client.properties", mechanism)
    node = quorum.of_kind("quorate")[0]
    wait_for(lambda: has_three_replicas(ours(quorum, file, "describe", "--replication")), "all", 60)
    run = java_tool(
        METADATA_QUORUM,
        *("--bootstrap-controller", node.address, "--command-config", file),
        *("describe", "--status"),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "LeaderId" in run.stdout


def test_our_tool_logs_in_at_a_java_node(quorum, tmp_path):
    for mechanism in ("PLAIN", "SCRAM-SHA-512"):
        file = client_file(tmp_path / f"{mechanism}.properties", mechanism)
        address = quorum.of_kind("java")[0].address

        def describe(file=file, address=address):
            servers = ("--bootstrap-controller", address)
            return run_tool(
                [
                    *(*QUORATE, "metadata-quorum", *servers, "--command-config", file),
                    *("describe", "--status"),
                ]
            )

        wait_for(lambda: describe().returncode == 0, f"a login with {mechanism}", 30)


def test_a_wrong_password_gets_the_same_text_from_both(quorum, tmp_path):
    for mechanism in ("PLAIN", "SCRAM-SHA-512"):
        file = client_file(tmp_path / "w.properties", mechanism, password=WRONG_PASSWORD)
        texts = set()
        for kind in ("java", "quorate"):
            address = quorum.of_kind(kind)[0].address
            run = run_tool(
                [
                    *(*QUORATE, "metadata-quorum", "--bootstrap-controller", address),
                    *("--command-config", file, "describe", "--status"),
                ]
            )
            assert run.returncode != 0
            texts.add((run.stdout + run.stderr).replace(address, "NODE"))
        assert len(texts) == 1, texts
        assert "SASL_AUTHENTICATION_FAILED" in texts.pop()


def test_a_mechanism_that_is_not_enabled_is_named(quorum, tmp_path):
    file = client_file(tmp_path / "o.properties", "SCRAM-SHA-256")
    run = ours(quorum, file, "describe", "--status")
    assert "it offers PLAIN, SCRAM-SHA-512" in run.stdout + run.stderr


def test_no_log_of_ours_has_a_secret(quorum):
    for node in quorum.of_kind("quorate"):
        assert not any(secret in node.log for secret in SECRETS)
        assert "expired" not in node.log
