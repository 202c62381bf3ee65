"""How many files and sockets this process may have open, and how many of them may be clients'."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

from quorate.base.errors import QuorateError

_RESERVED: Final = 256 + 2 * 1024
"""For the log, its indexes and snapshots, the peers, the files of Python itself, and for those who
wait at two listeners."""
_LEAST: Final = 64
"""For a node of three whose log has a segment or two, and a few clients."""
_MACOS_MOST: Final = 10_240
"""OPEN_MAX: where the hard limit is none, macOS takes no more than this."""


def raise_limit() -> int:
    """Lift the soft limit on open files to the hard one, as the JVM does; the limit in force.

    Raises QuorateError where a node cannot live with so few.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _MACOS_MOST):
        if soft == resource.RLIM_INFINITY or soft == hard or 0 <= wanted <= soft:
            break
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            break
    limit = in_force()
    if 0 <= limit < _LEAST:
        raise QuorateError(
            f"This process may have {limit} files open, and a node needs at least {_LEAST}: raise "
            "the limit on open files (ulimit -Hn)"
        )
    return limit


def most_connections(limit: int) -> int:
    """How many connections of others leave this process the files that it needs itself."""
    if limit == resource.RLIM_INFINITY:
        return 2**31 - 1
    return max(limit - _RESERVED, limit // 2)


def longest_backlog(limit: int) -> int:
    """How many connections may wait at a listener: all of them are accepted before one is refused.

    Two listeners then leave a quarter of a small limit to the process itself.
    """
    return 2**31 - 1 if limit == resource.RLIM_INFINITY else max(limit // 8, 1)


def in_force() -> int:
    """The soft limit on open files."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
