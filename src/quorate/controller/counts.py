"""What happened at a controller since it started, for its metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.controller.event_durations import EventDurations
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import Decision, DecisionLog, Requester


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

    durations: EventDurations = field(default_factory=EventDurations)
    """Of the writes that were decided, from the decision to the response."""
    decisions: DecisionLog | None = None
    """Collects what the authorizer decides; None: it is only counted."""

    def decided(
        self,
        requester: Requester,
        operation: AclOperation,
        resource: AclResource,
        name: str,
        decision: Decision,
        *,
        logs_denied: bool = True,
    ) -> bool:
        """Count and log a decision of the authorizer; returns whether it allows.

        logs_denied: False where Kafka's log has no line for a refusal, since the request may go on
        """
        if decision.is_allowed:
            self.allowed += 1
        else:
            self.denied += 1
        if self.decisions is not None and (logs_denied or decision.is_allowed):
            self.decisions.add(requester, operation, resource, name, decision)
        return decision.is_allowed
