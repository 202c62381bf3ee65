"""The pages `/healthz` (restart the process?) and `/readyz` (send requests to it?)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol

from quorate.replica.replica import Replica
from quorate.server.meters import Meters
from quorate.server.metric_table import state_of
from quorate.server.web import Page

DISK_PATIENCE_S: Final = 30.0
"""A disk whose jobs take longer than this hangs."""


class DriverStatus(Protocol):
    """The state of a Driver."""

    @property
    def fault(self) -> str | None:
        """Why the node stopped stepping."""

    @property
    def leaving(self) -> bool:
        """Whether `shutdown` was called."""

    @property
    def disk_busy_s(self) -> float:
        """How long the current disk jobs have taken, in s; infinite when the disk thread has ended."""


class Health:
    """The health of one node. A reason is one line; None means healthy or ready."""

    def __init__(
        self,
        driver: DriverStatus,
        replica: Replica,
        meters: Meters,
        detail: Callable[[], Mapping[str, object]] = dict,
    ) -> None:
        """Take the facts. `detail`: what `/readyz` says beyond the verdict."""
        self._driver = driver
        self._detail = detail
        self._replica = replica
        self._meters = meters

    def unhealthy_reason(self) -> str | None:
        """Why the process should be restarted: it stopped stepping, or its disk failed or hangs."""
        driver = self._driver
        if driver.fault is not None:
            return driver.fault
        if driver.disk_busy_s > DISK_PATIENCE_S:
            return f"the disk has not answered for more than {DISK_PATIENCE_S:g} s"
        return None

    def unready_reason(self) -> str | None:
        """Why the node should get no requests.

        A follower or observer is ready that fetched from its leader within the fetch timeout. A leader
        is ready that committed in its epoch and hears from a majority. Either must also have applied,
        within the last fetch timeout, everything it knew to be committed.
        """
        reason = self.unhealthy_reason()
        if reason is not None:
            return reason
        if self._driver.leaving:
            return "it is shutting down"
        replica, meters = self._replica, self._meters
        core, now_s = replica.core, meters.clock()
        reason = core.disconnected_reason(int(now_s * 1000))
        if reason is not None:
            return reason
        if replica.is_loading:
            return "a snapshot is being loaded"
        if core.known_committed < 0:
            return "the high watermark is not known yet"
        patience = replica.config.fetch_timeout_ms / 1000
        last = meters.caught_up_at_s
        if not meters.is_caught_up and (last is None or now_s - last > patience):
            return (
                f"applied up to offset {replica.applied.offset} of {core.known_committed} "
                "(the committed end offset)"
            )
        return None

    def health_page(self) -> Page:
        """The page of `/healthz`: 200 or 503."""
        return self._page("healthy", self.unhealthy_reason())

    def ready_page(self) -> Page:
        """The page of `/readyz`: 200 or 503."""
        return self._page("ready", self.unready_reason(), self._detail())

    def _page(
        self, word: str, reason: str | None, detail: Mapping[str, object] | None = None
    ) -> Page:
        core = self._replica.core
        facts: dict[str, object] = {word: reason is None}
        if reason is not None:
            facts["reason"] = reason
        leader_id, epoch = core.leader
        facts |= {"node": self._replica.config.node_id, "role": state_of(core)}
        facts |= {"leader": leader_id, "epoch": epoch, **(detail or {})}
        status = HTTPStatus.OK if reason is None else HTTPStatus.SERVICE_UNAVAILABLE
        return Page(status, "application/json", json.dumps(facts).encode() + b"\n")
