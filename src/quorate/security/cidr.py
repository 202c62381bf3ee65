"""Ranges of addresses in access control entries (KIP-1276): CIDR notation, IPv4 and IPv6. Pure.

Source: `CidrUtils`, and the `SubnetUtils` that it calls.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_PREFIX_LENGTH: Final = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_MAX_BYTE: Final = 255
_IPV4_BITS: Final = 32
_IPV6_BITS: Final = 128


def parse_range(text: str) -> Network:
    """The addresses of a range; bits behind its prefix do not count.

    Raises ValueError with Kafka's text.
    """
    return _ipv6(text) if ":" in text else _ipv4(text)


def _ipv4(text: str) -> ipaddress.IPv4Network:
    found = _IPV4.fullmatch(text)
    if found is None:
        raise ValueError(f"Could not parse [{text}]")
    *parts, length = (int(group) for group in found.groups())
    for value, most in (*((part, _MAX_BYTE) for part in parts), (length, _IPV4_BITS)):
        if value > most:
            raise ValueError(f"Value [{value}] not in range [0,{most}]")
    return ipaddress.IPv4Network((bytes(parts), length), strict=False)


def _ipv6(text: str) -> ipaddress.IPv6Network:
    host, _, length = text.partition("/")
    if _PREFIX_LENGTH.fullmatch(length) is None:
        raise ValueError(f"Could not parse [{text}] - invalid prefix length")
    if not 0 <= int(length) <= _IPV6_BITS:
        raise ValueError(
            f"Could not parse [{text}] - prefix length must be between 0 and {_IPV6_BITS}"
        )
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        raise ValueError(f"Could not parse [{host}]") from None
    if address.ipv4_mapped is not None:
        raise ValueError(f"Could not parse [{host}] - not an IPv6 address")
    return ipaddress.IPv6Network((address.packed, int(length)), strict=False)


def is_in_range(host: str, text: str) -> bool:
    """Whether an address is in a range. What cannot be read is not."""
    network = _network(text)
    if network is None:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.version == network.version and address in network


@lru_cache(maxsize=4096)
def _network(text: str) -> Network | None:
    try:
        return parse_range(text)
    except ValueError:
        return None
