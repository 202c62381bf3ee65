"""A disk for which a kill is a power cut: what was not synced dies with the process.

Now and then some of it gets to the medium early and in any order, torn too, as a kernel may do.
Syncs can be made slow, and writes or syncs to fail.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from quorate.formats.files import LOG_SUFFIX, SNAPSHOT_SUFFIX
from quorate.storage.disk import File, OsDisk, storage_error

Chance = Callable[[], float]
_EARLY: Final = 0.05
"""How often a write makes the kernel write back some of what waits."""


@dataclass(slots=True)
class DiskFaults:
    """What is wrong with the disk now; changed while it is in use."""

    slow_s: float = 0.0
    """A sync takes this much longer."""
    fails: Literal["", "write", "sync"] = ""
    failed: bool = False
    """A write or sync has failed: not of a snapshot, without which a replica goes on."""
    forgets_log: bool = False
    """A planted lie: the log's syncs return and have done nothing."""


@dataclass(slots=True)
class _Waiting:
    """What was written to a file and not synced: in order, and the size that it makes."""

    size: int
    writes: list[tuple[int, bytes]] = field(default_factory=list)


class LossyDisk:
    """A `storage.disk.Disk` around an OsDisk. Names change at once, bytes when they are synced."""

    def __init__(self, directory: Path, faults: DiskFaults, chance: Chance) -> None:
        self._disk = OsDisk(directory)
        self.where = self._disk.where
        self.faults = faults
        self.chance = chance
        self.guard = threading.Lock()
        self._waiting: dict[str, _Waiting] = {}

    def lock(self) -> None:
        self._disk.lock()

    def unlock(self) -> None:
        self._disk.unlock()

    def names(self) -> list[str]:
        return self._disk.names()

    def open(self, name: str, *, create: bool = False) -> File:
        file = self._disk.open(name, create=create)
        with self.guard:
            waiting = self._waiting.get(name)
            if waiting is None:
                waiting = self._waiting[name] = _Waiting(file.size())
        return LossyFile(self, file, waiting)

    def rename(self, old: str, new: str) -> None:
        self._disk.rename(old, new)
        with self.guard:
            if old in self._waiting:
                self._waiting[new] = self._waiting.pop(old)
            else:
                self._waiting.pop(new, None)

    def remove(self, name: str) -> None:
        self._disk.remove(name)
        with self.guard:
            self._waiting.pop(name, None)

    def set_read_only(self, name: str) -> None:
        self._disk.set_read_only(name)

    def look(self) -> None:
        self._disk.look()

    def sync(self) -> None:
        self.meet("sync", self.where)
        self._disk.sync()

    def meet(self, deed: Literal["write", "sync"], path: str) -> None:
        """Raise StorageError, or take longer, as the faults say."""
        if self.faults.fails == deed:
            self.faults.failed |= SNAPSHOT_SUFFIX not in path
            error = OSError(errno.EIO, "a fault was injected")
            raise storage_error(error, deed, path) from error
        if deed == "sync" and self.faults.slow_s:
            time.sleep(self.faults.slow_s)


class LossyFile:
    """An open file; two of one name see the same bytes."""

    __slots__ = ("_disk", "_file", "_waiting", "name")

    def __init__(self, disk: LossyDisk, file: File, waiting: _Waiting) -> None:
        self.name = file.name
        self._disk = disk
        self._file = file
        self._waiting = waiting

    def read_at(self, position: int, size: int) -> bytes:
        with self._disk.guard:
            end = min(position + size, self._waiting.size)
            if end <= position:
                return b""
            found = bytearray(self._file.read_at(position, end - position))
            found.extend(bytes(end - position - len(found)))
            for start, data in self._waiting.writes:
                low, high = max(start, position), min(start + len(data), end)
                if low < high:
                    found[low - position : high - position] = data[low - start : high - start]
            return bytes(found)

    def write_at(self, position: int, data: bytes) -> None:
        self._disk.meet("write", self.name)
        with self._disk.guard:
            waiting = self._waiting
            waiting.writes.append((position, bytes(data)))
            waiting.size = max(waiting.size, position + len(data))
            if self._disk.chance() < _EARLY:
                self._write_some()

    def _write_some(self) -> None:
        """What a kernel does on its own: it stays to be written again by the sync."""
        for position, data in self._waiting.writes:
            chance = self._disk.chance()
            if chance < 0.5:
                whole = chance < 0.4
                part = len(data) if whole else int(self._disk.chance() * len(data))
                self._file.write_at(position, data[:part])

    def truncate(self, size: int) -> None:
        self._disk.meet("write", self.name)
        with self._disk.guard:
            waiting = self._waiting
            waiting.writes = [
                (position, data[: size - position])
                for position, data in waiting.writes
                if position < size
            ]
            waiting.size = size
            self._file.truncate(size)

    def size(self) -> int:
        return self._waiting.size

    def sync(self) -> None:
        self._disk.meet("sync", self.name)
        if self._disk.faults.forgets_log and self.name.endswith(LOG_SUFFIX):
            return
        with self._disk.guard:
            for position, data in self._waiting.writes:
                self._file.write_at(position, data)
            self._waiting.writes.clear()
            self._file.sync()

    def close(self) -> None:
        self._file.close()
