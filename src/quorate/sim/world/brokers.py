"""Simulated brokers of a world of controllers: they register, heartbeat, lead partitions, and fail.

The broker's side of KIP-631 is `quorate.broker.lifecycle`. There are no records: a leader changes its
ISR at will, which is what a controller sees of real ones. A broker reads the committed image of a node
over the network, as a real one fetches the log. It dies, ends in an orderly way, falls silent, and loses
or cordons log directories.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Listener, Uuid
from quorate.broker.lifecycle import (
    UNKNOWN_EPOCH,
    BrokerIdentity,
    BrokerLifecycle,
    BrokerState,
    BrokerTimes,
)
from quorate.formats.versions import FEATURES, LATEST_PRODUCTION, METADATA_VERSION, MINIMUM
from quorate.metadata.image import NO_LEADER, Image, Partition, Topic
from quorate.sim.prng import Prng
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.controller_calls import ControllerCall, ControllerCalls
from quorate.sim.world.network import Network
from quorate.sim.world.observable import CLUSTER_ID, OUTSIDE
from quorate.wire.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    ElectLeadersRequest,
)
from quorate.wire.schema import Message

HEARTBEAT_MS: Final = 500
"""A sixth of the session timeout that simulated controllers have."""
_FETCH_US: Final = 200_000
_ACT_US: Final = 300_000
_SOON_US: Final = 1_000
_DIRECTORIES: Final = 3
_UNCLEAN: Final = 1
"""The election type of ElectLeaders."""
_RESTART_MS: Final = 6_000
_SILENT_MS: Final = 6_000
_INITIAL_TIMEOUT_MS: Final = 86_400_000
"""A broker that cannot register waits: a world may have no leader for long."""
_TIMES: Final = BrokerTimes(HEARTBEAT_MS, _INITIAL_TIMEOUT_MS, _INITIAL_TIMEOUT_MS)
_SUPPORTED: Final = {
    METADATA_VERSION: (int(MINIMUM), int(LATEST_PRODUCTION)),
    **{name: (0, feature.latest_production) for name, feature in FEATURES.items()},
}


class SimulatedBroker:
    """One broker. `lifecycle` is None while its process is down."""

    def __init__(self, seed: int, broker_id: int, target: int) -> None:
        self.id = broker_id
        self.rng = Prng(seed, "broker", broker_id)
        self.target = target
        """The node that it takes for the active controller."""
        self.directories = tuple(self.rng.bytes(16) for _ in range(_DIRECTORIES))
        self.failed: set[bytes] = set()
        self.lifecycle: BrokerLifecycle | None = None
        self.turn = 0
        """The number of starts and ends. A scheduled call of an earlier turn is ignored."""
        self.silent_until_us = 0
        self.image = Image()
        self.offset = -1
        """The last offset (inclusive) of `image`."""

    def partitions(self) -> Iterator[tuple[Topic, int, Partition]]:
        """(topic, index, partition) of all that it knows.

        In order: that of the image follows hashes of ids, which differ from process to process.
        """
        for topic in sorted(self.image.topics, key=lambda topic: topic.name):
            for index, partition in sorted(topic.partitions.items()):
                yield topic, index, partition

    def leads(self) -> Iterator[tuple[Uuid, int, Partition]]:
        """(topic id, index, partition) of the partitions that it leads, as far as it knows."""
        for topic, index, partition in self.partitions():
            if partition.leader == self.id:
                yield topic.id, index, partition

    def misplaced(self) -> Iterator[tuple[Uuid, int]]:
        """(topic id, index) of its replicas that are in none of its directories, as the image says."""
        good = set(self.directories) - self.failed
        for topic, index, partition in self.partitions():
            if self.id in partition.replicas:
                place = partition.directories[partition.replicas.index(self.id)]
                if place not in good:
                    yield topic.id, index


class LifecycleCall(ControllerCall):
    """A registration or a heartbeat."""

    def __init__(self, brokers: Brokers, broker: SimulatedBroker, request: Message) -> None:
        super().__init__(request)
        self.broker = broker
        self.turn = broker.turn
        self._brokers = brokers

    def answered(self, response: Message | None) -> None:
        self._brokers.answered(self, response)


class OtherCall(ControllerCall):
    """Another request. Whatever comes of it shows in the image."""

    def answered(self, response: Message | None) -> None:
        pass


class Brokers:
    """All brokers; none where the plan has none."""

    def __init__(self, world: SimulatedCluster, network: Network, calls: ControllerCalls) -> None:
        plan = world.plan
        self._world = world
        self._network = network
        self._calls = calls
        self._timeout_us = plan.clients.timeout_ms * 1000
        self._nodes = plan.voters + plan.observers
        self._all = [
            SimulatedBroker(plan.seed, i, 1 + i % plan.voters) for i in range(1, plan.brokers + 1)
        ]
        self._may_fail = True

    def begin(self) -> None:
        for broker in self._all:
            self._world.push(self._world.now_us + 1, self._start, broker, UNKNOWN_EPOCH)

    def stop(self) -> None:
        """Let no broker fail any more: those that are down start, and replace bad directories."""
        self._may_fail = False
        for broker in self._all:
            broker.silent_until_us = 0
            if broker.lifecycle is None or broker.failed:
                self._end(broker)
                self._start(broker, UNKNOWN_EPOCH)

    def missing(self, image: Image) -> str | None:
        """What is not well yet, by the committed image; None: all is. For the liveness phase."""
        for broker in self._all:
            found = image.cluster.brokers.get(broker.id)
            if found is None or found.fenced or found.in_controlled_shutdown:
                return f"broker {broker.id} is not in service: {found}"
        for topic in image.topics if self._all else ():
            for index, partition in topic.partitions.items():
                is_moving = partition.adding_replicas or partition.removing_replicas
                if is_moving or set(partition.isr) != set(partition.replicas):
                    return f"partition {topic.name}-{index} is not whole: {partition}"
        return None

    # -- processes ------------------------------------------------------------------------------
    def _start(self, broker: SimulatedBroker, previous_epoch: int) -> None:
        if broker.lifecycle is not None:
            return
        broker.turn += 1
        broker.failed.clear()
        broker.image, broker.offset = Image(), -1
        identity = BrokerIdentity(
            broker.id,
            CLUSTER_ID,
            Uuid(broker.rng.bytes(16)),
            (Listener("PLAINTEXT", f"broker{broker.id}", 9092),),
            _SUPPORTED,
            tuple(Uuid(each) for each in broker.directories),
            rack=f"rack{broker.id % 2}",
            previous_epoch=previous_epoch,
        )
        broker.lifecycle = BrokerLifecycle(identity, _TIMES)
        broker.lifecycle.start(self._now_ms())
        self._drive(broker, broker.turn)
        self._fetch(broker, broker.turn)
        self._act(broker, broker.turn)

    def _end(self, broker: SimulatedBroker) -> None:
        broker.lifecycle = None
        broker.turn += 1

    def _end_and_restart(self, broker: SimulatedBroker, what: str, previous_epoch: int) -> None:
        self._world.fault(what, (broker.id,))
        self._end(broker)
        pause_us = 1000 * broker.rng.between(1, _RESTART_MS)
        self._world.push(self._world.now_us + pause_us, self._start, broker, previous_epoch)

    def _now_ms(self) -> int:
        return self._world.now_us // 1000

    def _is_silent(self, broker: SimulatedBroker) -> bool:
        return broker.silent_until_us > self._world.now_us

    # -- registration and heartbeats ------------------------------------------------------------
    def _drive(self, broker: SimulatedBroker, turn: int) -> None:
        """Do what the life cycle wants now, and look again when it says."""
        lifecycle, world = broker.lifecycle, self._world
        if lifecycle is None or broker.turn != turn:
            return
        if self._is_silent(broker):
            world.push(broker.silent_until_us, self._drive, broker, turn)
            return
        if lifecycle.state is BrokerState.RECOVERY:
            lifecycle.set_ready(self._now_ms())
        request = lifecycle.poll(self._now_ms(), broker.offset)
        if lifecycle.state is BrokerState.SHUTTING_DOWN:
            self._end_and_restart(broker, "broker ended", lifecycle.epoch)
            return
        if request is not None:
            call = LifecycleCall(self, broker, request)
            self._calls.send(call, broker.target)
            self._calls.expire(call, self._timeout_us)
        elif lifecycle.wake_at_ms is not None:
            at_us = max(lifecycle.wake_at_ms * 1000, world.now_us + _SOON_US)
            world.push(at_us, self._drive, broker, turn)

    def answered(self, call: LifecycleCall, response: Message | None) -> None:
        """A controller answers a registration or heartbeat; None: there is no answer."""
        broker, lifecycle = call.broker, call.broker.lifecycle
        if lifecycle is None or broker.turn != call.turn:
            return
        if response is None:
            lifecycle.failed(self._now_ms())
        else:
            assert isinstance(response, BrokerHeartbeatResponse | BrokerRegistrationResponse)
            if response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED:
                # A real broker would go on in vain; an operator starts it again.
                self._end_and_restart(broker, "broker unknown", UNKNOWN_EPOCH)
                return
            lifecycle.received(response, self._now_ms())
        if response is None or response.error_code == ErrorCode.NOT_CONTROLLER:
            broker.target = 1 + broker.rng.below(self._nodes)
        self._drive(broker, broker.turn)

    # -- metadata -------------------------------------------------------------------------------
    def _fetch(self, broker: SimulatedBroker, turn: int) -> None:
        """Ask any node for its committed image, again and again."""
        if broker.turn != turn:
            return
        if not self._is_silent(broker):
            to = 1 + broker.rng.below(self._nodes)
            self._network.carry(OUTSIDE, to, self._fetch_arrives, to, broker, turn)
        self._world.push(self._world.now_us + _FETCH_US, self._fetch, broker, turn)

    def _fetch_arrives(self, to: int, broker: SimulatedBroker, turn: int) -> None:
        controller = self._world.processes[to].controller
        if controller is not None:
            node = controller.node
            known = node.image, node.image_offset, node.leader_id
            self._network.carry(to, OUTSIDE, self._fetched, broker, turn, *known)

    def _fetched(
        self, broker: SimulatedBroker, turn: int, image: Image, offset: int, leader_id: int
    ) -> None:
        if broker.turn != turn:
            return
        if leader_id in self._world.processes:
            broker.target = leader_id
        if offset > broker.offset:
            broker.image, broker.offset = image, offset

    # -- what brokers do ------------------------------------------------------------------------
    def _act(self, broker: SimulatedBroker, turn: int) -> None:
        lifecycle, rng, world = broker.lifecycle, broker.rng, self._world
        if lifecycle is None or broker.turn != turn:
            return
        pause_us = 1 + int(rng.random() * 2 * _ACT_US)
        world.push(world.now_us + pause_us, self._act, broker, turn)
        if self._is_silent(broker):
            return
        chance = rng.random() if self._may_fail else 1.0
        if chance < 0.01:
            self._end_and_restart(broker, "broker killed", UNKNOWN_EPOCH)
        elif lifecycle.state is not BrokerState.RUNNING:
            return
        elif chance < 0.02:
            lifecycle.begin_shutdown(self._now_ms())
            self._drive(broker, turn)
        elif chance < 0.03:
            world.fault("broker silent", (broker.id,))
            broker.silent_until_us = world.now_us + 1000 * rng.between(1, _SILENT_MS)
        elif chance < 0.05:
            self._lose_directory(broker, lifecycle)
            self._drive(broker, turn)
        elif chance < 0.07:
            cordoned = [Uuid(each) for each in broker.directories if rng.happens(0.4)]
            lifecycle.cordon(cordoned, self._now_ms())
            self._drive(broker, turn)
        elif chance < 0.15:
            self._allocate(broker, lifecycle.epoch)
        elif chance < 0.3:
            self._place(broker)
        else:
            self._change_isr(broker)
        if not self._may_fail:
            self._place(broker)
            self._elect(broker)

    def _lose_directory(self, broker: SimulatedBroker, lifecycle: BrokerLifecycle) -> None:
        if len(broker.failed) < _DIRECTORIES - 1:
            lost = broker.rng.pick(
                [each for each in broker.directories if each not in broker.failed]
            )
            self._world.fault("broker directory failed", (broker.id,))
            broker.failed.add(lost)
            lifecycle.directory_failed(Uuid(lost), self._now_ms())

    def _allocate(self, broker: SimulatedBroker, epoch: int) -> None:
        """Ask for producer ids, at times with an epoch that the broker does not have."""
        if broker.rng.happens(0.1):
            epoch -= 1
        request = AllocateProducerIdsRequest(broker_id=broker.id, broker_epoch=epoch)
        self._calls.send(OtherCall(request), broker.target)

    def _place(self, broker: SimulatedBroker) -> None:
        """Say where one replica lies that lies in no directory by the image."""
        found = next(broker.misplaced(), None)
        if found is None or broker.lifecycle is None:
            return
        topic_id, index = found
        good = [each for each in broker.directories if each not in broker.failed]
        directory = AssignReplicasToDirsRequest.DirectoryData
        topic = directory.TopicData
        placed = topic(topic_id=topic_id, partitions=[topic.PartitionData(partition_index=index)])
        request = AssignReplicasToDirsRequest(
            broker_id=broker.id,
            broker_epoch=broker.lifecycle.epoch,
            directories=[directory(id=Uuid(broker.rng.pick(good)), topics=[placed])],
        )
        self._calls.send(OtherCall(request), broker.target)

    def _elect(self, broker: SimulatedBroker) -> None:
        """An operator elects a leader where no replica is known to be in sync: records may be lost.

        Kafka's controllers do so only where unclean.leader.election.enable is set, or where they know
        the last leader and nobody is eligible. A broker that the assignment has left may be eligible.
        """
        for topic, index, partition in broker.partitions():
            known = {*partition.isr, *partition.elr} & {*partition.replicas}
            if partition.leader == NO_LEADER and not known:
                lost = ElectLeadersRequest.TopicPartitions(topic=topic.name, partitions=[index])
                request = ElectLeadersRequest(election_type=_UNCLEAN, topic_partitions=[lost])
                self._calls.send(OtherCall(request), broker.target)
                return

    def _change_isr(self, broker: SimulatedBroker) -> None:
        """Change the ISR of one partition: to all replicas that may be in it, when nothing fails."""
        led = list(broker.leads())
        if not self._may_fail:
            led = [found for found in led if set(found[2].isr) != set(found[2].replicas)]
        if not led or broker.lifecycle is None:
            return
        topic_id, index, partition = broker.rng.pick(led)
        states = AlterPartitionRequest.TopicData.PartitionData.BrokerState
        brokers = broker.image.cluster.brokers
        in_sync = [
            states(broker_id=replica, broker_epoch=brokers[replica].epoch)
            for replica in partition.replicas
            if replica in brokers
            and (replica == broker.id or not self._may_fail or broker.rng.happens(0.7))
            and not brokers[replica].fenced
        ]
        data = AlterPartitionRequest.TopicData
        change = data.PartitionData(
            partition_index=index,
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=in_sync,
            leader_recovery_state=0,
            partition_epoch=partition.partition_epoch,
        )
        request = AlterPartitionRequest(
            broker_id=broker.id,
            broker_epoch=broker.lifecycle.epoch,
            topics=[data(topic_id=topic_id, partitions=[change])],
        )
        self._calls.send(OtherCall(request), broker.target)
