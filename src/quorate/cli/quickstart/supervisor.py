"""Run controllers as child processes, which end with their supervisor however it ends."""

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
from quorate.cli.quickstart.controller_process import GRACE_S
from quorate.cli.quickstart.quorum_directory import QuickstartNode, QuorumDirectory

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TAIL_BYTES: Final = 4_096
T = TypeVar("T")


class Supervisor(QuorumDirectory):
    """Runs the controllers of one data directory.

    As a context manager it turns SIGTERM and SIGHUP into KeyboardInterrupt, and stops all controllers
    at the end.
    """

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self._handlers: dict[signal.Signals, Any] = {}

    def start_all(self) -> None:
        """Start all controllers. Raises QuorateError when one of them runs already."""
        # Controllers whose supervisor was killed stop within GRACE_S: wait for them.
        deadline = time.monotonic() + 2 * GRACE_S
        while busy := self.running_elsewhere():
            if time.monotonic() > deadline:
                raise QuorateError(_already_running(self.data, busy))
            time.sleep(0.05)
        for node in self.nodes.values():
            self.start(node)

    def start(self, node: QuickstartNode) -> None:
        """Start a controller as a child process."""
        with self.log_file(node).open("ab") as log:
            self.processes[node.id] = subprocess.Popen(
                (
                    *(sys.executable, "-m", "quorate.cli.quickstart.controller_process"),
                    *("server-start", str(self.properties(node))),
                ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def alive(self, node_id: int) -> bool:
        """Whether the controller runs as a child of this process."""
        process = self.processes.get(node_id)
        return process is not None and process.poll() is None

    def pid_of(self, node: QuickstartNode) -> int | None:
        """The pid of the controller, however it was started: 0 if unknown, None while it is down."""
        return self.processes[node.id].pid if self.alive(node.id) else self.lock_pid_of(node)

    def running_elsewhere(self) -> dict[int, int]:
        """Controllers of this directory that other programs run: pid (0: unknown) by node id."""
        found = {n.id: self.lock_pid_of(n) for n in self.nodes.values() if not self.alive(n.id)}
        return {node_id: pid for node_id, pid in found.items() if pid is not None}

    def kill(self, node_id: int) -> None:
        """Send SIGKILL and wait for the end of the process."""
        process = self.processes[node_id]
        process.kill()
        process.wait()

    def ended(self) -> dict[int, str]:
        """The exit reason of each process that has ended, by node id."""
        return {i: self._exit_reason(i) for i in self.processes if not self.alive(i)}

    def check(self) -> None:
        """Raise QuorateError, with the exit reason of each, when no controller runs."""
        ended = self.ended()
        if len(ended) == len(self.processes) and not self.running_elsewhere():
            reasons = "".join(f"\n  controller {i}: {why}" for i, why in ended.items())
            raise QuorateError(f"no controller runs:{reasons}")

    def _exit_reason(self, node_id: int) -> str:
        code = self.processes[node_id].returncode
        if code < 0:
            return f"ended by signal {-code} ({signal.strsignal(-code)})"
        with self.log_file(self.nodes[node_id]).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
        return f"exit code {code}: {lines[-1] if lines else '(it logged nothing)'}"

    def stop(self) -> None:
        """Send SIGTERM to all, and SIGKILL to those that have not ended after GRACE_S."""
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
            # nohup and a shell's `&` ignore some of them: keep that.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, _interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        # Ignore a second Ctrl-C: it must not leave a controller running. This takes about a second.
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
    return f"controllers of {data} are already running, started by another program: {who}; {how}"


def wait_for(what: str, probe: Callable[[], T | None], timeout_s: float = 30.0) -> T:
    """Call `probe` until it returns a value. Raises QuorateError, which names `what`, on timeout."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = probe()
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise QuorateError(f"timed out after {timeout_s:.0f} s waiting for {what}")
        time.sleep(0.01)
