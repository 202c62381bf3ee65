"""One change of a partition: reassignment, election, ISR, eligible leaders, directories.

Every change of a partition goes through `change_partition`, so that a record always leaves a legal
partition: a leader of the ISR or none, epochs that go up, a reassignment that ends.

Source: `PartitionChangeBuilder`, `PartitionReassignmentReplicas`, `LeaderAcceptor`, `DirectoryId`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from quorate.base.ids import Uuid
from quorate.formats.records import PartitionChangeRecord
from quorate.formats.versions import MetadataVersion
from quorate.metadata.image import (
    MIGRATING_DIRECTORY,
    NO_LEADER,
    RECOVERING,
    Broker,
    Cluster,
    Partition,
)

NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1
UNASSIGNED_DIRECTORY: Final = Uuid(bytes(15) + b"\x01")
LOST_DIRECTORY: Final = Uuid(bytes(15) + b"\x02")
"""Directory ids below this number are reserved (`DirectoryId.reserved`)."""


class Election(Enum):
    """Which replicas may become the leader (`PartitionChangeBuilder.Election`)."""

    ONLINE = "online"
    """The present leader if it may stay, else the first one of the ISR."""
    PREFERRED = "preferred"
    """The first replica if it may lead, else as ONLINE."""
    UNCLEAN = "unclean"
    """As ONLINE, and any active replica where there is none: records may be lost."""


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """What decides about a partition beside its own state."""

    cluster: Cluster
    metadata_version: MetadataVersion
    elr_enabled: bool
    """eligible.leader.replicas.version is 1 (KIP-966)."""
    is_active: Callable[[int], bool]
    """The broker of this id is neither fenced nor shutting down."""
    min_isr: Callable[[], int]
    """min.insync.replicas of the topic, at most its replication factor. Asked only with ELR on."""

    def may_lead(self, partition: Partition, broker_id: int) -> bool:
        """The broker is active, and the directory of its replica is online (`LeaderAcceptor`)."""
        if not self.is_active(broker_id):
            return False
        broker = self.cluster.brokers.get(broker_id)
        if broker is None or broker_id not in partition.replicas:
            return False
        directory = partition.directories[partition.replicas.index(broker_id)]
        return has_online_directory(broker, directory)

    def default_directory(self, broker_id: int) -> Uuid:
        """Return where a new replica goes before the broker reports it (`defaultDir`)."""
        return default_directory(self.cluster.brokers.get(broker_id))


@dataclass(slots=True)
class PartitionTarget:
    """What a partition is to become; what is None stays as it is."""

    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    removing: Sequence[int] | None = None
    adding: Sequence[int] | None = None
    recovery_state: int | None = None
    directories: Mapping[int, Uuid] = field(default_factory=dict)
    """Broker id -> the directory of its replica."""
    unclean_shutdown: frozenset[int] = frozenset()
    """Brokers that may have lost records: they leave the eligible leader replicas."""
    election: Election = Election.ONLINE


def change_partition(
    topic_id: Uuid,
    index: int,
    partition: Partition,
    target: PartitionTarget,
    rules: PartitionRules,
) -> PartitionChangeRecord | None:
    """The record that brings `partition` to `target`; None where nothing changes.

    1. A reassignment whose new replicas are in sync is completed.
    2. Replicas that leave an ISR below min.insync.replicas stay eligible (KIP-966).
    3. A leader is elected.
    4. The leader is named again where a replica leaves the assignment, and up to metadata.version
       3.5 where one leaves the ISR (KAFKA-15021): that raises the leader epoch.
    5. What differs from the present state is written.
    """
    return _Change(topic_id, index, partition, target, rules).build()


class _Change:
    """The work of one call of `change_partition`."""

    def __init__(
        self,
        topic_id: Uuid,
        index: int,
        partition: Partition,
        target: PartitionTarget,
        rules: PartitionRules,
    ) -> None:
        self.before = partition
        self.target = target
        self.rules = rules
        self.record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
        self.isr = partition.isr if target.isr is None else tuple(target.isr)
        self.replicas = partition.replicas if target.replicas is None else tuple(target.replicas)
        removing, adding = target.removing, target.adding
        self.removing = partition.removing_replicas if removing is None else tuple(removing)
        self.adding = partition.adding_replicas if adding is None else tuple(adding)
        self.elr = partition.elr

    def build(self) -> PartitionChangeRecord | None:
        self._complete_reassignment()
        if self.rules.elr_enabled:
            self._keep_eligible()
        self._elect()
        record, before = self.record, self.before
        if record.leader == NO_LEADER_CHANGE and not set(before.replicas) <= set(self.replicas):
            record.leader = before.leader
        self._write_isr()
        if self.rules.elr_enabled:
            self._write_last_known_leader()
        self._write_assignment()
        recovery = self.target.recovery_state
        if recovery is not None and recovery != before.leader_recovery_state:
            record.leader_recovery_state = recovery
        return None if _changes_nothing(record) else record

    # -- 1. reassignment ------------------------------------------------------------------------
    def _complete_reassignment(self) -> None:
        """Complete the reassignment as `PartitionReassignmentReplicas.maybeCompleteReassignment`."""
        if not self.removing and not self.adding:
            return
        isr = tuple(replica for replica in self.isr if replica not in self.removing)
        replicas = tuple(replica for replica in self.replicas if replica not in self.removing)
        if not isr or not set(self.adding) <= set(isr):
            return
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return  # fewer replicas than before: all of them must hold the records
        self.isr, self.replicas = isr, replicas
        self.removing = self.adding = ()

    # -- 2. eligible leader replicas ------------------------------------------------------------
    def _keep_eligible(self) -> None:
        if len(self.isr) >= self.rules.min_isr():
            self.elr = ()
            return
        # As in Kafka, a replica that leaves the assignment may stay eligible. It is never elected: only
        # replicas are.
        eligible = {*self.elr, *self.before.isr} - {*self.isr} - self.target.unclean_shutdown
        self.elr = tuple(sorted(eligible))

    # -- 3. election ----------------------------------------------------------------------------
    def _elect(self) -> None:
        leader, is_unclean = self._choose_leader()
        before, record = self.before, self.record
        if leader == before.leader:
            return
        record.leader = leader
        if leader in self.elr:
            self.isr = (leader,)
            self.elr = tuple(replica for replica in self.elr if replica != leader)
        if is_unclean:
            # The ISR is the new leader alone: records that it lacks are lost.
            record.isr = [leader]
            if before.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _choose_leader(self) -> tuple[int, bool]:
        """(leader, whether the election is unclean)."""
        before, preferred = self.before, self.target.election is Election.PREFERRED
        if preferred and self.replicas and self._is_valid(self.replicas[0]):
            return self.replicas[0], False
        if self._is_valid(before.leader):
            return before.leader, False
        for replica in self.replicas:
            if self._is_valid(replica):
                return replica, False
        if self._may_elect_last_known_leader():
            return before.last_known_elr[0], True
        if self.target.election is Election.UNCLEAN:
            for replica in self.replicas:
                if self.rules.may_lead(before, replica):
                    return replica, True
        return NO_LEADER, False

    def _is_valid(self, replica: int) -> bool:
        """Whether it is in the ISR, or eligible where the ISR is empty, and may lead."""
        is_in_sync = replica in self.isr or (not self.isr and replica in self.elr)
        return is_in_sync and self.rules.may_lead(self.before, replica)

    def _may_elect_last_known_leader(self) -> bool:
        """KIP-966, unclean recovery: the only leader that was known, where nobody else is left."""
        last_known = self.before.last_known_elr
        return (
            self.rules.elr_enabled
            and not self.elr
            and not self.isr
            and len(last_known) == 1
            and self.rules.may_lead(self.before, last_known[0])
        )

    # -- 4. and 5. the record -------------------------------------------------------------------
    def _write_isr(self) -> None:
        record, before = self.record, self.before
        is_unclean = record.isr is not None
        if is_unclean or not self.rules.elr_enabled:
            self.elr = ()
        if self.elr != before.elr:
            record.eligible_leader_replicas = list(self.elr)
        may_set = bool(self.isr) or self.rules.elr_enabled  # without ELR an ISR is never empty
        if not is_unclean and may_set and self.isr != before.isr:
            record.isr = list(self.isr)
        if (
            self.rules.metadata_version.bumps_leader_epoch_on_isr_shrink
            and record.leader == NO_LEADER_CHANGE
            and record.isr is not None
            and not set(before.isr) <= set(record.isr)
        ):
            record.leader = before.leader

    def _write_last_known_leader(self) -> None:
        """Kept from the moment that the partition has no leader until it has one again."""
        record, last_known = self.record, self.before.last_known_elr
        if record.leader == NO_LEADER and not last_known:
            record.last_known_elr = [self.before.leader]
        elif record.leader >= 0 and last_known:
            record.last_known_elr = []

    def _write_assignment(self) -> None:
        record, before = self.record, self.before
        if self.replicas:
            if self.rules.metadata_version.directory_assignment:
                directories = [self._directory(replica) for replica in self.replicas]
                if tuple(directories) != before.directories:
                    record.directories = directories
            if self.replicas != before.replicas:
                record.replicas = list(self.replicas)
        if self.removing != before.removing_replicas:
            record.removing_replicas = list(self.removing)
        if self.adding != before.adding_replicas:
            record.adding_replicas = list(self.adding)

    def _directory(self, replica: int) -> Uuid:
        given = self.target.directories.get(replica)
        if given is not None:
            return given
        before = self.before
        if replica in before.replicas:
            return before.directories[before.replicas.index(replica)]
        return self.rules.default_directory(replica)


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.isr is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.directories is None
    )


def has_online_directory(broker: Broker, directory: Uuid) -> bool:
    """Return `DirectoryId.isOnline`: a directory that nobody has named yet counts as online."""
    if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    if directory == LOST_DIRECTORY:
        return False
    return not broker.directories or directory in broker.directories


def default_directory(broker: Broker | None) -> Uuid:
    """The only directory of the broker; UNASSIGNED where it has several, or is not registered."""
    if broker is None:
        return UNASSIGNED_DIRECTORY
    if not broker.directories:
        return MIGRATING_DIRECTORY
    return broker.directories[0] if len(broker.directories) == 1 else UNASSIGNED_DIRECTORY
