"""Controllers as child processes, which end with their supervisor however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

from quorate.base.errors import QuorateError
from quorate.cli.quorum_directory import Node, QuorumDirectory
from quorate.cli.tethered import GRACE_S

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TAIL_BYTES: Final = 4_096
T = TypeVar("T")


class Supervisor(QuorumDirectory):
    """The controllers of one data directory, running.

    A context manager: SIGTERM and SIGHUP inside are like Ctrl-C, and leaving it stops them all.
    """

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self._handlers: dict[signal.Signals, Any] = {}

    def start_all(self) -> None:
        """Raises QuorateError when a controller of this directory runs already."""
        # Controllers whose supervisor was killed follow it within the grace.
        deadline = time.monotonic() + 2 * GRACE_S
        while busy := self.running_elsewhere():
            if time.monotonic() > deadline:
                raise QuorateError(_already_running(self.data, busy))
            time.sleep(0.05)
        for node in self.nodes.values():
            self.start(node)

    def start(self, node: Node) -> None:
        with self.log_file(node).open("ab") as log:
            self.processes[node.id] = subprocess.Popen(
                (
                    *(sys.executable, "-m", "quorate.cli.tethered"),
                    *("server-start", str(self.properties(node))),
                ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def alive(self, node_id: int) -> bool:
        process = self.processes.get(node_id)
        return process is not None and process.poll() is None

    def pid_of(self, node: Node) -> int | None:
        """Of its process, whoever started it; 0 when that is not told, None while it is down."""
        return self.processes[node.id].pid if self.alive(node.id) else self.user_of(node)

    def running_elsewhere(self) -> dict[int, int]:
        """Controllers of this directory that others started: pid by node id (0: not told)."""
        found = {n.id: self.user_of(n) for n in self.nodes.values() if not self.alive(n.id)}
        return {node_id: pid for node_id, pid in found.items() if pid is not None}

    def kill(self, node_id: int) -> None:
        """kill -9, and wait until it is gone."""
        process = self.processes[node_id]
        process.kill()
        process.wait()

    def ended(self) -> dict[int, str]:
        """Why each process that ended by itself did, by node id."""
        return {i: self._why(i) for i in self.processes if not self.alive(i)}

    def check(self) -> None:
        """Raise QuorateError, with the last words of each, when no controller runs any more."""
        ended = self.ended()
        if len(ended) == len(self.processes) and not self.running_elsewhere():
            reasons = "".join(f"\n  controller {i}: {why}" for i, why in ended.items())
            raise QuorateError(f"no controller runs:{reasons}")

    def _why(self, node_id: int) -> str:
        code = self.processes[node_id].returncode
        if code < 0:
            return f"ended by signal {-code} ({signal.strsignal(-code)})"
        with self.log_file(self.nodes[node_id]).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
        return f"exit code {code}: {lines[-1] if lines else '(it logged nothing)'}"

    def stop(self) -> None:
        """SIGTERM all, then kill -9 what has not ended after a moment."""
        going = [p for p in self.processes.values() if p.poll() is None]
        for process in going:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for process in going:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self) -> Supervisor:
        for number in _STOP_SIGNALS:
            # nohup and a shell's `&` have set some to be ignored: so they stay.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, _interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        # A second Ctrl-C must not leave a controller behind; this takes about a second.
        for number in self._handlers:
            signal.signal(number, signal.SIG_IGN)
        try:
            self.stop()
        finally:
            self.unlock()
            for number, handler in self._handlers.items():
                signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _already_running(data: Path, busy: dict[int, int]) -> str:
    who = ", ".join(f"{i} (pid {pid or 'unknown'})" for i, pid in busy.items())
    pids = " ".join(str(pid) for pid in busy.values() if pid)
    how = f"stop them first: kill {pids}" if pids else "stop them first"
    return f"controllers of {data} run already, started by another program: {who}; {how}"


def wait_for(what: str, probe: Callable[[], T | None], timeout_s: float = 30.0) -> T:
    """The first result of `probe` that is not None; QuorateError naming `what` on time-out."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = probe()
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise QuorateError(f"waited {timeout_s:.0f} s in vain for {what}")
        time.sleep(0.01)
