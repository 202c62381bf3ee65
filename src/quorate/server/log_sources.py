"""Who caused lines that a log leaves out: counted in bounded memory, however many sources there are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from ipaddress import IPv6Network, ip_network
from typing import Final

_MOST: Final = 100
"""Sources that are counted apart, and wider networks of further sources."""
_BITS: Final = 65_536
_SHOWN: Final = 3


class Sources:
    """The sources of the lines of a kind.

    The first `_MOST` are counted apart. Of later ones it counts how many there are, by linear counting
    (Whang et al. 1990), and finds the wider networks with the most lines (Misra and Gries 1982).
    """

    def __init__(self) -> None:
        self._left_out: dict[str, int] = {}
        """Source -> lines that were left out; empty: not known."""
        self._late = 0
        """Lines of later sources that were left out."""
        self._bits = bytearray()
        self._networks: dict[str, _Network] = {}

    def is_first(self, source: str) -> bool:
        """Whether a line is the first of a source that is counted apart."""
        if not source or source in self._left_out or len(self._left_out) >= _MOST:
            return False
        self._left_out[source] = 0
        return True

    def leave_out(self, source: str) -> None:
        """Count a line that is not logged."""
        if source in self._left_out or not source:
            self._left_out[source] = self._left_out.get(source, 0) + 1
        else:
            self._late += 1
            self._see(source)
            self._add(source)

    def left_out(self) -> int:
        """How many lines were left out."""
        return sum(self._left_out.values()) + self._late

    def text(self) -> str:
        """Return `: 40 from 10.0.0.7, 2 from others`, the most first; empty where no source is known."""
        known: Mapping[str, int] = {
            source: count for source, count in self._left_out.items() if count and source
        }
        parts = [f"{known[one]} from {one}" for one in sorted(known, key=known.__getitem__)[::-1]]
        if self._late:
            parts.append(f"{self._late} from {self._others()}")
        if parts and self._left_out.get(""):
            parts.append(f"{self._left_out['']} from unknown sources")
        return ": " + ", ".join(parts) if parts else ""

    def _see(self, source: str) -> None:
        if not self._bits:
            self._bits = bytearray(_BITS // 8)
        place = hash(source) % _BITS  # the hash of a text is secret: no one can choose its place
        self._bits[place // 8] |= 1 << place % 8

    def _add(self, source: str) -> None:
        name = _wide(source)
        found = self._networks.get(name)
        if found is not None:
            found.lines += 1
            if found.only != source:
                found.only = None
        elif len(self._networks) < _MOST:
            self._networks[name] = _Network(source)
        else:
            for one in self._networks.values():
                one.lines -= 1
            self._networks = {name: one for name, one in self._networks.items() if one.lines}

    def _others(self) -> str:
        number = self._number()
        largest = sorted(self._networks.items(), key=lambda item: -item[1].lines)[:_SHOWN]
        shown = ", ".join(f"{one.lines} from {one.only or name}" for name, one in largest)
        about = f"{number} other" if number < _MOST else f"about {number} other"
        return f"{about} source{'s' * (number != 1)}" + (f" (at least {shown})" if shown else "")

    def _number(self) -> int:
        free = _BITS - int.from_bytes(self._bits).bit_count()
        return round(_BITS * math.log(_BITS / max(free, 1)))


class _Network:
    def __init__(self, source: str) -> None:
        self.lines = 1
        """At least as many came from it."""
        self.only: str | None = source
        """Its only source; None: it has several."""


def source_of(address: str) -> str:
    """The /64 of an IPv6 address: a single host may have all its addresses. Other sources stay."""
    if ":" not in address:
        return address
    try:
        return str(IPv6Network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address


def _wide(source: str) -> str:
    """The /24 of an IPv4 address, the /48 of an IPv6 network; another source stays."""
    try:
        found = ip_network(source)
    except ValueError:
        return source
    return str(found.supernet(new_prefix=24 if found.version == 4 else 48))
