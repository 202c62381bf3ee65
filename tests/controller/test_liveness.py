"""What the active controller knows of brokers: contacts, positions, shutdowns; blocks of producer ids."""

from dataclasses import replace

import pytest
from immutables import Map

from conformance.marker import kafka_scenario
from controller.cluster import Cluster, directory, incarnation
from controller.test_brokers_and_partitions import refused
from quorate.base.errors import ErrorCode
from quorate.controller.heartbeats import BROKER_HEARTBEAT
from quorate.controller.liveness import (
    BrokerControl,
    BrokerFenced,
    BrokerRegistered,
    BrokerUnregistered,
    DirectoriesFailed,
    DirectoriesFailing,
    HeartbeatDecided,
    LeavingBegan,
    Liveness,
    SessionExpired,
    ShutdownMoved,
)
from quorate.controller.placement import UsableBroker, usable_brokers
from quorate.controller.producer_ids import ALLOCATE_PRODUCER_IDS
from quorate.formats.records import ProducerIdsRecord
from quorate.metadata import image
from quorate.metadata.errors import ReplayError
from quorate.wire.messages import AllocateProducerIdsRequest, BrokerHeartbeatRequest

SESSION_MS = 10
KNOWN = {(0, 0), (1, 100), (2, 200)}
FENCED, UNFENCED, SHUTTING_DOWN, SHUTDOWN_NOW = (
    BrokerControl.FENCED,
    BrokerControl.UNFENCED,
    BrokerControl.CONTROLLED_SHUTDOWN,
    BrokerControl.SHUTDOWN_NOW,
)


# -- contacts ------------------------------------------------------------------------------------
@pytest.fixture
def liveness():
    found = Liveness(SESSION_MS)
    for broker_id, epoch in KNOWN:
        found.contact(broker_id, epoch, 0)
    return found


@kafka_scenario(
    "BrokerHeartbeatTrackerTest", "maybeRemoveExpiredWithEmptyTracker", "updateContactTime"
)
def test_without_contacts_no_session_ends():
    liveness = Liveness(SESSION_MS)
    broker = image.Broker(1, 100, incarnation(1))
    assert liveness.expired(1_000) is None and liveness.since_contact_ms(broker, 5) is None
    liveness.contact(1, 100, 0)
    assert liveness.since_contact_ms(broker, 5) == 5


@kafka_scenario(
    "BrokerHeartbeatTrackerTest",
    "maybeRemoveExpiredWithAllUpToDate",
    "maybeRemoveExpiredWithAllExpired",
)
@kafka_scenario(
    "BrokerHeartbeatTrackerTest",
    "isExpiredIsFalseForTheCurrentTime",
    "isExpiredIsFalseForTenNanosecondsAfter",
    "isExpiredIsTrueAfterExpirationTime",
    "isExpiredIsFalseForPreviousTime",
)
def test_sessions_end_after_the_timeout(liveness):
    for now_ms in (0, SESSION_MS, -5):
        assert liveness.expired(now_ms) is None
    expired = set()
    while (found := liveness.expired(SESSION_MS + 1)) is not None:
        expired.add(found)
        liveness.written([SessionExpired(found[0], found[1], SESSION_MS + 1)])
    assert expired == KNOWN


def test_a_contact_that_comes_while_its_broker_is_fenced_is_kept(liveness):
    liveness.contact(1, 100, 5)
    liveness.written([SessionExpired(1, 100, SESSION_MS + 1)])
    assert liveness.has_session(1, 100, SESSION_MS + 5)


def test_no_second_decision_fences_a_broker_that_leaves(liveness):
    """But the run of the task after one that has failed does."""
    now_ms = SESSION_MS + 1
    first = liveness.expired(now_ms)
    liveness.written([LeavingBegan(first[0], is_expired=True)])
    assert liveness.expired(now_ms) == first
    liveness.written([LeavingBegan(first[0])])
    assert liveness.expired(now_ms) not in (None, first)


