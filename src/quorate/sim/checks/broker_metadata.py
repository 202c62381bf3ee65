"""What the committed images say of brokers, topics and partitions, whatever controllers decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.metadata.image import ConfigResource
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import Observer, ViolationError
from quorate.sim.world.topic_requests import KEPT
from quorate.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    UnregisterControllerRequest,
)

if TYPE_CHECKING:
    from quorate.base.ids import Uuid
    from quorate.controller.partition_index import PartitionIndex
    from quorate.metadata.image import Broker, Cluster, Image, Partition, Topics
    from quorate.node.controller_node import ControllerNode
from quorate.node.node_io import NodeEffects

_INDEX_EVERY = 16
"""Steps of one node between two comparisons of its index with its head."""
_ELR = "eligible.leader.replicas.version"
_NOBODY = -1
_TOPIC = 2
"""The type of a resource of configs."""


class BrokerMetadataCheck(Observer):
    """Looks at the image of a ControllerNode after each step that changed it.

    It relies on the clients of a simulated world: no client deletes a topic whose name begins with
    KEPT or a config, and none unregisters a broker.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[Image, int]] = {}
        """By node: the image that was checked last, and its offset. Images do not change."""
        self._partitions: dict[tuple[Uuid, int], tuple[int, Partition]] = {}
        """The newest state of each partition, and the offset (inclusive) at which it was seen."""
        self._brokers: dict[int, tuple[int, Broker]] = {}
        """The same of each broker."""
        self._kept: dict[str, tuple[int, Uuid, int]] = {}
        """Acknowledged topics that stay: end offset (exclusive), id, number of partitions."""
        self._deleted: dict[Uuid, int] = {}
        """Topics whose deletion is acknowledged, and its end offset (exclusive)."""
        self._configured: dict[tuple[str, str], int] = {}
        """By (topic that stays, config) of an acknowledged value: the end offset (exclusive)."""
        self._registered: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
        """By (broker id, broker epoch): the (node, epoch) that led, and the offset of the registration."""
        self._steps = 0

    def node_stepped(
        self,
        process: SimulatedNode,
        effects: NodeEffects,
        responses: Sequence[ControllerResponse],
    ) -> None:
        assert process.controller is not None
        node = process.controller.node
        for response in responses:
            if response.committed is not None and response.committed >= 0:
                self.acknowledge(response, response.committed)
                self._check_registration(response, response.committed, node)
        check_controllers(node.node_id, node.image, responses)
        image, offset = node.image, node.image_offset
        seen, seen_offset = self._seen.get(node.node_id, (None, -1))
        if seen is not image:
            self.check_image(node.node_id, image, offset)
        elif seen_offset != offset:
            # The records since then change nothing, so an acknowledged write is not among them.
            self._check_acknowledged(node.node_id, image, offset)
        self._seen[node.node_id] = image, offset
        self._steps += 1
        if self._steps % _INDEX_EVERY == 0:
            check_index(node)

    # -- images ---------------------------------------------------------------------------------
    def check_image(self, node_id: int, image: Image, offset: int) -> None:
        """Check an image. `offset`: of the last record (inclusive) in it."""
        where = f"node {node_id} at {offset}"
        for broker_id, broker in image.cluster.brokers.items():
            self._check_broker(where, offset, broker_id, broker)
        has_elr = image.features.levels.get(_ELR, 0) > 0
        for topic in image.topics:
            for index, partition in topic.partitions.items():
                name = f"{where}: {topic.name}-{index} is {partition}"
                check_partition(name, partition, image.cluster, has_elr=has_elr)
                self._check_progress(name, offset, (topic.id, index), partition)
        self._check_acknowledged(node_id, image, offset)

    def _check_broker(self, where: str, offset: int, broker_id: int, broker: Broker) -> None:
        """An epoch belongs to one process of a broker, and epochs grow.

        Source: KIP-631, "Broker epoch": the controller assigns a new, larger epoch to each
        registration of another incarnation.
        """
        known = self._brokers.get(broker_id)
        if known is None or offset >= known[0]:
            if known is not None:
                before = known[1]
                is_new = broker.incarnation_id != before.incarnation_id
                if broker.epoch < before.epoch or (is_new and broker.epoch == before.epoch):
                    raise ViolationError(
                        "broker epochs grow", f"{where}: {broker} comes after {before}"
                    )
            self._brokers[broker_id] = offset, broker

    def _check_progress(
        self, name: str, offset: int, key: tuple[Uuid, int], partition: Partition
    ) -> None:
        """Epochs of a partition never fall, and tell its states and its leaders apart.

        Source: KIP-497 (the partition epoch, then "ZkVersion"), `PartitionChangeBuilder` and
        `PartitionRegistration.merge`.
        """
        known = self._partitions.get(key)
        if known is not None:
            at, other = known
            older, newer = (other, partition) if offset >= at else (partition, other)
            if newer.partition_epoch < older.partition_epoch:
                raise ViolationError("partition epochs grow", f"{name}; at {at} it was {other}")
            if newer.leader_epoch < older.leader_epoch:
                raise ViolationError("leader epochs grow", f"{name}; at {at} it was {other}")
            if newer.partition_epoch == older.partition_epoch and newer != older:
                raise ViolationError("partition epochs grow", f"{name}; at {at} it was {other}")
            if newer.leader != older.leader and newer.leader_epoch == older.leader_epoch:
                raise ViolationError("leader epochs grow", f"{name}; at {at} it was {other}")
        if known is None or offset >= known[0]:
            self._partitions[key] = offset, partition

    # -- registrations --------------------------------------------------------------------------
    def _check_registration(
        self, response: ControllerResponse, end: int, node: ControllerNode
    ) -> None:
        if isinstance(response.request, (BrokerRegistrationRequest, BrokerHeartbeatRequest)):
            leader = node.node_id, node.replica.leading_epoch or 0
            self.check_registration(response, end, leader)

    def check_registration(
        self, response: ControllerResponse, end: int, leader: tuple[int, int]
    ) -> None:
        """A broker is not caught up before it has applied its registration.

        `leader`: (node, epoch) of the active controller; `end`: of the records of the request
        (exclusive). Source: `BrokerHeartbeatManager.calculateNextBrokerState`.
        """
        found, request = response.response, response.request
        if isinstance(found, BrokerRegistrationResponse):
            assert isinstance(request, BrokerRegistrationRequest)
            # RegisterBrokerRecord is the last one.
            self._registered[request.broker_id, found.broker_epoch] = leader, end - 1
        elif isinstance(found, BrokerHeartbeatResponse) and found.is_caught_up:
            assert isinstance(request, BrokerHeartbeatRequest)
            known = self._registered.get((request.broker_id, request.broker_epoch))
            if known is None or known[0] != leader:
                return  # a later controller knows the epoch alone
            if request.current_metadata_offset < known[1]:
                raise ViolationError(
                    "brokers are caught up",
                    f"broker {request.broker_id} has applied {request.current_metadata_offset}, its "
                    f"registration is at {known[1]}",
                )

    # -- acknowledgements -----------------------------------------------------------------------
    def acknowledge(self, response: ControllerResponse, end: int) -> None:
        """A write is answered whose records end at `end` (exclusive)."""
        found, request = response.response, response.request
        if isinstance(found, CreateTopicsResponse):
            for topic in found.topics:
                if topic.error_code == ErrorCode.NONE and topic.name.startswith(KEPT):
                    self._kept[topic.name] = end, topic.topic_id, topic.num_partitions
        elif isinstance(found, CreatePartitionsResponse):
            assert isinstance(request, CreatePartitionsRequest)
            counts = {topic.name: topic.count for topic in request.topics}
            for result in found.results:
                known = self._kept.get(result.name)
                if result.error_code == ErrorCode.NONE and known is not None:
                    self._kept[result.name] = max(end, known[0]), known[1], counts[result.name]
        elif isinstance(found, DeleteTopicsResponse):
            for deleted in found.responses:
                if deleted.error_code == ErrorCode.NONE:
                    self._deleted[deleted.topic_id] = end
        elif isinstance(found, IncrementalAlterConfigsResponse):
            assert isinstance(request, IncrementalAlterConfigsRequest)
            self._acknowledge_configs(request, found, end)
        else:
            return
        self._seen.clear()

    def _acknowledge_configs(
        self,
        request: IncrementalAlterConfigsRequest,
        response: IncrementalAlterConfigsResponse,
        end: int,
    ) -> None:
        codes = {each.resource_name: each.error_code for each in response.responses}
        for resource in request.resources:
            name = resource.resource_name
            if name.startswith(KEPT) and codes.get(name) == ErrorCode.NONE:
                for config in resource.configs:
                    self._configured.setdefault((name, config.name), end)

    def _check_acknowledged(self, node_id: int, image: Image, offset: int) -> None:
        """Acknowledged topics and partitions are there, and deleted topics are not.

        Source: Raft, figure 3, State Machine Safety and Leader Completeness, for the image.
        """
        where = f"node {node_id} at {offset}"
        for name, (end, topic_id, count) in self._kept.items():
            topic = image.topics.named(name)
            if end <= offset + 1 and (
                topic is None or topic.id != topic_id or len(topic.partitions) < count
            ):
                raise ViolationError(
                    "acknowledged topics",
                    f"{where}: topic {name} with {count} partitions was acknowledged at {end}, and "
                    f"the image has {topic}",
                )
        for topic_id, end in self._deleted.items():
            if end <= offset + 1 and topic_id in image.topics.by_id:
                raise ViolationError(
                    "acknowledged topics",
                    f"{where}: the deletion of {image.topics.by_id[topic_id]} was acknowledged at "
                    f"{end}",
                )
        for (name, config), end in self._configured.items():
            if end <= offset + 1 and config not in image.configs.get(_of_topic(name), {}):
                raise ViolationError(
                    "acknowledged configs",
                    f"{where}: a value of {config} of topic {name} was acknowledged at {end}, and "
                    "the image has none",
                )


