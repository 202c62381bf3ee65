"""Long work takes turns with other decisions, and each turn leaves what a successor can go on from."""

import pytest

from controller.cluster import SESSION_MS, Cluster, directory
from controller.test_brokers_and_partitions import refused
from controller.test_leaders import alter
from controller.test_partition_index import changed
from quorate.base.errors import ErrorCode
from quorate.controller.brokers import UNREGISTER_BROKER
from quorate.controller.directories import ASSIGN_REPLICAS_TO_DIRS
from quorate.controller.elections import ELECT_LEFT_OVER, ELECT_PREFERRED, ELECT_UNCLEAN
from quorate.controller.heartbeats import FENCE_STALE_BROKER
from quorate.controller.liveness import BrokerFenced, LeavingBegan
from quorate.formats.records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from quorate.metadata.image import NO_LEADER
from quorate.wire.messages import AssignReplicasToDirsRequest, UnregisterBrokerRequest

PART = 2


def cluster_of(brokers=3, replicas=(1, 2, 3), partitions=7, **config):
    cluster = Cluster(brokers, part_records=PART, **config)
    cluster.create("orders", assignments=[replicas] * partitions)
    return cluster


def partitions_of(cluster, topic="orders"):
    return cluster.image.topics.named(topic).partitions.values()


def leaderless(cluster, *broker_ids):
    """The last brokers of the ISR, in this order, are fenced: nobody leads."""
    for broker_id in broker_ids:
        cluster.lose(broker_id)
    assert {p.leader for p in partitions_of(cluster)} == {NO_LEADER}


class LeadershipEndsError(Exception):
    """Between two turns."""


def end_leadership():
    raise LeadershipEndsError


# -- what takes a broker out of service ------------------------------------------------------------
def fence(cluster):
    cluster.expire(1)
    cluster.run_to_the_end(FENCE_STALE_BROKER)


def ask_for_fencing(cluster):
    return cluster.heartbeat(1, want_fence=True)


def register_again(cluster):
    cluster.now_ms += SESSION_MS + 1
    return cluster.register(1)


def unregister(cluster):
    return cluster.decide(UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=1))


LEAVING = {
    fence: BrokerRegistrationChangeRecord,
    ask_for_fencing: BrokerRegistrationChangeRecord,
    register_again: RegisterBrokerRecord,
    unregister: UnregisterBrokerRecord,
}
"""The decision, and its last record."""


@pytest.mark.parametrize("elr", [False, True])
@pytest.mark.parametrize("leave", LEAVING)
def test_a_broker_that_leaves_gets_nothing_new_between_two_turns(leave, elr):
    """Its partitions leave it first; the record that takes it out of service is the last."""
    cluster = cluster_of(elr=elr)
    epoch, done = cluster.broker(1).epoch, []

    def act():
        assert cluster.broker(1).epoch == epoch and not cluster.broker(1).fenced
        assert 1 in {p.leader for p in partitions_of(cluster)}
        cluster.create("new", 6, 3)
        assert all(p.leader != 1 and 1 not in p.isr for p in partitions_of(cluster, "new"))
        assert alter(cluster, [2, 1, 3], topic="new").error_code == ErrorCode.INELIGIBLE_REPLICA
        assert cluster.heartbeat(1).is_fenced and cluster.records == []
        done.append(True)

    cluster.at_turn(2, act)
    records, sizes = [], []
    decide = cluster.decide

    def kept(*arguments, **more):
        response = decide(*arguments, **more)
        if cluster.records and not cluster.is_between_turns:
            records.extend(cluster.records)
            sizes.extend(cluster.sizes)
        return response

    cluster.decide = kept
    leave(cluster)
    assert done and type(records[-1]) is LEAVING[leave]
    assert len(records) == 8 and max(sizes) <= PART + 1
    assert all((p.leader, p.isr) == (2, (2, 3)) for p in partitions_of(cluster))
    assert not cluster.liveness.is_leaving(1)
    if leave is not unregister:
        assert cluster.broker(1).fenced and cluster.unfence(1)


