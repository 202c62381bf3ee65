"""Ctrl-C while a world runs: taken between two events, never in the middle of one.

A handler that raises does so inside whatever runs then. Compiled code takes that, in an operation
on large numbers, for want of memory, and aborts the process.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Halt:
    """What a loop looks at before each event: is it to raise KeyboardInterrupt?"""

    __slots__ = ("wanted",)

    def __init__(self) -> None:
        self.wanted = False


HALT: Final = Halt()


@contextmanager
def deferred() -> Iterator[None]:
    """Within, a signal that would raise KeyboardInterrupt at once sets HALT.wanted instead.

    Raises KeyboardInterrupt at the end where nobody has looked.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def take(number: int, frame: FrameType | None) -> None:
        HALT.wanted = True

    taken = [n for n in _SIGNALS if signal.getsignal(n) is signal.default_int_handler]
    for number in taken:
        signal.signal(number, take)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.default_int_handler)
        wanted, HALT.wanted = HALT.wanted, False
        if wanted:
            raise KeyboardInterrupt
