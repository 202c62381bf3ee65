"""Where the replicas of new partitions go: racks and brokers in turn, leaders on unfenced brokers.

1. Racks are in order of their names, brokers within a rack in order of their ids; each list starts at
   a random place.
2. The first replica of a partition is an unfenced broker of the next rack that has one.
3. The other replicas follow rack by rack; a rack gives its fenced brokers when its unfenced ones are
   used up.
4. Each partition begins one rack further, and one broker further in each rack.
5. After as many partitions as there are unfenced brokers the lists are shuffled, so that the same
   brokers do not always follow each other.

Source: `StripedReplicaPlacer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from quorate.base.errors import ErrorCode
from quorate.controller.context import Rng
from quorate.controller.liveness import BrokerControl, BrokerLiveness
from quorate.controller.result import ApiError
from quorate.metadata.image import Cluster

T = TypeVar("T")
_NONE = -1


class UsableBroker(NamedTuple):
    """A broker that may get replicas."""

    id: int
    rack: str | None
    fenced: bool


class RackBrokers(NamedTuple):
    """The ids of the usable brokers of one rack, in ascending order."""

    fenced: list[int]
    unfenced: list[int]


def usable_brokers(cluster: Cluster, liveness: BrokerLiveness) -> list[UsableBroker]:
    """Not shutting down, and with a log directory that is not cordoned (KIP-1066)."""
    return [
        UsableBroker(broker.id, broker.rack, broker.fenced or liveness.is_leaving(broker.id))
        for broker in cluster.brokers.values()
        if liveness.present_state(broker) is not BrokerControl.CONTROLLED_SHUTDOWN
        and not _is_cordoned(broker.directories, broker.cordoned_directories)
    ]


def _is_cordoned(directories: tuple[bytes, ...], cordoned: tuple[bytes, ...] | None) -> bool:
    """All directories are cordoned; a broker that names none has one that is not."""
    return bool(directories) and bool(cordoned) and set(directories) <= set(cordoned or ())


def by_rack(brokers: Iterable[UsableBroker]) -> list[RackBrokers]:
    """The racks in the order of their names; brokers that name no rack share the first."""
    racks: dict[str | None, RackBrokers] = {}
    for broker in sorted(brokers):
        rack = racks.setdefault(broker.rack, RackBrokers([], []))
        (rack.fenced if broker.fenced else rack.unfenced).append(broker.id)
    return [racks[name] for name in sorted(racks, key=lambda name: (name is not None, name or ""))]


def place(
    partitions: int, replication_factor: int, brokers: Sequence[RackBrokers], rng: Rng
) -> Iterator[list[int]]:
    """The replicas of each new partition, leader first, placed when the iterator comes to it.

    Raises, before the first, ApiError (INVALID_REPLICATION_FACTOR) where the brokers are too few.
    """
    racks = _Racks(brokers, rng)
    if replication_factor <= 0:
        raise _refused(
            f"Invalid replication factor {replication_factor}: the replication factor must be "
            "positive."
        )
    if racks.unfenced == 0:
        raise _refused(
            "All brokers are currently fenced, or have all their log directories cordoned."
        )
    if replication_factor > racks.total:
        raise _refused(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{racks.total} broker(s) are registered or some brokers have all their log "
            "directories cordoned."
        )
    return (racks.place(replication_factor) for _ in range(partitions))


def _refused(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _shuffle(items: list[T], rng: Rng) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = rng.randrange(last + 1)
        items[last], items[other] = items[other], items[last]


class _BrokerList:
    """Brokers in a ring; in each round it gives every broker once."""

    def __init__(self, brokers: list[int], rng: Rng) -> None:
        self.brokers = brokers.copy()
        self._given = 0
        self._offset = rng.randrange(len(brokers)) if brokers else 0
        self._round = 0

    def next(self, number: int) -> int:
        """The next broker of round `number`; -1: the round has given all of them."""
        size = len(self.brokers)
        if not size:
            return _NONE
        if self._round != number:
            self._round, self._given = number, 0
            self._offset = (self._offset + 1) % size
        if self._given >= size:
            return _NONE
        broker = self.brokers[(self._given + self._offset) % size]
        self._given += 1
        return broker


class _Rack:
    def __init__(self, brokers: RackBrokers, rng: Rng) -> None:
        self.fenced = _BrokerList(brokers.fenced, rng)
        self.unfenced = _BrokerList(brokers.unfenced, rng)

    def next(self, number: int) -> int:
        broker = self.unfenced.next(number)
        return broker if broker != _NONE else self.fenced.next(number)


class _Racks:
    def __init__(self, racks: Sequence[RackBrokers], rng: Rng) -> None:
        self._rng = rng
        self.unfenced = sum(len(rack.unfenced) for rack in racks)
        self.total = self.unfenced + sum(len(rack.fenced) for rack in racks)
        self._racks = [_Rack(rack, rng) for rack in racks]
        self._offset = rng.randrange(len(self._racks)) if self._racks else 0
        self._round = 0

    def place(self, replication_factor: int) -> list[int]:
        # A single unfenced broker is not shuffled: its list would begin anew for ever.
        if self._round == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self._round = 0
        racks, number = self._racks, self._round
        start = self._offset % len(racks)
        first, leader = start, racks[start].unfenced.next(number)
        while leader == _NONE:
            first = (first + 1) % len(racks)
            leader = racks[first].unfenced.next(number)
        found, at = [leader], start
        skip_first = True
        while len(found) < replication_factor:
            if at == first and skip_first:
                skip_first = False  # its turn of this pass gave the leader
            else:
                broker = racks[at].next(number)
                if broker != _NONE:
                    found.append(broker)
            at = (at + 1) % len(racks)
        self._round += 1
        self._offset = start + 1
        return found

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._rng)
        for rack in self._racks:
            _shuffle(rack.fenced.brokers, self._rng)
            _shuffle(rack.unfenced.brokers, self._rng)
