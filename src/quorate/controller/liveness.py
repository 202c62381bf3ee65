"""What the active controller knows of brokers beyond the image: contacts, positions, shutdowns.

It is soft state: no record holds it, and a new active controller begins anew, with a fresh session
for every broker that is not fenced. It knows the offsets of the registrations from the log
(`RegisterOffsets`). All times are monotonic, ms.

A decision reads it through `BrokerLiveness` and results in changes (`LivenessChange`). The write queue
applies them when the records are written, and reports the offset when they are committed: only then
it is known, since the raft layer may write a record of its own in between.

Source: `BrokerHeartbeatManager`, `BrokerHeartbeatTracker`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol

from quorate.base.ids import Uuid
from quorate.metadata.image import Broker, Cluster

UNKNOWN_OFFSET: Final = -1
NO_SHUTDOWN: Final = -1
_NO_BROKER: Final = 2**63 - 1
_NOT_COMMITTED: Final = 2**63 - 1
"""In place of an offset that no broker has applied: the record is not committed yet."""


class BrokerControl(Enum):
    """What the controller lets a broker do (`BrokerBrokerControl`)."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerControl.FENCED, BrokerControl.SHUTDOWN_NOW)


@dataclass(slots=True)
class _Progress:
    """One broker, from its newest heartbeat that was decided."""

    metadata_offset: int = UNKNOWN_OFFSET
    shutdown_offset: int = NO_SHUTDOWN
    """The other brokers must have applied this offset before the broker may end."""


# -- changes that decisions result in -----------------------------------------------------------
@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A RegisterBrokerRecord is written: the broker is caught up once it has applied it."""

    broker_id: int
    is_new: bool
    """A new incarnation; False: the same one amends its registration."""


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    """The registration of the broker is removed."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class HeartbeatDecided:
    """What the heartbeat said, and what the controller lets the broker do."""

    broker_id: int
    state: BrokerControl
    metadata_offset: int


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """The contact of this incarnation is forgotten, unless there was another one."""

    broker_id: int
    epoch: int
    now_ms: int
    """When it was too old."""


@dataclass(frozen=True, slots=True)
class LeavingBegan:
    """The partitions leave the broker: it is being fenced, registered anew or unregistered.

    From now on it gets no leadership, replica or place in an ISR. One decision at a time does this to a
    broker.
    """

    broker_id: int
    is_expired: bool = False
    """Its session has expired. Where the decision fails, the next run of the task begins again."""


