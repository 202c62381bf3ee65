"""The initialization of a worker process, before it imports the simulator."""

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
"""Set when the pool's results are no longer needed."""


def begin(over: Event, bug: str | None = None) -> None:
    """Ignore interrupts, end when the parent process has ended, and plant the bug."""
    global _over
    _over = over
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    for end in (_end_with_parent, _end_on_signal):
        threading.Thread(target=end, daemon=True).start()
    if bug is not None:
        from quorate.sim.run.plant import plant

        plant(bug)


def is_wanted() -> bool:
    """Whether the pool's results are still needed."""
    return _over is None or not _over.is_set()


def _end_on_signal() -> None:
    """End on SIGTERM: a pool that has lost a process terminates the others and waits for their end.

    A signal to all processes of a terminal reaches the parent too. The delay lets the parent handle
    it first.
    """
    signal.sigwait({signal.SIGTERM})
    time.sleep(_GRACE_S)
    os._exit(1)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
