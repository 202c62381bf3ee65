"""A process that kills the nodes of a run when the run itself is killed.

Its standard input is a pipe from the run, with lines `+PID` and `-PID`. When the pipe ends, it
kills every process that is still listed, stopped ones too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys


class Watchdog:
    """The run's end of the pipe."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must not end it before it has killed the nodes
        )

    def watch(self, pid: int) -> None:
        self._send(f"+{pid}")

    def forget(self, pid: int) -> None:
        self._send(f"-{pid}")

    def close(self) -> None:
        """Kill the processes that are still listed; return when they are killed."""
        self._process.communicate()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()


def main() -> None:
    listed: set[int] = set()
    for line in sys.stdin:
        sign, pid = line[0], int(line[1:])
        (listed.add if sign == "+" else listed.discard)(pid)
    for pid in listed:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main()