@pytest.mark.parametrize("turn", [1, 3])
@pytest.mark.parametrize("leave", LEAVING)
def test_a_successor_completes_what_a_leadership_has_begun(leave, turn):
    """The broker is registered and silent by then. The broker, or the client, asks again."""
    cluster = cluster_of()
    cluster.at_turn(turn, end_leadership)
    with pytest.raises(LeadershipEndsError):
        leave(cluster)
    cluster.new_leader()
    assert not cluster.broker(1).fenced and 1 in {p.leader for p in partitions_of(cluster)}
    leave(cluster)
    assert {p.leader for p in partitions_of(cluster)} == {2}


@pytest.mark.parametrize("leave", LEAVING)
def test_a_new_incarnation_registers_when_the_broker_has_left(leave):
    """It asks again until then; Kafka has it wait in the queue for as long."""
    cluster = cluster_of()
    seen = []
    cluster.at_turn(1, lambda: seen.append(refused(register_again, cluster)[0]))
    leave(cluster)
    assert seen == [ErrorCode.DUPLICATE_BROKER_REGISTRATION]
    epoch = register_again(cluster).broker_epoch
    assert cluster.broker(1).epoch == epoch and cluster.broker(1).fenced


def test_a_session_that_expires_while_its_broker_leaves_begins_no_second_fencing():
    cluster = cluster_of()

    def act():
        cluster.expire(1)
        assert cluster.decide(FENCE_STALE_BROKER, None) is False

    cluster.at_turn(1, act)
    ask_for_fencing(cluster)
    assert cluster.broker(1).fenced
    cluster.run_to_the_end(FENCE_STALE_BROKER)
    assert cluster.records == []


def test_a_fencing_that_failed_is_begun_again():
    """The next run of the task finds the session expired still."""
    cluster = cluster_of()
    cluster.expire(1)
    cluster.at_turn(1, end_leadership)
    with pytest.raises(LeadershipEndsError):
        cluster.decide(FENCE_STALE_BROKER, None)
    cluster.between = lambda: None
    assert cluster.liveness.is_leaving(1)
    cluster.run_to_the_end(FENCE_STALE_BROKER)
    assert cluster.broker(1).fenced and not cluster.liveness.is_leaving(1)


def test_a_broker_is_unregistered_when_the_decision_before_has_taken_it_out_of_service():
    cluster = cluster_of()
    cluster.liveness.written([LeavingBegan(1)])
    cluster.at_turn(3, lambda: cluster.liveness.written([BrokerFenced(1)]))
    unregister(cluster)
    assert 1 not in cluster.image.cluster.brokers
    assert cluster.sizes[:4] == [0, 0, 0, PART]


def test_an_unregistration_of_too_many_partitions_writes_nothing(monkeypatch):
    """They are counted before the first of them is written."""
    monkeypatch.setattr("quorate.controller.brokers.MAX_RECORDS", 7)
    cluster = cluster_of()
    assert refused(unregister, cluster) == (
        ErrorCode.POLICY_VIOLATION,
        "Unable to perform excessively large batch operation.",
    )
    assert cluster.records == [] and not cluster.liveness.is_leaving(1)
    for partition_id in (0, 1):
        changed(cluster, "orders", partition_id, isr=[2], leader=2)
    unregister(cluster)
    assert cluster.sizes == [0, 0, 2, 2, 2]
    assert 1 not in cluster.image.cluster.brokers


# -- unfencing -----------------------------------------------------------------------------------
def test_a_broker_that_is_unfenced_leads_in_turns():
    cluster = cluster_of(1, (1,))
    leaderless(cluster, 1)
    cluster.at_turn(1, lambda: cluster.create("new", 3, 1))
    assert not cluster.heartbeat(1).is_fenced
    assert len(cluster.sizes) > 3 and max(cluster.sizes) <= PART + 1
    for topic in ("orders", "new"):
        assert {p.leader for p in partitions_of(cluster, topic)} == {1}


def amend(cluster):
    number = int.from_bytes(cluster.broker(1).incarnation_id[1:], "big")
    return cluster.register(1, number=number)