def test_a_directory_is_failing_until_the_registration_says_so():
    one, two = directory(1, 1), directory(1, 2)
    cluster = cluster_of(replace(broker(1), directories=(one, two)), broker(2))
    liveness = Liveness(SESSION_MS)

    def online():
        return liveness.without_failing(cluster).brokers[1].directories

    assert liveness.without_failing(cluster) is cluster
    liveness.written([DirectoriesFailing(1, frozenset({one}))])
    assert online() == (two,) and 2 in liveness.without_failing(cluster).brokers
    liveness.written([DirectoriesFailing(1, frozenset({two}))])
    assert online() == ()
    liveness.written([DirectoriesFailed(1, frozenset({one}))])
    assert online() == (one,)
    for change in (BrokerRegistered(1, is_new=True), BrokerUnregistered(1)):
        liveness.written([DirectoriesFailing(1, frozenset({two})), change])
        assert liveness.without_failing(cluster) is cluster
    liveness.written([DirectoriesFailing(9, frozenset({two}))])
    assert online() == (one, two)


@kafka_scenario(
    "BrokerHeartbeatTrackerTest",
    "hasValidSessionIsTrueForKnownBroker",
    "hasValidSessionIsFalseForUnknownBroker",
    "hasValidSessionIsFalseForUnknownBrokerEpoch",
)
@kafka_scenario("BrokerHeartbeatManagerTest", "hasValidSession")
def test_a_session_is_that_of_one_incarnation(liveness):
    assert all(liveness.has_session(*broker, 5) for broker in KNOWN)
    assert not liveness.has_session(0, 200, 5)
    assert not liveness.has_session(2, 100, 5)
    assert not liveness.has_session(3, 300, 5)


@kafka_scenario(
    "ClusterControlManagerTest", "brokerContactTimesAreUpdatedOnClusterControlActivation"
)
def test_a_new_active_controller_gives_each_unfenced_broker_a_session():
    liveness = Liveness(SESSION_MS)
    liveness.activate(cluster_of(broker(1), broker(2), broker(3, fenced=True)), {}, 500)
    assert [liveness.has_session(number, 1, 505) for number in (1, 2, 3)] == [True, True, False]
    assert liveness.expired(505) is None
    assert liveness.expired(500 + SESSION_MS + 1) in {(1, 1), (2, 1)}


# -- positions and shutdowns ---------------------------------------------------------------------
def broker(number, fenced=False, rack=None):
    return image.Broker(number, 1, incarnation(number), fenced=fenced, rack=rack)


def cluster_of(*brokers):
    return image.Cluster(brokers=Map({one.id: one for one in brokers}))


def heard(liveness, number, offset, state=UNFENCED):
    liveness.written([HeartbeatDecided(number, state, offset)])


def shut_down(liveness, number, offset, position=0):
    """The controlled shutdown begins with the record at `offset`."""
    changes = HeartbeatDecided(number, SHUTTING_DOWN, position), ShutdownMoved(number)
    liveness.written(changes)
    liveness.committed(changes, offset)


def next_state(liveness, cluster, number, *, leads=False, offset=100, **wants):
    wants = {"want_fence": False, "want_shut_down": False} | wants
    return liveness.next_state(
        cluster.brokers[number], metadata_offset=offset, leads=leads, cluster=cluster, **wants
    )


@kafka_scenario("BrokerHeartbeatManagerTest", "calculateNextBrokerState")
def test_the_next_state_of_a_broker():
    liveness = Liveness(SESSION_MS)
    cluster = cluster_of(broker(0, True), broker(1), broker(2), broker(5))
    liveness.activate(cluster, {0: 100}, 0)
    heard(liveness, 1, 98)
    heard(liveness, 2, 100)
    shut_down(liveness, 5, 99, position=99)
    asks = {
        (0, False): (SHUTDOWN_NOW, {"want_shut_down": True}),
        (1, True): (SHUTTING_DOWN, {"want_shut_down": True}),
        (1, False): (SHUTDOWN_NOW, {"want_shut_down": True}),
        (2, False): (UNFENCED, {}),
        (5, True): (SHUTTING_DOWN, {"want_shut_down": True}),
        (5, False): (SHUTTING_DOWN, {"want_shut_down": True}),  # 1 has not applied 99 yet
    }
    for (number, leads), (state, wants) in asks.items():
        assert next_state(liveness, cluster, number, leads=leads, **wants) is state
    assert next_state(liveness, cluster, 0) is UNFENCED
    assert next_state(liveness, cluster, 0, offset=50) is FENCED
    assert next_state(liveness, cluster, 0, want_fence=True) is FENCED
    others = cluster_of(broker(1, True), broker(2), broker(5))
    assert next_state(liveness, others, 5) is SHUTDOWN_NOW
    assert next_state(liveness, others, 5, leads=True) is SHUTTING_DOWN


