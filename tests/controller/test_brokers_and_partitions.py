"""Brokers come, go and fail: what their partitions become."""

import pytest

from conformance.marker import kafka_scenario
from controller import short_requests
from controller.cluster import SESSION_MS, TOPIC, Cluster, directory
from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, Uuid
from quorate.controller.brokers import BROKER_REGISTRATION, UNREGISTER_BROKER
from quorate.controller.directories import ASSIGN_REPLICAS_TO_DIRS
from quorate.controller.heartbeats import (
    BROKER_HEARTBEAT,
)
from quorate.controller.liveness import BrokerRegistered, BrokerUnregistered, Liveness
from quorate.controller.partition_changes import (
    LOST_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    default_directory,
    has_online_directory,
)
from quorate.controller.result import ApiError
from quorate.formats.records import PartitionChangeRecord, RegisterBrokerRecord
from quorate.formats.versions import supported_features
from quorate.metadata.image import MIGRATING_DIRECTORY, NO_LEADER, RECOVERING, Broker
from quorate.wire.messages import (
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    UnregisterBrokerRequest,
)

LOST = Uuid(bytes(15) + b"\x02")


def listener(name, host, port, protocol):
    return BrokerRegistrationRequest.Listener(
        name=name, host=host, port=port, security_protocol=protocol
    )


def refused(call, *args, **fields):
    with pytest.raises(ApiError) as caught:
        call(*args, **fields)
    return caught.value.error, str(caught.value)


# -- registration --------------------------------------------------------------------------------
@kafka_scenario("ClusterControlManagerTest", "replay", "reRegistrationAndBrokerEpoch")
def test_a_broker_registers_fenced_with_the_next_offset_as_epoch():
    cluster = Cluster()
    offset = cluster.next_offset
    assert cluster.register(1).broker_epoch == offset == cluster.broker(1).epoch
    assert cluster.broker(1).fenced


@kafka_scenario("ClusterControlManagerTest", "reRegistrationAndBrokerEpoch")
def test_the_same_incarnation_keeps_epoch_and_state():
    cluster = Cluster()
    epoch = cluster.register(1, number=7).broker_epoch
    cluster.unfence(1)
    assert cluster.register(1, number=7, rack="new").broker_epoch == epoch
    assert not cluster.broker(1).fenced and cluster.broker(1).rack == "new"


@kafka_scenario(
    "ClusterControlManagerTest",
    "duplicateBrokerRegistrationWithActiveOldBroker",
    "duplicateBrokerRegistrationWithInactiveBroker",
)
def test_another_incarnation_waits_for_the_end_of_the_session():
    cluster = Cluster(1)
    error, text = refused(cluster.register, 1)
    assert error == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert text.startswith("Another broker is registered with that broker id.")
    cluster.now_ms += SESSION_MS + 1
    assert cluster.register(1).broker_epoch > 0


@kafka_scenario(
    "ClusterControlManagerTest",
    "registrationWithIncorrectClusterId",
    "registerWithDuplicateDirectoryId",
)
@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        (
            {"cluster_id": "other"},
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            "Expected cluster ID cluster, but got cluster ID other",
        ),
        (
            {"is_migrating_zk_broker": True},
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        ),
        (
            {"log_dirs": []},
            ErrorCode.INVALID_REGISTRATION,
            "No directories specified in request",
        ),
        (
            {"log_dirs": [ZERO_UUID]},
            ErrorCode.INVALID_REGISTRATION,
            "Reserved directory ID in request",
        ),
        (
            {"log_dirs": [directory(1), directory(1)]},
            ErrorCode.INVALID_REGISTRATION,
            "Duplicate directory ID in request",
        ),
        (
            {"log_dirs": [directory(2)]},
            ErrorCode.INVALID_REGISTRATION,
            "Broker 2 is already registered with directory CAAAAAAAAAAAAAAAAAAAAg",
        ),
        (
            {"features": []},
            ErrorCode.INVALID_REGISTRATION,
            "Request features do not contain 'metadata.version'",
        ),
        *(
            (
                {"listeners": [listener(name, host, port, protocol)]},
                ErrorCode.INVALID_REGISTRATION,
                text,
            )
            for name, host, port, protocol, text in (
                ("", "h", 1, 0, "Broker listeners must be named"),
                ("A", "h", 0, 0, "Listener A has the port 0, which is no address"),
                ("A", " ", 1, 0, "Listener A has no host, which is no address"),
                *(
                    ("A", "h", 1, number, f"Unknown security protocol {number} in listener A")
                    for number in (-2, -1, 4, 9)
                ),
            )
        ),
    ],
)
def test_a_registration_that_is_refused(fields, error, text):
    cluster = Cluster()
    cluster.register(2)
    assert refused(cluster.register, 1, **fields) == (error, text)
    assert set(cluster.image.cluster.brokers) == {2}


