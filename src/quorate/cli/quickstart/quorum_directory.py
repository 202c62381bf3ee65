"""The data directory of a quickstart: controllers that are formatted once and resumed later."""

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
from typing import TYPE_CHECKING, Any, Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Uuid, uuid_to_text
from quorate.cli.quickstart.properties_text import properties_text
from quorate.formats.files import LOCK
from quorate.log_dirs.meta_properties import temporary_of, write_durably
from quorate.server.ports import free_ports

if TYPE_CHECKING:
    from quorate.cli.quickstart.secure_files import SecureFiles

_STATE_FILE: Final = "quickstart.json"
_LOCK: Final = "quickstart.lock"
_LISTENER: Final = "CONTROLLER"
_SECURE: Final = "secure"
_PRIVATE: Final = 0o600
_WORDS_FROM_INPUT: Final = (
    "import sys; from quorate.cli.main import run; sys.exit(run(sys.stdin.read().split(chr(0))))"
)
_NOTE: Final = "# 'quorate quickstart' sets these keys at each start; it keeps other keys."
# struct flock: l_start, l_len, l_pid, l_type, l_whence on macOS; type and whence first on Linux.
_FLOCK: Final = "qqihh" if sys.platform == "darwin" else "hhqqi0q"


@dataclass(slots=True)
class QuickstartNode:
    """One controller of a data directory."""

    id: int
    port: int
    directory_id: str
    """Directory id of an initial voter; empty for a controller that joins later."""
    formatted: bool = True

    @property
    def address(self) -> str:
        """`host:port` of its listener."""
        return f"127.0.0.1:{self.port}"


