"""A node as a process on loopback: its directory, its ports, its start and end."""

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
_MAX_UNEXPECTED_EXITS: Final = 3


def _free_port() -> int:
    return free_ports(1)[0]


@dataclass
class NodeProcess(ABC):
    """One node, started any number of times.

    The node listens on `raft_port`; the other nodes know it by `proxy_port`, where its proxy
    listens. Clients of the workload use `client_port`.
    """

    id: int
    root: Path
    seed: str
    watchdog: Watchdog
    raft_port: int = field(default_factory=_free_port)
    proxy_port: int = field(default_factory=_free_port)
    client_port: int = field(default_factory=_free_port)
    starts: int = 0
    """How often it was started."""
    reserved: bool = False
    """A fault is using it: no other fault may."""
    unexpected_exits: int = 0
    """How often it ended although no fault made it end."""
    failure_expected: bool = False
    """A fault makes it fail, so it may end."""
    paused: bool = False
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
    def fails_at_every_start(self) -> bool:
        """It has ended so often that it is not started again."""
        return self.unexpected_exits >= _MAX_UNEXPECTED_EXITS and not self.running

    @property
    def answers(self) -> bool:
        return self.running and not self.paused

    # -- what each kind of node defines --------------------------------------------------------
    @abstractmethod
    def format_founder(self, founders: Mapping[int, NodeProcess]) -> None:
        """Format the directory of a voter of the new quorum. Raises QuorateError."""

    @abstractmethod
    def format_joiner(self) -> None:
        """Format an observer's directory, with a new directory id. Raises QuorateError."""

    @abstractmethod
    def command(self, contacts: Sequence[str]) -> list[str]:
        """The command line of the process."""

    # -- the process ----------------------------------------------------------------------
    def start(self, contacts: Sequence[str]) -> None:
        self.starts += 1
        self.failure_expected = self.paused = False
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            log.write(f"--- start {self.starts} ---\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                self.command(contacts), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.watchdog.watch(self.process.pid)

    async def kill(self) -> None:
        """kill -9, and wait for its end."""
        process = self.process
        if process is not None:
            process.kill()
            await asyncio.to_thread(process.wait)
            self.record_exit()

    def record_exit(self) -> None:
        """Note that the process has ended."""
        if self.process is not None:
            self.watchdog.forget(self.process.pid)
        self.process, self.paused = None, False

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def wipe(self) -> None:
        """Remove its data, with the directory id."""
        shutil.rmtree(self.data)

    def last_log_line(self) -> str:
        """The last line of its log."""
        with self.log_file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "(it logged nothing)"


@dataclass
class StoreMemberProcess(NodeProcess):
    """A member of the replicated store, which `quorate.embed` runs."""

    mutant: str | None = None
    kind = "member"

    def format_founder(self, founders: Mapping[int, NodeProcess]) -> None:
        create(self.data, self.id, "nemesis", {i: n.advertised for i, n in founders.items()})

    def format_joiner(self) -> None:
        create(self.data, self.id, "nemesis")

    def command(self, contacts: Sequence[str]) -> list[str]:
        module = ["quorate.nemesis.member"]
        if self.mutant is not None:
            module = ["quorate.nemesis.mutated_member", self.mutant]
        return [
            *(sys.executable, "-m", *module, str(self.data)),
            *("--raft", f"{LOOPBACK}:{self.raft_port}", "--advertise", self.advertised),
            *("--port", str(self.client_port), "--contacts", ",".join(contacts)),
            *("--seed", f"{self.seed}/{self.id}/{self.starts}"),
        ]
