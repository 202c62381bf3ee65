"""A cluster that exists only as the head of an active controller: decisions are applied at once.

    cluster = Cluster(brokers=3)
    cluster.create("orders", partitions=2, factor=3)
    cluster.heartbeat(1, want_shut_down=True)
    cluster.partition("orders", 0).leader

After each decision `check` holds what no record may break.
"""

import copy
import itertools
import random

from immutables import Map

from quorate.base.ids import Uuid
from quorate.controller.brokers import BROKER_REGISTRATION
from quorate.controller.building import at_once
from quorate.controller.context import Context, ControllerConfig
from quorate.controller.head import Head
from quorate.controller.heartbeats import BROKER_HEARTBEAT, FENCE_STALE_BROKER
from quorate.controller.liveness import BrokerControl, Liveness
from quorate.controller.result import Part, Result, Turn
from quorate.controller.topics import CREATE_TOPICS
from quorate.formats.records import ConfigRecord, FeatureLevelRecord, encode_record
from quorate.formats.versions import METADATA_VERSION, record_version, supported_features
from quorate.metadata.image import NO_LEADER, ConfigResource
from quorate.raft.values import ControlState
from quorate.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
)

SESSION_MS = 9_000
TOPIC = 2
BROKER = 4


def incarnation(number):
    return Uuid(bytes([9]) + number.to_bytes(15, "big"))


def directory(broker_id, number=0):
    return Uuid(bytes([8, number]) + broker_id.to_bytes(14, "big"))


class Cluster:
    """`brokers` register as 1 to n, each with one directory, and are unfenced."""

    def __init__(self, brokers=0, *, level=30, elr=False, seed=1, file=(), **config):
        """`file`: the properties of the controller, node 3000."""
        self.head = Head()
        self.requester = None
        self.verdicts = None
        self.may_use_tokens = True
        self.mutation_quota = None
        self.config = ControllerConfig(3000, "cluster", file=Map(file), **config)
        self.liveness = Liveness(SESSION_MS)
        self.rng = random.Random(seed)
        self.now_ms = 1_000
        self.next_offset = 1
        self.written = []
        self.between = lambda: None
        """Other decisions, after each turn of one."""
        self.is_between_turns = False
        features = {METADATA_VERSION: level} | (
            {"eligible.leader.replicas.version": 1} if elr else {}
        )
        self.write([FeatureLevelRecord(name=n, feature_level=f) for n, f in features.items()])
        for broker_id in range(1, brokers + 1):
            self.register(broker_id)
            self.unfence(broker_id)

    @property
    def image(self):
        return self.head.image

    def broker(self, broker_id):
        return self.image.cluster.brokers[broker_id]

    def partition(self, topic, index=0):
        return self.image.topics.named(topic).partitions[index]

    # -- decisions ------------------------------------------------------------------------------
    def context(self, version=99, *, forwarded=False):
        return Context(
            config=self.config,
            control=ControlState(1, ()),
            time_ms=self.now_ms,
            rng=self.rng,
            liveness=self.liveness,
            monotonic_ms=self.now_ms,
            next_offset=self.next_offset,
            version=version,
            is_forwarded=forwarded,
            may_use_tokens=self.may_use_tokens,
            mutation_quota=self.mutation_quota,
            requester=self.requester,
            committed=lambda: self.image,
            verdicts=self.verdicts,
        )

    def decide(self, operation, request, version=99, *, forwarded=False):
        """The response; the records are in the image."""
        context = self.context(version, forwarded=forwarded)
        self.records, self.sizes = [], []
        self.known = copy.deepcopy(vars(self.liveness))
        result = whole(operation, self.head, request, context)
        if not isinstance(result, Result):
            result = yield_all(result, self._part)
        self._check_liveness()
        self._part(result)
        self.liveness.written(result.liveness)
        self.liveness.committed(result.liveness, self.next_offset - 1)
        if not self.is_between_turns:
            check_shutdowns(self.image, self.liveness)
        return result.response

    def _part(self, part):
        self.records.extend(part.records)
        self.sizes.append(len(part.records))
        self.write(part.records)
        if isinstance(part, Turn):
            self._check_liveness()
            self.liveness.written(part.liveness)
            self._let_others_in()
            self.known = copy.deepcopy(vars(self.liveness))

    def _let_others_in(self):
        known = self.records, self.sizes, self.between
        is_between_turns = self.is_between_turns
        self.between, self.is_between_turns = (lambda: None), True
        try:
            known[2]()
        finally:
            self.records, self.sizes, self.between = known
            self.is_between_turns = is_between_turns

    def _check_liveness(self):
        assert vars(self.liveness) == self.known, "a decision changes nothing of the liveness"

    def write(self, records):
        before = self.image
        level = before.features.metadata_version
        values = [
            encode_record(r, 0 if level is None else record_version(type(r).__name__, level))
            if type(r).__name__ != "BrokerRegistrationChangeRecord"
            else encode_record(r, 3)
            for r in records
        ]
        if records:
            self.head.apply(records, values)
            self.written.append(values)
            self.next_offset += len(records)
        check(before, self.image)

    def register(self, broker_id, *, number=None, previous_epoch=-1, rack=None, **fields):
        """`number`: of the incarnation; by default a new one."""
        cls = BrokerRegistrationRequest
        given = self.rng.getrandbits(60) if number is None else number
        request = cls(
            broker_id=broker_id,
            cluster_id="cluster",
            incarnation_id=incarnation(given),
            listeners=[cls.Listener(name="PLAINTEXT", host=f"b{broker_id}", port=9092)],
            features=[
                cls.Feature(name=n, min_supported_version=low, max_supported_version=high)
                for n, (low, high) in supported_features().items()
            ],
            rack=rack,
            log_dirs=[directory(broker_id)],
            previous_broker_epoch=previous_epoch,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.decide(BROKER_REGISTRATION, request, 4)

    def heartbeat(self, broker_id, offset=1 << 40, **fields):
        epoch = self.broker(broker_id).epoch
        self.liveness.contact(broker_id, epoch, self.now_ms)
        request = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=offset, **fields
        )
        return self.decide(BROKER_HEARTBEAT, request, 2)

    def unfence(self, broker_id):
        response = self.heartbeat(broker_id)
        assert not response.is_fenced
        return response

    def lose(self, *broker_ids):
        """Their sessions expire, those of the others do not; they are fenced."""
        self.expire(*broker_ids)
        self.run_to_the_end(FENCE_STALE_BROKER)

    def expire(self, *broker_ids):
        """Their sessions expire, those of the others do not."""
        self.now_ms += SESSION_MS + 1
        for broker in self.image.cluster.brokers.values():
            if broker.id not in broker_ids and not broker.fenced:
                self.liveness.contact(broker.id, broker.epoch, self.now_ms)

    def at_turn(self, number, act):
        """`act` is called after that turn of the next decision; nothing is after the others."""
        turns = itertools.count(1)
        self.between = lambda: act() if next(turns) == number else None

    def new_leader(self):
        """Another controller becomes active: it knows the image alone."""
        self.between = lambda: None
        self.liveness.activate(self.image.cluster, {}, self.now_ms)

    def run_to_the_end(self, task):
        """How often it had to be run until there was no more to do, without the last time."""
        writes = 0
        while self.decide(task, None):
            writes += 1
        return writes

    def create(self, name, partitions=-1, factor=-1, *, assignments=(), configs=()):
        """Creates the topic and returns its result."""
        cls = CreateTopicsRequest.CreatableTopic
        topic = cls(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            assignments=[
                cls.CreatableReplicaAssignment(partition_index=i, broker_ids=list(replicas))
                for i, replicas in enumerate(assignments)
            ],
            configs=[cls.CreatableTopicConfig(name=n, value=v) for n, v in dict(configs).items()],
        )
        return self.decide(CREATE_TOPICS, CreateTopicsRequest(topics=[topic]), 7).topics[0]

    def configure(self, kind, resource, **values):
        """Writes configs as they are; `_` in a name stands for `.`."""
        self.write(
            [
                ConfigRecord(
                    resource_type=kind, resource_name=resource, name=n.replace("_", "."), value=v
                )
                for n, v in values.items()
            ]
        )
        assert ConfigResource(kind, resource) in self.image.configs


