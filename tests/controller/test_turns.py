"""A heartbeat that changes many partitions takes turns with other decisions."""

import pytest

from controller.cluster import SESSION_MS, Cluster
from quorate.base.errors import ErrorCode
from quorate.controller.brokers import UNREGISTER_BROKER
from quorate.controller.elections import ELECT_LEFT_OVER
from quorate.controller.heartbeats import CONTINUE_SHUTDOWN, FENCE_STALE_BROKER
from quorate.formats.records import BrokerRegistrationChangeRecord
from quorate.metadata.image import NO_LEADER
from quorate.wire.messages import UnregisterBrokerRequest


def cluster_of(brokers=3, replicas=(1, 2, 3), partitions=7, **config):
    cluster = Cluster(brokers, part_records=2, **config)
    cluster.create("orders", assignments=[replicas] * partitions)
    return cluster


def partitions_of(cluster, topic="orders"):
    return cluster.image.topics.named(topic).partitions.values()


def at_turn(cluster, number, act):
    """`act` is called after that turn of the next decision. Returns what counts the turns."""
    turns: list[int] = []

    def between():
        turns.append(len(turns) + 1)
        if len(turns) == number:
            act()

    cluster.between = between
    return turns


def leaderless(cluster, *broker_ids):
    """The last brokers of the ISR, in this order, are fenced: nobody leads."""
    for broker_id in broker_ids:
        cluster.lose(broker_id)
    assert {p.leader for p in partitions_of(cluster)} == {NO_LEADER}


# -- the broker changes in between -----------------------------------------------------------------
def begin_to_fence(cluster):
    cluster.expire(1)
    assert cluster.decide(FENCE_STALE_BROKER, None)


def register_again(cluster):
    cluster.now_ms += SESSION_MS + 1
    assert cluster.register(1).broker_epoch > 0


def unregister(cluster):
    cluster.decide(UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=1))


def amend(cluster):
    number = int.from_bytes(cluster.broker(1).incarnation_id[1:], "big")
    cluster.register(1, number=number)


@pytest.mark.parametrize(
    ("act", "error", "is_fenced"),
    [
        (begin_to_fence, ErrorCode.NONE, True),
        (lambda cluster: cluster.lose(1), ErrorCode.NONE, True),
        (register_again, ErrorCode.STALE_BROKER_EPOCH, True),
        (unregister, ErrorCode.STALE_BROKER_EPOCH, True),
        (amend, ErrorCode.NONE, False),
    ],
)
@pytest.mark.parametrize("begins", ["fencing", "unfencing"])
def test_what_becomes_of_the_broker_between_two_turns_ends_the_work(begins, act, error, is_fenced):
    """The response names what the broker is by then, and the next heartbeat goes on from there."""
    if begins == "unfencing":
        cluster = cluster_of(1, (1,))
        leaderless(cluster, 1)
    else:
        cluster = cluster_of()
    at_turn(cluster, 1, lambda: act(cluster))
    response = cluster.heartbeat(1, want_fence=begins == "fencing")
    assert response.error_code == error
    if error == ErrorCode.NONE and (begins != "fencing" or is_fenced):
        assert response.is_fenced is is_fenced
    cluster.between = lambda: None
    cluster.run_to_the_end(FENCE_STALE_BROKER)
    if 1 in cluster.image.cluster.brokers:
        cluster.heartbeat(1)
        assert not cluster.broker(1).fenced
        cluster.heartbeat(1, want_shut_down=True)


# -- fencing -------------------------------------------------------------------------------------
def test_a_broker_that_asks_to_be_fenced_gets_nothing_new_between_the_turns():
    cluster = cluster_of()

    def act():
        assert not cluster.broker(1).fenced
        assert cluster.heartbeat(1).is_fenced and cluster.records == []
        cluster.create("new", 4, 3)
        assert all(p.leader != 1 for p in partitions_of(cluster, "new"))

    turns = at_turn(cluster, 1, act)
    assert cluster.heartbeat(1, want_fence=True).is_fenced
    assert len(turns) >= 3 and cluster.broker(1).fenced
    assert isinstance(cluster.records[-1], BrokerRegistrationChangeRecord)
    assert not cluster.liveness.is_being_fenced(1)
    assert cluster.unfence(1)


# -- unfencing -----------------------------------------------------------------------------------
def test_a_broker_that_is_unfenced_leads_in_turns():
    cluster = cluster_of(1, (1,))
    leaderless(cluster, 1)
    turns = at_turn(cluster, 1, lambda: cluster.create("new", 3, 1))
    assert not cluster.heartbeat(1).is_fenced
    assert len(turns) >= 3
    for topic in ("orders", "new"):
        assert {p.leader for p in partitions_of(cluster, topic)} == {1}


def test_a_shutdown_between_the_turns_of_an_unfencing_wins():
    cluster = cluster_of(2, (1, 2))
    leaderless(cluster, 2, 1)
    at_turn(cluster, 2, lambda: cluster.heartbeat(1, want_shut_down=True))
    response = cluster.heartbeat(1)
    assert (response.is_fenced, response.should_shut_down) == (False, False)
    assert cluster.broker(1).in_controlled_shutdown
    cluster.between = lambda: None
    cluster.run_to_the_end(CONTINUE_SHUTDOWN)
    assert {p.leader for p in partitions_of(cluster)} == {NO_LEADER}


def test_a_new_active_controller_elects_what_an_unfencing_has_left_over():
    """No heartbeat does: the broker is unfenced already."""
    cluster = cluster_of(1, (1,))
    leaderless(cluster, 1)

    class LeadershipEndsError(Exception):
        pass

    def end():
        raise LeadershipEndsError

    at_turn(cluster, 1, end)
    with pytest.raises(LeadershipEndsError):
        cluster.heartbeat(1)
    cluster.between, cluster.is_between_turns = (lambda: None), False
    cluster.liveness.activate(cluster.image.cluster, {}, cluster.now_ms)
    assert not cluster.broker(1).fenced and cluster.head.index.leaderless == 5
    cluster.heartbeat(1)
    assert cluster.head.index.leaderless == 5
    turns = at_turn(cluster, 0, None)
    assert cluster.decide(ELECT_LEFT_OVER, None) is False
    assert len(turns) >= 2
    assert {p.leader for p in partitions_of(cluster)} == {1}


def test_where_nobody_may_lead_nothing_is_left_over():
    cluster = cluster_of(2, (1, 2))
    leaderless(cluster, 2, 1)
    cluster.unfence(2)
    cluster.decide(ELECT_LEFT_OVER, None)
    assert cluster.records == []
