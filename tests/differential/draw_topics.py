"""Requests about topics and partitions."""

from __future__ import annotations

from collections.abc import Sequence

from differential.canonical import made_up
from differential.draw import Draft, Draw
from differential.draw_configs import topic_configs
from differential.side import Side
from quorate.base.ids import Uuid
from quorate.metadata.image import NO_LEADER, Partition, Topic
from quorate.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from quorate.wire.schema import Message

TIMEOUT_MS = 60_000
_Topic = CreateTopicsRequest.CreatableTopic
_Assignment = _Topic.CreatableReplicaAssignment


def create(draw: Draw) -> Draft:
    """Topics with manual assignments, so that both sides hold the same."""
    cls = CreateTopicsRequest
    topics = []
    for _ in range(draw.rng.randint(0 if draw.chance(0.05) else 1, 3)):
        size = None if draw.chance(0.05) else draw.rng.randint(1, 4)
        rows = [
            cls.CreatableTopic.CreatableReplicaAssignment(
                partition_index=index, broker_ids=draw.replicas(size)
            )
            for index in range(draw.rng.randint(1, 4))
        ]
        if draw.chance(0.03):
            rows[-1].partition_index = draw.one((0, 7, -1))
        counts = draw.usually(0.97, (-1, -1), ((1, -1), (-1, 1), (0, 0)))
        topics.append(_new_topic(draw, *counts, rows))
    return _creation(draw, draw.often_twice(topics))


def create_placed(draw: Draw) -> Draft:
    """Topics that the controller places; they are deleted at once."""
    topics = [
        _new_topic(
            draw,
            draw.usually(0.9, draw.rng.randint(1, 12), (-1, 0, -2, 10_001)),
            draw.usually(0.9, draw.rng.randint(1, 4), (-1, 0, -2, 20)),
            [],
        )
        for _ in range(draw.rng.randint(1, 2))
    ]
    draft = _creation(draw, topics)
    draft.places = True
    draft.then = [_deletion([topic.name for topic in topics], direct=True)]
    return draft


def _new_topic(draw: Draw, count: int, factor: int, rows: list[_Assignment]) -> _Topic:
    cls = CreateTopicsRequest
    return cls.CreatableTopic(
        name=draw.new_topic(),
        num_partitions=count,
        replication_factor=factor,
        assignments=rows,
        configs=[
            cls.CreatableTopic.CreatableTopicConfig(name=name, value=value)
            for name, value in topic_configs(draw, 2)
        ],
    )


def _creation(draw: Draw, topics: Sequence[_Topic]) -> Draft:
    message = CreateTopicsRequest(
        topics=list(topics), timeout_ms=TIMEOUT_MS, validate_only=draw.chance(0.1)
    )
    return Draft(lambda side: message)


def delete(draw: Draw) -> Draft:
    """By name, or by id from version 6 on."""
    if draw.chance(0.5):
        names = [draw.topic() for _ in range(draw.rng.randint(0 if draw.chance(0.1) else 1, 2))]
        return _deletion(draw.often_twice(names))
    rows: list[tuple[str | None, str | None, bool]] = []
    for _ in range(draw.rng.randint(1, 2)):
        name, kind = draw.topic(), draw.rng.random()
        if kind < 0.75:
            rows.append((None, name, False))
        elif kind < 0.85:
            rows.append((name, None, False))
        elif kind < 0.9:
            rows.append((name, name, False))
        else:
            rows.append((None, None, draw.chance(0.5)))
    rows = draw.often_twice(rows)

    def build(side: Side) -> Message:
        cls = DeleteTopicsRequest
        return cls(
            topics=[
                cls.DeleteTopicState(
                    name=name,
                    topic_id=made_up(6)
                    if unknown
                    else side.topic_id(of)
                    if of
                    else Uuid(bytes(16)),
                )
                for name, of, unknown in rows
            ],
            timeout_ms=TIMEOUT_MS,
        )

    return Draft(build, version=6)


def _deletion(names: list[str], direct: bool = False) -> Draft:
    message = DeleteTopicsRequest(topic_names=names, timeout_ms=TIMEOUT_MS)
    return Draft(lambda side: message, version=5, is_direct=direct)


