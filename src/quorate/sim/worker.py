"""What a process of a pool does first of all: nothing of a world is in memory yet."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event


_GRACE_S: Final = 1.0
_over: Event | None = None
"""Set when nobody waits any more for what the pool does."""


def begin(over: Event, bug: str | None = None) -> None:
    """Leave interrupts to the parent, end when that is gone, and plant the bug."""
    global _over
    _over = over
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    for end in (_end_with_parent, _end_when_told):
        threading.Thread(target=end, daemon=True).start()
    if bug is not None:
        from quorate.sim.mutants.hunt import find
        from quorate.sim.mutants.plant import plant

        plant(find(bug))


def is_wanted() -> bool:
    """Does anybody wait for another world?"""
    return _over is None or not _over.is_set()


def _end_when_told() -> None:
    """A pool that has lost a process tells the others to end, and waits for that. Who tells all
    processes of a terminal gives the parent time to be interrupted first."""
    signal.sigwait({signal.SIGTERM})
    time.sleep(_GRACE_S)
    os._exit(1)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
