"""A controlled shutdown of a broker with many partitions takes several turns."""

from conformance.marker import kafka_scenario
from controller.cluster import SESSION_MS, Cluster
from controller.test_leaders import alter
from quorate.base.errors import ErrorCode
from quorate.controller.heartbeats import BROKER_HEARTBEAT
from quorate.controller.liveness import BrokerControl
from quorate.controller.topic_deletion import DELETE_TOPICS
from quorate.metadata.image import NO_LEADER
from quorate.wire.messages import BrokerHeartbeatRequest, DeleteTopicsRequest


def cluster_of(brokers=2, replicas=(1, 2), partitions=7):
    cluster = Cluster(brokers, part_records=2)
    cluster.create("a", assignments=[replicas] * partitions)
    return cluster


def leaders(cluster, topic="a"):
    return {p.leader for p in cluster.image.topics.named(topic).partitions.values()}


def test_a_controlled_shutdown_of_many_partitions_takes_turns():
    """The registration is the first record, and the response waits for the last."""
    cluster = cluster_of()
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.sizes == [3, 2, 2, 1]
    assert cluster.broker(1).in_controlled_shutdown and leaders(cluster) == {2}


def test_a_broker_that_shuts_down_gets_nothing_new_between_two_turns():
    cluster = cluster_of(3, (1, 2, 3))

    def act():
        assert cluster.broker(1).in_controlled_shutdown and 1 in leaders(cluster)
        assert cluster.create("new", assignments=[(1, 2)]).error_code == ErrorCode.NONE
        assert (cluster.partition("new").leader, cluster.partition("new").isr) == (2, (2,))
        assert alter(cluster, [2, 1], topic="new").error_code == ErrorCode.INELIGIBLE_REPLICA
        assert cluster.create("placed", 4, 2).error_code == ErrorCode.NONE
        assert all(
            1 not in p.replicas for p in cluster.image.topics.named("placed").partitions.values()
        )

    cluster.at_turn(1, act)
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.image.topics.named("placed")


def test_a_broker_ends_when_the_others_have_applied_the_last_of_its_moves():
    """An offset of an earlier turn is not enough, nor is another heartbeat between the turns."""
    cluster = cluster_of()

    def act():
        cluster.heartbeat(2, offset=cluster.next_offset)
        assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
        assert cluster.records == []

    cluster.at_turn(2, act)
    cluster.heartbeat(1, want_shut_down=True)
    last = cluster.next_offset - 1
    cluster.heartbeat(2, offset=last - 1)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(2, offset=last)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


@kafka_scenario("ReplicationControlManagerTest", "processExpiredBrokerHeartbeat")
def test_a_heartbeat_that_waits_for_too_long_says_what_its_broker_has_applied():
    """Of the registered incarnation; it does not take the broker out of a shutdown, nor into service."""
    cluster = cluster_of(3)
    cluster.heartbeat(1, want_shut_down=True)
    last = cluster.next_offset - 1
    cluster.heartbeat(2, offset=last)
    cluster.heartbeat(3, offset=last - 1)

    def expire(broker_id, epoch, offset):
        request = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=offset
        )
        cluster.liveness.written(BROKER_HEARTBEAT.expired(cluster.head, request))

    expire(3, cluster.broker(3).epoch + 1, last)
    expire(9, 1, last)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    for broker_id in (1, 3):
        expire(broker_id, cluster.broker(broker_id).epoch, last)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    expire(1, cluster.broker(1).epoch, last)
    assert cluster.liveness.present_state(cluster.broker(1)) is BrokerControl.FENCED


def register_again(cluster):
    cluster.now_ms += SESSION_MS + 1
    cluster.register(1, previous_epoch=cluster.broker(1).epoch)


def test_another_registration_or_the_fencing_ends_the_moves_of_a_shutdown():
    for act, error in (
        (register_again, ErrorCode.STALE_BROKER_EPOCH),
        (lambda cluster: cluster.lose(1), ErrorCode.NONE),
    ):
        cluster = cluster_of()
        cluster.at_turn(1, lambda act=act, cluster=cluster: act(cluster))
        response = cluster.heartbeat(1, want_shut_down=True)
        assert (response.error_code, response.should_shut_down) == (error, False)
        assert cluster.broker(1).fenced and cluster.sizes == [3, 0]
        cluster.unfence(1)
        assert not cluster.heartbeat(1).should_shut_down


def test_a_new_controller_begins_anew_with_a_broker_that_shuts_down():
    cluster = cluster_of()
    cluster.at_turn(1, cluster.new_leader)
    cluster.heartbeat(1, want_shut_down=True)
    assert 1 in leaders(cluster) and cluster.broker(1).in_controlled_shutdown
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.head.index.leads(1) == 0


def test_a_topic_that_is_deleted_between_two_turns_is_left_out():
    cluster = Cluster(2, part_records=2)
    for name, count in (("first", 5), ("second", 3)):
        cluster.create(name, assignments=[(1, 2)] * count)
    request = DeleteTopicsRequest(topic_names=["first"])
    cluster.at_turn(1, lambda: cluster.decide(DELETE_TOPICS, request, 3))
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.image.topics.named("first") is None
    assert leaders(cluster, "second") == {2} and NO_LEADER not in leaders(cluster, "second")
