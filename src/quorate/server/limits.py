"""How much a node takes from whoever connects to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

LEAST_BACKLOG: Final = 1024
"""Connections that the system holds for us until they are accepted. Kafka makes do with 50, as it
has a thread that does nothing else; where they do not fit, clients wait for a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Kafka's socket keys: bytes, counts, ms."""

    max_request_bytes: int = 104_857_600
    max_connections: int = 2**31 - 1
    max_connections_per_ip: int = 2**31 - 1
    max_connections_by_ip: Mapping[str, int] = field(default_factory=dict)
    """For these addresses, instead."""
    max_idle_ms: int = 600_000
    backlog: int = LEAST_BACKLOG
    max_unsent_bytes: int = 268_435_456
    """Not a key of Kafka's, which sends from its files: answers in memory that nobody takes."""
    max_incoming_bytes: int = 268_435_456
    """Kafka's queued.max.request.bytes, which is without a limit by default."""
    fitting_connections: int = 2**31 - 1
    """Not a key of Kafka's: as many as leave the process the descriptors that it needs itself."""

    @property
    def sweep_s(self) -> float | None:
        """How often to look for idle connections; None: never."""
        return min(max(self.max_idle_ms / 4000, 0.05), 30.0) if self.max_idle_ms >= 0 else None
