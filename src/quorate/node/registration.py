"""Registers this controller with the active one (KIP-919).

As `ControllerRegistrationManager`: while the image does not hold this incarnation, the node asks
the active controller to write it; after a failure it waits, longer each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from quorate.base.ids import Address, Listeners, Uuid
from quorate.formats.versions import supported_features
from quorate.metadata.image import Image
from quorate.replica.state_machine import Now
from quorate.wire.messages import ControllerRegistrationRequest

PLAINTEXT: Final = 0
REGISTERED_WITHIN_MS: Final = 5_000
"""How long a registration may take to be applied before the node asks again."""
BACKOFF_MS: Final = 100
MAX_BACKOFF_MS: Final = 120_000


@dataclass(frozen=True, slots=True)
class Registrant:
    """What this controller says of itself."""

    node_id: int
    incarnation_id: Uuid
    listeners: Listeners
    unstable_features: bool = False
    protocols: Mapping[str, int] = field(default_factory=dict)
    """Listener name -> number of its security protocol; PLAINTEXT where it is absent."""

    def request(self) -> ControllerRegistrationRequest:
        cls = ControllerRegistrationRequest
        protocols = self.protocols
        return cls(
            controller_id=self.node_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                cls.Listener(
                    name=name,
                    host=host,
                    port=port,
                    security_protocol=protocols.get(name, PLAINTEXT),
                )
                for name, host, port in self.listeners
            ],
            features=[
                cls.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in supported_features(self.unstable_features).items()
            ],
        )

    def is_to_register(self, image: Image) -> bool:
        """The image lacks this incarnation, and its metadata.version knows registrations.

        Another node with this id may have taken the place: every tool would take that one for this
        controller.
        """
        version = image.features.metadata_version
        if version is None or not version.controller_registration:
            return False
        return not self.is_registered_in(image)

    def is_registered_in(self, image: Image) -> bool:
        """The image holds this incarnation."""
        known = image.cluster.controllers.get(self.node_id)
        return known is not None and known.incarnation_id == self.incarnation_id


@dataclass(frozen=True, slots=True)
class RegistrationSend:
    """Ask the active controller to write our registration, on a connection of its own."""

    to: int
    address: Address
    request: ControllerRegistrationRequest
    timeout_ms: int = REGISTERED_WITHIN_MS


class Registration:
    """Decides when to ask. `wake_at_ms`: when to ask `poll` again; None: no time decides."""

    def __init__(self, registrant: Registrant) -> None:
        self._registrant = registrant
        self._pending = False
        self._failures = 0
        self._not_before = 0
        self._leader: tuple[int, Address] | None = None
        self._was_registered = False
        """The image held this incarnation when it was last looked at."""
        self.wake_at_ms: int | None = None

    def poll(
        self, image: Image, leader: tuple[int, Address] | None, now: Now
    ) -> RegistrationSend | None:
        """What to send now; `leader` is the active controller when it is another node.

        A new one is asked after the backoff: a Java controller logs an ERROR when it is asked
        during its activation. A registration that was removed (KIP-1312) is requested again at once.
        One that another node replaced waits: two nodes with one id would replace each other.
        """
        if self._registrant.is_registered_in(image):
            self._was_registered = True
        elif self._was_registered:
            self._was_registered = False
            if self._registrant.node_id not in image.cluster.controllers:
                self._not_before = now.monotonic_ms
        if leader != self._leader:
            self._leader = leader
            self._not_before = max(self._not_before, now.monotonic_ms + BACKOFF_MS)
        if leader is None or self._pending or not self._registrant.is_to_register(image):
            self.wake_at_ms = None
            return None
        if now.monotonic_ms < self._not_before:
            self.wake_at_ms = self._not_before
            return None
        self._pending = True
        self.wake_at_ms = None
        return RegistrationSend(leader[0], leader[1], self._registrant.request())

    def done(self, succeeded: bool, now: Now) -> None:
        """The response came, or none did. A success shows in the image a little later."""
        self._pending = False
        delay = min(BACKOFF_MS << min(self._failures, 20), MAX_BACKOFF_MS)
        self._failures = 0 if succeeded else self._failures + 1
        self._not_before = now.monotonic_ms + (REGISTERED_WITHIN_MS if succeeded else delay)
