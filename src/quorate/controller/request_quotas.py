"""Quotas on the time that a node works for its clients: `request_percentage` (KIP-124).

The unit is percent of one processor. Each user, client id or pair of both that has a quota is measured
over `quota.window.num` windows of `quota.window.size.seconds`. A client that exceeds its quota
is throttled until it is within it, for one window at most. What was measured is soft state of each
node, as in Kafka. Times are monotonic, ms.

Source: `ClientRequestQuotaManager`, `ClientQuotaManager`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from immutables import Map

from quorate.controller.mutation_quotas import Limit, find_limit
from quorate.controller.rates import MAX_ENTRIES, Average, Rate, make_room
from quorate.metadata.settings import Quotas

REQUEST_PERCENTAGE: Final = "request_percentage"
_PERCENT_PER_NS: Final = 100 / 1e9
_NONE: Final[Quotas] = Map()


class ClientUse:
    """What the clients that share one quota have used of it."""

    __slots__ = ("rate", "throttled_ms")

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        """Percent of a processor."""
        self.throttled_ms = Average()
        """Throttle times above 0."""

    @property
    def used_at_ms(self) -> int:
        """When the last request was answered."""
        return self.rate.used_at_ms


class RequestQuotas:
    """What the clients of one node have used."""

    def __init__(self, windows: int = 11, window_s: int = 1) -> None:
        """windows: `quota.window.num`; window_s: `quota.window.size.seconds`."""
        self._windows = windows
        self._window_ms = window_s * 1000
        self._uses: dict[tuple[str, str], ClientUse] = {}
        self._limits: dict[tuple[str, str], Limit | None] = {}
        """By user and client id: what was found in `_quotas`."""
        self._quotas = _NONE
        self.exempt = Rate(windows, self._window_ms, 0)
        """Work for requests that are never throttled, in percent of a processor."""

    def throttle_ms(
        self, quotas: Quotas, user: str, client_id: str, work_ns: int, now_ms: int
    ) -> int:
        """Record the work for a request. Returns how long to throttle its client; 0: not at all."""
        limit = self._limit(quotas, user, client_id)
        if limit is None:
            return 0
        use = self._use(limit, now_ms)
        use.rate.record(work_ns * _PERCENT_PER_NS, now_ms)
        throttle_ms = use.rate.throttle_ms(limit.rate, self._window_ms, now_ms)
        if throttle_ms:
            use.throttled_ms.record(throttle_ms, now_ms)
        return throttle_ms

    def record_exempt(self, work_ns: int, now_ms: int) -> None:
        """Record the work for a request that is never throttled."""
        self.exempt.record(work_ns * _PERCENT_PER_NS, now_ms)

    def record(self, quotas: Quotas, user: str, client_id: str, work_ns: int, now_ms: int) -> None:
        """Record work that came after the throttle time was known: it counts for the next request."""
        limit = self._limit(quotas, user, client_id)
        if limit is not None:
            self._use(limit, now_ms).rate.record(work_ns * _PERCENT_PER_NS, now_ms)

    def uses(self) -> Iterator[tuple[tuple[str, str], ClientUse]]:
        """((user, client id), its use) of each quota that was used. Empty: shared by all."""
        return iter(self._uses.items())

    def _limit(self, quotas: Quotas, user: str, client_id: str) -> Limit | None:
        """The quota of a client, looked up once for each state of the quotas."""
        if not quotas:
            return None
        if quotas is not self._quotas or len(self._limits) >= MAX_ENTRIES:
            self._quotas, self._limits = quotas, {}
        key = (user, client_id)
        if key not in self._limits:
            self._limits[key] = find_limit(quotas, REQUEST_PERCENTAGE, user, client_id)
        return self._limits[key]

    def _use(self, limit: Limit, now_ms: int) -> ClientUse:
        key = (limit.user, limit.client_id)
        use = self._uses.get(key)
        if use is None:
            oldest_ms = now_ms - self._windows * self._window_ms
            make_room(self._uses, lambda each: each.used_at_ms, oldest_ms)
            use = self._uses[key] = ClientUse(Rate(self._windows, self._window_ms, now_ms))
        return use
