"""Whole controllers together: election, activation, registration, failover, snapshots."""

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from node.world import World, snapshots_of
from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.controller.activation import Bootstrap
from quorate.formats.batch import iter_batches, values
from quorate.formats.records import FeatureLevelRecord, NoOpRecord, decode_record, encode_record
from quorate.formats.snapshot import read_snapshot
from quorate.raft import inputs
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
)


def quota(user, value, key="producer_byte_rate", validate_only=False):
    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="user", entity_name=user)],
                ops=[entry.OpData(key=key, value=value or 0.0, remove=value is None)],
            )
        ],
        validate_only=validate_only,
    )


def quotas_of(node):
    return {dict(e)["user"]: dict(v) for e, v in node.image.client_quotas.items()}


def values_of(node):
    return [value for _, value in offsets_and_values(node)]


def records_of(node):
    """(offset, record) of each data record in the log."""
    return [(offset, decode_record(value)[0]) for offset, value in offsets_and_values(node)]


def offsets_and_values(node):
    data = node.storage.read(0, node.storage.end_offset, 1 << 20)
    return [
        (offset, value)
        for view in iter_batches(data)
        if not view.is_control
        for offset, value in enumerate(values(view), view.base_offset)
    ]


def in_step(world):
    """Every living node's image is the same and holds everything that was written."""
    images = [node.image for node in world.alive]
    ends = {node.core.log_end for node in world.alive}
    return len(ends) == 1 and all(image == images[0] for image in images)


@pytest.fixture
def world():
    world = World()
    world.run_until(lambda: world.active)
    return world


@kafka_scenario("OffsetControlManagerTest", "activate")
@kafka_scenario("QuorumControllerTest", "insertBootstrapRecordsToEmptyLog")
def test_one_of_three_becomes_active_and_writes_the_bootstrap_records(world):
    world.run(300)
    assert len([n for n in world.alive if n.controller.is_active]) == 1
    for node in world.alive:
        assert node.image.features.metadata_version == 30


@pytest.mark.parametrize("seed", range(4))
def test_a_new_leader_is_sent_no_registration_before_it_is_active(seed):
    world = World(seed=seed)
    first = world.run_until(lambda: world.active)
    world.crash(first.node_id)
    seen: set[int] = set()
    while not seen - {first.node_id}:
        assert world.now_ms < 20_000
        world.run(1)
        for node in world.alive:
            peer = node.running.active_peer
            if peer is not None:
                there = world.nodes[peer[0]]
                assert there.controller is None or there.controller.is_active
                seen.add(there.node_id)


def test_the_bootstrap_records_are_one_transaction(world):
    written = [decode_record(v)[0] for v in values_of(world.active)]
    names = [type(record).__name__ for record in written[:3]]
    assert names == ["BeginTransactionRecord", "FeatureLevelRecord", "EndTransactionRecord"]


def test_without_transactions_the_bootstrap_records_have_no_markers():
    old = FeatureLevelRecord(name="metadata.version", feature_level=12)
    world = World(bootstrap=Bootstrap((encode_record(old, 0),)))
    world.run_until(lambda: world.active and world.active.image.features.metadata_version == 12)
    assert decode_record(values_of(world.active)[0])[0] == old


def test_every_controller_is_registered(world):
    world.run_until(lambda: set(world.active.image.cluster.controllers) == {1, 2, 3})
    world.run(2000)
    written = [type(decode_record(v)[0]).__name__ for v in values_of(world.active)]
    assert written.count("RegisterControllerRecord") == 3


def test_a_restarted_controller_registers_its_new_incarnation(world):
    world.run_until(lambda: set(world.active.image.cluster.controllers) == {1, 2, 3})
    follower = next(n for n in world.alive if n is not world.active)
    before = world.active.image.cluster.controllers[follower.node_id].incarnation_id
    world.crash(follower.node_id)
    world.start(follower.node_id)
    world.run_until(
        lambda: (
            world.active
            and world.active.image.cluster.controllers[follower.node_id].incarnation_id != before
        )
    )


@kafka_scenario("QuorumControllerTest", "noOpRecordWriteAfterTimeout")
def test_an_idle_leader_writes_a_no_op_every_half_second(world):
    world.run(600)
    start = len(values_of(world.active))
    world.run(5000)
    written = [decode_record(v)[0] for v in values_of(world.active)[start:]]
    no_ops = [record for record in written if isinstance(record, NoOpRecord)]
    assert 9 <= len(no_ops) <= 10


