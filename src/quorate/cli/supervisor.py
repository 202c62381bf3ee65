"""Controllers as child processes in one data directory: made once, resumed ever after."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from quorate.base.errors import QuorateError
from quorate.base.ids import Uuid, uuid_to_text

_QUORATE = (sys.executable, "-m", "quorate.cli.main")
_MEMORY = "quickstart.json"
T = TypeVar("T")


@dataclass(slots=True)
class Node:
    """One controller: what it is and, while it runs, its process."""

    id: int
    port: int
    directory_id: str

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


def free_ports(count: int) -> list[int]:
    """`count` TCP ports of the loopback address that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def random_uuid() -> str:
    """A random uuid in Kafka's text form that does not begin with '-'."""
    while True:
        text = uuid_to_text(Uuid(secrets.token_bytes(16)))
        if not text.startswith("-"):
            return text


class Supervisor:
    """The controllers of one data directory. A context manager: leaving it stops them all."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.cluster_id = ""
        self.nodes: dict[int, Node] = {}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    # -- the data directory -----------------------------------------------------------------
    def load_or_create(self, controllers: int) -> bool:
        """True when the directory held a quorum already (then `controllers` is ignored)."""
        memory = self.data / _MEMORY
        if memory.exists():
            try:
                kept = json.loads(memory.read_text())
                self.cluster_id = kept["cluster_id"]
                self.nodes = {n["id"]: Node(**n) for n in kept["nodes"]}
            except (ValueError, KeyError, TypeError) as error:
                raise QuorateError(
                    f"{memory} is not readable ({error}); move it away, or use another --data"
                ) from None
            return True
        if self.data.exists() and any(self.data.iterdir()):
            raise QuorateError(
                f"{self.data} is not empty and holds no {_MEMORY}; "
                "name an empty directory with --data"
            )
        self.cluster_id = random_uuid()
        ports = free_ports(controllers)
        self.nodes = {i: Node(i, port, random_uuid()) for i, port in enumerate(ports, start=1)}
        founders = ",".join(f"{n.id}@{n.address}:{n.directory_id}" for n in self.nodes.values())
        for node in self.nodes.values():
            self._write_properties(node)
            self._format(node, "--initial-controllers", founders)
        self._remember()
        return False

    def add_node(self) -> Node:
        """Format one more controller that joins later; it is not started yet."""
        node = Node(max(self.nodes) + 1, free_ports(1)[0], "")
        self._write_properties(node)
        self._format(node, "--no-initial-controllers")
        self.nodes[node.id] = node
        self._remember()
        return node

    def home(self, node: Node) -> Path:
        return self.data / f"controller-{node.id}"

    def properties(self, node: Node) -> Path:
        return self.home(node) / "server.properties"

    def log_file(self, node: Node) -> Path:
        return self.home(node) / "server.log"

    def _write_properties(self, node: Node) -> None:
        self.home(node).mkdir(parents=True, exist_ok=True)
        known = list(self.nodes.values()) or [node]
        lines = {
            "node.id": node.id,
            "process.roles": "controller",
            "listeners": f"CONTROLLER://{node.address}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(n.address for n in known),
            "log.dirs": self.home(node).resolve() / "data",
        }
        self.properties(node).write_text("".join(f"{k}={v}\n" for k, v in lines.items()))

    def _format(self, node: Node, *how: str) -> None:
        run = subprocess.run(
            (
                *(*_QUORATE, "storage", "format", "--cluster-id", self.cluster_id),
                *("--config", str(self.properties(node)), *how),
            ),
            capture_output=True,
            text=True,
        )
        if run.returncode:
            raise QuorateError(f"formatting controller {node.id} failed: {run.stderr.strip()}")

    def _remember(self) -> None:
        text = {
            "cluster_id": self.cluster_id,
            "nodes": [asdict(n) for n in self.nodes.values()],
        }
        (self.data / _MEMORY).write_text(json.dumps(text, indent=2) + "\n")

    # -- the processes ----------------------------------------------------------------------
    @property
    def bootstrap(self) -> str:
        return ",".join(n.address for n in self.nodes.values())

    def start(self, node: Node) -> None:
        with self.log_file(node).open("ab") as log:
            self.processes[node.id] = subprocess.Popen(
                [*_QUORATE, "server-start", str(self.properties(node))],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def alive(self, node_id: int) -> bool:
        process = self.processes.get(node_id)
        return process is not None and process.poll() is None

    def kill(self, node_id: int) -> None:
        """kill -9, and wait until it is gone."""
        process = self.processes[node_id]
        process.kill()
        process.wait()

    def dead(self) -> Iterable[tuple[Node, int]]:
        """Nodes whose process ended by itself, with its exit code."""
        for node_id, process in self.processes.items():
            if process.poll() is not None:
                yield self.nodes[node_id], process.returncode

    def last_words(self, node: Node) -> str:
        lines = self.log_file(node).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "(it logged nothing)"

    def stop(self, node_ids: Iterable[int], timeout_s: float = 10.0) -> None:
        """SIGTERM, then kill -9 what has not ended in `timeout_s`."""
        going = [self.processes[i] for i in node_ids if self.alive(i)]
        for process in going:
            os.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        for process in going:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(list(self.processes))


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
