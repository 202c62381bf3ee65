"""Snapshots travel both ways, and each program runs on a directory that the other wrote."""

import json

import pytest

from interop.checks import assert_java_is_content, assert_nothing_is_lost, dump
from interop.kafka import Quorum

pytestmark = pytest.mark.interop

OFTEN = {"metadata.log.max.record.bytes.between.snapshots": 2000}


def snapshots(node):
    return sorted(p.name for p in node.partition.glob("*.checkpoint"))


def drop_the_log_before_the_snapshot(quorum, node):
    """Restart a lone voter without its log files: it goes on from its newest snapshot.

    A Quorate node does so where quorum-state does not name it as the leader (docs/recovery.md).
    """
    quorum.wait_until(lambda _: len(snapshots(node)) > 1, f"{node} to write a snapshot")
    newest = snapshots(node)[-1]
    node.kill()
    for path in [*node.partition.glob("0*.log"), *node.partition.glob("0*.*index")]:
        path.unlink()
    (node.partition / "leader-epoch-checkpoint").unlink()
    if node.kind == "quorate":
        state = node.partition / "quorum-state"
        state.write_text(json.dumps(json.loads(state.read_text()) | {"leaderId": -1}))
    node.start()
    quorum.leader()
    return newest


@pytest.mark.parametrize(
    ("leader", "newcomer"), [("java", "quorate"), ("quorate", "java"), ("quorate", "quorate")]
)
def test_an_empty_node_starts_from_the_leaders_snapshot(tmp_path, leader, newcomer):
    with Quorum(tmp_path, {1: leader}, config=OFTEN) as quorum:
        quorum.format()
        quorum.start()
        first = quorum.leader()
        quorum.write(50)
        newest = drop_the_log_before_the_snapshot(quorum, first)
        quorum.acknowledged.clear()  # what followed the snapshot fell with the log, by our hand
        quorum.write(5)
        node = quorum.join(2, newcomer, {"controller.quorum.auto.join.enable": "true"})
        quorum.wait_until(lambda v: set(v.voters) == {1, 2}, f"{node} to catch up and join")
        view = quorum.wait_for_commit_by_all()
        fetched = snapshots(node)[0]  # the leader may have written another one meanwhile
        assert fetched >= newest, f"{node} did not fetch {newest}"
        assert (node.partition / fetched).read_bytes() == (first.partition / fetched).read_bytes()
        assert min(dump(node).log) >= int(fetched.split("-")[0])
        assert view.voters[2].directory_id == node.directory_id
        assert_nothing_is_lost(quorum)
        assert_java_is_content(quorum)


@pytest.fixture(scope="module")
def swapping(tmp_path_factory):
    kinds = {1: "quorate", 2: "java", 3: "java"}
    with Quorum(tmp_path_factory.mktemp("swap"), kinds, config=OFTEN) as quorum:
        quorum.format()
        quorum.start()
        yield quorum


@pytest.mark.xdist_group("swap")
@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_the_other_program_goes_on_with_a_directory(swapping, node_id):
    """Java on what Quorate wrote and Quorate on what Java wrote, as follower and as leader."""
    swapping.write(20)
    swapping.wait_for_commit_by_all()
    before = swapping.nodes[node_id]
    key = before.directory_id_text
    before.kill()
    after = swapping.swap(node_id, "java" if before.kind == "quorate" else "quorate").start()
    swapping.wait_for_commit_by_all()
    assert after.directory_id_text == key
    swapping.hand_over(after)
    swapping.wait_for_commit_by_all()
    assert_nothing_is_lost(swapping)
    assert_java_is_content(swapping)
