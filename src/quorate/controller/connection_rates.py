"""Quotas on new connections: `max.connection.creation.rate` and `connection_creation_rate` (KIP-612).

A node accepts the connections of a listener one after another. One that exceeds the rate of the node
or of the listener is accepted late, and those behind it wait. One that exceeds the rate of its IP
address is not accepted: it is closed after the time that it would have to wait, for one window at most.
Times are monotonic, ms.

Source: `ConnectionQuotas`, `Acceptor.accept`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.base.java_address import spellings
from quorate.controller.configs_in_force import ConfigsInForce
from quorate.controller.node_configs import number_in
from quorate.controller.rates import Average, Rate, make_room
from quorate.metadata.image import Image
from quorate.metadata.settings import Quotas, quota_entity

IP_RATE: Final = "connection_creation_rate"
NODE_RATE: Final = "max.connection.creation.rate"
UNLIMITED: Final = 2**31 - 1


class RateLimits(NamedTuple):
    """Connections per second that one new connection has to keep to."""

    node: int = UNLIMITED
    listener: int = UNLIMITED
    ip: int = UNLIMITED


class Admission(NamedTuple):
    """What to do with a new connection."""

    delay_ms: int
    """Read nothing from it for this time."""
    is_refused: bool = False
    """Close it then."""


@dataclass(slots=True)
class ListenerRate:
    """The connections of one listener."""

    rate: Rate
    free_at_ms: int = 0
    """When its last connection is accepted."""
    throttled_ms: Average = field(default_factory=Average)
    """What connections waited for the rates of the node and of the listener."""
    ip_throttled_ms: Average = field(default_factory=Average)
    """What connections waited to be closed."""


def rate_limits(image: Image, configs: ConfigsInForce, listener: str, ip: str) -> RateLimits:
    """The limits in force for a connection from `ip` to a listener (upper case)."""
    texts = configs.node_configs(image)
    node = number_in(texts, NODE_RATE, NODE_RATE, UNLIMITED)
    prefixed = f"listener.name.{listener.lower()}.{NODE_RATE}"
    return RateLimits(
        node, number_in(texts, prefixed, NODE_RATE, node), _ip_rate(image.client_quotas, ip)
    )


def _ip_rate(quotas: Quotas, ip: str) -> int:
    for name in (*spellings(ip), None):
        found = quotas.get(quota_entity({"ip": name}))
        if found is not None and IP_RATE in found:
            return int(found[IP_RATE])
    return UNLIMITED


class ConnectionRates:
    """The new connections of one node."""

    def __init__(self, windows: int = 11, window_s: int = 1) -> None:
        """windows: `quota.window.num`; window_s: `quota.window.size.seconds`."""
        self._windows = windows
        self._window_ms = window_s * 1000
        self.node = self._new_rate(0)
        self.listeners: dict[str, ListenerRate] = {}
        self.ips: dict[str, Rate] = {}
        """Of addresses that have a quota."""

    def _new_rate(self, now_ms: int) -> Rate:
        return Rate(self._windows, self._window_ms, now_ms)

    def admit(self, listener: str, ip: str, limits: RateLimits, now_ms: int) -> Admission:
        """Record a connection and say what to do with it.

        1. It waits for the connections before it, then for the rates of node and listener.
        2. Its address has a rate too: beyond it, the connection does not count, and is closed.
        """
        found = self.listeners.get(listener)
        if found is None:
            found = self.listeners[listener] = ListenerRate(self._new_rate(now_ms))
        at_ms = max(now_ms, found.free_at_ms)
        wait_ms = max(
            self._recorded(self.node, limits.node, at_ms),
            self._recorded(found.rate, limits.listener, at_ms),
        )
        if wait_ms:
            found.throttled_ms.record(wait_ms, at_ms)
        found.free_at_ms = at_ms = at_ms + wait_ms
        closed_in_ms = 0
        if limits.ip != UNLIMITED:
            rate = self._of_ip(ip, at_ms)
            closed_in_ms = self._recorded(rate, limits.ip, at_ms)
            if closed_in_ms:
                for each in (self.node, found.rate, rate):
                    each.record(-1, at_ms)
                found.ip_throttled_ms.record(closed_in_ms, at_ms)
        return Admission(at_ms + closed_in_ms - now_ms, closed_in_ms > 0)

    def _recorded(self, rate: Rate, limit: int, at_ms: int) -> int:
        rate.record(1, at_ms)
        return rate.throttle_ms(limit, self._window_ms, at_ms)

    def _of_ip(self, ip: str, now_ms: int) -> Rate:
        rate = self.ips.get(ip)
        if rate is None:
            make_room(self.ips, lambda each: each.used_at_ms, now_ms - 3_600_000)
            rate = self.ips[ip] = self._new_rate(now_ms)
        return rate
