"""Voters come and go: each kind of leader, of newcomer and of tool, crosswise."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from interop.checks import assert_java_is_content, assert_nothing_is_lost
from interop.kafka import HOST, Quorum, describe_quorum, wait_for

pytestmark = pytest.mark.interop

CROSSWISE = [
    ("java", "quorate", "quorate"),
    ("java", "quorate", "java"),
    ("quorate", "java", "java"),
    ("quorate", "java", "quorate"),
    ("quorate", "quorate", "java"),
]


def add(quorum, node, tool, asked=None):
    run = tool.quorum_tool(
        *quorum.tool_arguments(asked or quorum.founders),
        "--command-config",
        str(node.properties),
        "add-controller",
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"Added controller {node.id} with directory id {node.directory_id_text}" in run.stdout


def remove(quorum, node, tool, asked=None):
    others = asked or [n for n in quorum.controllers if n is not node]
    run = tool.quorum_tool(
        *quorum.tool_arguments(others),
        "remove-controller",
        "--controller-id",
        str(node.id),
        "--controller-directory-id",
        node.directory_id_text,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"controller {node.id} with directory id {node.directory_id_text}" in run.stdout


def wait_until_caught_up(quorum, node):
    """Under its present key: the leader remembers an old one of the same id for a while.

    A Java node fetches before its listener is open.
    Until then the leader cannot ask for its versions and aborts the addition.
    """

    def has_caught_up(view):
        row = view.observers.get(node.id)
        return (
            row is not None
            and row.directory_id == node.directory_id
            and row.end_offset >= view.high_watermark
        )

    quorum.wait_until(has_caught_up, f"{node} to observe and catch up")
    node.wait_until_listening()


@pytest.mark.parametrize(("leader", "newcomer", "tool"), CROSSWISE, ids=lambda kind: kind)
def test_a_voter_is_added_and_removed(tmp_path, leader, newcomer, tool):
    with Quorum(tmp_path, {1: leader}) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        node = quorum.join(2, newcomer)
        wait_until_caught_up(quorum, node)
        lender = quorum.lender(tool)
        add(quorum, node, lender)
        view = quorum.wait_for_commit_by_all()
        assert {i: r.directory_id for i, r in view.voters.items()}[2] == node.directory_id
        assert set(view.voters) == {1, 2}
        remove(quorum, node, lender)
        quorum.wait_until(lambda v: set(v.voters) == {1}, "one voter left")
        wait_until_caught_up(quorum, node)
        assert_nothing_is_lost(quorum)
        assert_java_is_content(quorum)


@pytest.mark.parametrize(("founder", "newcomer"), [("java", "quorate"), ("quorate", "java")])
def test_a_newcomer_joins_by_itself(tmp_path, founder, newcomer):
    with Quorum(tmp_path, {1: founder}) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        node = quorum.join(2, newcomer, {"controller.quorum.auto.join.enable": "true"})
        quorum.wait_until(lambda v: set(v.voters) == {1, 2}, f"{node} to join")
        quorum.wait_for_commit_by_all()
        assert_java_is_content(quorum)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    kinds = {1: "quorate", 2: "java", 3: "java"}
    with Quorum(tmp_path_factory.mktemp("three"), kinds) as quorum:
        quorum.format()
        quorum.start()
        yield quorum


@pytest.mark.xdist_group("three")
@pytest.mark.parametrize("tool", ["java", "quorate"])
@pytest.mark.parametrize("kind", ["java", "quorate"])
def test_the_leader_is_removed_and_comes_back(three, kind, tool):
    leader = three.of_kind(kind)[0]
    before = three.hand_over(leader)
    remove(three, leader, three.lender(tool))
    view = three.wait_until(
        lambda v: leader.id not in v.voters and v.leader != leader.id, "another leader"
    )
    assert view.epoch > before.epoch
    wait_until_caught_up(three, leader)
    add(three, leader, three.lender(tool))
    assert set(three.wait_for_commit_by_all().voters) == {1, 2, 3}
    assert_java_is_content(three)


def test_a_removal_that_is_lost_with_its_leader_is_not_reported_as_done(tmp_path):
    """Only its own log has the record, which it reports when asked; the tool asks once more."""
    with Quorum(tmp_path, dict.fromkeys((1, 2, 3), "quorate")) as quorum:
        quorum.format()
        quorum.start()
        leader = quorum.leader()
        others = [node for node in quorum.controllers if node is not leader]
        for node in others:
            node.kill()
        with ThreadPoolExecutor(1) as pool:
            removal = pool.submit(remove, quorum, leader, quorum.lender("quorate"), [leader])
            wait_for(lambda: describe_quorum(HOST, leader.port, 1.0) is None, "no leader", 30)
            for node in others:
                node.start()
            removal.result(90)
        view = quorum.wait_until(lambda v: v.high_watermark > 0, "a leader")
        assert leader.id not in view.voters


@pytest.mark.xdist_group("three")
@pytest.mark.parametrize("kind", ["java", "quorate"])
def test_a_replaced_disk_is_a_new_voter(three, kind):
    """The old key is removed, the same node id added with its new directory id."""
    node = three.of_kind(kind)[-1]
    other = next(n for n in three.controllers if n is not node)
    three.hand_over(other)
    old = node.directory_id_text
    remove(three, node, other)
    node.kill()
    node.data.rename(node.directory / f"data-{old}")
    node.format(three.cluster_id, "--no-initial-controllers")
    node.start()
    wait_until_caught_up(three, node)
    add(three, node, node)
    view = three.wait_for_commit_by_all()
    assert view.voters[node.id].directory_id == node.directory_id
    assert node.directory_id_text != old
