"""Mixed quorums: each kind leads, each leader is killed or frozen, and nothing is lost."""

import pytest

from interop.checks import assert_java_is_content, assert_nothing_is_lost
from interop.kafka import Quorum

pytestmark = pytest.mark.interop

ONE_OF_OURS = {1: "quorate", 2: "java", 3: "java"}
TWO_OF_OURS = {1: "quorate", 2: "quorate", 3: "java"}


def mixed(kinds, static, name):
    return pytest.param((kinds, static), id=name, marks=pytest.mark.xdist_group(name))


@pytest.fixture(
    scope="module",
    params=[
        mixed(ONE_OF_OURS, False, "dynamic-one-of-ours"),
        mixed(TWO_OF_OURS, False, "dynamic-two-of-ours"),
        mixed(ONE_OF_OURS, True, "static-one-of-ours"),
        mixed(TWO_OF_OURS, True, "static-two-of-ours"),
    ],
)
def cluster(request, tmp_path_factory):
    kinds, static = request.param
    with Quorum(tmp_path_factory.mktemp("mixed"), kinds, static=static) as quorum:
        quorum.format()
        quorum.start()
        yield quorum


@pytest.fixture
def quorum(cluster):
    """The shared cluster, whole again whatever the test before left."""
    for node in cluster.nodes.values():
        if not node.is_alive:
            node.stop()
            node.start()
        elif node.frozen:
            node.thaw()
    cluster.wait_for_commit_by_all()
    return cluster


def commit_something(quorum):
    quorum.write(5)
    quorum.wait_for_commit_by_all()


def test_all_follow_one_leader(quorum):
    view = quorum.wait_for_commit_by_all()
    assert set(view.voters) == {1, 2, 3}
    assert view.observers == {}


@pytest.mark.parametrize("kind", ["java", "quorate"])
def test_each_kind_leads(quorum, kind):
    node = quorum.of_kind(kind)[-1]
    quorum.hand_over(node)
    commit_something(quorum)
    assert quorum.leader() is node


@pytest.mark.parametrize("fault", ["killed", "frozen"])
@pytest.mark.parametrize("kind", ["java", "quorate"])
def test_the_others_take_over(quorum, kind, fault):
    leader = quorum.of_kind(kind)[0]
    before = quorum.hand_over(leader)
    commit_something(quorum)
    if fault == "killed":
        leader.kill()
    else:
        leader.freeze()
    quorum.wait_until(
        lambda v: v.epoch > before.epoch and v.high_watermark > before.high_watermark,
        f"a successor of {leader} to commit",
    )
    quorum.write(5)
    if fault == "killed":
        leader.start()
    else:
        leader.thaw()
    view = quorum.wait_for_commit_by_all()
    assert view.epoch > before.epoch


@pytest.mark.parametrize("kind", ["java", "quorate"])
def test_a_leader_hands_over_when_it_is_stopped(quorum, kind):
    leader = quorum.of_kind(kind)[0]
    before = quorum.hand_over(leader)
    commit_something(quorum)
    code = leader.kill(15)
    assert code == (143 if leader.kind == "java" else 0)
    quorum.wait_until(
        lambda v: v.epoch > before.epoch and v.high_watermark > 0, "a successor to commit", 5
    )


def test_all_logs_have_the_same_records(quorum):
    commit_something(quorum)
    assert_nothing_is_lost(quorum)
    assert_java_is_content(quorum)
