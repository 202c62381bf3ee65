"""Three controllers that may vote by access control entries alone, and that stop together."""

import pytest

from e2e.test_sasl import client_file, commits, config, leader_epoch
from interop.kafka import Quorum
from interop.process import QUORATE, run_tool, wait_for

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def acls(quorum, file, *args):
    run = run_tool(
        [
            *(*QUORATE, "acls", "--bootstrap-controller", quorum.bootstrap),
            *("--command-config", file, *args),
        ]
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
def test_a_quorum_elects_again_after_all_stopped_without_super_users(tmp_path):
    """Until a high watermark is known, their entries come from the disk."""
    kinds = dict.fromkeys((1, 2, 3), "quorate")
    both = "User:controller;User:alice"
    first = config("PLAIN", **{"authorizer.class.name": AUTHORIZER, "super.users": both})
    with Quorum(tmp_path, kinds, config=first) as quorum:
        quorum.format()
        quorum.start()
        file = client_file(tmp_path / "client.properties", "PLAIN")
        before = wait_for(lambda: leader_epoch(quorum, file), "a leader")
        wait_for(lambda: commits(quorum, file), "three replicas")
        entry = "--operation", "ClusterAction", "--cluster"
        acls(quorum, file, "--add", "--allow-principal", "User:controller", *entry)
        for node in quorum.nodes.values():
            node.kill()
            node.config["super.users"] = "User:alice"
        quorum.start()
        after = wait_for(lambda: leader_epoch(quorum, file), "a leader after the cold start")
        assert after > before
        wait_for(lambda: commits(quorum, file), "three replicas")
