"""`host:port` as Kafka's properties and tools take it (`Utils.getHost`, `Utils.getPort`)."""

from __future__ import annotations

import re
from typing import Final

from quorate.base.ids import Address

MAX_PORT: Final = 65535
_HOST_PORT: Final = re.compile(
    r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)", re.ASCII
)


def parse_host_port(text: str) -> Address | None:
    """`host:port`, with or without brackets and a protocol; None when it is something else."""
    match = _HOST_PORT.fullmatch(text)
    if match is None or int(match[2]) > MAX_PORT:
        return None
    return Address(match[1], int(match[2]))
