"""What the active controller knows of brokers beyond the image: contacts, positions, shutdowns.

It is soft state: no record holds it, and a new active controller begins anew, with a fresh session
for every broker that is not fenced. All times are monotonic, ms.

Source: `BrokerHeartbeatManager`, `BrokerHeartbeatTracker`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from quorate.metadata.image import Broker, Cluster

UNKNOWN_OFFSET: Final = -1
NO_SHUTDOWN: Final = -1
ALL_TOPICS: Final = 2**31
_NO_BROKER: Final = 2**63 - 1


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
    register_offset: int = UNKNOWN_OFFSET
    """Offset of its RegisterBrokerRecord; it is caught up once it has applied that."""


@dataclass(slots=True)
class Departure:
    """How far the fencing of a broker has come: its partitions are changed in several writes."""

    epoch: int
    topic_number: int = 0
    """Of the index: the topics before it are done."""
    partition_id: int = 0
    """The partitions of that topic before it are done."""

    @property
    def is_over(self) -> bool:
        """All partitions are changed: the broker itself comes next."""
        return self.topic_number >= ALL_TOPICS


class Liveness:
    """The brokers as the active controller sees them. The image says which are registered."""

    def __init__(self, session_timeout_ms: int) -> None:
        """session_timeout_ms: `broker.session.timeout.ms`."""
        self._session_timeout_ms = session_timeout_ms
        self._contacts: dict[tuple[int, int], int] = {}
        """(id, epoch) -> the time of the newest heartbeat, in the order of first contact."""
        self._progress: dict[int, _Progress] = {}
        self.departures: dict[int, Departure] = {}
        """Brokers that are being fenced, by id, in the order in which they began."""

    def activate(self, cluster: Cluster, now_ms: int) -> None:
        """This node becomes the active controller: sessions of unfenced brokers begin now."""
        self._contacts = {
            (broker.id, broker.epoch): now_ms
            for broker in cluster.brokers.values()
            if not broker.fenced
        }
        self._progress.clear()
        self.departures.clear()

    # -- contact --------------------------------------------------------------------------------
    def contact(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """A heartbeat arrived. It counts before it is decided, and also where it is refused."""
        self._contacts[broker_id, epoch] = now_ms

    def has_session(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """The broker's newest contact is no older than the session timeout."""
        at_ms = self._contacts.get((broker_id, epoch))
        return at_ms is not None and not self._is_expired(at_ms, now_ms)

    def since_contact_ms(self, broker: Broker, now_ms: int) -> int | None:
        """How long ago the broker's newest heartbeat arrived; None: never."""
        at_ms = self._contacts.get((broker.id, broker.epoch))
        return None if at_ms is None else now_ms - at_ms

    def take_expired(self, now_ms: int) -> tuple[int, int] | None:
        """Forget one contact that is too old: its (broker id, epoch)."""
        for key, at_ms in self._contacts.items():
            if self._is_expired(at_ms, now_ms):
                del self._contacts[key]
                return key
        return None

    def _is_expired(self, at_ms: int, now_ms: int) -> bool:
        return at_ms + self._session_timeout_ms < now_ms

    # -- departures -----------------------------------------------------------------------------
    def depart(self, broker_id: int, epoch: int) -> None:
        """Begin to fence the broker: from now on it gets no leadership, replica or place in an ISR."""
        self.departures.setdefault(broker_id, Departure(epoch))

    def is_departing(self, broker_id: int) -> bool:
        """The broker is being fenced."""
        return broker_id in self.departures

    # -- progress -------------------------------------------------------------------------------
    def registered(self, broker_id: int) -> None:
        """A new incarnation of the broker is registered."""
        self.forget(broker_id)

    def amended(self, broker_id: int) -> None:
        """The incarnation of the broker registered again: its progress counts anew, and a controlled
        shutdown must be asked for again."""
        self._progress.pop(broker_id, None)

    def forget(self, broker_id: int) -> None:
        """The broker, or its incarnation, is not registered any more."""
        self._progress.pop(broker_id, None)
        self.departures.pop(broker_id, None)

    def register_record_at(self, broker_id: int, offset: int) -> None:
        """The broker's RegisterBrokerRecord is committed at this offset."""
        self._of(broker_id).register_offset = offset

    def is_caught_up(self, broker: Broker, metadata_offset: int) -> bool:
        """The broker has applied its own registration, up to this offset (inclusive)."""
        known = self._progress.get(broker.id)
        # The epoch is the first offset that the registration could have.
        register_offset = UNKNOWN_OFFSET if known is None else known.register_offset
        return metadata_offset >= max(register_offset, broker.epoch)

    def touch(self, broker_id: int, fenced: bool, metadata_offset: int) -> None:
        """A heartbeat was decided. A fenced broker is not in a controlled shutdown any more."""
        progress = self._of(broker_id)
        progress.metadata_offset = metadata_offset
        if fenced:
            progress.shutdown_offset = NO_SHUTDOWN

    def begin_shutdown(self, broker_id: int, offset: int) -> None:
        """The controlled shutdown was written; `offset` is that of its last record."""
        progress = self._of(broker_id)
        if progress.shutdown_offset == NO_SHUTDOWN:
            progress.shutdown_offset = offset

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
        if self.is_departing(broker.id):
            return BrokerControl.FENCED  # it is unfenced again after the last of its partitions
        if self.present_state(broker) is BrokerControl.CONTROLLED_SHUTDOWN:
            offset = self._of(broker.id).shutdown_offset
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
        offsets = (
            self._of(broker.id).metadata_offset
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
