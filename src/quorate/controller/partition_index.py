"""Which topics a broker has replicas of, whom it leads, and where a leader is missing or not preferred.

The image finds a partition by its topic. What happens to a broker needs the way back, at a million
partitions too: so the index counts, for each broker and topic, in two bytes. It does not name the
partitions; the reader looks through those of a topic.

Every node keeps one beside its head, standbys too: a new active controller need not build it.

Source of what is needed: `BrokersToIsrs`, `BrokersToElrs`,
`ReplicationControlManager.imbalancedPartitions`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from quorate.base.check import check
from quorate.base.ids import Uuid
from quorate.metadata.image import NO_LEADER, Partition, Topic, Topics
from quorate.metadata.topics import Touched

_MOST: Final = 0xFFFF
"""Of what the array counts; a topic with more partitions on a broker is counted in `_large`."""
_ROOM: Final = bytes(2 * 1024)
"""What an array gets for the topics to come, so that not every new one extends it."""


class PartitionIndex:
    """Follows the topics of one image.

    A broker *has* a topic where it is a replica or an eligible leader replica of a partition of it.
    """

    def __init__(self) -> None:
        self._numbers: dict[Uuid, int] = {}
        self._ids: list[Uuid | None] = []
        """Topic id by number; None: the number is free."""
        self._free: list[int] = []
        self._counts: dict[int, array[int]] = {}
        """Broker id -> how many partitions it has of the topic of each number. An array may end before
        the numbers do, or after them."""
        self._large: dict[tuple[int, int], int] = {}
        """(broker id, topic number) -> what is above _MOST."""
        self._leads: dict[int, int] = {}
        self._leaderless: dict[int, int] = {}
        self._imbalanced: dict[int, int] = {}
        self.partitions = 0

    # -- questions ------------------------------------------------------------------------------
    def topics_of(self, broker_id: int, first: int = 0) -> Iterator[tuple[int, Uuid]]:
        """(topic number, topic id) of the topics that the broker has, from number `first` on."""
        counts = self._counts.get(broker_id)
        for number in range(first, 0 if counts is None else len(counts)):
            if counts is not None and counts[number]:
                topic_id = self._ids[number]
                assert topic_id is not None
                yield number, topic_id

    def has(self, broker_id: int) -> int:
        """How many partitions the broker has."""
        large = (count for (of, _), count in self._large.items() if of == broker_id)
        return sum(self._counts.get(broker_id, ())) + sum(large)

    def leads(self, broker_id: int) -> int:
        """How many partitions the broker leads."""
        return self._leads.get(broker_id, 0)

    def leaderless_topics(self) -> list[Uuid]:
        """The topics with a partition that has no leader."""
        return [self._id(number) for number in self._leaderless]

    def imbalanced_topics(self) -> list[Uuid]:
        """The topics with a partition whose leader is not the preferred one."""
        return [self._id(number) for number in self._imbalanced]

    @property
    def leaderless(self) -> int:
        """How many partitions have no leader (`OfflinePartitionsCount`)."""
        return sum(self._leaderless.values())

    @property
    def imbalanced(self) -> int:
        """How many partitions have another leader than the preferred one
        (`PreferredReplicaImbalanceCount`)."""
        return sum(self._imbalanced.values())

    def content(self) -> tuple[object, ...]:
        """All that it says, to compare two indexes: equal for equal topics."""
        has = {
            (broker_id, topic_id, counts[number] + self._large.get((broker_id, number), 0))
            for broker_id, counts in self._counts.items()
            for number, topic_id in self.topics_of(broker_id)
        }
        leads = {broker_id: count for broker_id, count in self._leads.items() if count}
        by_id = [
            {self._id(number): count for number, count in found.items()}
            for found in (self._leaderless, self._imbalanced)
        ]
        return has, leads, *by_id, self.partitions, set(self._numbers)

    def _id(self, number: int) -> Uuid:
        topic_id = self._ids[number]
        assert topic_id is not None
        return topic_id

    # -- changes --------------------------------------------------------------------------------
    def rebuild(self, topics: Topics) -> None:
        """Begin anew with these topics.

        They are numbered by name: the order in which partitions change follows the numbers, and
        that of the image follows the hashes of this process.
        """
        self._numbers.clear()
        self._ids.clear()
        self._free.clear()
        self._counts.clear()
        self._large.clear()
        self._leads.clear()
        self._leaderless.clear()
        self._imbalanced.clear()
        self.partitions = 0
        for topic in topics.in_order():
            number = self._number(topic.id)
            for partition in topic.partitions.values():
                self._count(number, partition, 1)

    def advance(self, before: Topics, after: Topics, touched: Touched) -> None:
        """The topics are those of `after` now. `touched` names at least what differs.

        Going back is the same with the arguments exchanged.
        """
        for topic_id, indexes in touched.items():
            old, new = before.by_id.get(topic_id), after.by_id.get(topic_id)
            if old is new:
                continue
            if old is None or new is None:
                self._whole(old, new)
                continue
            number = self._numbers[topic_id]
            for index in indexes:
                was, now = old.partitions.get(index), new.partitions.get(index)
                if was is not now:
                    self._change(number, was, now)

    def _whole(self, old: Topic | None, new: Topic | None) -> None:
        """A topic is created or removed."""
        if new is not None:
            number = self._number(new.id)
            for partition in new.partitions.values():
                self._count(number, partition, 1)
        elif old is not None:
            number = self._numbers.pop(old.id)
            for partition in old.partitions.values():
                self._count(number, partition, -1)
            self._ids[number] = None
            self._free.append(number)

    def _number(self, topic_id: Uuid) -> int:
        if self._free:
            number = self._free.pop()
            self._ids[number] = topic_id
        else:
            number = len(self._ids)
            self._ids.append(topic_id)
        self._numbers[topic_id] = number
        return number

    def _change(self, number: int, was: Partition | None, now: Partition | None) -> None:
        """A partition is created, changed or removed. Most changes leave its brokers as they are."""
        if was is None or now is None or was.replicas != now.replicas or was.elr != now.elr:
            if was is not None:
                self._count(number, was, -1)
            if now is not None:
                self._count(number, now, 1)
        elif was.leader != now.leader:
            self._count_leader(number, was, -1)
            self._count_leader(number, now, 1)

    def _count(self, number: int, partition: Partition, by: int) -> None:
        self.partitions += by
        replicas = partition.replicas
        for broker_id in replicas:
            self._count_broker(broker_id, number, by)
        for broker_id in partition.elr:
            if broker_id not in replicas:
                self._count_broker(broker_id, number, by)
        self._count_leader(number, partition, by)

    def _count_leader(self, number: int, partition: Partition, by: int) -> None:
        leader = partition.leader
        if leader == NO_LEADER:
            _add(self._leaderless, number, by)
        else:
            self._leads[leader] = self._leads.get(leader, 0) + by
        if leader != partition.preferred_leader:
            _add(self._imbalanced, number, by)

    def _count_broker(self, broker_id: int, number: int, by: int) -> None:
        counts = self._counts.get(broker_id)
        if counts is None:
            counts = self._counts[broker_id] = array("H")
        while number >= len(counts):
            counts.frombytes(_ROOM)
        counted = counts[number]
        if counted + by >= 0 and counted < _MOST:
            counts[number] = counted + by
            return
        large = self._large.get((broker_id, number), 0)
        total = counted + large + by
        check(total >= 0, "the index counts what the image has", broker_id, number)
        counts[number] = min(total, _MOST)
        if total > _MOST:
            self._large[broker_id, number] = total - _MOST
        elif large:
            del self._large[broker_id, number]


def _add(found: dict[int, int], number: int, by: int) -> None:
    total = found.get(number, 0) + by
    if total:
        found[number] = total
    else:
        del found[number]