def _has_two_factors(topic: Topic) -> bool:
    """Kafka takes the replication factor of a partition that the slots of its map choose (decision 7)."""
    return len({len(one.replicas) for one in topic.partitions.values()}) > 1


def create_partitions(draw: Draw) -> Draft | None:
    cls = CreatePartitionsRequest
    topics = []
    for _ in range(draw.rng.randint(0 if draw.chance(0.05) else 1, 2)):
        name, grows = draw.topic(), draw.rng.randint(1, 2)
        known = draw.topic_named(name)
        if known and _has_two_factors(known):
            return None
        factor = len(known.partitions[0].replicas) if known else 1
        rows = [
            cls.CreatePartitionsTopic.CreatePartitionsAssignment(
                broker_ids=draw.replicas(draw.usually(0.9, factor, (1, 2, 3)))
            )
            for _ in range(draw.usually(0.95, grows, (1, 2, 3)))
        ]
        count = (len(known.partitions) if known else 1) + grows
        count = draw.usually(0.92, count, (0, 1, -1, count - grows, count + 1))
        if count > 8:
            return delete(draw)
        topics.append(cls.CreatePartitionsTopic(name=name, count=count, assignments=rows))
    message = cls(
        topics=draw.often_twice(topics), timeout_ms=TIMEOUT_MS, validate_only=draw.chance(0.1)
    )
    return Draft(lambda side: message)


def create_placed_partitions(draw: Draw) -> Draft | None:
    cls = CreatePartitionsRequest
    name = draw.topic()
    known = draw.topic_named(name)
    if known and _has_two_factors(known):
        return None
    count = (len(known.partitions) if known else 1) + draw.rng.randint(1, 5)
    topic = cls.CreatePartitionsTopic(name=name, count=count, assignments=None)
    message = cls(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=draw.chance(0.1))
    return Draft(lambda side: message, places=True, then=[_deletion([name], direct=True)])


def alter_isr(draw: Draw) -> Draft:
    """Mostly from the leader: the ISR grows or shrinks."""
    wanted = draw.partitions(4)
    leaders = sorted(
        {p.leader for rows in wanted.values() for _, p in rows if p and p.leader != NO_LEADER}
    )
    leader = draw.one(leaders) if leaders and draw.chance(0.97) else draw.broker()
    mine = draw.chance(0.8)
    rows = []
    for name, partitions in wanted.items():
        changes = [
            _isr_change(draw, index, partition)
            for index, partition in partitions
            if not mine or partition is None or partition.leader == leader
        ]
        if changes or draw.chance(0.05):
            rows.append((name, draw.chance(0.01), changes))
    if not rows and draw.chance(0.8):
        return complete_reassignment(draw) or elect(draw)
    return _alter(draw, leader, rows)


Change = tuple[int, int, list[tuple[int, bool]], int, int]
"""Index, leader epoch, ISR with whether the epoch is right, recovery state, partition epoch."""


def _isr_change(draw: Draw, index: int, partition: Partition | None) -> Change:
    if partition is None:
        return index, 0, [(draw.broker(), True)], 0, 0
    others = [r for r in partition.replicas if r != partition.leader]
    isr = [partition.leader, *draw.some(others, len(others))]
    if draw.chance(0.5):
        isr = [r for r in partition.replicas if r in isr or r in partition.isr] or isr
    draw.rng.shuffle(isr)
    if draw.chance(0.04):
        isr = draw.one(([], [99], isr * 2, [r for r in isr if r != partition.leader], [*isr, 6]))
    return (
        index,
        draw.usually(0.95, partition.leader_epoch, (-1, 0, partition.leader_epoch + 1)),
        [(broker, draw.chance(0.97)) for broker in isr],
        draw.usually(0.8, partition.leader_recovery_state, (0, 0, 1)),
        draw.usually(0.95, partition.partition_epoch, (-1, 0, partition.partition_epoch + 1)),
    )


def complete_reassignment(draw: Draw) -> Draft | None:
    """The leader of a partition that moves has all replicas in sync."""
    moving = [
        (topic.name, index, p)
        for topic in draw.image.topics.in_order()
        for index, p in sorted(topic.partitions.items())
        if (p.adding_replicas or p.removing_replicas) and p.leader != NO_LEADER
    ]
    if not moving:
        return None
    name, index, partition = draw.one(moving)
    in_service = [r for r in partition.replicas if r in draw.active]
    change = (
        index,
        partition.leader_epoch,
        [(r, True) for r in in_service],
        partition.leader_recovery_state,
        partition.partition_epoch,
    )
    return _alter(draw, partition.leader, [(name, False, [change])])


