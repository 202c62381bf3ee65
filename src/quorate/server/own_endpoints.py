"""Recognise the endpoints of this node, under whatever name they are written."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from quorate.base.ids import Address
from quorate.server.name_resolution import ips_of
from quorate.server.sockets import BoundSockets

_Ip = IPv4Address | IPv6Address
_DISCARD: Final = 9
"""A port for datagrams that nobody reads."""


class OwnEndpoints:
    """What the listening sockets of a node are bound to, and what it advertises."""

    def __init__(self, bound: BoundSockets) -> None:
        self._advertised = {Address(host, port) for _, host, port in bound.advertised}
        self._bound = [
            (_plain(sock.getsockname()[0]), sock.getsockname()[1])
            for sock in bound.sockets.values()
        ]

    async def include(self, address: Address) -> bool:
        """Whether a connection to the address reaches this node.

        One IP address of the name must be the node's own, and the others must be of this machine.
        `localhost` has an address that the node may not be bound to. A name of several nodes is not the
        node's own. Takes as long as the system's resolver.
        """
        if address in self._advertised:
            return True
        asked = await _resolved(address.host)
        advertised: set[_Ip] = set()
        for host, port in self._advertised:
            if port == address.port:
                advertised |= await _resolved(host)
        reached = {ip for ip in asked if ip in advertised or self._listens(ip, address.port)}
        return bool(reached) and all(_is_of_this_machine(ip) for ip in asked - reached)

    def _listens(self, ip: _Ip, port: int) -> bool:
        return any(
            port == bound_port
            and (ip == bound or (bound.is_unspecified and _is_of_this_machine(ip)))
            for bound, bound_port in self._bound
        )


async def _resolved(host: str) -> set[_Ip]:
    """The IP addresses of a name; none where it cannot be resolved."""
    with suppress(OSError, ValueError):
        return {_plain(ip) for ip in await ips_of(host)}
    return set()


def _plain(ip: str) -> _Ip:
    """The address itself: an IPv4 address may be written as one of IPv6."""
    found = ip_address(ip)
    return getattr(found, "ipv4_mapped", None) or found


def _is_of_this_machine(ip: _Ip) -> bool:
    """Whether what is sent there would leave from the address itself.

    A trial bind does not tell: with net.ipv4.ip_nonlocal_bind any address can be bound.
    """
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((str(ip), _DISCARD))  # sends nothing
            return _plain(sock.getsockname()[0]) == ip
    except OSError:  # also where the machine has no IPv6 at all
        return False
