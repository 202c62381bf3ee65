"""Parse `host:port` by the rules of Kafka's `Utils.getHost` and `Utils.getPort`."""

from __future__ import annotations

import re
from typing import Final

from quorate.base.ids import Address

MAX_PORT: Final = 65535
_HOST_PORT: Final = re.compile(
    r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)", re.ASCII
)


def parse_host_port(text: str) -> Address | None:
    """Parse `host:port`; brackets and a protocol prefix are optional.

    Returns None for any other text and for a port above 65535.
    """
    match = _HOST_PORT.fullmatch(text)
    if match is None or int(match[2]) > MAX_PORT:
        return None
    return Address(match[1], int(match[2]))