@pytest.mark.parametrize(
    ("act", "error", "is_fenced"),
    [
        (lambda cluster: cluster.lose(1), ErrorCode.NONE, True),
        (register_again, ErrorCode.STALE_BROKER_EPOCH, False),
        (unregister, ErrorCode.STALE_BROKER_EPOCH, False),
        (amend, ErrorCode.NONE, False),
    ],
)
def test_what_becomes_of_the_broker_between_two_turns_ends_an_unfencing(act, error, is_fenced):
    """The response names what the broker is by then, and the next heartbeat goes on from there."""
    cluster = cluster_of(1, (1,))
    leaderless(cluster, 1)
    cluster.at_turn(1, lambda: act(cluster))
    response = cluster.heartbeat(1)
    assert response.error_code == error
    if error == ErrorCode.NONE:
        assert response.is_fenced is is_fenced
    cluster.between = lambda: None
    if 1 in cluster.image.cluster.brokers:
        cluster.heartbeat(1)
        assert not cluster.broker(1).fenced
        assert {p.leader for p in partitions_of(cluster)} == {1}


def test_a_shutdown_between_the_turns_of_an_unfencing_wins():
    cluster = cluster_of(2, (1, 2))
    leaderless(cluster, 2, 1)
    cluster.at_turn(2, lambda: cluster.heartbeat(1, want_shut_down=True))
    response = cluster.heartbeat(1)
    assert (response.is_fenced, response.should_shut_down) == (False, False)
    assert cluster.broker(1).in_controlled_shutdown
    assert {p.leader for p in partitions_of(cluster)} == {NO_LEADER}


def test_a_new_active_controller_elects_what_an_unfencing_has_left_over():
    """No heartbeat does: the broker is unfenced already."""
    cluster = cluster_of(1, (1,))
    leaderless(cluster, 1)
    cluster.at_turn(1, end_leadership)
    with pytest.raises(LeadershipEndsError):
        cluster.heartbeat(1)
    cluster.new_leader()
    assert not cluster.broker(1).fenced and cluster.head.index.leaderless == 5
    cluster.heartbeat(1)
    assert cluster.head.index.leaderless == 5
    assert cluster.decide(ELECT_LEFT_OVER, None) is False
    assert len(cluster.sizes) > 2
    assert {p.leader for p in partitions_of(cluster)} == {1}


def test_where_nobody_may_lead_nothing_is_left_over():
    cluster = cluster_of(2, (1, 2))
    leaderless(cluster, 2, 1)
    cluster.unfence(2)
    cluster.decide(ELECT_LEFT_OVER, None)
    assert cluster.records == []


# -- periodic elections ----------------------------------------------------------------------------
def test_preferred_leaders_are_elected_in_turns():
    cluster = cluster_of()
    cluster.lose(1)
    cluster.unfence(1)
    for partition_id in range(7):
        changed(cluster, "orders", partition_id, isr=[1, 2, 3])
    cluster.at_turn(1, lambda: cluster.create("new", 1, 3))
    assert cluster.decide(ELECT_PREFERRED, None) is False
    assert len(cluster.sizes) > 3 and max(cluster.sizes) == PART
    assert {p.leader for p in partitions_of(cluster)} == {1}


def test_unclean_leaders_are_elected_in_turns():
    cluster = cluster_of(2, (1, 2))
    leaderless(cluster, 2, 1)
    cluster.unfence(2)
    cluster.configure(2, "orders", unclean_leader_election_enable="true")
    assert cluster.decide(ELECT_UNCLEAN, None) is False
    assert len(cluster.sizes) > 3 and max(cluster.sizes) == PART
    assert {p.leader for p in partitions_of(cluster)} == {2}


# -- log directories -----------------------------------------------------------------------------
def two_directories(partitions=7):
    """Broker 1 has two log directories; its partitions are in the first one."""
    cluster = Cluster(3, part_records=PART, elr=True)
    cluster.now_ms += SESSION_MS + 1
    cluster.register(1, log_dirs=[directory(1), directory(1, 1)])
    cluster.unfence(1)
    cluster.create("orders", assignments=[(1, 2, 3)] * partitions)
    assign(cluster, directory(1), *range(partitions))
    return cluster


def assign(cluster, to, *partition_ids):
    topic = AssignReplicasToDirsRequest.DirectoryData.TopicData
    found = cluster.image.topics.named("orders").id
    partitions = [topic.PartitionData(partition_index=index) for index in partition_ids]
    request = AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=cluster.broker(1).epoch,
        directories=[
            AssignReplicasToDirsRequest.DirectoryData(
                id=to, topics=[topic(topic_id=found, partitions=partitions)]
            )
        ],
    )
    return cluster.decide(ASSIGN_REPLICAS_TO_DIRS, request)