def _of_topic(name: str) -> ConfigResource:
    return ConfigResource(_TOPIC, name)


def check_controllers(node_id: int, image: Image, responses: Sequence[ControllerResponse]) -> None:
    """A registration that a step acknowledges is in the image after it, unless the same step
    acknowledges that the controller is unregistered.

    Source: KIP-919; `QuorumController.ControllerWriteEvent` answers when the records are applied.
    """
    gone = {
        response.request.controller_id
        for response in responses
        if isinstance(response.request, UnregisterControllerRequest)
    }
    for response in responses:
        request, found = response.request, response.response
        if not isinstance(found, ControllerRegistrationResponse) or found.error_code:
            continue
        assert isinstance(request, ControllerRegistrationRequest)
        controller_id = request.controller_id
        if controller_id not in gone and controller_id not in image.cluster.controllers:
            raise ViolationError(
                "acknowledged registrations",
                f"node {node_id} acknowledges that controller {controller_id} is registered, and "
                f"its image has {sorted(image.cluster.controllers)}",
            )


def check_partition(name: str, partition: Partition, cluster: Cluster, *, has_elr: bool) -> None:
    """The sets of replicas fit together, and the leader is in sync and in service.

    Source: `PartitionRegistration`, `ReplicationControlManager.validateAlterPartitionData`, KIP-966
    ("the ELR and the ISR have no replica in common"; without ELR the last replica stays in the ISR).
    """
    replicas, isr = set(partition.replicas), set(partition.isr)
    broken = (
        ("there are replicas, each once", 0 < len(replicas) == len(partition.replicas)),
        ("each replica has a directory", len(partition.directories) == len(partition.replicas)),
        ("the ISR is of replicas", isr <= replicas),
        ("ISR and ELR differ", not isr & set(partition.elr)),
        ("the ISR has a member", bool(isr) or has_elr or bool(partition.elr)),
        ("the leader is in sync", partition.leader == _NOBODY or partition.leader in isr),
        ("what is added is a replica", set(partition.adding_replicas) <= replicas),
        ("what is removed is a replica", set(partition.removing_replicas) <= replicas),
    )
    for rule, holds in broken:
        if not holds:
            raise ViolationError("partition states", f"{name}, but {rule}")
    if partition.leader != _NOBODY:
        broker = cluster.brokers.get(partition.leader)
        if broker is None or broker.fenced:
            raise ViolationError("partition states", f"{name}, but its leader is {broker}")


