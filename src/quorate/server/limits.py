"""Limits on inbound connections and their requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MIN_BACKLOG: Final = 1024
"""Connections that the kernel holds until the loop accepts them.

Kafka's default of 50 suffices for its acceptor thread. Our loop does other work in between, and a
connection that does not fit is retried by the client only after a second.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Values of Kafka's socket keys, and limits of our own. Sizes are in bytes, times in ms."""

    max_request_bytes: int = 104_857_600
    max_connections: int = 2**31 - 1
    max_connections_per_ip: int = 2**31 - 1
    max_connections_by_ip: Mapping[str, int] = field(default_factory=dict)
    """Limits of single IP addresses; they replace `max_connections_per_ip`."""
    max_idle_ms: int = 600_000
    backlog: int = MIN_BACKLOG
    max_unsent_bytes: int = 268_435_456
    """Responses in memory that clients do not read. Kafka has no such key: it sends from files."""
    max_incoming_bytes: int = 268_435_456
    """Kafka's queued.max.request.bytes, whose default is unlimited."""
    max_descriptor_connections: int = 2**31 - 1
    """How many connections leave the process enough file descriptors. Not a Kafka key."""

    def max_connections_of(self, host: str) -> int:
        """The limit of an address in Java's form. As in Java, its scope does not count."""
        return self.max_connections_by_ip.get(host.partition("%")[0], self.max_connections_per_ip)

    @property
    def sweep_s(self) -> float | None:
        """How often to look for idle connections, in s; None: never."""
        return min(max(self.max_idle_ms / 4000, 0.05), 30.0) if self.max_idle_ms >= 0 else None