@pytest.mark.parametrize("number", [-1, -2, -(2**31)])
def test_a_negative_number_is_no_broker_id(number):
    """As the leader of a partition, -1 stands for none and -2 for no change."""
    cluster = Cluster()
    request = short_requests.register().replace(broker_id=number)
    error = ErrorCode.INVALID_REGISTRATION
    text = f"Invalid negative broker ID {number}"
    assert refused(cluster.decide, BROKER_REGISTRATION, request, 4) == (error, text)
    assert not cluster.image.cluster.brokers


@kafka_scenario("QuorumControllerTest", "registerBrokerKRaftVersions")
@kafka_scenario(
    "ClusterControlManagerTest",
    "registrationWithUnsupportedFeature",
    "registrationWithUnsupportedKraftVersion",
    "registrationWithUnsupportedMetadataVersion",
)
@pytest.mark.parametrize(
    ("name", "low", "high", "level"),
    [
        ("metadata.version", 7, 29, 30),
        ("kraft.version", 0, 0, 1),
        ("eligible.leader.replicas.version", 0, 0, 1),
    ],
)
def test_a_broker_that_cannot_run_a_finalized_level_is_refused(name, low, high, level):
    cluster = Cluster(level=30, elr=True)
    feature = BrokerRegistrationRequest.Feature
    ranges = supported_features() | {name: (low, high)}
    text = (
        f"Unable to register because the broker does not support finalized version {level} of "
        f"{name}. The broker wants a version between {low} and {high}, inclusive."
    )
    for left_out in (set(), {name} - {"metadata.version"}):  # that is the same as 0 to 0
        features = [
            feature(name=one, min_supported_version=least, max_supported_version=most)
            for one, (least, most) in ranges.items()
            if one not in left_out
        ]
        found = refused(cluster.register, 1, features=features)
        assert found == (ErrorCode.UNSUPPORTED_VERSION, text)


@kafka_scenario("ClusterControlManagerTest", "hasOnlineDir", "defaultDir")
def test_directories_of_a_broker():
    def broker(*directories):
        return Broker(1, 1, ZERO_UUID, directories=directories)

    one, two = directory(1), directory(1, 1)
    for known in (one, two, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        assert has_online_directory(broker(one, two), known)
    for unknown in (directory(2), LOST_DIRECTORY):
        assert not has_online_directory(broker(one, two), unknown)
    assert default_directory(broker()) == MIGRATING_DIRECTORY
    assert default_directory(broker(one)) == one
    assert default_directory(broker(one, two)) == UNASSIGNED_DIRECTORY == default_directory(None)


# -- heartbeats ----------------------------------------------------------------------------------
def test_a_broker_is_unfenced_once_it_has_applied_its_registration():
    cluster = Cluster()
    cluster.register(1)
    at = cluster.next_offset - 1
    waits = cluster.heartbeat(1, offset=at - 1)
    assert (waits.is_fenced, waits.is_caught_up) == (True, False)
    ready = cluster.heartbeat(1, offset=at)
    assert (ready.is_fenced, ready.is_caught_up) == (False, True)


def test_a_broker_that_was_fenced_has_to_apply_its_newest_registration():
    cluster = Cluster()
    cluster.register(1, number=1)
    cluster.unfence(1)
    cluster.create("a", 1, 1)
    cluster.register(1, number=1)
    newest = cluster.next_offset - 1
    assert newest > cluster.broker(1).epoch
    cluster.lose(1)
    waits = cluster.heartbeat(1, offset=newest - 1)
    assert (waits.is_fenced, waits.is_caught_up) == (True, False)
    ready = cluster.heartbeat(1, offset=newest)
    assert (ready.is_fenced, ready.is_caught_up) == (False, True)


def test_a_heartbeat_of_another_incarnation_is_refused():
    cluster = Cluster(1)
    epoch = cluster.broker(1).epoch
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch + 1)
    assert refused(cluster.decide, BROKER_HEARTBEAT, request) == (
        ErrorCode.STALE_BROKER_EPOCH,
        f"Expected broker epoch {epoch}, but got broker epoch {epoch + 1}",
    )


