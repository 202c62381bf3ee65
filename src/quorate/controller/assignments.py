"""The replicas of new partitions: checked as assigned, or placed; and the records that make them.

Source: `ReplicationControlManager.validateManualPartitionAssignment` and
`buildPartitionRegistration`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Sequence
from functools import cached_property
from typing import TypeVar

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid, is_reserved_directory
from quorate.controller.context import Context, Rng
from quorate.controller.partition_changes import default_directory
from quorate.controller.placement import RackBrokers, by_rack, place, usable_brokers
from quorate.controller.result import MAX_RECORDS, PAUSE_EVERY, ApiError
from quorate.formats.records import PartitionRecord
from quorate.metadata.image import Image
from quorate.wire.schema import Message

F = TypeVar("F")


class _FactById(dict[int, F]):
    """A fact about each broker by id, worked out when it is first asked for."""

    def __init__(self, find: Callable[[int], F]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, broker_id: int) -> F:
        found = self[broker_id] = self._find(broker_id)
        return found


class BrokerFacts:
    """The brokers as one request sees them: each fact is worked out once, when it is needed.

    Valid while the request is decided: the write queue lets no other change happen meanwhile.
    """

    def __init__(self, image: Image, context: Context) -> None:
        self._image = image
        self._context = context
        self._is_active = _FactById(lambda broker_id: context.is_active(image, broker_id))
        self._directory = _FactById(
            lambda broker_id: default_directory(image.cluster.brokers.get(broker_id))
        )

    @cached_property
    def usable(self) -> list[RackBrokers]:
        """Those that may get replicas, by rack."""
        return by_rack(usable_brokers(self._image.cluster, self._context.liveness))

    @cached_property
    def with_directories(self) -> bool:
        """Whether the records of partitions name directories (KIP-858)."""
        version = self._image.features.metadata_version
        return version is not None and version.directory_assignment

    @property
    def registered(self) -> Container[int]:
        """The ids of all registered brokers."""
        return self._image.cluster.brokers

    def active(self, replicas: Sequence[int]) -> list[int]:
        """Those of the replicas that may lead and be in sync, in the same order."""
        is_active = self._is_active
        return [replica for replica in replicas if is_active[replica]]

    def directories(self, replicas: Sequence[int]) -> list[Uuid]:
        """The directory of each replica as far as it is known (`ClusterControlManager.defaultDir`)."""
        directory = self._directory
        return [directory[replica] for replica in replicas]


def placed(
    brokers: BrokerFacts, count: int, factor: int, rng: Rng, *, of_new_topic: bool
) -> Generator[None, None, list[list[int]]]:
    """Replicas of `count` partitions, each with an active one. Pauses after PAUSE_EVERY of them.

    Raises ApiError (INVALID_REPLICATION_FACTOR). The text is longer `of_new_topic`, as Kafka's.
    """
    try:
        places = place(count, factor, brokers.usable, rng)
    except ApiError as refused:
        if not of_new_topic:
            raise
        text = f"Unable to replicate the partition {factor} time(s): {refused}"
        raise ApiError(refused.error, text) from None
    assignments = []
    for replicas in places:
        if not brokers.active(replicas):
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): All brokers are currently "
                "fenced or in controlled shutdown.",
            )
        assignments.append(replicas)
        if len(assignments) % PAUSE_EVERY == 0:
            yield None
    return assignments


def check_assignment(
    registered: Container[int], replicas: Sequence[int], factor: int | None
) -> None:
    """Refuse replicas that cannot be assigned. Raises ApiError (INVALID_REPLICA_ASSIGNMENT).

    registered: the ids of the registered brokers.
    factor: the replication factor of the partitions before it; None: this is the first one.
    """
    if not replicas:
        raise bad_assignment("The manual partition assignment includes an empty replica list.")
    previous: int | None = None
    for broker_id in sorted(replicas):
        if broker_id not in registered:
            raise bad_assignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker "
                "is registered."
            )
        if broker_id == previous:
            raise bad_assignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    if factor is not None and len(replicas) != factor:
        raise bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{factor} replica(s)."
        )


def check_active(brokers: BrokerFacts, replicas: Sequence[int], index: int) -> None:
    if not brokers.active(replicas):
        raise bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {index} are "
            "fenced or in controlled shutdown."
        )


def bad_assignment(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def partition_records(
    brokers: BrokerFacts, topic_id: Uuid, first: int, assignments: Sequence[list[int]]
) -> Generator[None, None, list[PartitionRecord]]:
    """New partitions, numbered from `first`. Pauses after PAUSE_EVERY of them."""
    records = []
    for index, replicas in enumerate(assignments, first):
        records.append(_partition_record(brokers, topic_id, index, replicas))
        if len(records) % PAUSE_EVERY == 0:
            yield None
    return records


def _partition_record(
    brokers: BrokerFacts, topic_id: Uuid, index: int, replicas: list[int]
) -> PartitionRecord:
    """A new partition: its active replicas are in sync, and the first of them leads."""
    isr = brokers.active(replicas)
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=brokers.directories(replicas) if brokers.with_directories else [],
    )


def new_uuid(rng: Rng) -> Uuid:
    """A random id of version 4 that is not reserved and does not begin with `-` as text."""
    while True:
        raw = bytearray(rng.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        found = Uuid(bytes(raw))
        if raw[0] >> 2 != 0b111110 and not is_reserved_directory(found):
            return found


def charge(context: Context, partitions: int) -> None:
    """Count partitions that are created or removed against the requester's quota.

    Raises ApiError THROTTLING_QUOTA_EXCEEDED where it is used up.
    """
    quota = context.mutation_quota
    if quota is not None and not quota.take(partitions):
        raise ApiError.of(ErrorCode.THROTTLING_QUOTA_EXCEEDED)


def check_size(records: Sequence[Message]) -> None:
    if len(records) > MAX_RECORDS:
        text = "Unable to perform excessively large batch operation."
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
