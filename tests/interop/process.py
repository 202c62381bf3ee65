"""A quorum node as a real operating-system process, whichever program it runs."""

from __future__ import annotations

import atexit
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from quorate.base.ids import Uuid, uuid_from_text
from quorate.server.ports import LOOPBACK, free_ports

T = TypeVar("T")

HOST = LOOPBACK

QUORATE = [sys.executable, "-m", "quorate"]

_running: set[subprocess.Popen[bytes]] = set()


@atexit.register
def _end_all() -> None:
    for process in list(_running):
        process.kill()


def free_port() -> int:
    """A TCP port without a listener, below the range from which outgoing connections are given."""
    return free_ports(1)[0]


def wait_for(
    condition: Callable[..., T | None], what: str, timeout: float = 30.0, every: float = 0.05
) -> T:
    """The first true answer of `condition`, asked `every` s; AssertionError after `timeout` s.

    It is called without arguments. A lambda in a loop binds the loop's variable by a default.
    """
    end = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout:g} s for {what}; last answer: {answer!r}")
        time.sleep(every)


def run_tool(command: list[str], timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    """Run a command-line tool to its end; never raises for its exit code."""
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


class Node:
    """One node with a directory of its own: `server.properties`, `data/` and `server.log`.

    `config` holds further Kafka properties, `overrides` those that only one start gets.
    """

    kind = "abstract"

    def __init__(
        self,
        node_id: int,
        directory: Path,
        config: Mapping[str, Any] | None = None,
        roles: str = "controller",
        port: int | None = None,
    ) -> None:
        self.id = node_id
        self.directory = directory
        self.roles = roles
        self.port = port or free_port()
        self.config: dict[str, Any] = dict(config or {})
        self.frozen = False
        self.log_start = 0
        """The length of `log` at the newest start."""
        self.process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"{self.kind} node {self.id}"

    # Where things are

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def partition(self) -> Path:
        return self.data / "__cluster_metadata-0"

    @property
    def log_file(self) -> Path:
        return self.directory / "server.log"

    @property
    def log(self) -> str:
        """All that the process has written to its standard output and error so far."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def directory_id_text(self) -> str:
        """The directory id in meta.properties; fails when the node is not formatted."""
        found = re.search(
            r"^directory\.id=(.+)$", (self.data / "meta.properties").read_text(), re.M
        )
        assert found, f"no directory.id in meta.properties of {self}"
        return found[1].replace("\\", "").strip()

    @property
    def directory_id(self) -> Uuid:
        return uuid_from_text(self.directory_id_text)

    # Life

    def write_properties(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        name = "CONTROLLER" if self.roles == "controller" else "PLAINTEXT"
        properties = {
            "node.id": self.id,
            "process.roles": self.roles,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "listeners": f"{name}://{self.address}",
            "log.dirs": self.data,
            **self.config,
        }
        self.properties.write_text("".join(f"{k}={v}\n" for k, v in properties.items()))

    def format(self, cluster_id: str, *args: str) -> subprocess.CompletedProcess[str]:
        """Format with the own program's storage tool; AssertionError when it refuses."""
        self.write_properties()
        run = self.storage_tool(
            "format", "--cluster-id", cluster_id, "--config", str(self.properties), *args
        )
        assert run.returncode == 0, f"format of {self} failed: {run.stdout}{run.stderr}"
        return run

    def start(self, *args: str) -> Node:
        """Start the process; `args` are further words of its command (`--override k=v`)."""
        assert self.process is None, f"{self} runs already"
        self.write_properties()
        self.log_start = len(self.log)
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.server_command(*args), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        _running.add(self.process)
        return self

    def kill(self, sig: int = signal.SIGKILL, timeout: float = 30.0) -> int:
        """End the process by a signal and wait for it; its exit code (negative: the signal)."""
        assert self.process is not None, f"{self} does not run"
        self.process.send_signal(sig)
        if self.frozen and sig != signal.SIGKILL:
            self.process.send_signal(signal.SIGCONT)
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self} did not end on signal {sig} in {timeout} s") from None
        self._forget()
        return code

    def wait_for_exit(self, timeout: float = 30.0) -> int:
        """Wait until the process ends by itself; its exit code."""
        assert self.process is not None, f"{self} does not run"
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self} still runs after {timeout} s:\n{self.log}") from None
        self._forget()
        return code

    def _forget(self) -> None:
        assert self.process is not None
        _running.discard(self.process)
        self.process, self.frozen = None, False

    def stop(self) -> None:
        """End the process whatever its state, for clearing up."""
        if self.process is not None:
            self.kill()

    def freeze(self) -> None:
        """Stop the process from running (SIGSTOP): it stays connected and says nothing."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)
        self.frozen = False

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def answers(self) -> bool:
        """True when the process runs and is not frozen."""
        return self.is_alive and not self.frozen

    def wait_until_listening(self, timeout: float = 60.0) -> None:
        """Wait until the port accepts connections; fail at once if the process ends before."""

        def listens() -> bool:
            assert self.is_alive, f"{self} died:\n{self.log[-3000:]}"
            with socket.socket() as probe:
                return probe.connect_ex((HOST, self.port)) == 0

        wait_for(listens, f"{self} to listen", timeout)

    # What the programs differ in

    def server_command(self, *args: str) -> list[str]:
        raise AssertionError("the kind of node says how it is started")

    def storage_tool(self, *args: str) -> subprocess.CompletedProcess[str]:
        raise AssertionError("the kind of node has its own storage tool")

    def quorum_tool(self, *args: str) -> subprocess.CompletedProcess[str]:
        raise AssertionError("the kind of node has its own metadata-quorum tool")


class QuorateNode(Node):
    kind = "quorate"

    def server_command(self, *args: str) -> list[str]:
        return [*QUORATE, "server-start", str(self.properties), *args]

    def storage_tool(self, *args: str) -> subprocess.CompletedProcess[str]:
        return run_tool([*QUORATE, "storage", *args])

    def quorum_tool(self, *args: str) -> subprocess.CompletedProcess[str]:
        return run_tool([*QUORATE, "metadata-quorum", *args])

    @staticmethod
    def dump_log(*files: Path, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        names = ",".join(map(str, files))
        return run_tool(
            [*QUORATE, "dump-log", "--cluster-metadata-decoder", *options, "--files", names]
        )
