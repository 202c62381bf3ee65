"""The listening sockets of a node."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, Listeners
from quorate.config.listeners import is_wildcard
from quorate.config.monitoring_settings import METRICS_LISTENER
from quorate.config.node_config import NodeConfig
from quorate.config.raft_config import resolved_listeners
from quorate.server.descriptors import max_backlog_for, soft_limit
from quorate.server.limits import MIN_BACKLOG

SYSTEM_DEFAULT: Final = -1
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


class ListenError(QuorateError):
    """A listener's address is in use, or does not belong to this machine."""


@dataclass(frozen=True, slots=True)
class BoundSockets:
    """The listening sockets by listener name, and the endpoints to advertise."""

    sockets: dict[str, socket.socket]
    advertised: Listeners

    def description(self) -> str:
        """What each listener is bound to and what it advertises, for the log."""
        parts = []
        for name, host, port in self.advertised:
            bound = Address(*self.sockets[name].getsockname()[:2])
            parts.append(f"{name}://{bound} (advertised as {Address(host, port)})")
        return ", ".join(parts)

    def close(self) -> None:
        """Close all sockets."""
        for sock in self.sockets.values():
            sock.close()


def bind(config: NodeConfig) -> BoundSockets:
    """Open the listening sockets of the controller's listeners. Raises ListenError."""
    sockets: dict[str, socket.socket] = {}
    ports: dict[str, int] = {}
    for listener in config.controller_listeners():
        try:
            sockets[listener.name] = _listening_socket(listener, config)
        except OSError as error:
            for sock in sockets.values():
                sock.close()
            raise ListenError(_why_not(listener, "listeners", error)) from None
        ports[listener.name] = sockets[listener.name].getsockname()[1]
    hostname = socket.gethostname()
    return BoundSockets(sockets, resolved_listeners(config, ports, hostname))


def bind_metrics(config: NodeConfig) -> socket.socket | None:
    """Open the socket of `quorate.metrics.listener`, if it is set. Raises ListenError."""
    address = config.metrics_listener
    if address is None:
        return None
    listener = Listener("metrics", *address)
    try:
        return _listening_socket(listener, config)
    except OSError as error:
        raise ListenError(_why_not(listener, METRICS_LISTENER, error)) from None


def _listening_socket(listener: Listener, config: NodeConfig) -> socket.socket:
    if listener.host and not is_wildcard(listener.host):
        found = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        # As Java: prefer the IPv4 address of a name.
        family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        return _listening(family, address, config)
    # As Java: one socket for IPv4 and IPv6, where the machine has both.
    if socket.has_dualstack_ipv6():
        try:
            return _listening(socket.AF_INET6, ("::", listener.port), config)
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
    return _listening(socket.AF_INET, ("0.0.0.0", listener.port), config)


def _listening(
    family: int, address: tuple[str | int, ...] | tuple[int, bytes], config: NodeConfig
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            everywhere = address[0] == "::"
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not everywhere)
        for option, size in (  # accepted connections inherit them
            (socket.SO_SNDBUF, config.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, config.socket_receive_buffer_bytes),
        ):
            if size != SYSTEM_DEFAULT:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        sock.setblocking(False)
        sock.bind(address)
        sock.listen(backlog(config))
    except OSError:
        sock.close()
        raise
    return sock


def backlog(config: NodeConfig) -> int:
    """How many connections may wait until they are accepted."""
    wanted = max(config.socket_listen_backlog_size, MIN_BACKLOG)
    return min(wanted, max_backlog_for(soft_limit()))


def _why_not(listener: Listener, key: str, error: OSError) -> str:
    where = Address(listener.host or "0.0.0.0", listener.port)
    if error.errno == errno.EADDRINUSE:
        return (
            f"Cannot listen on {where} ({listener.name}): the port is in use. Stop the program "
            f"that uses it, or set another port in '{key}'"
        )
    return f"Cannot listen on {where} ({listener.name}): {error.strerror or error}"
