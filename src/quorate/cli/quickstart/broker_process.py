"""A program that ends with its parent process: Kafka's broker does not do so by itself.

Its stdin is a pipe from the parent, which never writes to it. When the parent ends, even by kill -9, the
pipe is closed and the program is stopped. SIGTERM is passed on. The exit code is that of the program.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Final

_GRACE_S: Final = 10.0
"""Time of an orderly end, until kill -9."""


def run(command: Sequence[str]) -> int:
    """Run the command to its end; returns its exit code."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) as process:

        def end() -> None:
            process.terminate()
            timer = threading.Timer(_GRACE_S, process.kill)
            timer.daemon = True
            timer.start()

        def end_with_the_parent() -> None:
            os.read(0, 1)
            end()

        signal.signal(signal.SIGTERM, lambda number, frame: end())
        threading.Thread(target=end_with_the_parent, daemon=True).start()
        return process.wait()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
