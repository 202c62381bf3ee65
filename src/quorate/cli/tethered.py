"""A quorate command that does not outlive the program that started it.

Its standard input is a pipe from that program, on which nothing is ever written. However that
program ends, kill -9 too, the pipe ends with it; and so does this process.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Final

from quorate.cli.main import main

GRACE_S: Final = 1.0
"""From SIGTERM to kill -9.

A follower leaves at once. A leader waits until its successor is elected, and when the whole quorum
is told to stop there is none: after a moment there is nothing to wait for. It loses nothing: what
was acknowledged is on the disks.
"""


def _end_with_the_parent() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    main()
