"""Registers this controller with the active one (KIP-919).

As `ControllerRegistrationManager`: while the image does not hold this incarnation, ask the leader
to write it; after a failure wait, longer each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.base.ids import Address
from quorate.metadata.image import Image
from quorate.node.machine import Now
from quorate.node.metadata_machine import REGISTERED_WITHIN_MS, Registrant
from quorate.wire.messages import ControllerRegistrationRequest

BACKOFF_MS: Final = 100
MAX_BACKOFF_MS: Final = 120_000


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this to the active controller."""

    to: int
    address: Address
    request: ControllerRegistrationRequest
    timeout_ms: int = REGISTERED_WITHIN_MS


class Registration:
    """Decides when to ask. `wake_at_ms` is None while nothing is to be waited for."""

    def __init__(self, registrant: Registrant) -> None:
        self._registrant = registrant
        self._pending = False
        self._failures = 0
        self._not_before = 0
        self._leader: tuple[int, Address] | None = None
        self.wake_at_ms: int | None = None

    def poll(self, image: Image, leader: tuple[int, Address] | None, now: Now) -> Ask | None:
        """What to send now; `leader` is the active controller when it is another node.

        A new one is asked after the backoff: Kafka's logs an ERROR when it is asked while it
        is still taking office.
        """
        if leader != self._leader:
            self._leader = leader
            self._not_before = max(self._not_before, now.monotonic_ms + BACKOFF_MS)
        version = image.features.metadata_version
        if (
            leader is None
            or self._pending
            or version is None
            or not version.controller_registration
            or self._registrant.is_registered_in(image)
        ):
            self.wake_at_ms = None
            return None
        if now.monotonic_ms < self._not_before:
            self.wake_at_ms = self._not_before
            return None
        self._pending = True
        self.wake_at_ms = None
        return Ask(leader[0], leader[1], self._request())

    def done(self, succeeded: bool, now: Now) -> None:
        """The answer came, or none did. A success shows in the image a little later."""
        self._pending = False
        delay = min(BACKOFF_MS << min(self._failures, 20), MAX_BACKOFF_MS)
        self._failures = 0 if succeeded else self._failures + 1
        self._not_before = now.monotonic_ms + (REGISTERED_WITHIN_MS if succeeded else delay)

    def _request(self) -> ControllerRegistrationRequest:
        record = self._registrant.record()
        cls = ControllerRegistrationRequest
        return cls(
            controller_id=record.controller_id,
            incarnation_id=record.incarnation_id,
            listeners=[
                cls.Listener(
                    name=end.name,
                    host=end.host,
                    port=end.port,
                    security_protocol=end.security_protocol,
                )
                for end in record.end_points
            ],
            features=[
                cls.Feature(
                    name=feature.name,
                    min_supported_version=feature.min_supported_version,
                    max_supported_version=feature.max_supported_version,
                )
                for feature in record.features
            ],
        )
