"""Kills what a nemesis started, should the nemesis itself be killed: `python -m ...watchdog`

Its standard input is a pipe from the nemesis with lines `+PID` and `-PID`. When that ends, every
process that is still listed is killed, stopped ones too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys


class Watchdog:
    """The nemesis's end of the pipe."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must not take it before it has done its work
        )

    def watch(self, pid: int) -> None:
        self._say(f"+{pid}")

    def forget(self, pid: int) -> None:
        self._say(f"-{pid}")

    def close(self) -> None:
        """Kill what is still listed, and return when that is done."""
        self._process.communicate()

    def _say(self, line: str) -> None:
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
