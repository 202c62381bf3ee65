"""Requests in flight: one per peer, with timeout and backoff (`RequestManager`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quorate.base.ids import Address
from quorate.raft.messages import Request

_DOUBLINGS: Final = 16


@dataclass(slots=True)
class InFlightRequest:
    """What was asked of whom, and where."""

    correlation: int
    to: int
    address: Address
    request: Request
    expires_ms: int

    @property
    def name(self) -> str:
        """The request as people call it."""
        return type(self.request).__name__.removesuffix("Request")


class RequestManager:
    """At most one request in flight per node; after a failure a backoff (`RequestManager`).

    Bootstrap servers have the ids -2, -3, ... in their configured order, as in Kafka; without
    bootstrap servers the static voters have their own ids.
    """

    __slots__ = (
        "_backoff_max_ms",
        "_backoff_ms",
        "_failures",
        "_in_a_row",
        "_next",
        "backoff_until",
        "bootstrap",
        "by_correlation",
        "by_node",
        "resets",
        "unreachable",
    )

    def __init__(
        self,
        bootstrap: tuple[tuple[int, Address], ...],
        backoff_ms: int,
        backoff_max_ms: int = 0,
    ) -> None:
        """backoff_max_ms: up to which the backoff doubles; 0: it is constant, as Kafka's."""
        self.bootstrap = bootstrap
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self.by_node: dict[int, InFlightRequest] = {}
        """The request in flight to each node, also one that timed out."""
        self.by_correlation: dict[int, InFlightRequest] = {}
        self.backoff_until: dict[int, int] = {}
        """The time (ms) from which a node may be asked again."""
        self._failures: dict[int, int] = {}
        self._in_a_row: dict[int, int] = {}
        """By node: its failures since it last answered well."""
        self._next = 0
        self.unreachable: set[int] = set()
        """Nodes whose last connection failed, or that last answered that they shut down."""
        self.resets = 0
        """The number of resets; `dispatch` compares it to see whether a response changed the role."""

    def display_name(self, node_id: int) -> str:
        """A node for messages: a bootstrap server has no id yet, but an address."""
        if node_id < 0:
            return str(dict(self.bootstrap).get(node_id, "a bootstrap server"))
        return f"node {node_id}"

    def reset(self) -> None:
        """Forget everything; responses that still come are ignored (`take` finds no request)."""
        self.resets += 1
        self.by_node.clear()
        self.by_correlation.clear()
        self.backoff_until.clear()
        self._failures.clear()
        self._in_a_row.clear()
        self.unreachable.clear()

    def forget(self, node_id: int) -> None:
        """Forget the request in flight to one node, and its backoff."""
        flight = self.by_node.pop(node_id, None)
        if flight is not None:
            del self.by_correlation[flight.correlation]
        self.backoff_until.pop(node_id, None)

    def sent(self, to: int, address: Address, request: Request, expires_ms: int) -> int:
        """Register a request that is sent now; its correlation id."""
        self.forget(to)
        self._next += 1
        flight = InFlightRequest(self._next, to, address, request, expires_ms)
        self.by_node[to] = self.by_correlation[self._next] = flight
        return self._next

    def take(self, correlation: int) -> InFlightRequest | None:
        """The request that this answer belongs to, no longer in flight; None when stale."""
        flight = self.by_correlation.pop(correlation, None)
        if flight is not None:
            del self.by_node[flight.to]
        return flight

    def fail(self, node_id: int, now_ms: int, most_ms: int = 0) -> None:
        """The node failed to answer well: no request to it for the backoff.

        With `most_ms` the backoff doubles each time, up to that (ms). A longest backoff that is
        configured counts before it, and before the first backoff (KIP-595).
        """
        times, in_a_row = self.failures(node_id), self._in_a_row.get(node_id, 0)
        self._failures[node_id] = times + 1
        self._in_a_row[node_id] = in_a_row + 1
        rest = self._backoff_ms
        if self._backoff_max_ms:
            rest = min(rest << min(in_a_row, _DOUBLINGS), self._backoff_max_ms)
        elif most_ms > rest:
            rest = min(rest << min(times, _DOUBLINGS), most_ms)
        self.backoff_until[node_id] = now_ms + rest

    def succeeded(self, node_id: int) -> None:
        """The node answered well: its next failure counts as the first."""
        self._in_a_row.pop(node_id, None)

    def failures(self, node_id: int) -> int:
        """How often it failed since everything was forgotten."""
        return self._failures.get(node_id, 0)

    # -- state of a node ---------------------------------------------------------------------
    def ready(self, node_id: int, now_ms: int) -> bool:
        """May a request be sent to it?"""
        flight = self.by_node.get(node_id)
        if flight is not None and now_ms < flight.expires_ms:
            return False
        return now_ms >= self.backoff_until.get(node_id, now_ms)

    def timed_out(self, node_id: int, now_ms: int) -> bool:
        flight = self.by_node.get(node_id)
        return flight is not None and now_ms >= flight.expires_ms

    def backing_off(self, node_id: int, now_ms: int) -> bool:
        return now_ms < self.backoff_until.get(node_id, now_ms)

    def any_in_flight(self, now_ms: int) -> bool:
        for flight in self.by_node.values():  # noqa: SIM110 - several times a step
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
        for at in self.backoff_until.values():
            if at > now_ms and (wake is None or at < wake):
                wake = at
        for flight in self.by_node.values():
            at = flight.expires_ms
            if at > now_ms and (wake is None or at < wake):
                wake = at
        return wake
