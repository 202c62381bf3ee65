"""A disk that loses unsynced writes when its process is killed, as at a power cut.

Writes stay in the memory of the process until they are synced. A few reach the medium early, in any
order and torn, as a kernel's writeback may do. Syncs can be slowed down; writes or syncs can fail.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from quorate.formats.files import SNAPSHOT_SUFFIX
from quorate.storage.disk import File, OsDisk, storage_error

Uniform = Callable[[], float]
"""A random number in [0, 1)."""
_EARLY: Final = 0.05
"""How often a write is followed by an early writeback of some unsynced writes."""


@dataclass(slots=True)
class DiskFaults:
    """The faults of a disk; they change while it is in use."""

    slow_s: float = 0.0
    """A sync takes so much longer."""
    fails: Literal["", "write", "sync"] = ""
    failed: bool = False
    """A write or a sync has failed. Those of a snapshot do not count: a replica goes on without it."""


@dataclass(slots=True)
class _UnsyncedWrites:
    """The unsynced writes of a file, as (position, data) in order, and the size with them."""

    size: int
    writes: list[tuple[int, bytes]] = field(default_factory=list)


class LossyDisk:
    """A `storage.disk.Disk` over an OsDisk. A change of a name is durable at once."""

    def __init__(self, directory: Path, faults: DiskFaults, uniform: Uniform) -> None:
        self._disk = OsDisk(directory)
        self.where = self._disk.where
        self.faults = faults
        self.uniform = uniform
        self.guard = threading.Lock()
        self._unsynced: dict[str, _UnsyncedWrites] = {}

    def lock(self) -> bool:
        return self._disk.lock()

    def unlock(self) -> None:
        self._disk.unlock()

    def names(self) -> list[str]:
        return self._disk.names()

    def open(self, name: str, *, create: bool = False) -> File:
        file = self._disk.open(name, create=create)
        with self.guard:
            unsynced = self._unsynced.get(name)
            if unsynced is None:
                unsynced = self._unsynced[name] = _UnsyncedWrites(file.size())
        return LossyFile(self, file, unsynced)

    def rename(self, old: str, new: str) -> None:
        self._disk.rename(old, new)
        with self.guard:
            if old in self._unsynced:
                self._unsynced[new] = self._unsynced.pop(old)
            else:
                self._unsynced.pop(new, None)

    def remove(self, name: str) -> None:
        self._disk.remove(name)
        with self.guard:
            self._unsynced.pop(name, None)

    def set_read_only(self, name: str) -> None:
        self._disk.set_read_only(name)

    def look(self) -> None:
        self._disk.look()

    def sync(self) -> None:
        self.apply_faults("sync", self.where)
        self._disk.sync()

    def apply_faults(self, operation: Literal["write", "sync"], path: str) -> None:
        """Raise StorageError where this operation fails, or delay it."""
        if self.faults.fails == operation:
            self.faults.failed |= SNAPSHOT_SUFFIX not in path
            error = OSError(errno.EIO, "a fault was injected")
            raise storage_error(error, operation, path) from error
        if operation == "sync" and self.faults.slow_s:
            time.sleep(self.faults.slow_s)


class LossyFile:
    """An open file. Two files of one name share their unsynced writes."""

    __slots__ = ("_disk", "_file", "_unsynced", "name")

    def __init__(self, disk: LossyDisk, file: File, unsynced: _UnsyncedWrites) -> None:
        self.name = file.name
        self._disk = disk
        self._file = file
        self._unsynced = unsynced

    def read_at(self, position: int, size: int) -> bytes:
        with self._disk.guard:
            end = min(position + size, self._unsynced.size)
            if end <= position:
                return b""
            found = bytearray(self._file.read_at(position, end - position))
            found.extend(bytes(end - position - len(found)))
            for start, data in self._unsynced.writes:
                low, high = max(start, position), min(start + len(data), end)
                if low < high:
                    found[low - position : high - position] = data[low - start : high - start]
            return bytes(found)

    def write_at(self, position: int, data: bytes) -> None:
        self._disk.apply_faults("write", self.name)
        with self._disk.guard:
            unsynced = self._unsynced
            unsynced.writes.append((position, bytes(data)))
            unsynced.size = max(unsynced.size, position + len(data))
            if self._disk.uniform() < _EARLY:
                self._write_some()

    def _write_some(self) -> None:
        """Write some unsynced data early, whole or torn; the next sync writes it again."""
        for position, data in self._unsynced.writes:
            draw = self._disk.uniform()
            if draw < 0.5:
                whole = draw < 0.4
                part = len(data) if whole else int(self._disk.uniform() * len(data))
                self._file.write_at(position, data[:part])

    def truncate(self, size: int) -> None:
        self._disk.apply_faults("write", self.name)
        with self._disk.guard:
            unsynced = self._unsynced
            unsynced.writes = [
                (position, data[: size - position])
                for position, data in unsynced.writes
                if position < size
            ]
            unsynced.size = size
            self._file.truncate(size)

    def size(self) -> int:
        return self._unsynced.size

    def sync(self) -> None:
        self._disk.apply_faults("sync", self.name)
        with self._disk.guard:
            for position, data in self._unsynced.writes:
                self._file.write_at(position, data)
            self._unsynced.writes.clear()
            self._file.sync()

    def close(self) -> None:
        self._file.close()