class QuorumDirectory:
    """The controllers in the directory `data`, which may be moved between runs."""

    def __init__(self, data: Path) -> None:
        self.data = data.absolute()
        self.cluster_id = ""
        self.nodes: dict[int, QuickstartNode] = {}
        self.secured: SecureFiles | None = None
        """Certificates and passwords of a quorum with TLS and SASL; None: PLAINTEXT."""
        self._lock_fd = -1

    def load_or_create(self, controllers: int, *, secure: bool = False) -> bool:
        """Lock the directory and load its quorum, or format a new one of `controllers` nodes.

        `secure` gives a new quorum TLS and SASL. Returns True when a quorum existed.

        Raises QuorateError in these cases: another quickstart uses the directory; it holds other files
        or, with `secure`, a quorum without TLS; a controller cannot be formatted.
        """
        memory = self.data / _STATE_FILE
        if not memory.exists() and self._has_foreign_files():
            raise QuorateError(
                f"{self.data} is not empty and holds no {_STATE_FILE}; "
                "name an empty directory with --data"
            )
        self.data.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        resumed = memory.exists()
        if resumed:
            self._load(memory)
            if secure and self.secured is None:
                raise QuorateError(
                    f"the quorum of {self.data} has no TLS; name another directory with --data"
                )
        else:
            if secure:
                self.secured = self._secure_files()
            self.cluster_id = random_uuid()
            ports = free_ports(controllers)
            self.nodes = {
                i: QuickstartNode(i, port, random_uuid(), False)
                for i, port in enumerate(ports, start=1)
            }
            # Save the ids before formatting: an interrupted run is resumed with the same ids.
            self._save_state()
        self._write_properties()
        for node in self.nodes.values():
            if not node.formatted:
                self._format(node)
        return resumed

    def add_node(self) -> QuickstartNode:
        """Format another controller, which joins later. It is not started."""
        node = QuickstartNode(max(self.nodes) + 1, free_ports(1)[0], "", False)
        self.nodes[node.id] = node
        self._save_state()
        self._write_properties()
        self._format(node)
        return node

    def unlock(self) -> None:
        """Release the directory's lock."""
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            os.close(fd)

    @property
    def bootstrap(self) -> str:
        """The addresses of all controllers, as a bootstrap list."""
        return ",".join(n.address for n in self.nodes.values())

    def home(self, node: QuickstartNode) -> Path:
        """The directory of a controller."""
        return self.data / f"controller-{node.id}"

    def log_dir(self, node: QuickstartNode) -> Path:
        """The controller's log directory."""
        return self.home(node) / "data"

    def properties(self, node: QuickstartNode) -> Path:
        """The controller's properties file."""
        return self.home(node) / "server.properties"

    def log_file(self, node: QuickstartNode) -> Path:
        """The file with the controller's log lines."""
        return self.home(node) / "server.log"

    def lock_pid_of(self, node: QuickstartNode) -> int | None:
        """The pid of the process that locks the log directory; 0 if unknown, None without one."""
        return lock_holder(self.log_dir(node) / LOCK)

    def _has_foreign_files(self) -> bool:
        ours = (_LOCK, temporary_of(Path(_STATE_FILE)).name)
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
            kept = json.loads(memory.read_text("utf-8"))
            self.cluster_id = str(kept["cluster_id"])
            nodes = [_node(entry) for entry in kept["nodes"]]
            if kept.get(_SECURE, False):
                self.secured = self._secure_files()
            self.nodes = {node.id: node for node in nodes}
            if not nodes:
                raise ValueError("it has no controllers")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise QuorateError(
                f"{memory} is invalid ({error}); move it away, or use another --data"
            ) from None

    def _secure_files(self) -> SecureFiles:
        # Imported here: reading certificates costs 50 ms, and most quickstarts have none.
        from quorate.cli.quickstart.secure_files import SecureFiles

        return SecureFiles(self.data / _SECURE, _LISTENER)

    def _save_state(self) -> None:
        text = {
            "cluster_id": self.cluster_id,
            "nodes": [asdict(n) for n in self.nodes.values()],
            **({_SECURE: True} if self.secured else {}),
        }
        write_durably(self.data / _STATE_FILE, (json.dumps(text, indent=2) + "\n").encode())

    def _write_properties(self) -> None:
        """Write all properties files: the directory may have moved, or have a new controller."""
        if self.secured is not None:
            self.secured.prepare()
            self.secured.write_client_files(self.bootstrap)
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
                "log.dirs": log_dir,
                **(self.secured.node_properties(node.id) if self.secured else {}),
            }
            path = self.properties(node)
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.read_text("iso-8859-1").splitlines() if path.exists() else []
            kept = [s for s in before if s.partition("=")[0].strip() not in {*ours, _NOTE}]
            rest = "".join(f"{line}\n" for line in kept)
            text = f"{_NOTE}\n".encode() + properties_text(ours) + rest.encode("iso-8859-1")
            write_durably(path, text, _PRIVATE if self.secured else 0o666)

    def _format(self, node: QuickstartNode) -> None:
        founders = [n for n in self.nodes.values() if n.directory_id]
        how = ["--no-initial-controllers"]
        if node.directory_id:
            voters = ",".join(f"{n.id}@{n.address}:{n.directory_id}" for n in founders)
            how = ["--initial-controllers", voters]
        words = (
            *("storage", "format", "--ignore-formatted", "--cluster-id", self.cluster_id),
            *("--config", str(self.properties(node)), *how),
            *(self.secured.format_words() if self.secured else ()),
        )
        # The words have passwords, and every user of the machine sees those of a command.
        run = subprocess.run(
            (sys.executable, "-c", _WORDS_FROM_INPUT),
            input="\0".join(words),
            capture_output=True,
            text=True,
        )
        if run.returncode:
            raise QuorateError(f"formatting controller {node.id} failed: {run.stderr.strip()}")
        node.formatted = True
        self._save_state()


def _node(entry: Mapping[str, Any]) -> QuickstartNode:
    return QuickstartNode(
        int(entry["id"]),
        int(entry["port"]),
        str(entry["directory_id"]),
        bool(entry.get("formatted", True)),
    )


def random_uuid() -> str:
    """A random uuid in Kafka's text form that does not begin with '-'."""
    while True:
        text = uuid_to_text(Uuid(secrets.token_bytes(16)))
        if not text.startswith("-"):
            return text


def lock_holder(path: Path) -> int | None:
    """The pid of another process that holds a POSIX lock on `path`; None without one.

    Returns 0 when the system does not report the pid.
    """
    mac = sys.platform == "darwin"
    ask = (0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET) if mac else (fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        lock = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(_FLOCK, *ask)))
    finally:
        os.close(fd)
    kind, pid = (lock[3], lock[2]) if mac else (lock[0], lock[4])
    return None if kind == fcntl.F_UNLCK else max(pid, 0)
