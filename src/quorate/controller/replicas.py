"""Which partitions a change of a broker or a directory touches, and the records that it takes.

Source: `ReplicationControlManager.generateLeaderAndIsrUpdates`, `BrokersToIsrs`, `BrokersToElrs`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from quorate.base.ids import Uuid
from quorate.controller.configs_in_force import ConfigsInForce
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.liveness import LivenessChange
from quorate.controller.partition_changes import (
    Election,
    PartitionRules,
    PartitionTarget,
    change_partition,
)
from quorate.controller.result import Turn
from quorate.formats.records import PartitionChangeRecord
from quorate.metadata.image import NO_LEADER, Image, Partition, Topic
from quorate.wire.schema import Message

NO_BROKER: Final = -1


class PlacedPartition(NamedTuple):
    """A partition with its topic."""

    topic: Topic
    partition_id: int
    partition: Partition


# -- long work in parts ---------------------------------------------------------------------------
Places = Iterator[tuple[Uuid, int]]
"""(topic id, partition id). Found while the work goes on: a topic may be gone by then."""
Parts = Iterator[tuple[list[Message], bool]]
"""The records of each part, and whether it is the last one."""
_SEEN: Final = 20
"""Partitions that one part looks at, for each record of it."""


def places_on(head: HeadView, broker_id: int) -> Places:
    """The partitions of the topics of which the broker has a replica or an eligible leader replica."""
    return _places(head, (topic_id for _, topic_id in head.index.topics_of(broker_id)))


def leaderless_places(head: HeadView) -> Places:
    """The partitions of the topics that now have one without a leader."""
    return _places(head, head.index.leaderless_topics())


def imbalanced_places(head: HeadView) -> Places:
    """The partitions of the topics that now have one without its preferred leader."""
    return _places(head, head.index.imbalanced_topics())


def _places(head: HeadView, topic_ids: Iterable[Uuid]) -> Places:
    for topic_id in topic_ids:
        topic = head.image.topics.by_id.get(topic_id)
        for partition_id in () if topic is None else topic.partitions:
            yield topic_id, partition_id


def parts_of(
    head: HeadView,
    places: Places,
    is_wanted: Callable[[Partition], bool],
    changes: Callable[[list[PlacedPartition]], Iterable[Message]],
    context: Context,
) -> Parts:
    """The changes of the wanted partitions, in parts of bounded work.

    Between two parts other writes are decided: each part reads the head as it is then.
    """
    most = context.config.part_records
    is_last = False
    while not is_last:
        found: list[PlacedPartition] = []
        topics = head.image.topics.by_id
        for _ in range(_SEEN * most):
            place = next(places, None)
            if place is None:
                is_last = True
                break
            topic_id, partition_id = place
            topic = topics.get(topic_id)
            partition = None if topic is None else topic.partitions.get(partition_id)
            if topic is not None and partition is not None and is_wanted(partition):
                found.append(PlacedPartition(topic, partition_id, partition))
                if len(found) == most:
                    break
        yield list(changes(found)), is_last


def departures(
    head: HeadView,
    broker_id: int,
    context: Context,
    *,
    is_unclean: bool = False,
    of_eligible: bool = False,
) -> Parts:
    """The broker leaves the ISR and the leadership of all its partitions.

    Between two parts it must not get into an ISR. is_unclean: it leaves the eligible leader replicas too;
    of_eligible: also the partitions for which it is eligible.
    """
    to_remove, unclean = (NO_BROKER, broker_id) if is_unclean else (broker_id, NO_BROKER)

    def changes(found: list[PlacedPartition]) -> Iterator[Message]:
        return leader_and_isr_changes(
            head.image, found, context, to_remove=to_remove, unclean_shutdown=unclean
        )

    def is_wanted(partition: Partition) -> bool:
        return broker_id in partition.isr or (of_eligible and broker_id in partition.elr)

    return parts_of(head, places_on(head, broker_id), is_wanted, changes, context)


def elections(head: HeadView, context: Context, *, to_add: int = NO_BROKER) -> Parts:
    """Each partition without a leader that may have one gets one."""

    def changes(found: list[PlacedPartition]) -> Iterator[Message]:
        return leader_and_isr_changes(head.image, found, context, to_add=to_add)

    places = leaderless_places(head)
    return parts_of(head, places, lambda found: found.leader == NO_LEADER, changes, context)


def in_turns(
    parts: Parts,
    began: Sequence[LivenessChange] = (),
    goes_on: Callable[[], bool] = lambda: True,
    first: Sequence[Message] = (),
) -> Generator[Turn, None, list[Message] | None]:
    """Yield each part but the last as a turn. Returns the records of the last one.

    began: what the other writes must know from the first turn on; goes_on: asked after each turn; where
    it says no, another write has ended the work, and None is returned; first: records before those of
    the first part.
    """
    records, is_last = next(parts)
    records = [*first, *records]
    while not is_last:
        yield Turn(records, tuple(began))
        began = ()
        if not goes_on():
            return None
        records, is_last = next(parts)
    return records


# -- changes --------------------------------------------------------------------------------------
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
        context.liveness.without_failing(image.cluster),
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
