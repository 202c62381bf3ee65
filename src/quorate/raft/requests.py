"""Requests in flight: one per peer, with timeout and backoff (`RequestManager`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quorate.base.ids import Address
from quorate.raft.messages import Request

_DOUBLINGS: Final = 16


@dataclass(slots=True)
class InFlight:
    """What was asked of whom."""

    correlation: int
    to: int
    request: Request
    expires_ms: int

    @property
    def name(self) -> str:
        """The request as people call it."""
        return type(self.request).__name__.removesuffix("Request")


class Requests:
    """At most one request in flight per node; after a failure the node rests for the backoff.

    Bootstrap servers have the ids -2, -3, ... in their configured order, or, where there are
    none, the static voters' own ids.
    """

    __slots__ = (
        "_backoff",
        "_backoff_ms",
        "_by_correlation",
        "_by_node",
        "_failures",
        "_next",
        "bootstrap",
        "gone",
        "resets",
    )

    def __init__(self, bootstrap: tuple[tuple[int, Address], ...], backoff_ms: int) -> None:
        self.bootstrap = bootstrap
        self._backoff_ms = backoff_ms
        self._by_node: dict[int, InFlight] = {}
        self._by_correlation: dict[int, InFlight] = {}
        self._backoff: dict[int, int] = {}
        self._failures: dict[int, int] = {}
        self._next = 0
        self.gone: set[int] = set()
        """Nodes that cannot be connected to, or are stopping, by what was last heard of them."""
        self.resets = 0
        """How often everything was forgotten: tells whether an answer changed the role."""

    def named(self, node_id: int) -> str:
        """A node for messages: a bootstrap server has no id yet, but an address."""
        if node_id < 0:
            return str(dict(self.bootstrap).get(node_id, "a bootstrap server"))
        return f"node {node_id}"

    def reset(self) -> None:
        """Forget everything; answers under way will be ignored."""
        self.resets += 1
        self._by_node.clear()
        self._by_correlation.clear()
        self._backoff.clear()
        self._failures.clear()
        self.gone.clear()

    def forget(self, node_id: int) -> None:
        """Forget what is under way to one node."""
        flight = self._by_node.pop(node_id, None)
        if flight is not None:
            del self._by_correlation[flight.correlation]
        self._backoff.pop(node_id, None)

    def sent(self, to: int, request: Request, expires_ms: int) -> int:
        """Book a request; its correlation id."""
        self.forget(to)
        self._next += 1
        flight = InFlight(self._next, to, request, expires_ms)
        self._by_node[to] = self._by_correlation[self._next] = flight
        return self._next

    def take(self, correlation: int) -> InFlight | None:
        """The request that this answer belongs to, no longer in flight; None when stale."""
        flight = self._by_correlation.pop(correlation, None)
        if flight is not None:
            del self._by_node[flight.to]
        return flight

    def fail(self, node_id: int, now_ms: int, most_ms: int = 0) -> None:
        """The node answered badly or not at all: leave it alone for the backoff.

        With `most_ms` for twice as long each time, until it is so long.
        """
        times = self.failures(node_id)
        self._failures[node_id] = times + 1
        rest = self._backoff_ms
        if most_ms > rest:
            rest = min(rest << min(times, _DOUBLINGS), most_ms)
        self._backoff[node_id] = now_ms + rest

    def failures(self, node_id: int) -> int:
        """How often it failed since everything was forgotten."""
        return self._failures.get(node_id, 0)

    # -- state of a node ---------------------------------------------------------------------
    def ready(self, node_id: int, now_ms: int) -> bool:
        """May a request be sent to it?"""
        flight = self._by_node.get(node_id)
        if flight is not None and now_ms < flight.expires_ms:
            return False
        return now_ms >= self._backoff.get(node_id, now_ms)

    def timed_out(self, node_id: int, now_ms: int) -> bool:
        flight = self._by_node.get(node_id)
        return flight is not None and now_ms >= flight.expires_ms

    def backing_off(self, node_id: int, now_ms: int) -> bool:
        return now_ms < self._backoff.get(node_id, now_ms)

    def any_in_flight(self, now_ms: int) -> bool:
        for flight in self._by_node.values():  # noqa: SIM110 - several times a step
            if now_ms < flight.expires_ms:
                return True
        return False

    def ready_server(
        self, servers: tuple[tuple[int, Address], ...], random: Callable[[], float], now_ms: int
    ) -> tuple[int, Address] | None:
        """One of these that may be asked, from a random one on; None while one is asked."""
        if not servers or self.any_in_flight(now_ms):
            return None
        start = int(random() * len(servers))
        for server in servers[start:] + servers[:start]:
            if self.ready(server[0], now_ms):
                return server
        return None

    def wake_ms(self, now_ms: int) -> int | None:
        """The next time at which a request expires or a backoff ends."""
        wake = None
        for at in self._backoff.values():
            if at > now_ms and (wake is None or at < wake):
                wake = at
        for flight in self._by_node.values():
            at = flight.expires_ms
            if at > now_ms and (wake is None or at < wake):
                wake = at
        return wake
