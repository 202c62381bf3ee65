"""How many connections are open, and whether there may be one more."""

from __future__ import annotations

from collections import Counter

from quorate.server.limits import ConnectionLimits


class ConnectionCount:
    """Counts open connections, in all and by IP address."""

    def __init__(self) -> None:
        self._all = 0
        self._by_host: Counter[str] = Counter()

    def refusal(self, host: str, limits: ConnectionLimits) -> str | None:
        """Why another connection from the address is refused; None: it may be opened."""
        if self._all >= limits.max_connections:
            return f"max.connections ({limits.max_connections}) reached"
        most = limits.max_descriptor_connections
        if self._all >= most:
            return (
                f"{most} are open, and the node needs the other file descriptors itself: raise the "
                "limit on open files (ulimit -Hn)"
            )
        most = limits.max_connections_of(host)
        return f"max.connections.per.ip ({most}) reached" if self._by_host[host] >= most else None

    def opened(self, host: str) -> None:
        """Count a new connection."""
        self._all += 1
        self._by_host[host] += 1

    def closed(self, host: str) -> None:
        """A connection that was counted is gone."""
        self._all -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
