"""kraft.version 0 to 1 in a mixed static quorum, by Kafka's own tool."""

import json

import pytest

from interop.checks import assert_java_is_content, assert_nothing_is_lost, dump
from interop.kafka import FEATURES, Quorum, java_tool
from quorate.base.ids import ZERO_UUID

pytestmark = pytest.mark.interop


def upgrade(quorum):
    return java_tool(FEATURES, *quorum.tool_arguments(), "upgrade", "--feature", "kraft.version=1")


def quorum_state(node):
    return json.loads((node.partition / "quorum-state").read_text())


@pytest.fixture
def static_quorum(tmp_path):
    kinds = {1: "quorate", 2: "java", 3: "java"}
    with Quorum(tmp_path, kinds, static=True) as quorum:
        quorum.format()
        yield quorum


@pytest.mark.parametrize("kind", ["java", "quorate"])
def test_a_static_quorum_becomes_dynamic(static_quorum, kind):
    quorum = static_quorum
    quorum.start()
    view = quorum.hand_over(quorum.of_kind(kind)[0])
    assert {r.directory_id for r in view.voters.values()} == {ZERO_UUID}
    assert {quorum_state(n)["data_version"] for n in quorum.controllers} == {0}
    wait_for_upgrade(quorum)
    view = quorum.wait_for_commit_by_all()
    assert view.voters.keys() == quorum.nodes.keys()
    for node_id, replica in view.voters.items():
        assert replica.directory_id == quorum.nodes[node_id].directory_id
    # The next election is the first to be kept in the new form.
    quorum.hand_over(next(n for n in quorum.controllers if n.id != view.leader))
    quorum.wait_for_commit_by_all()
    assert {quorum_state(n)["data_version"] for n in quorum.controllers} == {1}
    for node in quorum.controllers:
        texts = [text for _, text in dump(node).log.values()]
        assert any(t.startswith('KRaftVersion {"version":0,"kRaftVersion":1}') for t in texts)
    assert_nothing_is_lost(quorum)
    assert_java_is_content(quorum)


def wait_for_upgrade(quorum):
    """The leader learns the directory ids once per fetch timeout: the tool may have to wait."""
    answers = []

    def upgraded(_):
        answers.append(upgrade(quorum))
        return answers[-1].returncode == 0

    quorum.wait_until(upgraded, f"the upgrade; the tool says {answers}")
    assert "kraft.version was upgraded to 1." in answers[-1].stdout


@pytest.mark.parametrize("absent", [1, 3], ids=["quorate-absent", "java-absent"])
def test_an_upgrade_waits_for_a_voter_whose_directory_is_unknown(static_quorum, absent):
    quorum = static_quorum
    late = quorum.nodes[absent]
    for node in quorum.controllers:
        if node is not late:
            node.start()
    leader = quorum.leader()
    refused = upgrade(quorum)
    assert refused.returncode == 1
    assert "kraft.version" in refused.stdout + refused.stderr
    assert quorum.leader() is leader
    late.start()
    wait_for_upgrade(quorum)
    view = quorum.wait_for_commit_by_all()
    assert view.voters[absent].directory_id == late.directory_id
    assert_nothing_is_lost(quorum)
    assert_java_is_content(quorum)
