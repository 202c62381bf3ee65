"""IP addresses as Java writes them, and whether two texts name the same address. Pure.

Source: `InetAddress.getHostAddress()`, which Kafka compares, logs and forwards.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address


def java_address(host: str, scope_id: int = 0) -> str:
    """The text that Java gives for an address; what is no address stays.

    IPv6 has eight groups without leading zeros, and `%` before the number of its scope. An IPv4
    address inside IPv6 is one of IPv4.
    """
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    groups = (found.packed[at : at + 2] for at in range(0, 16, 2))
    text = ":".join(f"{int.from_bytes(group, 'big'):x}" for group in groups)
    return f"{text}%{scope_id}" if scope_id else text


def peer_host(name: tuple[object, ...]) -> str:
    """The address in the name of a socket, as `socket.getpeername` returns it."""
    scope = name[3] if len(name) > 3 else 0
    return java_address(str(name[0]), scope if isinstance(scope, int) else 0)


def is_same_address(text: str, host: str) -> bool:
    """Whether a text, in any spelling, names the address `host`, which is in Java's form.

    A text without a scope, or with the name of an interface, stands for every scope.
    """
    address, scope = _spelt(text)
    found, _, its_scope = host.partition("%")
    return address == found and scope in ("", its_scope)


@lru_cache(maxsize=4096)
def _spelt(text: str) -> tuple[str, str]:
    scope = text.partition("%")[2]
    return java_address(text), scope if scope.isdecimal() else ""


def spellings(host: str) -> tuple[str, ...]:
    """The texts for an address in Java's form, without its scope: that form, and the short one."""
    address = host.partition("%")[0]
    try:
        short = str(ip_address(address))
    except ValueError:
        return (address,)
    return (address,) if short == address else (address, short)
