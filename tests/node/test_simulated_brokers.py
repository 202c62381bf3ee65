"""Simulated brokers on three controllers in memory: the life of a broker, and of the controllers."""

from itertools import groupby
from typing import Any

import pytest

from conformance.marker import kafka_scenario
from node.test_controllers_together import quota, records_of
from node.world import Node, World, snapshots_of
from quorate.base.errors import ErrorCode
from quorate.base.ids import Listener, Uuid
from quorate.broker.lifecycle import BrokerIdentity, BrokerLifecycle, BrokerState
from quorate.controller.activation import Bootstrap
from quorate.formats.records import (
    ClientQuotaRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    encode_record,
)
from quorate.formats.versions import supported_features
from quorate.metadata.image import NO_LEADER
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
)

LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)


class Brokers:
    """Drives the brokers as the world's clock goes on. They ask the node that last was active."""

    def __init__(self, world, count):
        self.world = world
        self.incarnations = 0
        self.brokers = {}
        self.pending = {}
        self.asks = {}
        for broker_id in range(10, 10 + count):
            self.start(broker_id)

    def start(self, broker_id, previous_epoch=-1):
        self.incarnations += 1
        identity = BrokerIdentity(
            broker_id,
            "world",
            Uuid(self.incarnations.to_bytes(16, "big")),
            (Listener("PLAINTEXT", f"b{broker_id}", 9092),),
            supported_features(),
            (Uuid(bytes([5]) + broker_id.to_bytes(15, "big")),),
            previous_epoch=previous_epoch,
        )
        broker = self.brokers[broker_id] = BrokerLifecycle(identity)
        broker.start(self.world.now_ms)
        broker.set_ready(self.world.now_ms)
        self.pending.pop(broker_id, None)
        return broker

    def run_until(self, condition, for_ms=60_000):
        end = self.world.now_ms + for_ms
        while not condition():
            assert self.world.now_ms < end, "it does not happen"
            for broker_id, broker in self.brokers.items():
                self._step(broker_id, broker)
            self.world.run(1)

    def _step(self, broker_id, broker):
        now_ms = self.world.now_ms
        if broker_id in self.pending:
            got, until = self.pending[broker_id]
            if got:
                del self.pending[broker_id]
                if got[0].error_code == ErrorCode.NOT_CONTROLLER:
                    self.asks.pop(broker_id, None)
                broker.received(got[0], now_ms)
            elif now_ms >= until:
                del self.pending[broker_id]
                self.asks.pop(broker_id, None)
                broker.failed(now_ms)
            return
        active = self.world.active
        node_id = self.asks.setdefault(broker_id, active.node_id) if active else None
        if node_id is None or self.world.nodes[node_id].controller is None:
            self.asks.pop(broker_id, None)
            return
        request = broker.poll(now_ms, self.world.nodes[node_id].controller.image_offset)
        if request is not None:
            self.pending[broker_id] = self.world.call(node_id, request), now_ms + 1_000

    def all_in(self, state, *broker_ids):
        chosen = broker_ids or self.brokers
        return lambda: all(self.brokers[b].state is state for b in chosen)


@pytest.fixture
def world():
    return World(bootstrap=Bootstrap((encode_record(LEVEL, 0),)))


@pytest.fixture
def brokers(world):
    brokers = Brokers(world, 3)
    brokers.run_until(brokers.all_in(BrokerState.RUNNING))
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=6, replication_factor=3)
    assert (
        world.ask(world.active.node_id, CreateTopicsRequest(topics=[topic])).topics[0].error_code
        == 0
    )
    return brokers


def partitions(node: Node):
    return list(node.image.topics.named("t").partitions.values())


def test_brokers_register_and_run(world, brokers):
    known = world.active.image.cluster.brokers
    assert {b.id: b.fenced for b in known.values()} == {10: False, 11: False, 12: False}
    assert {b: known[b].epoch for b in known} == {b: brokers.brokers[b].epoch for b in known}


def test_a_broker_that_falls_silent_is_fenced_and_comes_back(world, brokers):
    del brokers.brokers[10]
    began = world.now_ms
    brokers.run_until(lambda: world.active.image.cluster.brokers[10].fenced)
    assert 9_000 <= world.now_ms - began <= 13_000
    assert all(p.leader != 10 and 10 not in p.isr for p in partitions(world.active))
    brokers.start(10)
    brokers.run_until(brokers.all_in(BrokerState.RUNNING))


def test_a_write_waits_for_one_part_of_a_fencing_at_most():
    most, count = 4, 60  # records
    world = World(bootstrap=Bootstrap((encode_record(LEVEL, 0),)), part_records=most)
    brokers = Brokers(world, 3)
    brokers.run_until(brokers.all_in(BrokerState.RUNNING))
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=count, replication_factor=3)
    world.ask(world.leader.node_id, CreateTopicsRequest(topics=[topic]))
    del brokers.brokers[10]
    brokers.run_until(lambda: any(10 not in p.isr for p in partitions(world.leader)))
    number = 0
    while not world.leader.image.cluster.brokers[10].fenced:
        number += 1
        answer = world.call(world.leader.node_id, quota(f"user{number}", 1.0))
        brokers.run_until(lambda answer=answer: answer)
    written = [
        type(record)
        for _, record in records_of(world.active)
        if isinstance(record, PartitionChangeRecord | ClientQuotaRecord)
    ]
    rows = [len(list(row)) for kind, row in groupby(written) if kind is PartitionChangeRecord]
    assert sum(rows) == count and max(rows) <= most


