"""The data directory of a quickstart: its controllers, formatted once, resumed ever after."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import struct
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Uuid, uuid_to_text
from quorate.formats.files import LOCK
from quorate.node.ensemble import temporary_of, write_durably
from quorate.server.ports import free_ports

_MEMORY: Final = "quickstart.json"
_LOCK: Final = "quickstart.lock"
_LISTENER: Final = "CONTROLLER"
_NOTE: Final = "# Set anew by 'quorate quickstart' at each start; lines with other keys are kept."
# struct flock: l_start, l_len, l_pid, l_type, l_whence on macOS; type and whence first on Linux.
_FLOCK: Final = "qqihh" if sys.platform == "darwin" else "hhqqi0q"


@dataclass(slots=True)
class Node:
    """One controller of a data directory."""

    id: int
    port: int
    directory_id: str
    """Of a founder of the quorum; empty for a controller that joins later."""
    formatted: bool = True

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


class QuorumDirectory:
    """What is in the directory `data`, wherever that lies now."""

    def __init__(self, data: Path) -> None:
        self.data = data.absolute()
        self.cluster_id = ""
        self.nodes: dict[int, Node] = {}
        self._lock_fd = -1

    def load_or_create(self, controllers: int) -> bool:
        """True when the directory held a quorum already (then `controllers` is ignored).

        Locks the directory. Raises QuorateError when another quickstart uses it, when it holds
        something else, or when a controller cannot be formatted.
        """
        memory = self.data / _MEMORY
        if not memory.exists() and self._holds_something_else():
            raise QuorateError(
                f"{self.data} is not empty and holds no {_MEMORY}; "
                "name an empty directory with --data"
            )
        self.data.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        resumed = memory.exists()
        if resumed:
            self._load(memory)
        else:
            self.cluster_id = random_uuid()
            ports = free_ports(controllers)
            self.nodes = {
                i: Node(i, port, random_uuid(), False) for i, port in enumerate(ports, start=1)
            }
            # Before anything is formatted: who is interrupted here goes on with the same ids.
            self._remember()
        self._write_properties()
        for node in self.nodes.values():
            if not node.formatted:
                self._format(node)
        return resumed

    def add_node(self) -> Node:
        """Format one more controller that joins later; it is not started yet."""
        node = Node(max(self.nodes) + 1, free_ports(1)[0], "", False)
        self.nodes[node.id] = node
        self._remember()
        self._write_properties()
        self._format(node)
        return node

    def unlock(self) -> None:
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            os.close(fd)

    @property
    def bootstrap(self) -> str:
        return ",".join(n.address for n in self.nodes.values())

    def home(self, node: Node) -> Path:
        return self.data / f"controller-{node.id}"

    def log_dir(self, node: Node) -> Path:
        return self.home(node) / "data"

    def properties(self, node: Node) -> Path:
        return self.home(node) / "server.properties"

    def log_file(self, node: Node) -> Path:
        return self.home(node) / "server.log"

    def user_of(self, node: Node) -> int | None:
        """The pid of the process that has the node's log directory; None while nobody has it."""
        return lock_holder(self.log_dir(node) / LOCK)

    def _holds_something_else(self) -> bool:
        ours = (_LOCK, temporary_of(Path(_MEMORY)).name)
        return self.data.exists() and any(entry.name not in ours for entry in self.data.iterdir())

    def _take_lock(self) -> None:
        path = self.data / _LOCK
        holder = lock_holder(path)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise QuorateError(
                f"another quickstart{f' (pid {holder})' if holder else ''} runs the controllers "
                f"of {self.data}; stop it with Ctrl-C, or use another --data"
            ) from None
        self._lock_fd = fd

    def _load(self, memory: Path) -> None:
        try:
            kept = json.loads(memory.read_text())
            self.cluster_id = str(kept["cluster_id"])
            nodes = [_node(entry) for entry in kept["nodes"]]
            self.nodes = {node.id: node for node in nodes}
            if not nodes:
                raise ValueError("it names no controller")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise QuorateError(
                f"{memory} is not readable ({error}); move it away, or use another --data"
            ) from None

    def _remember(self) -> None:
        text = {
            "cluster_id": self.cluster_id,
            "nodes": [asdict(n) for n in self.nodes.values()],
        }
        write_durably(self.data / _MEMORY, (json.dumps(text, indent=2) + "\n").encode())

    def _write_properties(self) -> None:
        """Each node's properties: the directory may have been moved or copied, or have grown."""
        for node in self.nodes.values():
            log_dir = str(self.log_dir(node))
            if "," in log_dir:
                raise QuorateError(f"{self.data}: log.dirs cannot name a path with ','; use --data")
            ours = {
                "node.id": str(node.id),
                "process.roles": "controller",
                "listeners": f"{_LISTENER}://{node.address}",
                "controller.listener.names": _LISTENER,
                "controller.quorum.bootstrap.servers": self.bootstrap,
                "log.dirs": _escaped(log_dir),
            }
            path = self.properties(node)
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.read_text("iso-8859-1").splitlines() if path.exists() else []
            kept = [s for s in before if s.partition("=")[0].strip() not in {*ours, _NOTE}]
            lines = [_NOTE, *(f"{key}={value}" for key, value in ours.items()), *kept]
            write_durably(path, ("\n".join(lines) + "\n").encode("iso-8859-1"))

    def _format(self, node: Node) -> None:
        founders = [n for n in self.nodes.values() if n.directory_id]
        how = ["--no-initial-controllers"]
        if node.directory_id:
            voters = ",".join(f"{n.id}@{n.address}:{n.directory_id}" for n in founders)
            how = ["--initial-controllers", voters]
        run = subprocess.run(
            (
                *(sys.executable, "-m", "quorate", "storage", "format"),
                *("--ignore-formatted", "--cluster-id", self.cluster_id),
                *("--config", str(self.properties(node)), *how),
            ),
            capture_output=True,
            text=True,
        )
        if run.returncode:
            raise QuorateError(f"formatting controller {node.id} failed: {run.stderr.strip()}")
        node.formatted = True
        self._remember()


def _node(entry: Mapping[str, Any]) -> Node:
    return Node(
        int(entry["id"]),
        int(entry["port"]),
        str(entry["directory_id"]),
        bool(entry.get("formatted", True)),
    )


def _escaped(value: str) -> str:
    """`value` as a Java properties file has it: ISO-8859-1 with Java's escapes."""
    text = value.replace("\\", "\\\\")
    if text.isascii():
        return text
    units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
    return "".join(chr(unit) if unit < 0x80 else f"\\u{unit:04x}" for (unit,) in units)


def random_uuid() -> str:
    """A random uuid in Kafka's text form that does not begin with '-'."""
    while True:
        text = uuid_to_text(Uuid(secrets.token_bytes(16)))
        if not text.startswith("-"):
            return text


def lock_holder(path: Path) -> int | None:
    """The pid of the other process that has a POSIX lock on `path`, None without one.

    0 when there is such a process and the system does not say which.
    """
    mac = sys.platform == "darwin"
    ask = (0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET) if mac else (fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        told = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(_FLOCK, *ask)))
    finally:
        os.close(fd)
    kind, pid = (told[3], told[2]) if mac else (told[0], told[4])
    return None if kind == fcntl.F_UNLCK else max(pid, 0)
