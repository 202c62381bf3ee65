"""Signals that come before the node's loop takes them: while it is imported and its log is read."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Never


class LeftEarly(BaseException):
    """Told to stop before anything was begun that would have to be ended; names the signal.

    Like KeyboardInterrupt it is no Exception: nothing on the way may take it for a failure.
    """


def watch() -> None:
    """From now on SIGTERM and SIGINT raise LeftEarly in the main thread, SIGHUP does nothing.

    A half-read log is left as by a crash, which is what the next start is made for. Ends when the
    node's own handlers take their place.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    signal.signal(signal.SIGHUP, lambda number, frame: None)


def _leave(number: int, frame: FrameType | None) -> Never:
    raise LeftEarly(signal.Signals(number).name)