def test_a_controlled_shutdown_ends_and_leaves_no_leadership(world, brokers):
    broker = brokers.brokers[11]
    broker.begin_shutdown(world.now_ms)
    brokers.run_until(brokers.all_in(BrokerState.SHUTTING_DOWN, 11), 10_000)
    assert all(p.leader not in (11, NO_LEADER) for p in partitions(world.active))
    brokers.start(11, previous_epoch=broker.epoch)
    brokers.run_until(brokers.all_in(BrokerState.RUNNING))


def test_a_new_active_controller_keeps_the_brokers(world, brokers):
    """They have a fresh session with it: none is fenced, none registers again."""
    epochs = {b: broker.epoch for b, broker in brokers.brokers.items()}
    led = [p.leader_epoch for p in partitions(world.active)]
    world.crash(world.active.node_id)
    brokers.run_until(lambda: world.active is not None)
    end = world.now_ms + 12_000
    brokers.run_until(lambda: world.now_ms >= end)
    assert brokers.all_in(BrokerState.RUNNING)()
    assert {b: broker.epoch for b, broker in brokers.brokers.items()} == epochs
    assert [p.leader_epoch for p in partitions(world.active)] == led


def registration(broker_id):
    cls = BrokerRegistrationRequest
    return cls(
        broker_id=broker_id,
        cluster_id="world",
        incarnation_id=Uuid(bytes([9]) * 16),
        listeners=[cls.Listener(name="PLAINTEXT", host="b", port=9092)],
        features=[
            cls.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported_features().items()
        ],
        log_dirs=[Uuid(bytes([5]) * 16)],
    )


@kafka_scenario("ClusterControlManagerTest", "replayRegisterBrokerRecord")
@pytest.mark.parametrize("from_snapshot", [False, True])
def test_a_new_active_controller_knows_where_a_broker_registered(from_snapshot):
    """The newest registration lies above the broker's epoch, in the log or within a snapshot."""
    policy = SnapshotPolicy(max_bytes=1) if from_snapshot else None
    world = World(bootstrap=Bootstrap((encode_record(LEVEL, 0),)), policy=policy)
    world.run_until(lambda: world.active)
    first = world.ask(world.leader.node_id, registration(10))
    world.ask(world.leader.node_id, quota("a", 1.0))
    again = world.ask(world.leader.node_id, registration(10))
    assert (again.error_code, again.broker_epoch) == (0, first.broker_epoch)
    if from_snapshot:  # it does not say at which offset: the last one counts that it holds
        needed = restart_all(world)
    else:
        written = [o for o, r in records_of(world.active) if isinstance(r, RegisterBrokerRecord)]
        needed = written[-1]
        world.crash(world.leader.node_id)
        world.run_until(lambda: world.active)
    assert needed > again.broker_epoch

    def heartbeat(offset):
        request = BrokerHeartbeatRequest(
            broker_id=10, broker_epoch=again.broker_epoch, current_metadata_offset=offset
        )
        found = world.ask(world.leader.node_id, request)
        return found.is_fenced, found.is_caught_up

    assert heartbeat(needed - 1) == (True, False)
    assert heartbeat(needed) == (False, True)


def restart_all(world):
    """Returns the last offset of the snapshot from which the new active controller has started."""
    end = world.active.core.log_end.offset
    world.run_until(lambda: all(snapshots_of(n)[-1].offset >= end for n in world.nodes.values()))
    ends = {n: snapshots_of(node)[-1].offset for n, node in world.nodes.items()}
    for node_id in world.nodes:
        world.crash(node_id)
    for node_id in world.nodes:
        world.start(node_id)
    world.run_until(lambda: world.active)
    return ends[world.active.node_id] - 1


def test_the_index_of_a_standby_is_that_of_the_active_controller(world, brokers):
    brokers.brokers[12].begin_shutdown(world.now_ms)
    brokers.run_until(brokers.all_in(BrokerState.SHUTTING_DOWN, 12))
    world.run(2_000)
    contents = [node.controller.head.index.content() for node in world.alive]
    assert len(contents) == 3 and contents[0] == contents[1] == contents[2]


def test_a_client_beyond_its_mutation_quota_is_throttled(world, brokers):
    leader = world.active
    entry = AlterClientQuotasRequest.EntryData
    quota = entry(
        entity=[entry.EntityData(entity_type="user", entity_name="ANONYMOUS")],
        ops=[entry.OpData(key="controller_mutation_rate", value=2.0)],
    )
    world.ask(leader.node_id, AlterClientQuotasRequest(entries=[quota]))
    throttled: list[Any] = []
    step = leader.controller.step

    def stepped(happened, now):
        effects = step(happened, now)
        throttled.extend(ms for _, ms in effects.throttled)
        return effects

    leader.controller.step = stepped

    def create(name, version):
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=24, replication_factor=1
        )
        response = world.ask(leader.node_id, CreateTopicsRequest(topics=[topic]), version)
        return response.topics[0].error_code, response.throttle_time_ms

    assert create("within", 7) == (ErrorCode.NONE, 0)
    error, throttle_ms = create("strict", 7)
    assert error == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert 900 <= throttle_ms <= 1_000
    error, longer_ms = create("permissive", 5)
    assert error == ErrorCode.NONE
    assert 12_800 <= longer_ms <= 13_000
    assert throttled == [throttle_ms, longer_ms]
    assert set(world.active.image.topics.ids) == {"t", "within", "permissive"}
