"""The core of interoperation with Kafka 4.4.0: each kind leads, fails, joins, and nothing is lost."""

import pytest

from interop.checks import assert_java_is_content, assert_nothing_is_lost
from interop.kafka import Quorum

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("core-4.4")]

RELEASES = {"level of 4.3": (), "level of 4.4": ("--release-version", "4.4")}


@pytest.fixture(scope="module", params=list(RELEASES.values()), ids=list(RELEASES))
def quorum(request, tmp_path_factory):
    kinds = {1: "quorate", 2: "java-4.4", 3: "java-4.4"}
    with Quorum(tmp_path_factory.mktemp("core"), kinds) as quorum:
        quorum.format(*request.param)
        quorum.start()
        quorum.wait_for_commit_by_all()
        yield quorum


@pytest.mark.parametrize("kind", ["java-4.4", "quorate"])
def test_each_kind_leads_and_is_succeeded(quorum, kind):
    leader = quorum.of_kind(kind)[0]
    before = quorum.hand_over(leader)
    quorum.write(3)
    leader.kill()
    quorum.wait_until(
        lambda v: v.epoch > before.epoch and v.high_watermark > before.high_watermark,
        f"a successor of {leader} to commit",
    )
    quorum.write(3)
    leader.start()
    quorum.wait_for_commit_by_all()


def test_a_controller_of_ours_joins_and_all_logs_have_the_same_records(quorum):
    quorum.hand_over(quorum.of_kind("java-4.4")[0])
    unused = max(quorum.nodes) + 1  # a second run of this test adds another one
    newcomer = quorum.join(unused, "quorate", {"controller.quorum.auto.join.enable": "true"})
    quorum.wait_until(lambda v: newcomer.id in v.voters, "the newcomer to be a voter")
    quorum.write(3)
    quorum.wait_for_commit_by_all()
    assert_nothing_is_lost(quorum)
    assert_java_is_content(quorum)