@dataclass(frozen=True, slots=True)
class BrokerFenced:
    """The record that fences the broker is written."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class ShutdownMoved:
    """All partitions of the broker, which is in a controlled shutdown, are moved.

    The other brokers must apply the last of these records before the broker may end.
    """

    broker_id: int


@dataclass(frozen=True, slots=True)
class DirectoriesFailing:
    """The partitions in these log directories leave the broker: nothing in them may lead any more."""

    broker_id: int
    directories: frozenset[Uuid]


@dataclass(frozen=True, slots=True)
class DirectoriesFailed:
    """The record that takes these log directories from the broker is written."""

    broker_id: int
    directories: frozenset[Uuid]


LivenessChange = (
    BrokerRegistered
    | BrokerUnregistered
    | HeartbeatDecided
    | SessionExpired
    | LeavingBegan
    | BrokerFenced
    | ShutdownMoved
    | DirectoriesFailing
    | DirectoriesFailed
)


class BrokerLiveness(Protocol):
    """What decisions read of `Liveness`."""

    def has_session(self, broker_id: int, epoch: int, now_ms: int) -> bool: ...

    def expired(self, now_ms: int) -> tuple[int, int] | None: ...

    def is_leaving(self, broker_id: int) -> bool: ...

    def without_failing(self, cluster: Cluster) -> Cluster: ...

    def is_caught_up(self, broker: Broker, metadata_offset: int) -> bool: ...

    def present_state(self, broker: Broker) -> BrokerControl: ...

    def next_state(
        self,
        broker: Broker,
        *,
        want_fence: bool,
        want_shut_down: bool,
        metadata_offset: int,
        leads: bool,
        cluster: Cluster,
    ) -> BrokerControl: ...


class Liveness:
    """The brokers as the active controller sees them. The image says which are registered."""

    def __init__(self, session_timeout_ms: int) -> None:
        """session_timeout_ms: `broker.session.timeout.ms`."""
        self._session_timeout_ms = session_timeout_ms
        self._contacts: dict[tuple[int, int], int] = {}
        """(id, epoch) -> the time of the newest heartbeat, in the order of first contact."""
        self._progress: dict[int, _Progress] = {}
        self._leaving: dict[int, bool] = {}
        """Id of a broker whose partitions leave it -> whether its session has expired."""
        self._failing: dict[int, frozenset[Uuid]] = {}
        """Broker id -> its log directories whose partitions are leaving it."""
        self._register_offsets: dict[int, int] = {}
        """Broker id -> offset of its RegisterBrokerRecord; it is caught up once it has applied that."""

    def activate(self, cluster: Cluster, register_offsets: Mapping[int, int], now_ms: int) -> None:
        """This node becomes the active controller: sessions of unfenced brokers begin now.

        register_offsets: by broker id, of everything that is committed.
        """
        self._register_offsets = dict(register_offsets)
        self._contacts = {
            (broker.id, broker.epoch): now_ms
            for broker in cluster.brokers.values()
            if not broker.fenced
        }
        self._progress.clear()
        self._leaving.clear()
        self._failing.clear()

    # -- contact --------------------------------------------------------------------------------
    def contact(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """A heartbeat arrived. It counts before it is decided, and also where it is refused."""
        self._contacts[broker_id, epoch] = now_ms

    def has_session(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """The broker's newest contact is no older than the session timeout."""
        at_ms = self._contacts.get((broker_id, epoch))
        return at_ms is not None and not self._is_expired(at_ms, now_ms)

    def since_contact_ms(self, broker: Broker, now_ms: int) -> int | None:
        """How long ago the broker's newest heartbeat arrived, at most the session timeout; None: never.

        Source: `QuorumControllerMetrics.timeSinceLastHeartbeatMs`.
        """
        at_ms = self._contacts.get((broker.id, broker.epoch))
        return None if at_ms is None else min(now_ms - at_ms, self._session_timeout_ms)

    def expired(self, now_ms: int) -> tuple[int, int] | None:
        """The (broker id, epoch) of the first contact that is too old; None: there is none.

        Not of a broker that another decision takes out of service already.
        """
        for key, at_ms in self._contacts.items():
            if self._is_expired(at_ms, now_ms) and self._leaving.get(key[0], True):
                return key
        return None

    def _is_expired(self, at_ms: int, now_ms: int) -> bool:
        return at_ms + self._session_timeout_ms < now_ms

    # -- work under way --------------------------------------------------------------------------
    def is_leaving(self, broker_id: int) -> bool:
        """The broker is being fenced, registered anew or unregistered: it gets nothing any more."""
        return broker_id in self._leaving

    def without_failing(self, cluster: Cluster) -> Cluster:
        """The registrations without the log directories whose partitions are leaving them."""
        brokers = cluster.brokers
        for broker_id, failing in self._failing.items():
            broker = brokers.get(broker_id)
            if broker is not None:
                remaining = tuple(one for one in broker.directories if one not in failing)
                brokers = brokers.set(broker_id, replace(broker, directories=remaining))
        return cluster if brokers is cluster.brokers else replace(cluster, brokers=brokers)

    # -- changes --------------------------------------------------------------------------------
    def written(self, changes: Iterable[LivenessChange]) -> None:
        """The records of the decision are written; their offsets are not known yet."""
        for change in changes:
            self._written(change)

    def _written(self, change: LivenessChange) -> None:
        broker_id = change.broker_id
        match change:
            case BrokerRegistered(is_new=is_new):
                if is_new:
                    self._leaving.pop(broker_id, None)
                    self._failing.pop(broker_id, None)
                # An amended registration, too: progress counts anew, and a controlled shutdown must be
                # asked for again.
                self._progress[broker_id] = _Progress()
                self._register_offsets[broker_id] = _NOT_COMMITTED
            case HeartbeatDecided():
                self._heartbeat_decided(change)
            case SessionExpired(epoch=epoch, now_ms=now_ms):
                at_ms = self._contacts.get((broker_id, epoch))
                if at_ms is not None and self._is_expired(at_ms, now_ms):
                    del self._contacts[broker_id, epoch]
            case LeavingBegan(is_expired=is_expired):
                self._leaving[broker_id] = is_expired
            case DirectoriesFailing() | DirectoriesFailed():
                self._directories_changed(change)
            case BrokerUnregistered():
                self._forget(broker_id)
                self._failing.pop(broker_id, None)
                self._register_offsets.pop(broker_id, None)
            case BrokerFenced():
                self._forget(broker_id)

    def _directories_changed(self, change: DirectoriesFailing | DirectoriesFailed) -> None:
        failing = self._failing.pop(change.broker_id, frozenset())
        if isinstance(change, DirectoriesFailing):
            failing |= change.directories
        else:
            failing -= change.directories
        if failing:
            self._failing[change.broker_id] = failing

    def _forget(self, broker_id: int) -> None:
        self._progress.pop(broker_id, None)
        self._leaving.pop(broker_id, None)

    def committed(self, changes: Iterable[LivenessChange], last_offset: int) -> None:
        """The records of the decision are committed.

        last_offset: of the last one (inclusive). Of a decision without records: of the newest record
        that it was decided on.
        """
        for change in changes:
            broker_id = change.broker_id
            if isinstance(change, BrokerRegistered):
                if broker_id in self._register_offsets:  # no later decision has removed the broker
                    self._register_offsets[broker_id] = last_offset
            elif isinstance(change, ShutdownMoved):
                progress = self._progress.get(broker_id)
                if progress is not None and progress.shutdown_offset == _NOT_COMMITTED:
                    progress.shutdown_offset = last_offset

    def _heartbeat_decided(self, change: HeartbeatDecided) -> None:
        """A fenced broker is not in a controlled shutdown any more."""
        progress = self._of(change.broker_id)
        progress.metadata_offset = change.metadata_offset
        if change.state.is_fenced:
            progress.shutdown_offset = NO_SHUTDOWN
        elif (
            change.state is BrokerControl.CONTROLLED_SHUTDOWN
            and progress.shutdown_offset == NO_SHUTDOWN
        ):
            progress.shutdown_offset = _NOT_COMMITTED

    # -- progress -------------------------------------------------------------------------------
    def is_caught_up(self, broker: Broker, metadata_offset: int) -> bool:
        """The broker has applied its own registration, up to this offset (inclusive)."""
        return metadata_offset >= self._register_offsets.get(broker.id, broker.epoch)

    def next_state(
        self,
        broker: Broker,
        *,
        want_fence: bool,
        want_shut_down: bool,
        metadata_offset: int,
        leads: bool,
        cluster: Cluster,
    ) -> BrokerControl:
        """What a heartbeat leads to (`BrokerHeartbeatManager.calculateNextBrokerState`).

        leads: the broker leads partitions.
        """
        if self.is_leaving(broker.id):
            return BrokerControl.FENCED  # it is unfenced again after the last of its partitions
        if self.present_state(broker) is BrokerControl.CONTROLLED_SHUTDOWN:
            known = self._progress.get(broker.id)
            offset = NO_SHUTDOWN if known is None else known.shutdown_offset
            if leads or offset > self._lowest_active_offset(cluster):
                return BrokerControl.CONTROLLED_SHUTDOWN
            return BrokerControl.SHUTDOWN_NOW
        if broker.fenced:
            if want_shut_down:
                return BrokerControl.SHUTDOWN_NOW
            if not want_fence and self.is_caught_up(broker, metadata_offset):
                return BrokerControl.UNFENCED
            return BrokerControl.FENCED
        if want_fence:
            return BrokerControl.SHUTDOWN_NOW if want_shut_down else BrokerControl.FENCED
        if want_shut_down:
            return BrokerControl.CONTROLLED_SHUTDOWN if leads else BrokerControl.SHUTDOWN_NOW
        return BrokerControl.UNFENCED

    def _lowest_active_offset(self, cluster: Cluster) -> int:
        """Up to where (inclusive) every active broker has applied the log."""
        known = self._progress
        offsets = (
            known[broker.id].metadata_offset if broker.id in known else UNKNOWN_OFFSET
            for broker in cluster.brokers.values()
            if self.present_state(broker) is BrokerControl.UNFENCED
        )
        return min(offsets, default=_NO_BROKER)

    def present_state(self, broker: Broker) -> BrokerControl:
        """The state before a heartbeat.

        A controlled shutdown lasts until the broker is fenced. It is not read from the registration, which
        keeps the flag until the broker registers again: one that is unfenced before that is in service.
        """
        if broker.fenced:
            return BrokerControl.FENCED
        known = self._progress.get(broker.id)
        if known is None or known.shutdown_offset == NO_SHUTDOWN:
            return BrokerControl.UNFENCED
        return BrokerControl.CONTROLLED_SHUTDOWN

    def _of(self, broker_id: int) -> _Progress:
        return self._progress.setdefault(broker_id, _Progress())
