"""Which partitions a change of a broker or a directory touches, and the records that it takes.

Source: `ReplicationControlManager.generateLeaderAndIsrUpdates`, `BrokersToIsrs`, `BrokersToElrs`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from quorate.base.ids import Uuid
from quorate.controller.configs_in_force import ConfigsInForce
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.liveness import ALL_TOPICS, PartitionCursor
from quorate.controller.partition_changes import (
    Election,
    PartitionRules,
    PartitionTarget,
    change_partition,
)
from quorate.controller.result import Part
from quorate.formats.records import PartitionChangeRecord
from quorate.metadata.image import NO_LEADER, Image, Partition, Topic
from quorate.wire.schema import Message

NO_BROKER: Final = -1


class PlacedPartition(NamedTuple):
    """A partition with its topic."""

    topic: Topic
    partition_id: int
    partition: Partition


def in_sync_on(head: HeadView, broker_id: int) -> Iterator[PlacedPartition]:
    """The partitions that have the broker in their ISR."""
    return (found for found in _on(head, broker_id) if broker_id in found.partition.isr)


def eligible_on(head: HeadView, broker_id: int) -> Iterator[PlacedPartition]:
    """The partitions that have the broker among their eligible leader replicas (KIP-966)."""
    return (found for found in _on(head, broker_id) if broker_id in found.partition.elr)


def in_directory(head: HeadView, broker_id: int, directory: Uuid) -> Iterator[PlacedPartition]:
    """The partitions with a replica in this log directory of the broker."""
    return (found for found in _on(head, broker_id) if directory in found.partition.directories)


def leaderless(head: HeadView) -> Iterator[PlacedPartition]:
    """The partitions without a leader."""
    found = _of(head.image, head.index.leaderless_topics())
    return (place for place in found if place.partition.leader == NO_LEADER)


def imbalanced(head: HeadView) -> Iterator[PlacedPartition]:
    """The partitions whose leader is not the preferred one."""
    found = _of(head.image, head.index.imbalanced_topics())
    return (p for p in found if p.partition.leader != p.partition.preferred_leader)


def _on(head: HeadView, broker_id: int) -> Iterator[PlacedPartition]:
    return _of(head.image, (topic_id for _, topic_id in head.index.topics_of(broker_id)))


def _of(image: Image, topic_ids: Iterable[Uuid]) -> Iterator[PlacedPartition]:
    """Every partition of the topics."""
    for topic_id in topic_ids:
        topic = image.topics.by_id[topic_id]
        for partition_id, partition in topic.partitions.items():
            yield PlacedPartition(topic, partition_id, partition)


_SEEN: Final = 20
"""Partitions that one step looks at, for each record of a part."""


def in_parts(records: Iterable[Message], context: Context) -> Generator[Part, None, list[Message]]:
    """Yield the records part by part. Returns the rest, for the last part."""
    part: list[Message] = []
    for record in records:
        if len(part) == context.config.part_records:
            yield Part(part)
            part = []
        part.append(record)
    return part


def departing_changes(
    head: HeadView, broker_id: int, progress: PartitionCursor, context: Context
) -> tuple[list[Message], PartitionCursor]:
    """The next partition changes of a broker that is fenced or shuts down, and where they end.

    Between two calls other writes are decided, so the broker must not get into an ISR meanwhile.
    """
    places, progress = _next_in_sync(head, broker_id, progress, context.config.part_records)
    changes = leader_and_isr_changes(head.image, places, context, to_remove=broker_id)
    return list(changes), progress


def _next_in_sync(
    head: HeadView, broker_id: int, progress: PartitionCursor, most: int
) -> tuple[list[PlacedPartition], PartitionCursor]:
    """The next partitions that have the broker in their ISR, and where they end."""
    places: list[PlacedPartition] = []
    seen = 0
    for number, topic_id in head.index.topics_of(broker_id, progress.topic_number):
        topic = head.image.topics.by_id[topic_id]
        first = progress.partition_id if number == progress.topic_number else 0
        for partition_id in sorted(topic.partitions):
            if partition_id < first:
                continue
            seen += 1
            if len(places) == most or seen > _SEEN * most:
                return places, PartitionCursor(progress.epoch, number, partition_id)
            partition = topic.partitions[partition_id]
            if broker_id in partition.isr:
                places.append(PlacedPartition(topic, partition_id, partition))
    return places, PartitionCursor(progress.epoch, ALL_TOPICS)


def leaderless_places(head: HeadView) -> Iterator[tuple[Uuid, int]]:
    """(topic id, partition id) of the topics that now have a partition without a leader."""
    for topic_id in head.index.leaderless_topics():
        topic = head.image.topics.by_id.get(topic_id)
        for partition_id in () if topic is None else topic.partitions:
            yield topic_id, partition_id


def next_elections(
    head: HeadView, places: Iterator[tuple[Uuid, int]], context: Context, *, to_add: int
) -> tuple[list[Message], bool]:
    """The elections of the next partitions without a leader; True: there are no more.

    Between two calls other writes are decided: only what is still without a leader gets one.
    """
    most = context.config.part_records
    topics = head.image.topics.by_id
    found: list[PlacedPartition] = []
    is_over = False
    for _ in range(_SEEN * most):
        place = next(places, None)
        if place is None:
            is_over = True
            break
        topic_id, partition_id = place
        topic = topics.get(topic_id)
        partition = None if topic is None else topic.partitions.get(partition_id)
        if topic is None or partition is None or partition.leader != NO_LEADER:
            continue
        found.append(PlacedPartition(topic, partition_id, partition))
        if len(found) == most:
            break
    changes = leader_and_isr_changes(head.image, found, context, to_add=to_add)
    return list(changes), is_over


def rules_for(
    image: Image,
    topic: Topic,
    context: Context,
    *,
    inactive: frozenset[int] = frozenset(),
    active: frozenset[int] = frozenset(),
) -> PartitionRules:
    """The rules for a partition of the topic.

    `inactive` and `active` are brokers that become so with the records in work: the image does not
    show it yet.
    """
    version = image.features.metadata_version
    assert version is not None, "a controller without metadata.version decides nothing"

    def is_active_broker(broker_id: int) -> bool:
        if broker_id in inactive:
            return False
        return broker_id in active or context.is_active(image, broker_id)

    return PartitionRules(
        image.cluster,
        version,
        image.features.elr_enabled,
        is_active_broker,
        lambda: context.configs.effective_min_isr(image, topic),
    )


def leader_and_isr_changes(
    image: Image,
    found: Iterable[PlacedPartition],
    context: Context,
    *,
    to_remove: int = NO_BROKER,
    to_add: int = NO_BROKER,
    unclean_shutdown: int = NO_BROKER,
) -> Iterator[PartitionChangeRecord]:
    """The change of each partition when a broker leaves, returns, or may have lost records.

    1. `to_remove` leaves the ISR and leads nothing.
    2. `to_add` may lead, although the image shows it fenced.
    3. `unclean_shutdown` leaves the ISR and the eligible leader replicas, and leads nothing.
    """
    gone = frozenset({to_remove, unclean_shutdown} - {NO_BROKER})
    added = frozenset({to_add} - {NO_BROKER})
    unclean = frozenset({unclean_shutdown} - {NO_BROKER})
    for topic, places in groupby(found, attrgetter("topic")):
        rules = rules_for(image, topic, context, inactive=gone, active=added)
        election = election_of(image, topic, context.configs)
        for _, index, partition in places:
            isr = [replica for replica in partition.isr if replica not in gone]
            target = PartitionTarget(isr=isr, unclean_shutdown=unclean, election=election)
            record = change_partition(topic.id, index, partition, target, rules)
            if record is not None:
                yield record


def election_of(image: Image, topic: Topic, configs: ConfigsInForce) -> Election:
    """UNCLEAN where `unclean.leader.election.enable` holds for the topic, else ONLINE."""
    is_unclean = configs.unclean_leader_election(image, topic.name)
    return Election.UNCLEAN if is_unclean else Election.ONLINE
