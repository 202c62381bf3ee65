"""Ctrl-C while a world runs: taken between two events, never in the middle of one.

A handler that raises an exception does so at an arbitrary point of the running code. Compiled code
takes an exception within an operation on large integers for a lack of memory, and aborts.
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
    """A flag that a loop reads before each event: whether to raise KeyboardInterrupt."""

    __slots__ = ("wanted",)

    def __init__(self) -> None:
        self.wanted = False


HALT: Final = Halt()


@contextmanager
def deferred() -> Iterator[None]:
    """Within this context a signal sets HALT.wanted instead of raising KeyboardInterrupt.

    Raises KeyboardInterrupt at the end where no loop has read the flag.
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
