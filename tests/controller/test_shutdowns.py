"""A controlled shutdown of a broker with many partitions takes several writes."""

from controller.cluster import SESSION_MS, Cluster
from controller.test_leaders import alter
from quorate.base.errors import ErrorCode
from quorate.controller.heartbeats import CONTINUE_SHUTDOWN
from quorate.controller.topic_deletion import DELETE_TOPICS
from quorate.wire.messages import DeleteTopicsRequest


def test_a_controlled_shutdown_of_many_partitions_comes_in_several_writes():
    cluster = Cluster(2, part_records=2)
    cluster.create("a", assignments=[(1, 2)] * 7)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert len(cluster.records) == 3 and cluster.broker(1).in_controlled_shutdown
    assert cluster.head.index.leads(1) == 5
    assert cluster.run_to_the_end(CONTINUE_SHUTDOWN) == 3
    assert {p.leader for p in cluster.image.topics.named("a").partitions.values()} == {2}


def test_a_broker_that_shuts_down_gets_nothing_new_between_two_writes():
    cluster = Cluster(3, part_records=2)
    cluster.create("a", assignments=[(1, 2, 3)] * 5)
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.create("new", assignments=[(1, 2)]).error_code == ErrorCode.NONE
    assert (cluster.partition("new").leader, cluster.partition("new").isr) == (2, (2,))
    assert alter(cluster, [2, 1], topic="new").error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_ends_when_the_others_have_applied_the_last_of_its_moves():
    """An offset of an earlier write of the shutdown is not enough."""
    cluster = Cluster(2, part_records=2)
    cluster.create("a", assignments=[(1, 2)] * 5)
    cluster.heartbeat(1, want_shut_down=True)
    cluster.heartbeat(2, offset=cluster.next_offset)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.run_to_the_end(CONTINUE_SHUTDOWN)
    last = cluster.next_offset - 1
    cluster.heartbeat(2, offset=last - 1)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(2, offset=last)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_another_registration_or_the_fencing_ends_the_moves_of_a_shutdown():
    for end in ("register", "lose"):
        cluster = Cluster(2, part_records=2)
        cluster.create("a", assignments=[(1, 2)] * 5)
        cluster.heartbeat(1, want_shut_down=True)
        assert cluster.liveness.is_moving(1)
        if end == "register":
            cluster.now_ms += SESSION_MS + 1
            cluster.register(1, previous_epoch=cluster.broker(1).epoch)
        else:
            cluster.lose(1)
        assert cluster.liveness.shutting_down() is None
        assert not cluster.decide(CONTINUE_SHUTDOWN, None) and cluster.records == []


def test_a_new_controller_begins_anew_with_a_broker_that_shuts_down():
    cluster = Cluster(2, part_records=2)
    cluster.create("a", assignments=[(1, 2)] * 7)
    cluster.heartbeat(1, want_shut_down=True)
    cluster.liveness.activate(cluster.image.cluster, {}, cluster.now_ms)
    cluster.heartbeat(1, want_shut_down=True)
    cluster.run_to_the_end(CONTINUE_SHUTDOWN)
    assert cluster.head.index.leads(1) == 0


def test_a_topic_that_is_deleted_between_two_writes_is_left_out():
    cluster = Cluster(2, part_records=2)
    cluster.create("first", assignments=[(1, 2)] * 5)
    cluster.create("second", assignments=[(1, 2)] * 3)
    cluster.heartbeat(1, want_shut_down=True)
    cluster.decide(DELETE_TOPICS, DeleteTopicsRequest(topic_names=["first"]), 3)
    cluster.run_to_the_end(CONTINUE_SHUTDOWN)
    assert cluster.image.topics.named("first") is None
    assert {p.leader for p in cluster.image.topics.named("second").partitions.values()} == {2}
