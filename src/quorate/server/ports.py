"""Free ports for those who start nodes themselves: the quickstart and the nemesis."""

from __future__ import annotations

import errno
import random
import socket
from typing import Final

from quorate.base.errors import QuorateError

LOOPBACK: Final = "127.0.0.1"
_RANGE: Final = range(20_000, 32_000)
"""Below the ports from which outgoing connections are given: they shall be free next time too."""
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """`count` TCP ports of the loopback address that nobody listens on now.

    None is given twice in a process. Raises QuorateError when there are not so many, or when
    nobody may listen there at all.
    """
    found: list[int] = []
    for port in random.sample(_RANGE, len(_RANGE)):
        if len(found) == count:
            break
        if port not in _given and _is_free(port):
            found.append(port)
    if len(found) < count:
        raise QuorateError(
            f"found no {count} free ports between {_RANGE.start} and {_RANGE.stop} on {LOOPBACK}"
        )
    _given.update(found)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the node itself will ask
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise QuorateError(f"cannot listen on {LOOPBACK}: {error.strerror}") from None
    return True
