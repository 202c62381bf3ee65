"""Free TCP ports for programs that start nodes: the quickstart, the nemesis and tests."""

from __future__ import annotations

import errno
import random
import socket
from typing import Final

from quorate.base.errors import QuorateError

LOOPBACK: Final = "127.0.0.1"
_RANGE: Final = range(20_000, 32_000)
"""Below the range for outgoing connections, which could take the port before the next start."""
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """`count` free TCP ports of the loopback address, none of them returned before.

    Raises QuorateError when there are too few, or when this process cannot listen there.
    """
    found: list[int] = []
    for port in random.sample(_RANGE, len(_RANGE)):
        if len(found) == count:
            break
        if port not in _given and _is_free(port):
            found.append(port)
    if len(found) < count:
        raise QuorateError(
            f"there are no {count} free ports between {_RANGE.start} and {_RANGE.stop} on {LOOPBACK}"
        )
    _given.update(found)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the node does
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise QuorateError(f"cannot listen on {LOOPBACK}: {error.strerror}") from None
    return True
