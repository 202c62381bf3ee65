"""The listening sockets of a node."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, Listeners
from quorate.node.config import METRICS_LISTENER, NodeConfig, resolved_listeners
from quorate.server.descriptors import in_force, longest_backlog
from quorate.server.limits import LEAST_BACKLOG

SYSTEMS_CHOICE: Final = -1
_EVERYWHERE: Final = ("", "0.0.0.0", "::")
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


class CannotListen(QuorateError):
    """A listener's address is taken or does not exist here."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The listening sockets by listener name, and what others should connect to."""

    sockets: dict[str, socket.socket]
    advertised: Listeners

    def close(self) -> None:
        for sock in self.sockets.values():
            sock.close()


def bind(config: NodeConfig) -> Bound:
    """Open the listening sockets. Raises CannotListen."""
    sockets: dict[str, socket.socket] = {}
    ports: dict[str, int] = {}
    for listener in config.controller_listeners():
        try:
            sockets[listener.name] = _listening_socket(listener, config)
        except OSError as error:
            for sock in sockets.values():
                sock.close()
            raise CannotListen(_why_not(listener, "listeners", error)) from None
        ports[listener.name] = sockets[listener.name].getsockname()[1]
    hostname = socket.gethostname()
    return Bound(sockets, resolved_listeners(config, ports, hostname))


def bind_metrics(config: NodeConfig) -> socket.socket | None:
    """The socket of `quorate.metrics.listener`, where that is set. Raises CannotListen."""
    address = config.metrics_listener
    if address is None:
        return None
    listener = Listener("metrics", *address)
    try:
        return _listening_socket(listener, config)
    except OSError as error:
        raise CannotListen(_why_not(listener, METRICS_LISTENER, error)) from None


def _listening_socket(listener: Listener, config: NodeConfig) -> socket.socket:
    if listener.host not in _EVERYWHERE:
        found = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        # As Java does: a name's IPv4 address, where it has one.
        family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        return _listening(family, address, config)
    # As Java does: one socket for IPv4 and IPv6, where the machine has both.
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
        for option, size in (  # a connection has those of the socket that accepted it
            (socket.SO_SNDBUF, config.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, config.socket_receive_buffer_bytes),
        ):
            if size != SYSTEMS_CHOICE:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        sock.setblocking(False)
        sock.bind(address)
        sock.listen(backlog(config))
    except OSError:
        sock.close()
        raise
    return sock


def backlog(config: NodeConfig) -> int:
    """How many connections may wait at a listener until they are accepted."""
    wanted = max(config.socket_listen_backlog_size, LEAST_BACKLOG)
    return min(wanted, longest_backlog(in_force()))


def _why_not(listener: Listener, key: str, error: OSError) -> str:
    where = Address(listener.host or "0.0.0.0", listener.port)
    if error.errno == errno.EADDRINUSE:
        return (
            f"Cannot listen on {where} ({listener.name}): the port is in use. Stop the program "
            f"that has it, or give another port in '{key}'"
        )
    return f"Cannot listen on {where} ({listener.name}): {error.strerror or error}"