def test_the_partitions_of_a_failed_directory_leave_it_in_turns():
    """No replica in it is elected between the turns; the registration changes last."""
    cluster = two_directories()
    cluster.configure(2, "orders", min_insync_replicas="3")
    done = []

    def act():
        assert directory(1) in cluster.broker(1).directories
        assert {p.leader for p in partitions_of(cluster)} == {1, 2}
        again = cluster.heartbeat(1, offline_log_dirs=[directory(1)])
        assert (again.is_fenced, cluster.records) == (False, [])
        for broker_id in (3, 2):
            cluster.lose(broker_id)
        changed = [p for p in partitions_of(cluster) if 1 not in p.isr]
        assert {p.leader for p in changed} == {NO_LEADER} and all(1 in p.elr for p in changed)
        done.append(True)

    cluster.at_turn(2, act)
    assert not cluster.heartbeat(1, offline_log_dirs=[directory(1)]).is_fenced
    assert done and max(cluster.sizes) <= PART + 1
    assert cluster.broker(1).directories == (directory(1, 1),)
    assert {p.leader for p in partitions_of(cluster)} == {NO_LEADER}
    assert isinstance(cluster.records[-1], BrokerRegistrationChangeRecord)


def test_a_successor_completes_the_failure_of_a_directory():
    cluster = two_directories()
    cluster.at_turn(1, end_leadership)
    with pytest.raises(LeadershipEndsError):
        cluster.heartbeat(1, offline_log_dirs=[directory(1)])
    cluster.new_leader()
    assert {p.leader for p in partitions_of(cluster)} == {1, 2}
    cluster.heartbeat(1, offline_log_dirs=[directory(1)])
    assert {p.leader for p in partitions_of(cluster)} == {2}
    assert cluster.broker(1).directories == (directory(1, 1),)


@pytest.mark.parametrize(("wants", "turn"), [({}, 1), ({"want_shut_down": True}, 4)])
def test_a_directory_that_fails_while_its_broker_is_fenced_or_registers_again(wants, turn):
    """The shutdown has taken the first three turns."""
    cluster = two_directories()
    cluster.at_turn(turn, lambda: cluster.lose(1))
    response = cluster.heartbeat(1, offline_log_dirs=[directory(1)], **wants)
    assert (response.is_fenced, response.should_shut_down) == (True, False)
    assert cluster.broker(1).directories == (directory(1, 1),)
    cluster.unfence(1)
    assert not cluster.heartbeat(1).should_shut_down
    cluster = two_directories()
    cluster.at_turn(turn, lambda: register_again(cluster))
    response = cluster.heartbeat(1, offline_log_dirs=[directory(1)], **wants)
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.liveness.without_failing(cluster.image.cluster) is cluster.image.cluster


def test_assignments_to_directories_are_written_in_turns():
    cluster = two_directories()
    cluster.at_turn(1, lambda: cluster.create("new", 1, 3))
    response = assign(cluster, directory(1, 1), *range(7), 9)
    [answer] = response.directories[0].topics
    errors = [partition.error_code for partition in answer.partitions]
    assert errors == [ErrorCode.NONE] * 7 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert cluster.sizes == [2, 2, 2, 1]
    assert {p.directories[0] for p in partitions_of(cluster)} == {directory(1, 1)}


def test_assignments_to_a_failed_directory_leave_the_isr_in_the_same_turn():
    cluster = two_directories()

    def act():
        found = {(p.directories[0], p.leader) for p in partitions_of(cluster)}
        assert found == {(directory(1), 1), (directory(1, 9), 2)}

    cluster.at_turn(1, act)
    assign(cluster, directory(1, 9), *range(7))
    assert cluster.sizes == [4, 4, 4, 2]
    assert {p.leader for p in partitions_of(cluster)} == {2}


def test_assignments_of_a_broker_that_registers_again_between_two_turns_end():
    cluster = two_directories()
    cluster.at_turn(1, lambda: register_again(cluster))
    response = assign(cluster, directory(1, 1), *range(7))
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH and cluster.sizes == [2, 0]