@kafka_scenario("ReplicationControlManagerTest", "removeLeaderships")
def test_a_broker_without_contact_is_fenced_and_its_partitions_move():
    cluster = Cluster(3)
    cluster.create("orders", assignments=[(1, 2, 3), (2, 3, 1)])
    cluster.lose(1)
    assert cluster.broker(1).fenced
    first, second = cluster.partition("orders", 0), cluster.partition("orders", 1)
    assert (first.leader, first.isr, first.leader_epoch) == (2, (2, 3), 1)
    assert (second.leader, second.isr, second.leader_epoch) == (2, (2, 3), 0)


def test_the_last_replica_of_the_isr_stays_in_it_and_leads_again():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.lose(2)
    cluster.lose(1)
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (
        NO_LEADER,
        (1,),
    )
    cluster.unfence(2)
    assert cluster.partition("orders").leader == NO_LEADER
    cluster.unfence(1)
    assert cluster.partition("orders").leader == 1


def test_unclean_election_where_the_topic_allows_it():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.configure(TOPIC, "orders", unclean_leader_election_enable="true")
    cluster.lose(2)
    cluster.unfence(2)
    cluster.lose(1)
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr) == (2, (2,))
    assert partition.leader_recovery_state == RECOVERING


@kafka_scenario("ReplicationControlManagerTest", "processBrokerHeartbeatInControlledShutdown")
@kafka_scenario("ClusterControlManagerTest", "replayBrokerRegistrationChangeRecord")
def test_a_controlled_shutdown_moves_leaders_and_ends_when_the_others_know():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    response = cluster.heartbeat(1, want_shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (False, False)
    assert cluster.broker(1).in_controlled_shutdown
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (2, (2,))
    done = cluster.next_offset - 1
    cluster.heartbeat(2, offset=done - 1)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(2, offset=done)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.broker(1).fenced


def test_a_broker_that_leads_nothing_shuts_down_at_once():
    cluster = Cluster(2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.broker(1).fenced


@kafka_scenario("ReplicationControlManagerTest", "handleDirectoriesOffline")
def test_a_directory_that_fails_takes_its_partitions_along():
    cluster = Cluster(2)
    cluster.register(3, log_dirs=[directory(3, 1), directory(3, 2)])
    cluster.unfence(3)
    cluster.create("orders", assignments=[(3, 1), (3, 2)])
    place(cluster, 3, directory(3, 1), "orders", 0)
    place(cluster, 3, directory(3, 2), "orders", 1)
    cluster.heartbeat(3, offline_log_dirs=[directory(3, 1)])
    assert cluster.partition("orders", 0).leader == 1
    assert cluster.partition("orders", 1).leader == 3
    assert cluster.broker(3).directories == (directory(3, 2),)


def place(cluster, broker_id, where, topic, index):
    data = AssignReplicasToDirsRequest.DirectoryData
    topic_id = cluster.image.topics.named(topic).id
    partition = data.TopicData.PartitionData(partition_index=index)
    request = AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=cluster.broker(broker_id).epoch,
        directories=[
            data(id=where, topics=[data.TopicData(topic_id=topic_id, partitions=[partition])])
        ],
    )
    return cluster.decide(ASSIGN_REPLICAS_TO_DIRS, request)


def test_a_replica_in_a_lost_directory_leaves_the_isr():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    place(cluster, 1, LOST, "orders", 0)
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (2, (2,))


# -- restarts, unregistration --------------------------------------------------------------------
@kafka_scenario("QuorumControllerTest", "uncleanShutdownBrokerElrEnabled")
@kafka_scenario(
    "ReplicationControlManagerTest",
    "eligibleLeaderReplicas_BrokerFence",
    "eligibleLeaderReplicas_UncleanShutdown",
)
@kafka_scenario("ClusterControlManagerTest", "reRegistrationWithCleanShutdownDetection")
@pytest.mark.parametrize("is_clean", [True, False])
def test_with_elr_an_unclean_restart_leaves_the_eligible_replicas(is_clean):
    cluster = Cluster(3, elr=True, file={"min.insync.replicas": "2"})
    cluster.create("orders", assignments=[(1, 2, 3)])
    cluster.lose(3)
    cluster.lose(2)
    assert (cluster.partition("orders").isr, cluster.partition("orders").elr) == ((1,), (2,))
    epoch = cluster.broker(2).epoch
    cluster.register(2, previous_epoch=epoch if is_clean else epoch - 1)
    assert cluster.partition("orders").elr == ((2,) if is_clean else ())
    assert isinstance(cluster.records[-1], RegisterBrokerRecord)


@kafka_scenario(
    "ReplicationControlManagerTest",
    "eligibleLeaderReplicas_ShrinkToEmptyIsr",
    "eligibleLeaderReplicas_CleanElection",
)
def test_an_eligible_replica_leads_when_the_isr_is_gone():
    cluster = Cluster(2, elr=True, file={"min.insync.replicas": "2"})
    cluster.create("orders", assignments=[(1, 2)])
    cluster.lose(2)
    cluster.lose(1)
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr, partition.elr) == (NO_LEADER, (), (1, 2))
    assert partition.last_known_elr == (1,)
    cluster.unfence(2)
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), (1,))


