"""Signals that come before the node's loop takes them: while it is imported and its log is read."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Never


def watch() -> None:
    """From now on SIGTERM and SIGINT end the process with 0, on the spot; SIGHUP does nothing.

    Nothing was begun that would have to be ended: a half-read log is left as by a crash, which is
    what the next start is made for. (An exception could fall into an import, which then is half
    done for those that come after.) Ends when the node's own handlers take their place.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    signal.signal(signal.SIGHUP, lambda number, frame: None)


def _leave(number: int, frame: FrameType | None) -> Never:
    logs = sys.modules.get("quorate.server.logs")
    with suppress(Exception):  # it may be half imported itself, or in the middle of a line
        if logs is not None and logs.LOG.handlers:
            name = signal.Signals(number).name
            logs.LOG.info("Received %s before the start was over: stopped", name)
    os._exit(0)
