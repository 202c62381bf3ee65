"""What records do to topics and partitions.

Rules: `TopicsDelta`, `TopicDelta`, `PartitionRegistration` and the replay methods of
`ReplicationControlManager`. What either of them refuses is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from immutables import Map, MapMutation

from quorate.base.ids import Uuid, uuid_to_text
from quorate.formats.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import (
    MIGRATING_DIRECTORY,
    RECOVERED,
    RECOVERING,
    Partition,
    Topic,
    Topics,
)
from quorate.metadata.interning import Interner

_NO_LEADER_CHANGE: Final = -2
_NO_RECOVERY_CHANGE: Final = -1


Touched = dict[Uuid, set[int]]
"""Topic id -> the partitions that changed; a topic that was created or removed is there, too."""


@dataclass(slots=True)
class ElectionCounts:
    """Elections that records brought, as `TopicDelta.updateElectionStats` counts them."""

    unclean: int = 0
    """The leader came from outside the ISR: it begins to recover."""
    from_elr: int = 0
    """The leader was an eligible leader replica (KIP-966)."""

    def add(self, other: ElectionCounts) -> None:
        """Count the other ones too."""
        self.unclean += other.unclean
        self.from_elr += other.from_elr


class TopicsDelta:
    """Changes to `topics`, gathered in place; `apply` gives the new value.

    Costs a few microseconds a record at any size. One topic is open at a time: records of a
    snapshot come topic by topic, and its maps are then built once.
    """

    def __init__(
        self,
        topics: Topics,
        interner: Interner,
        touched: Touched | None = None,
        elections: ElectionCounts | None = None,
    ) -> None:
        """touched: filled with what changes; elections: counts them; None: not wanted."""
        self._elections = elections
        self._touched = touched
        self._before = topics
        self._interner = interner
        self._by_id: MapMutation[Uuid, Topic] = topics.by_id.mutate()
        self._ids: MapMutation[str, Uuid] | None = None
        self._open: Topic | None = None
        self._open_touched: set[int] = set()
        """Which partitions of the open topic change."""
        self._partitions: MapMutation[int, Partition] | None = None

    def create_topic(self, record: TopicRecord) -> None:
        """Add an empty topic."""
        self.add_topic(record.topic_id, record.name)

    def add_topic(self, topic_id: Uuid, name: str) -> None:
        """Add an empty topic. Raises ReplayError when its name or its id is taken."""
        self._close()
        if self._ids is None:
            self._ids = self._before.ids.mutate()
        known = self._ids.get(name)
        if known is not None:
            raise ReplayError(
                f"TopicRecord: topic '{name}' exists already with id {uuid_to_text(known)}, "
                f"the record says {uuid_to_text(topic_id)}"
            )
        if topic_id in self._by_id:
            raise ReplayError(
                f"TopicRecord: id {uuid_to_text(topic_id)} of topic '{name}' belongs to topic "
                f"'{self._by_id[topic_id].name}'"
            )
        topic = Topic(topic_id, name, Map())
        self._ids[name] = topic_id
        self._by_id[topic_id] = topic
        self._opened_topic(topic)

    def put_partition(self, topic_id: Uuid, index: int, partition: Partition) -> None:
        """Set a partition of a known topic, whether or not it exists."""
        self._opened(topic_id, "PartitionRecord", index)[index] = partition

    def create_partition(self, record: PartitionRecord) -> None:
        """Set a partition as the record says."""
        partition = self._partition_of(record)
        self.put_partition(record.topic_id, record.partition_id, partition)

    def change_partition(self, record: PartitionChangeRecord) -> None:
        """Merge the fields that the record has; the partition epoch goes up by one."""
        partitions = self._opened(record.topic_id, "PartitionChangeRecord", record.partition_id)
        before = partitions.get(record.partition_id)
        if before is None:
            raise ReplayError(
                f"PartitionChangeRecord: topic {uuid_to_text(record.topic_id)} has no partition "
                f"{record.partition_id}"
            )
        elections = self._elections
        if elections is not None:
            elections.unclean += record.leader_recovery_state == RECOVERING
            elections.from_elr += record.leader in before.elr
        partitions[record.partition_id] = merge(before, record, self._interner)

    def remove_topic(self, record: RemoveTopicRecord) -> str:
        """Remove the topic with its partitions; return its name."""
        self._close()
        topic = self._by_id.get(record.topic_id)
        if topic is None:
            raise ReplayError(
                f"RemoveTopicRecord: no topic has the id {uuid_to_text(record.topic_id)}"
            )
        if self._ids is None:
            self._ids = self._before.ids.mutate()
        del self._by_id[topic.id]
        del self._ids[topic.name]
        if self._touched is not None:
            self._touched.setdefault(topic.id, set())
        return topic.name

    def clear_elr(self, record: ClearElrRecord) -> None:
        """Empty both sets of KIP-966 of one topic, or of all when the name is empty.

        Only partitions that have any change, and their partition epoch goes up.
        """
        self._close()
        if record.topic_name:
            ids = self._before.ids if self._ids is None else self._ids
            topic_id = ids.get(record.topic_name)
            if topic_id is None:
                raise ReplayError(f"ClearElrRecord: there is no topic '{record.topic_name}'")
            self._clear_elr_of(self._by_id[topic_id])
            return
        everything = self._by_id.finish()
        self._by_id = everything.mutate()
        for topic in everything.values():
            self._clear_elr_of(topic)

    def apply(self) -> Topics:
        """The topics after all changes. The delta must not be used again."""
        self._close()
        ids = self._before.ids if self._ids is None else self._ids.finish()
        return Topics(self._by_id.finish(), ids)

    def _opened_topic(self, topic: Topic) -> MapMutation[int, Partition]:
        if self._touched is not None:
            self._open_touched = self._touched.setdefault(topic.id, set())
        self._open, self._partitions = topic, topic.partitions.mutate()
        return self._partitions

    def _opened(self, topic_id: Uuid, record: str, index: int) -> MapMutation[int, Partition]:
        partitions = self._partitions
        if partitions is None or self._open is None or self._open.id != topic_id:
            self._close()
            topic = self._by_id.get(topic_id)
            if topic is None:
                raise ReplayError(
                    f"{record}: partition {index} names topic {uuid_to_text(topic_id)}, which "
                    "does not exist"
                )
            partitions = self._opened_topic(topic)
        self._open_touched.add(index)
        return partitions

    def _close(self) -> None:
        if self._open is not None and self._partitions is not None:
            topic = self._open
            self._by_id[topic.id] = Topic(topic.id, topic.name, self._partitions.finish())
            self._open = self._partitions = None

    def _clear_elr_of(self, topic: Topic) -> None:
        partitions = topic.partitions
        for index, partition in topic.partitions.items():
            if partition.elr or partition.last_known_elr:
                epoch = partition.partition_epoch + 1
                cleared = partition._replace(elr=(), last_known_elr=(), partition_epoch=epoch)
                partitions = partitions.set(index, cleared)
                if self._touched is not None:
                    self._touched.setdefault(topic.id, set()).add(index)
        if partitions is not topic.partitions:
            self._by_id[topic.id] = topic._replace(partitions=partitions)

    def _partition_of(self, record: PartitionRecord) -> Partition:
        ids = self._interner.ids
        replicas = ids(record.replicas)
        return Partition(
            replicas,
            _directories(record, record.directories, len(replicas), self._interner),
            ids(record.isr),
            ids(record.removing_replicas),
            ids(record.adding_replicas),
            record.leader,
            _recovery_state(record, record.leader_recovery_state),
            record.leader_epoch,
            record.partition_epoch,
            ids(record.eligible_leader_replicas or ()),
            ids(record.last_known_elr or ()),
        )


def merge(before: Partition, record: PartitionChangeRecord, interner: Interner) -> Partition:
    """`before` with the fields that the record has (`PartitionRegistration.merge`).

    A named leader raises the leader epoch by one, even the same leader again; every change raises
    the partition epoch. Raises ReplayError when directories and replicas do not pair up.
    """
    ids = interner.ids
    leader, leader_epoch = before.leader, before.leader_epoch
    if record.leader != _NO_LEADER_CHANGE:
        leader, leader_epoch = record.leader, leader_epoch + 1
    state = before.leader_recovery_state
    if record.leader_recovery_state != _NO_RECOVERY_CHANGE:
        state = _recovery_state(record, record.leader_recovery_state)
    replicas, directories = before.replicas, before.directories
    if record.replicas is not None or record.directories is not None:
        if record.replicas is not None:
            replicas = ids(record.replicas)
        given = directories if record.directories is None else record.directories
        directories = _directories(record, given, len(replicas), interner)
    removing, adding = record.removing_replicas, record.adding_replicas
    elr, last_known_elr = record.eligible_leader_replicas, record.last_known_elr
    return Partition(
        replicas,
        directories,
        before.isr if record.isr is None else ids(record.isr),
        before.removing_replicas if removing is None else ids(removing),
        before.adding_replicas if adding is None else ids(adding),
        leader,
        state,
        leader_epoch,
        before.partition_epoch + 1,
        before.elr if elr is None else ids(elr),
        before.last_known_elr if last_known_elr is None else ids(last_known_elr),
    )


def _directories(
    record: PartitionRecord | PartitionChangeRecord,
    given: list[Uuid] | tuple[Uuid, ...],
    replicas: int,
    interner: Interner,
) -> tuple[Uuid, ...]:
    """The directories in `given`, or "migrating" for every replica when none has another one."""
    named = record.replicas is not None and record.directories is not None
    if named and given and len(given) != replicas:
        raise _unpaired(record, given, replicas)
    if all(directory == MIGRATING_DIRECTORY for directory in given):
        return interner.uuids((MIGRATING_DIRECTORY,) * replicas)
    if len(given) != replicas:
        raise _unpaired(record, given, replicas)
    return interner.uuids(given)


def _unpaired(
    record: PartitionRecord | PartitionChangeRecord,
    given: list[Uuid] | tuple[Uuid, ...],
    replicas: int,
) -> ReplayError:
    return ReplayError(
        f"{type(record).__name__}: partition {record.partition_id} of topic "
        f"{uuid_to_text(record.topic_id)} has {replicas} replicas but {len(given)} directories"
    )


def _recovery_state(record: PartitionRecord | PartitionChangeRecord, value: int) -> int:
    if value not in (RECOVERED, RECOVERING):
        raise ReplayError(
            f"{type(record).__name__}: partition {record.partition_id} of topic "
            f"{uuid_to_text(record.topic_id)}: {value} is no leader recovery state"
        )
    return value
