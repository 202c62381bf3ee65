"""The limit on open files of this process, and how many of them may be connections."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

from quorate.base.errors import QuorateError

_RESERVED_FILES: Final = 256 + 2 * 1024
"""For the log, its indexes and snapshots, the peers, Python's own files, and two listeners' backlogs."""
_MIN_FILES: Final = 64
"""Enough for a node of a three-node quorum with one or two segments, and a few clients."""
_MACOS_MAX: Final = 10_240
"""OPEN_MAX: macOS accepts no higher soft limit, even without a hard limit."""


def raise_limit() -> int:
    """Raise the soft limit on open files to the hard limit, as the JVM does; returns the new limit.

    Raises QuorateError when the limit is too low for a node.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _MACOS_MAX):
        if soft == resource.RLIM_INFINITY or soft == hard or 0 <= wanted <= soft:
            break
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            break
    limit = soft_limit()
    if 0 <= limit < _MIN_FILES:
        raise QuorateError(
            f"This process may have {limit} files open, and a node needs at least {_MIN_FILES}: raise "
            "the limit on open files (ulimit -Hn)"
        )
    return limit


def max_connections_for(limit: int) -> int:
    """How many inbound connections leave this process enough files for itself."""
    if limit == resource.RLIM_INFINITY:
        return 2**31 - 1
    return max(limit - _RESERVED_FILES, limit // 2)


def max_backlog_for(limit: int) -> int:
    """How many connections may wait in a listener's backlog.

    asyncio accepts a whole backlog before the node can refuse one. So two full backlogs must fit: they
    leave a quarter of a small limit to the process itself.
    """
    return 2**31 - 1 if limit == resource.RLIM_INFINITY else max(limit // 8, 1)


def soft_limit() -> int:
    """The soft limit on open files."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
