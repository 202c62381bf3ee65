"""The writes of the active controller itself, and when it makes them.

1. On activation: the activation records, before any other write (`CompleteActivationEvent`).
2. The elections that an unfencing under a former leader has left over.
3. Its own registration, while the head image lacks this incarnation (KIP-919).
4. A NoOpRecord every `metadata.max.idle.interval.ms` (KIP-835).
5. Periodic tasks (`PeriodicTaskControlManager`): fencing of brokers without contact, preferred and
   unclean elections, removal of expired delegation tokens, the report of how long writes took. A task
   that has more to do runs again at once.

All of them are write operations in the write queue, like those of clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quorate.controller.activation import ACTIVATION, NO_OP, Bootstrap
from quorate.controller.context import ControllerConfig
from quorate.controller.delegation_tokens import EXPIRE_DELEGATION_TOKENS
from quorate.controller.elections import ELECT_LEFT_OVER, ELECT_PREFERRED, ELECT_UNCLEAN
from quorate.controller.heartbeats import FENCE_STALE_BROKER
from quorate.controller.performance import REPORT_PERFORMANCE
from quorate.controller.registration import CONTROLLER_REGISTRATION
from quorate.controller.result import WriteOperation
from quorate.metadata.image import Cluster, Image
from quorate.node.registration import REGISTERED_WITHIN_MS, Registrant

OWN_REASONS: Final[Mapping[WriteOperation[Any, Any], str]] = {
    FENCE_STALE_BROKER: "no heartbeat of the broker within broker.session.timeout.ms",
    ELECT_PREFERRED: "auto.leader.rebalance.enable: the preferred leader is available",
    ELECT_UNCLEAN: "unclean.leader.election.enable: no replica in sync is available",
    ELECT_LEFT_OVER: "a replica in sync is available, and the former leader did not elect it",
    EXPIRE_DELEGATION_TOKENS: "the tokens have expired",
    REPORT_PERFORMANCE: "controller.performance.sample.period.ms has passed",
    ACTIVATION: "this node became the active controller",
}
"""Why the active controller makes a write, for the audit trail."""
_AGAIN_MS: Final = 10
"""`IMMEDIATE_PERIOD_NS`: a task that has more to do runs again after this time."""
_CHECKS_PER_SESSION: Final = 8

OwnWrite = tuple[WriteOperation[Any, Any], Any]
"""An operation and its request."""


class OwnWrites:
    """Decides what is due. Times are monotonic, ms."""

    def __init__(
        self, registrant: Registrant, bootstrap: Bootstrap, config: ControllerConfig
    ) -> None:
        self._registrant = registrant
        self._bootstrap = bootstrap
        self._max_idle_ms = config.max_idle_ms
        self._periods = _periods(config)
        """Periodic task -> ms between two runs."""
        self._task_at: dict[str, int] = {}
        """Name of a periodic task -> when it runs next; absent: it is under way."""
        self._no_op_at: int | None = None
        self._register_at: int | None = None
        self._may_have_left_over = False
        """This node has become active, and has not looked for elections that are left over."""
        self._registered_in: Cluster | None = None
        """The registrations among which ours was seen: no need to look again."""

    def add_task(self, task: WriteOperation[None, Any], period_ms: int) -> None:
        """Add a periodic task. It runs from the next activation on."""
        self._periods[task] = period_ms

    @property
    def wake_at_ms(self) -> int | None:
        """When `due` has something at the latest; None: while this node is not active."""
        times = list(self._task_at.values())
        if self._no_op_at is not None:
            times.append(self._no_op_at)
        return min(times, default=None)

    def lead(self, now_ms: int) -> OwnWrite:
        """This node becomes the active controller: returns the write that comes first."""
        self._no_op_at = now_ms + self._max_idle_ms if self._max_idle_ms else None
        self._register_at = now_ms
        self._may_have_left_over = True
        self._task_at = {task.name: now_ms + period for task, period in self._periods.items()}
        return ACTIVATION, self._bootstrap

    def follow(self) -> None:
        """This node is not active any more."""
        self._no_op_at = self._register_at = None
        self._may_have_left_over = False
        self._task_at.clear()

    def done(self, operation: WriteOperation[Any, Any], again: object, now_ms: int) -> None:
        """One of the writes is done; `again`: a periodic task has more to do."""
        period = self._periods.get(operation)
        if period is not None and self._register_at is not None:
            self._task_at[operation.name] = now_ms + (_AGAIN_MS if again is True else period)

    def due(self, now_ms: int, head: Image) -> list[OwnWrite]:
        """Called after each step of an active controller."""
        found: list[OwnWrite] = []
        if self._may_have_left_over:
            self._may_have_left_over = False
            found.append((ELECT_LEFT_OVER, None))
        register_at = self._register_at
        if (
            register_at is not None
            and now_ms >= register_at
            and head.cluster is not self._registered_in
        ):
            # A registration that is refused or lost with the leadership is not reported here, so the
            # head image alone says whether to ask again.
            if self._registrant.is_to_register(head):
                self._register_at = now_ms + REGISTERED_WITHIN_MS
                found.append((CONTROLLER_REGISTRATION, self._registrant.request()))
            elif self._registrant.is_registered_in(head):
                self._registered_in = head.cluster
        if self._no_op_at is not None and now_ms >= self._no_op_at:
            self._no_op_at = now_ms + self._max_idle_ms
            found.append((NO_OP, None))
        for task in self._periods:
            at_ms = self._task_at.get(task.name)
            if at_ms is not None and now_ms >= at_ms:
                # Until `done` sets the next time: a second run would be decided on the same brokers.
                del self._task_at[task.name]
                found.append((task, None))
        return found


def _periods(config: ControllerConfig) -> dict[WriteOperation[Any, Any], int]:
    periods = {
        FENCE_STALE_BROKER: max(1, config.session_timeout_ms // _CHECKS_PER_SESSION),
        ELECT_UNCLEAN: config.unclean_election_interval_ms,
        REPORT_PERFORMANCE: config.performance_period_ms,
    }
    if config.tokens.secret_key is not None:
        periods[EXPIRE_DELEGATION_TOKENS] = config.tokens.check_interval_ms
    if config.auto_leader_rebalance_enable:
        periods[ELECT_PREFERRED] = config.imbalance_check_interval_ms
    return periods
