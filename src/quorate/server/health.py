"""What `/healthz` and `/readyz` answer: is this process worth keeping, may work be sent to it."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Final, Protocol

from quorate.node.replica import Replica
from quorate.server.meters import Meters
from quorate.server.metric_table import state_of
from quorate.server.web import Page

DISK_PATIENCE_S: Final = 30.0
"""A disk that has been busy for so long with what it was given hangs."""


class Running(Protocol):
    """What is asked of a Driver."""

    @property
    def fault(self) -> str | None:
        """Why the node stopped stepping."""

    @property
    def leaving(self) -> bool:
        """Was it told to leave the quorum?"""

    @property
    def disk_busy_s(self) -> float:
        """For how long the disk has been at what it does now; infinite when its owner died."""


class Health:
    """The two verdicts on one node. A reason is one line, None: all is well."""

    def __init__(self, driver: Running, replica: Replica, meters: Meters) -> None:
        self._driver = driver
        self._replica = replica
        self._meters = meters

    def ill(self) -> str | None:
        """Why the process should be restarted: it steps no more, or its disk failed or hangs."""
        driver = self._driver
        if driver.fault is not None:
            return driver.fault
        if driver.disk_busy_s > DISK_PATIENCE_S:
            return f"the disk has not answered for more than {DISK_PATIENCE_S:g} s"
        return None

    def unready(self) -> str | None:
        """Why nothing should be asked of the node.

        Ready: a follower (or observer) that has fetched from its leader within the fetch timeout,
        or a leader that has committed in its epoch and hears a majority; and within the last
        fetch timeout all that was known to be committed had been applied.
        """
        reason = self.ill()
        if reason is not None:
            return reason
        if self._driver.leaving:
            return "it is leaving the quorum"
        replica, meters = self._replica, self._meters
        core, now_s = replica.core, meters.clock()
        reason = core.out_of_touch(int(now_s * 1000))
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
                "that are committed"
            )
        return None

    def health_page(self) -> Page:
        return self._page("healthy", self.ill())

    def ready_page(self) -> Page:
        return self._page("ready", self.unready())

    def _page(self, word: str, reason: str | None) -> Page:
        core = self._replica.core
        facts: dict[str, object] = {word: reason is None}
        if reason is not None:
            facts["reason"] = reason
        leader_id, epoch = core.leader
        facts |= {"node": self._replica.config.node_id, "role": state_of(core)}
        facts |= {"leader": leader_id, "epoch": epoch}
        status = HTTPStatus.OK if reason is None else HTTPStatus.SERVICE_UNAVAILABLE
        return Page(status, "application/json", json.dumps(facts).encode() + b"\n")