def test_an_acknowledged_write_survives_the_leader(world):
    answer = world.ask(world.active.node_id, quota("ann", 5.0))
    assert [entry.error_code for entry in answer.entries] == [ErrorCode.NONE]
    leader = world.active
    world.crash(leader.node_id)
    world.run_until(lambda: world.active and world.active is not leader)
    assert quotas_of(world.active) == {"ann": {"producer_byte_rate": 5.0}}


def test_a_dead_leader_is_replaced_at_once_not_after_the_fetch_timeout(world):
    world.run(1000)
    leader, died_at = world.active, world.now_ms
    world.crash(leader.node_id)
    world.run_until(lambda: world.active and world.active is not leader)
    assert world.now_ms - died_at < 100


def test_a_crash_of_all_nodes_loses_no_acknowledged_write(world):
    for i in range(5):
        world.ask(world.active.node_id, quota(f"user-{i}", float(i + 1)))
    for node_id in world.nodes:
        world.crash(node_id)
    for node_id in world.nodes:
        world.start(node_id)
    world.run_until(lambda: world.active)
    assert len(quotas_of(world.active)) == 5


def test_a_write_in_doubt_is_answered_when_leadership_is_lost(world):
    leader = world.active
    world.cut.add(leader.node_id)
    got = world.call(leader.node_id, quota("ann", 5.0))
    world.run_until(lambda: got)
    assert got[0].entries[0].error_code == ErrorCode.NOT_CONTROLLER
    assert not leader.controller.is_active
    world.cut.clear()
    world.run_until(lambda: in_step(world) and world.active)


def test_a_standby_refuses_writes(world):
    follower = next(n for n in world.alive if n is not world.active)
    answer = world.ask(follower.node_id, quota("ann", 5.0))
    assert answer.entries[0].error_code == ErrorCode.NOT_CONTROLLER


def test_a_change_is_decided_on_the_changes_before_it(world):
    leader = world.active.node_id
    got = world.call(leader, quota("ann", 5.0))
    removed = world.call(leader, quota("ann", None))
    world.run_until(lambda: got and removed)
    assert quotas_of(world.active) == {}


def test_a_change_without_records_waits_for_the_one_it_was_decided_on(world):
    leader = world.active
    world.cut.add(leader.node_id)
    first = world.call(leader.node_id, quota("ann", 5.0))
    again = world.call(leader.node_id, quota("ann", 5.0))
    world.run(50)
    assert not first and not again
    world.cut.clear()
    world.run_until(lambda: first and again)


def test_validate_only_writes_nothing(world):
    end = world.active.core.log_end
    answer = world.ask(world.active.node_id, quota("ann", 5.0, validate_only=True))
    assert answer.entries[0].error_code == ErrorCode.NONE
    assert quotas_of(world.active) == {} and world.active.core.log_end.offset - end.offset <= 1


@kafka_scenario("KafkaRaftClientDriverTest", "shutdown")
def test_a_shutdown_hands_leadership_over(world):
    world.run(1000)
    leader = world.active
    world.give(leader.node_id, inputs.Shutdown())
    world.run_until(lambda: leader.stopped)
    world.run_until(lambda: world.active and world.active is not leader, 1500)


@kafka_scenario("SnapshotGeneratorTest", "createSnapshot")
def test_snapshots_by_size_and_old_ones_dropped():
    world = World(policy=SnapshotPolicy(max_bytes=2000, retention_bytes=6000), segment_bytes=1000)
    world.run_until(lambda: world.active)
    for i in range(40):
        world.ask(world.leader.node_id, quota(f"user-{i}", 1.0))
    world.run_until(lambda: all(len(snapshots_of(n)) >= 2 for n in world.alive))
    oldest = snapshots_of(world.leader)[0]
    world.run(180_000)
    node = world.leader
    assert oldest not in snapshots_of(node)
    assert node.storage.size + sum(s.size for s in node.storage.snapshots()) < 12_000
    newest = node.storage.snapshots()[-1]
    data = node.storage.read_snapshot(newest.id, 0, newest.size)
    assert sum(b"user-" in value for value in read_snapshot(data, newest.id).values) == 40


@kafka_scenario("KafkaRaftClientSnapshotTest", "followerListenerNotified", "listenerRenotified")
def test_an_empty_node_starts_from_the_leaders_snapshot():
    world = World(policy=SnapshotPolicy(max_bytes=2000))
    world.run_until(lambda: world.active)
    late = next(n for n in world.alive if n is not world.active)
    world.crash(late.node_id)
    for i in range(40):
        world.ask(world.leader.node_id, quota(f"user-{i}", 1.0))
    world.run_until(lambda: snapshots_of(world.leader))
    late.storage = type(late.storage)()
    world.start(late.node_id)
    world.run_until(lambda: len(quotas_of(late)) == 40)
    assert snapshots_of(late) and late.storage.start_offset > 0


