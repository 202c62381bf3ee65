"""A node as a process on loopback: its directory, its ports, its life."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey
from quorate.embed import create
from quorate.formats.files import META_PROPERTIES, PARTITION_DIRECTORY
from quorate.formats.meta_properties import decode_meta_properties
from quorate.nemesis.watchdog import Watchdog
from quorate.server.ports import LOOPBACK, free_ports

_TAIL_BYTES: Final = 4096
_MOST_FALLS: Final = 3


def _free_port() -> int:
    return free_ports(1)[0]


@dataclass
class Node(ABC):
    """`raft_port` is its own, `proxy_port` what the others know."""

    id: int
    root: Path
    seed: str
    watchdog: Watchdog
    raft_port: int = field(default_factory=_free_port)
    proxy_port: int = field(default_factory=_free_port)
    client_port: int = field(default_factory=_free_port)
    lives: int = 0
    """How often it was started."""
    busy: bool = False
    """A deed has it: no other may take it."""
    falls: int = 0
    """How often it ended by itself and was not made to."""
    doomed: bool = False
    """It was made to fail, so it may end by itself."""
    frozen: bool = False
    process: subprocess.Popen[bytes] | None = None

    kind = "?"

    @property
    def directory(self) -> Path:
        return self.root / f"{self.kind}-{self.id}"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def partition(self) -> Path:
        return self.data / PARTITION_DIRECTORY

    @property
    def log_file(self) -> Path:
        return self.directory / "node.log"

    @property
    def advertised(self) -> str:
        return f"{LOOPBACK}:{self.proxy_port}"

    @property
    def key(self) -> ReplicaKey:
        """Its id and the directory id that it has now. Raises QuorateError."""
        path = self.data / META_PROPERTIES
        try:
            meta = decode_meta_properties(path.read_bytes(), str(path))
        except OSError as error:
            raise QuorateError(f"{path}: {error.strerror}") from None
        if meta.directory_id is None:
            raise QuorateError(f"{path} has no directory.id")
        return ReplicaKey(self.id, meta.directory_id)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def is_hopeless(self) -> bool:
        """It falls whenever it is started."""
        return self.falls >= _MOST_FALLS and not self.running

    @property
    def answers(self) -> bool:
        return self.running and not self.frozen

    # -- what the kinds differ in ---------------------------------------------------------
    @abstractmethod
    def found(self, founders: Mapping[int, Node]) -> None:
        """Make the directory of a founder. Raises QuorateError."""

    @abstractmethod
    def make_joiner(self) -> None:
        """Make a directory with a new directory id, to join. Raises QuorateError."""

    @abstractmethod
    def command(self, contacts: Sequence[str]) -> list[str]: ...

    # -- life -----------------------------------------------------------------------------
    def start(self, contacts: Sequence[str]) -> None:
        self.lives += 1
        self.doomed = self.frozen = False
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            log.write(f"--- life {self.lives} ---\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                self.command(contacts), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.watchdog.watch(self.process.pid)

    async def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        process = self.process
        if process is not None:
            process.kill()
            await asyncio.to_thread(process.wait)
            self.gone()

    def gone(self) -> None:
        """Take note that the process has ended."""
        if self.process is not None:
            self.watchdog.forget(self.process.pid)
        self.process, self.frozen = None, False

    def freeze(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def wipe(self) -> None:
        """Remove its data, with the directory id."""
        shutil.rmtree(self.data)

    def last_words(self) -> str:
        """The last line of its log."""
        with self.log_file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "(it logged nothing)"


@dataclass
class StoreNode(Node):
    """A member of the store, by `quorate.embed`."""

    plant: str = "none"
    kind = "member"

    def found(self, founders: Mapping[int, Node]) -> None:
        create(self.data, self.id, "nemesis", {i: n.advertised for i, n in founders.items()})

    def make_joiner(self) -> None:
        create(self.data, self.id, "nemesis")

    def command(self, contacts: Sequence[str]) -> list[str]:
        return [
            *(sys.executable, "-m", "quorate.nemesis.planted", self.plant, str(self.data)),
            *("--raft", f"{LOOPBACK}:{self.raft_port}", "--advertise", self.advertised),
            *("--port", str(self.client_port), "--contacts", ",".join(contacts)),
            *("--seed", f"{self.seed}/{self.id}/{self.lives}"),
        ]
