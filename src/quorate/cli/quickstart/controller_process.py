"""A `quorate` command that ends with its parent process.

Its stdin is a pipe from the parent, which never writes to it. When the parent ends, even by kill -9, the
pipe is closed and this process stops.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Final

from quorate.cli.main import main

GRACE_S: Final = 1.0
"""Time from SIGTERM to kill -9.

A follower stops at once. A leader waits until its successor is elected; when the whole quorum stops, there
is none. Killing it loses nothing: acknowledged records are on the disks.
"""


def _end_with_the_parent() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    main()
