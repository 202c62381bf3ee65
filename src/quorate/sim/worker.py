"""What a process of a pool does first of all: nothing of a world is in memory yet."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event


_over: Event | None = None
"""Set when nobody waits any more for what the pool does."""


def begin(over: Event, bug: str | None = None) -> None:
    """Leave interrupts to the parent, end when that is gone, and plant the bug."""
    global _over
    _over = over
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if bug is not None:
        from quorate.sim.mutants.hunt import find
        from quorate.sim.mutants.plant import plant

        plant(find(bug))


def is_wanted() -> bool:
    """Does anybody wait for another world?"""
    return _over is None or not _over.is_set()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