def whole(operation, head, request, context):
    """The authorization of the request, and the decision on what it leaves."""
    if operation.authorize is not None:
        request = at_once(operation.authorize(request, context))
    return request if isinstance(request, Result) else operation.decide(head, request, context)


def yield_all(steps, write):
    """The result of a decision in steps; `write` takes its parts."""
    while True:
        try:
            wanted = next(steps)
        except StopIteration as end:
            return end.value
        if isinstance(wanted, Part):
            write(wanted)


def check(before, after):
    """What no record may break, whatever was decided."""
    elr_enabled = after.features.elr_enabled
    assert all(broker_id >= 0 for broker_id in after.cluster.brokers)
    for topic in after.topics:
        old = before.topics.by_id.get(topic.id)
        for index, partition in topic.partitions.items():
            place = f"{topic.name}-{index}: {partition}"
            assert len(set(partition.replicas)) == len(partition.replicas) > 0, place
            assert set(partition.isr) <= set(partition.replicas), place
            assert not set(partition.isr) & set(partition.elr), place
            assert partition.leader == NO_LEADER or partition.leader in partition.isr, place
            assert len(partition.directories) == len(partition.replicas), place
            assert set(partition.adding_replicas) <= set(partition.replicas), place
            assert set(partition.removing_replicas) <= set(partition.replicas), place
            _check_leader(after, partition, place)
            was = old.partitions.get(index) if old else None
            # It may be empty from before the feature was turned off.
            assert partition.isr or elr_enabled or (was is not None and not was.isr), place
            if was is not None and was != partition:
                assert partition.partition_epoch > was.partition_epoch, place
                assert partition.leader_epoch >= was.leader_epoch, place
                if partition.leader != was.leader:
                    assert partition.leader_epoch > was.leader_epoch, place


def _check_leader(after, partition, place):
    """The leader is not fenced."""
    if partition.leader != NO_LEADER:
        broker = after.cluster.brokers.get(partition.leader)
        assert broker is not None and not broker.fenced, place


def check_shutdowns(image, liveness):
    """A broker that shuts down leads nothing, once all of its partitions are moved."""
    ending = {
        broker.id
        for broker in image.cluster.brokers.values()
        if liveness.present_state(broker) is BrokerControl.CONTROLLED_SHUTDOWN
        and not liveness.is_leaving(broker.id)
    }
    leaders = {p.leader for topic in image.topics for p in topic.partitions.values()}
    assert not ending & leaders
