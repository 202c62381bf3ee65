"""The runbook "From Java controllers to Quorate and back" (docs/operations.md), under load.

The controllers change one by one; each step is rolled back once; then all go back. The cluster
begins at Kafka 4.2's features and is upgraded while both kinds of controllers stand in the quorum.
"""

import json
import re
import shutil

import pytest

from interop.checks import assert_java_is_content, assert_nothing_is_lost
from interop.kafka import FEATURES, Quorum, java_tool
from interop.load import AUTHORIZED, ClusterLoad
from interop.process import QUORATE, free_port, run_tool, wait_for
from interop.test_membership import add, remove, wait_until_caught_up
from time_budget import LONG, TURN, one_day_in

pytestmark = [pytest.mark.interop, pytest.mark.slow]

VOTERS = (1, 2, 3)
STEPS_BACK = VOTERS if LONG else (VOTERS[TURN % len(VOTERS)],)
"""The steps that are rolled back before they are made for good."""
OLD_RELEASE, NEW_RELEASE = "4.2", "4.3"
UPGRADED_AFTER = 2
"""The step after which the features are upgraded: two of three controllers are Quorate's."""


def replace(quorum, node_id, kind):
    """Steps 1 and 3 to 5 of the runbook: stop the controller, start the other program, wait for it."""
    old = quorum.nodes[node_id]
    if kind == "quorate":
        assert_ready(old)
    directory_id = old.directory_id_text
    old.kill(15, 60)
    new = quorum.swap(node_id, kind).start()
    quorum.wait_for_commit_by_all(90)
    assert new.directory_id_text == directory_id


def assert_ready(node):
    """Step 1 of the runbook: nothing blocks, while the Java controller runs."""
    run = run_tool([*QUORATE, "storage", "check", "-c", str(node.properties), "--json"])
    assert run.returncode == 0, run.stdout + run.stderr
    assert json.loads(run.stdout)["blocked"] is False


def metadata_version(quorum):
    """The finalized level, as Kafka's tool prints it."""
    run = java_tool(FEATURES, *running(quorum), "describe")
    assert run.returncode == 0, run.stdout + run.stderr
    line = next(row for row in run.stdout.splitlines() if "Feature: metadata.version" in row)
    found = re.search(r"FinalizedVersionLevel: (\S+)", line)
    assert found, line
    return found[1]


def upgrade_features(quorum):
    """At kraft.version 0 the voters report their range within a fetch timeout of each election."""
    assert metadata_version(quorum).startswith(OLD_RELEASE)

    def upgraded():
        run = java_tool(FEATURES, *running(quorum), "upgrade", "--release-version", NEW_RELEASE)
        said = run.stdout + run.stderr
        assert run.returncode == 0 or "not all of the voters support it" in said, said
        return run.returncode == 0

    wait_for(upgraded, "all voters to report their range", 30)
    assert metadata_version(quorum).startswith(NEW_RELEASE)


def running(quorum):
    return quorum.tool_arguments([node for node in quorum.controllers if node.is_alive])


@one_day_in(2, 0)
def test_in_place_in_a_static_quorum(tmp_path):
    with Quorum(tmp_path, dict.fromkeys(VOTERS, "java"), static=True, config=AUTHORIZED) as quorum:
        quorum.format("--release-version", OLD_RELEASE)
        quorum.start()
        quorum.leader(60)
        broker = quorum.add_broker(11)
        broker.wait_until_started()
        with ClusterLoad([broker]) as load:
            load.wait_for_more()
            for node_id in VOTERS:
                replace(quorum, node_id, "quorate")
                load.change()
                if node_id in STEPS_BACK:
                    replace(quorum, node_id, "java")
                    load.change()
                    replace(quorum, node_id, "quorate")
                if node_id == VOTERS[UPGRADED_AFTER - 1]:
                    upgrade_features(quorum)
                load.wait_for_more()
            assert len(quorum.of_kind("quorate")) == len(VOTERS)
            for node_id in VOTERS:
                replace(quorum, node_id, "java")
                load.change()
                load.wait_for_more()
            load.end()
            load.assert_kept()
            assert metadata_version(quorum).startswith(NEW_RELEASE)
        assert_nothing_is_lost(quorum)
        assert_java_is_content(quorum)


BOOTSTRAP = "controller.quorum.bootstrap.servers"
NEW = (4, 5, 6)


def start_again(quorum, node):
    """Start a removed controller, in a new directory if Kafka refuses to start in its old one.

    QuorumState.initialize makes a candidate of a node whose last vote is its own. CandidateState
    refuses a node that its log does not name as a voter, so such a node ends at once.
    """
    voted = json.loads((node.partition / "quorum-state").read_text())["votedId"]
    if node.kind == "java" and voted == node.id:
        shutil.rmtree(node.data)
        node.format(quorum.cluster_id, "--no-initial-controllers")
    node.start()


def take_over(quorum, new, old):
    """Steps 1, 5 and 6 of the runbook: `new` is added, `old` is removed and stopped."""
    if old.kind == "java":
        assert_ready(old)
    if not new.is_alive:
        start_again(quorum, new)
    wait_until_caught_up(quorum, new)
    tool = quorum.lender("quorate")
    alive = [node for node in quorum.controllers if node.is_alive]
    add(quorum, new, tool, alive)
    remove(quorum, old, tool, [node for node in alive if node is not old])
    quorum.wait_until(lambda v: new.id in v.voters and old.id not in v.voters, "the new voters", 60)
    old.kill(15, 60)
    quorum.wait_for_commit_by_all(60)


@one_day_in(2, 1)
def test_by_add_and_remove_in_a_dynamic_quorum(tmp_path):
    with Quorum(tmp_path, dict.fromkeys(VOTERS, "java"), config=AUTHORIZED) as quorum:
        quorum.format("--release-version", OLD_RELEASE)
        for node in quorum.controllers:
            node.start()
        quorum.leader(60)
        ports = {node_id: free_port() for node_id in NEW}
        everyone = ",".join([quorum.bootstrap, *(f"127.0.0.1:{port}" for port in ports.values())])
        for node in quorum.controllers:  # takes it at its next start
            node.config[BOOTSTRAP] = everyone
        broker = quorum.add_broker(11, {BOOTSTRAP: everyone})
        broker.wait_until_started()
        with ClusterLoad([broker]) as load:
            load.wait_for_more()
            for old_id, new_id in zip(VOTERS, NEW, strict=True):
                old = quorum.nodes[old_id]
                new = quorum.join(new_id, "quorate", {BOOTSTRAP: everyone}, ports[new_id])
                take_over(quorum, new, old)
                load.change()
                if old_id in STEPS_BACK:
                    take_over(quorum, old, new)
                    load.change()
                    take_over(quorum, new, old)
                if old_id == VOTERS[UPGRADED_AFTER - 1]:
                    upgrade_features(quorum)
                load.wait_for_more()
            assert set(quorum.wait_for_commit_by_all(60).voters) == set(NEW)
            for old_id, new_id in zip(VOTERS, NEW, strict=True):
                take_over(quorum, quorum.nodes[old_id], quorum.nodes[new_id])
                load.change()
                load.wait_for_more()
            assert set(quorum.wait_for_commit_by_all(60).voters) == set(VOTERS)
            load.end()
            load.assert_kept()
            assert metadata_version(quorum).startswith(NEW_RELEASE)
        assert_nothing_is_lost(quorum)
        assert_java_is_content(quorum)