def test_a_last_known_leader_that_has_left_the_assignment_is_not_elected():
    """Kafka's controller fails with an exception there (decision 7)."""
    cluster = Cluster(3, elr=True, file={"min.insync.replicas": "2"})
    topic_id = cluster.create("orders", assignments=[(1, 2)]).topic_id
    cluster.lose(1, 2)
    left = PartitionChangeRecord(
        topic_id=topic_id, partition_id=0, eligible_leader_replicas=[], last_known_elr=[3]
    )
    cluster.write([left])
    cluster.unfence(1)
    assert cluster.partition("orders").leader == NO_LEADER


@kafka_scenario("QuorumControllerTest", "unregisterBroker")
@kafka_scenario("ClusterControlManagerTest", "unregister")
def test_an_unregistered_broker_leaves_every_isr():
    cluster = Cluster(2)
    cluster.create("orders", assignments=[(1, 2)])
    cluster.decide(UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=1))
    assert 1 not in cluster.image.cluster.brokers
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (2, (2,))
    assert refused(cluster.decide, UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=1)) == (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "Broker ID 1 is not currently registered",
    )


# -- when a broker is caught up --------------------------------------------------------------------
def test_a_broker_whose_partitions_leave_in_parts_is_unfenced_once_it_has_its_registration():
    """Its record is the last of them all."""
    cluster = Cluster(2, part_records=2)
    cluster.create("a", assignments=[(1, 2)] * 7)
    cluster.now_ms += SESSION_MS + 1
    cluster.register(1)
    assert isinstance(cluster.records[-1], RegisterBrokerRecord) and len(cluster.records) == 8
    last = cluster.next_offset - 1
    early = cluster.heartbeat(1, last - 1)
    assert (early.is_caught_up, early.is_fenced) == (False, True)
    caught_up = cluster.heartbeat(1, last)
    assert (caught_up.is_caught_up, caught_up.is_fenced) == (True, False)


def test_what_is_not_committed_counts_for_no_heartbeat():
    """The offset of a record is known when it is committed."""
    liveness, broker = Liveness(SESSION_MS), Cluster(1).broker(1)
    liveness.written([BrokerRegistered(1, is_new=True)])
    assert not liveness.is_caught_up(broker, 1 << 40)
    liveness.committed([BrokerRegistered(1, is_new=True)], 70)
    assert not liveness.is_caught_up(broker, 69) and liveness.is_caught_up(broker, 70)
    liveness.written([BrokerUnregistered(1)])
    liveness.committed([BrokerRegistered(1, is_new=True)], 80)
    assert liveness.is_caught_up(broker, 70)
