"""What happened at a controller since it started, for its metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ControllerCounts:
    """Kafka's name of each count is beside it."""

    operations_started: int = 0
    """Writes that came to the queue (`EventQueueOperationsStartedCount`)."""
    operations_timed_out: int = 0
    """Writes whose deadline passed in the queue (`EventQueueOperationsTimedOutCount`)."""
    heartbeats_timed_out: int = 0
    """`TimedOutBrokerHeartbeatCount`"""
    allowed: int = 0
    """Decisions of the authorizer (`authorization-allowed-rate-per-minute`)."""
    denied: int = 0
    """`authorization-denied-rate-per-minute`"""

    def authorized(self, allowed: bool) -> bool:
        """Count a decision of the authorizer, and return it."""
        if allowed:
            self.allowed += 1
        else:
            self.denied += 1
        return allowed