def _alter(draw: Draw, leader: int, rows: list[tuple[str, bool, list[Change]]]) -> Draft:
    version = draw.one((2, 3))
    epoch = draw.epoch(leader)

    def build(side: Side) -> Message:
        cls = AlterPartitionRequest
        kind = cls.TopicData.PartitionData
        topics = []
        for name, unknown, changes in rows:
            partitions = []
            for index, leader_epoch, isr, recovery, partition_epoch in changes:
                partitions.append(
                    kind(
                        partition_index=index,
                        leader_epoch=leader_epoch,
                        new_isr=[b for b, _ in isr] if version == 2 else [],
                        new_isr_with_epochs=[
                            kind.BrokerState(
                                broker_id=b, broker_epoch=side.epoch_of(b) if right else 1 << 40
                            )
                            for b, right in isr
                        ]
                        if version > 2
                        else [],
                        leader_recovery_state=recovery,
                        partition_epoch=partition_epoch,
                    )
                )
            topic_id = made_up(7) if unknown else side.topic_id(name)
            topics.append(cls.TopicData(topic_id=topic_id, partitions=partitions))
        return cls(broker_id=leader, broker_epoch=epoch(side), topics=topics)

    return Draft(build, version=version)


def elect(draw: Draw) -> Draft:
    cls = ElectLeadersRequest
    rows: list[ElectLeadersRequest.TopicPartitions] | None = None
    if draw.chance(0.9):
        rows = [
            cls.TopicPartitions(
                topic=name, partitions=draw.often_twice([index for index, _ in partitions])
            )
            for name, partitions in draw.partitions(5).items()
        ]
        if draw.chance(0.03):
            rows = []
    message = cls(
        election_type=draw.usually(0.97, draw.one((0, 1)), (2, -1)),
        topic_partitions=rows,
        timeout_ms=TIMEOUT_MS,
    )
    return Draft(lambda side: message, version=None if message.election_type == 0 else 2)


def reassign(draw: Draw) -> Draft:
    cls = AlterPartitionReassignmentsRequest
    topics = []
    for name, partitions in draw.partitions(4).items():
        rows = []
        for index, partition in partitions:
            target: list[int] | None = draw.replicas()
            if partition and draw.chance(0.5):
                target = draw.replicas(len(partition.replicas))
            moving = partition and (partition.adding_replicas or partition.removing_replicas)
            if draw.chance(0.4 if moving else 0.05):
                target = None
            if partition and target is not None and _never_ends(partition, target):
                continue
            kind = cls.ReassignableTopic.ReassignablePartition
            rows.append(kind(partition_index=index, replicas=target))
        named = draw.often_twice(rows)
        if named and named[-1].replicas is None:
            named = rows  # the second cancellation finds nothing to cancel with us (decision 7)
        topics.append(cls.ReassignableTopic(name=name, partitions=named))
    message = cls(
        timeout_ms=TIMEOUT_MS,
        allow_replication_factor_change=draw.chance(0.8),
        topics=[] if draw.chance(0.03) else topics,
    )
    return Draft(lambda side: message, version=None if draw.chance(0.3) else 1)


def _never_ends(partition: Partition, target: list[int]) -> bool:
    """Kafka keeps the old replicas to add or to remove, where there are no new ones (decision 7)."""
    adding = set(target) - set(partition.replicas)
    removing = set(partition.replicas) - set(target)
    return bool(partition.adding_replicas and not adding) or bool(
        partition.removing_replicas and not removing
    )


def list_reassignments(draw: Draw) -> Draft:
    cls = ListPartitionReassignmentsRequest
    topics = None
    if draw.chance(0.5):
        topics = [
            cls.ListPartitionReassignmentsTopics(
                name=name, partition_indexes=[index for index, _ in partitions]
            )
            for name, partitions in draw.partitions(4).items()
        ]
    message = cls(timeout_ms=TIMEOUT_MS, topics=topics)
    return Draft(lambda side: message, is_read=True)