@kafka_scenario(
    "BrokerHeartbeatManagerTest",
    "controlledShutdownOffsetIsOnlyUpdatedOnce",
    "metadataOffsetComparator",
)
def test_a_shutdown_waits_for_the_record_with_which_it_began():
    liveness, cluster = Liveness(SESSION_MS), cluster_of(broker(1), broker(2), broker(3))
    liveness.activate(cluster, {}, 0)
    heard(liveness, 1, 97)
    heard(liveness, 3, 200)
    shut_down(liveness, 2, 98)
    shut_down(liveness, 2, 150)  # another heartbeat
    assert next_state(liveness, cluster, 2) is SHUTTING_DOWN
    heard(liveness, 1, 98)
    assert next_state(liveness, cluster, 2) is SHUTDOWN_NOW


@kafka_scenario("BrokerHeartbeatManagerTest", "usableBrokerIterator")
def test_a_broker_that_shuts_down_gets_no_replicas():
    liveness = Liveness(SESSION_MS)
    cluster = cluster_of(broker(1, rack="b"), broker(2, rack="a"), broker(4, True, "a"))
    liveness.activate(cluster, {}, 0)
    one, two, four = (
        UsableBroker(1, "b", False),
        UsableBroker(2, "a", False),
        UsableBroker(4, "a", True),
    )
    assert set(usable_brokers(cluster, liveness)) == {one, two, four}
    shut_down(liveness, 2, 0)
    assert set(usable_brokers(cluster, liveness)) == {one, four}


def test_a_registration_that_is_under_way_when_the_fencing_ends_is_not_forgotten():
    liveness, known = Liveness(SESSION_MS), broker(1, True)
    registered = BrokerRegistered(1, is_new=True)
    liveness.written([registered])
    liveness.written([BrokerFenced(1)])
    assert not liveness.is_caught_up(known, 1_000)
    liveness.committed([registered], 40)
    assert not liveness.is_caught_up(known, 39) and liveness.is_caught_up(known, 40)


@kafka_scenario("BrokerHeartbeatManagerTest", "touchThrowsExceptionUnlessRegistered")
def test_a_heartbeat_of_a_broker_that_is_not_registered_is_refused():
    request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=0)
    error, _ = refused(Cluster(1).decide, BROKER_HEARTBEAT, request)
    assert error == ErrorCode.STALE_BROKER_EPOCH


# -- producer ids --------------------------------------------------------------------------------
def allocate(cluster, broker_id, epoch=None):
    epoch = cluster.broker(broker_id).epoch if epoch is None else epoch
    request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
    found = cluster.decide(ALLOCATE_PRODUCER_IDS, request)
    return found.producer_id_start, found.producer_id_len


def producer_ids(first):
    return [ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=first)]


@kafka_scenario("ProducerIdControlManagerTest", "initialResult", "generateProducerIds")
def test_each_block_of_producer_ids_follows_the_one_before():
    cluster = Cluster(4)
    assert [allocate(cluster, 1 + n % 4) for n in range(100)] == [
        (n * 1000, 1000) for n in range(100)
    ]
    assert cluster.image.next_producer_id == 100_000


@kafka_scenario("ProducerIdControlManagerTest", "monotonic")
def test_producer_ids_only_go_up():
    cluster = Cluster(1)
    cluster.write(producer_ids(42))
    for first in (40, 42):
        with pytest.raises(ReplayError):
            cluster.write(producer_ids(first))
    cluster.write(producer_ids(50))  # a gap
    assert allocate(cluster, 1) == (50, 1000)


@kafka_scenario("ProducerIdControlManagerTest", "unknownBrokerOrEpoch")
@pytest.mark.parametrize(("broker_id", "epoch"), [(99, 0), (1, 99)])
def test_only_a_registered_broker_gets_producer_ids(broker_id, epoch):
    error, _ = refused(allocate, Cluster(1), broker_id, epoch)
    assert error == ErrorCode.STALE_BROKER_EPOCH


@kafka_scenario("ProducerIdControlManagerTest", "maxValue")
def test_producer_ids_end():
    cluster = Cluster(1)
    cluster.write(producer_ids(2**63 - 2))
    assert refused(allocate, cluster, 1)[0] == ErrorCode.UNKNOWN_SERVER_ERROR
