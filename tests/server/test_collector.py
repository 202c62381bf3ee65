"""Full collections are put off while a node is busy with large requests, but not for ever."""

import gc

import pytest

from quorate.server.collector import MOST_S, NEVER, Collector


@pytest.fixture(autouse=True)
def usual():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_full_collections_are_put_off_while_the_node_is_busy(usual):
    collector = Collector(lambda: 7.0)
    collector.set_busy(False)
    assert gc.get_threshold() == usual
    collector.set_busy(True)
    assert gc.get_threshold() == (*usual[:2], NEVER)
    collector.set_busy(False)
    assert gc.get_threshold() == usual


def test_a_node_that_is_always_busy_collects_after_some_time(usual):
    now = [0.0]
    collector = Collector(lambda: now[0])
    for second in (0.0, MOST_S - 1):
        now[0] = second
        collector.set_busy(True)
        assert gc.get_threshold()[2] == NEVER
    now[0] = MOST_S
    collector.set_busy(True)
    assert gc.get_threshold() == usual
    collector.set_busy(False)
    collector.set_busy(True)
    assert gc.get_threshold()[2] == NEVER