@kafka_scenario("QuorumControllerTest", "snapshotSaveAndLoad")
@kafka_scenario("KafkaRaftClientSnapshotTest", "leaderListenerNotified")
@kafka_guarantee(
    "KafkaRaftClientTest", "lateRegisteredListenerCatchesUp", "reregistrationChangesListenerContext"
)
@kafka_guarantee("KafkaRaftClientSnapshotTest", "secondListenerNotified")
def test_a_node_restarts_from_its_own_snapshot():
    world = World(policy=SnapshotPolicy(max_bytes=2000))
    world.run_until(lambda: world.active)
    for i in range(40):
        world.ask(world.leader.node_id, quota(f"user-{i}", 1.0))
    world.run_until(lambda: all(snapshots_of(n) for n in world.alive))
    for node_id in world.nodes:
        world.crash(node_id)
    for node_id in world.nodes:
        world.start(node_id)
    world.run_until(lambda: world.active and len(quotas_of(world.active)) == 40)


def test_a_long_replay_is_sliced_and_does_not_delay_the_quorum():
    world = World()
    world.run_until(lambda: world.active)
    late = next(n for n in world.alive if n is not world.active)
    world.crash(late.node_id)
    for i in range(300):
        world.call(world.leader.node_id, quota(f"user-{i}" + "x" * 2000, 1.0))
        world.run(3)
    epoch = world.leader.core.epoch
    world.start(late.node_id)
    world.run_until(lambda: len(quotas_of(late)) == 300)
    assert world.leader.core.epoch == epoch


def test_peers_that_speak_only_older_versions():
    oldest = {1: 13, 52: 0, 53: 0, 54: 0, 59: 0}
    world = World(versions=oldest)
    world.versions[52] = 2
    world.run_until(lambda: world.active)
    answer = world.ask(world.leader.node_id, quota("ann", 5.0))
    assert answer.entries[0].error_code == ErrorCode.NONE
    world.run_until(lambda: in_step(world))


def describe():
    topic = DescribeQuorumRequest.TopicData
    part = topic.PartitionData()
    return DescribeQuorumRequest(topics=[topic(topic_name="__cluster_metadata", partitions=[part])])


def test_describe_quorum_has_wall_clock_times(world):
    world.run(3000)
    answer = world.ask(world.active.node_id, describe())
    described = answer.topics[0].partitions[0]
    assert described.leader_id == world.active.node_id and described.high_watermark > 0
    assert sorted(row.replica_id for row in described.current_voters) == [1, 2, 3]
    for row in described.current_voters:
        assert abs(row.last_fetch_timestamp - world.now.wall_ms) < 1500
    assert {node.node_id: node.listeners[0].port for node in answer.nodes} == {
        1: 9001,
        2: 9002,
        3: 9003,
    }


@pytest.mark.parametrize("version", [0, 1])
def test_before_version_2_describe_quorum_has_no_directories_and_no_nodes(world, version):
    """For the tools of Kafka 3.8 and before."""
    world.run(3000)
    answer = world.ask(world.active.node_id, describe(), version)
    described = answer.topics[0].partitions[0]
    assert [row.replica_id for row in described.current_voters] == [1, 2, 3]
    assert {row.replica_directory_id for row in described.current_voters} == {ZERO_UUID}
    assert answer.nodes == []


def test_describe_quorum_away_from_the_leader(world):
    follower = next(n for n in world.alive if n is not world.active)
    described = world.ask(follower.node_id, describe()).topics[0].partitions[0]
    assert described.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert described.error_message == ErrorCode.NOT_LEADER_OR_FOLLOWER.message


def test_describe_cluster_lists_the_registered_controllers(world):
    world.run_until(lambda: in_step(world) and len(world.active.image.cluster.controllers) == 3)
    for node in world.alive:
        answer = world.ask(node.node_id, DescribeClusterRequest(endpoint_type=2))
        assert answer.controller_id == world.active.node_id
        assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [
            (n, f"host{n}", 9000 + n) for n in (1, 2, 3)
        ]


@pytest.mark.parametrize(
    ("endpoint_type", "version", "error"),
    [
        (1, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (1, 0, ErrorCode.INVALID_REQUEST),
        (7, 2, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_describe_cluster_of_the_wrong_kind(world, endpoint_type, version, error):
    world.run(200)
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    assert world.ask(world.active.node_id, request, version).error_code == error
