"""How many files and sockets this process may have open, and how many of them may be clients'."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

_RESERVED: Final = 256
"""For the log, its indexes and snapshots, the peers, and the files of Python itself."""
_MACOS_MOST: Final = 10_240
"""OPEN_MAX: where the hard limit is none, macOS takes no more than this."""


def raise_limit() -> int:
    """Lift the soft limit on open files to the hard one, as the JVM does; the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _MACOS_MOST):
        if soft == resource.RLIM_INFINITY or soft == hard or 0 <= wanted <= soft:
            break
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            break
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def most_connections(limit: int) -> int:
    """How many connections of others leave this process the files that it needs itself."""
    if limit == resource.RLIM_INFINITY:
        return 2**31 - 1
    return max(limit - _RESERVED, limit // 2)


def connections_that_fit() -> int:
    """`most_connections` of the limit in force."""
    return most_connections(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