def check_index(node: ControllerNode) -> None:
    """The index of a controller says what its head image says.

    Source: `BrokersToIsrs` and `imbalancedPartitions` of `ReplicationControlManager`, which follow each
    record.
    """
    head = node.head
    topics, index = head.image.topics, head.index
    for broker_id in head.image.cluster.brokers:
        leads = sum(
            partition.leader == broker_id
            for topic in topics
            for partition in topic.partitions.values()
        )
        has = {
            topic.id
            for topic in topics
            for partition in topic.partitions.values()
            if broker_id in partition.replicas or broker_id in partition.elr
        }
        indexed = {topic_id for _, topic_id in index.topics_of(broker_id)}
        if index.leads(broker_id) != leads or indexed != has:
            raise ViolationError(
                "index equals image",
                f"node {node.node_id}: broker {broker_id} leads {leads} partitions and has topics "
                f"{has}; its index says {index.leads(broker_id)} and {indexed}",
            )
    _check_leaders(node, topics, index)


def _check_leaders(node: ControllerNode, topics: Topics, index: PartitionIndex) -> None:
    partitions = [each for topic in topics for each in topic.partitions.values()]
    leaderless = sum(each.leader == _NOBODY for each in partitions)
    if (index.leaderless, index.partitions) != (leaderless, len(partitions)):
        raise ViolationError(
            "index equals image",
            f"node {node.node_id}: {leaderless} of {len(partitions)} partitions have no leader; its "
            f"index says {index.leaderless} of {index.partitions}",
        )
