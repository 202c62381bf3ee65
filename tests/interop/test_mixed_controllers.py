"""Java and Quorate controllers take over from each other under load, and hold the same images."""

import pytest

from interop.checks import assert_java_is_content, assert_nothing_is_lost
from interop.images import assert_images_agree
from interop.kafka import Quorum
from interop.load import AUTHORIZED, ClusterLoad
from time_budget import one_day_in, share

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CONFIG = AUTHORIZED | {"metadata.log.max.record.bytes.between.snapshots": 4000}


@one_day_in(2, 0)
def test_they_take_over_from_each_other_under_load(tmp_path):
    with Quorum(tmp_path, {1: "quorate", 2: "java", 3: "java"}, config=CONFIG) as quorum:
        quorum.format()
        quorum.start()
        ours, java = quorum.nodes[1], quorum.nodes[2]
        quorum.leader(60)
        brokers = [quorum.add_broker(11), quorum.add_broker(12)]
        for broker in brokers:
            broker.wait_until_started()
        with ClusterLoad(brokers) as load:
            load.wait_for_more()
            for number in range(share(10, quick=1, daily=3)):
                for leader in (ours, java):
                    quorum.hand_over(leader, 90)
                    load.change()
                    load.wait_for_more()
                    assert_images_agree(quorum, java, ours)
                if number == 0:
                    brokers[1].kill(15, 60)
                    brokers[1].start()
                    brokers[1].wait_until_started()
            load.end()
            load.assert_kept()
        assert_nothing_is_lost(quorum)
        assert_java_is_content(quorum)
