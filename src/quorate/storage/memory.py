"""A disk in memory that forgets what was not synced: for tests and for simulation.

Everything above it (segments, recovery, snapshots) is the code that runs over real files. What a
crash leaves is decided by the caller's `random`, so that a seed repeats it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import count
from typing import Final

from quorate.formats.files import PARTITION_DIRECTORY
from quorate.storage.api import StorageError
from quorate.storage.disk import File, storage_error
from quorate.storage.disk_storage import DiskStorage
from quorate.storage.log import LogOptions

Random = Callable[[], float]
"""Uniform in [0, 1)."""
Watch = Callable[[str, str], None]
"""Called with (operation, file name) before each change and sync; may raise to make it fail."""

_STAMPS: Final = count(1)
_WHERE: Final = f"memory/{PARTITION_DIRECTORY}"


def _ignore(operation: str, name: str) -> None:
    """The Watch that lets everything pass."""


class _Content:
    """The bytes of a file: as they are, as they are on the medium, and the writes between."""

    __slots__ = ("durable", "now", "pending", "stamp")

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = bytearray(durable)
        self.now = bytearray(durable)
        self.pending: list[tuple[int, bytes | None]] = []
        """(position, bytes) written, or (size, None) truncated, oldest first."""
        self.stamp = next(_STAMPS)
        """Of `now`: no other content of any file has it."""

    def do(self, position: int, data: bytes | None) -> None:
        _apply(self.now, position, data)
        self.stamp = next(_STAMPS)
        self.pending.append((position, data))

    def sync(self) -> None:
        for position, data in self.pending:
            _apply(self.durable, position, data)
        self.pending.clear()

    def after_crash(self, random: Random | None, reorder: bool) -> _Content:
        """What a crash leaves: of the unsynced writes none, or as `random` has it the first ones
        and part of the next; with `reorder` each one whole, in part or not at all."""
        left = bytearray(self.durable)
        if random is not None:
            whole = _up_to(random, len(self.pending))
            for index, (position, data) in enumerate(self.pending):
                if (random() < 0.5) if reorder else (index < whole):
                    _apply(left, position, data)
                elif data is not None and (reorder or index == whole):
                    _apply(left, position, data[: _up_to(random, len(data))])
        return _Content(bytes(left))


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
        content.extend(bytes(position - len(content)))
    else:
        content.extend(bytes(max(position - len(content), 0)))
        content[position : position + len(data)] = data


def _up_to(random: Random, most: int) -> int:
    return int(random() * (most + 1))


class ShortWriteError(StorageError):
    """Raised by a Watch before a write: the first bytes of it reach the file all the same."""

    def __init__(self, message: str, part: float) -> None:
        super().__init__(message)
        self.part = part
        """Of the write's bytes, in [0, 1)."""


class MemoryFile:
    """An open file of a MemoryDisk; lives on when its name is removed."""

    __slots__ = ("_content", "_disk", "name")

    def __init__(self, disk: MemoryDisk, name: str, content: _Content) -> None:
        self.name = name
        self._disk = disk
        self._content = content

    def read_at(self, position: int, size: int) -> bytes:
        self._disk.check()
        return bytes(self._content.now[position : position + size])

    def write_at(self, position: int, data: bytes) -> None:
        try:
            self._disk.step("write", self.name)
        except ShortWriteError as short:
            if done := int(len(data) * short.part):
                self._content.do(position, data[:done])
            raise
        self._content.do(position, data)

    def truncate(self, size: int) -> None:
        self._disk.step("truncate", self.name)
        if size != len(self._content.now):
            self._content.do(size, None)

    def size(self) -> int:
        self._disk.check()
        return len(self._content.now)

    def sync(self) -> None:
        self._disk.step("sync", self.name)
        self._content.sync()

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryDisk:
    """One directory. A name is durable when `sync` returned, bytes when the file's did.

    Names and bytes reach the medium as `crash` says.
    """

    def __init__(
        self, watch: Watch = _ignore, where: str = f"memory/{PARTITION_DIRECTORY}"
    ) -> None:
        self.where = where
        self.watch = watch
        self._files: dict[str, _Content] = {}
        self._durable: dict[str, _Content] = {}
        self._pending: list[tuple[str, str, _Content | None]] = []
        """(name that goes, name that comes, its content), oldest first; "" is no name."""
        self._meddled = False
        """Was a name changed behind the storage's back, so that `_pending` is incomplete?"""
        self.names_stamp = 0
        """Another one after each change of the names."""
        self._locked = False
        self._gone = False

    def check(self) -> None:
        if self._gone:
            raise StorageError(f"{self.where}: the power is off: open what the crash left")

    def step(self, operation: str, name: str) -> None:
        self.check()
        self.watch(operation, name)

    def lock(self) -> bool:
        self.check()
        if self._locked:
            raise StorageError(f"cannot lock {self.where}: another node uses this directory")
        self._locked = True
        return not self._files

    def unlock(self) -> None:
        self._locked = False

    def names(self) -> list[str]:
        self.check()
        return list(self._files)

    def open(self, name: str, *, create: bool = False) -> File:
        content = self._files.get(name)
        if content is None:
            if not create:
                missing = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                raise storage_error(missing, "open", f"{self.where}/{name}")
            self.step("create", name)
            content = _Content()
            self._do("", name, content)
        self.check()
        return MemoryFile(self, name, content)

    def rename(self, old: str, new: str) -> None:
        self.step("rename", old)
        self._do(old, new, self._files[old])

    def remove(self, name: str) -> None:
        if name in self._files:
            self.step("remove", name)
            self._do(name, "", None)

    def set_read_only(self, name: str) -> None:
        self.step("set read-only", name)

    def look(self) -> None:
        """A directory in memory stays where it is."""

    def sync(self) -> None:
        self.step("sync directory", "")
        if self._meddled:
            self._durable, self._meddled = dict(self._files), False
        else:  # a directory may have thousands of names, and one sync is of a few
            for goes, comes, content in self._pending:
                _rename(self._durable, goes, comes, content)
        self._pending.clear()

    def _do(self, goes: str, comes: str, content: _Content | None) -> None:
        _rename(self._files, goes, comes, content)
        self.names_stamp += 1
        self._pending.append((goes, comes, content))

    def crash(
        self, random: Random | None = None, *, reorder: bool = False, loose_names: bool = False
    ) -> MemoryDisk:
        """Cut the power: this disk is dead, the new one holds what the medium had.

        Without `random` nothing unsynced survives. With it the first of the unsynced changes
        of the directory, and of each file, survive, the next one in part; with `reorder` any of
        a file's writes, in which case recovery may have to refuse the log. Changes of the
        directory survive in order, as in a journal (ext4, XFS, APFS); with `loose_names` any of
        them, which is all that POSIX promises.
        """
        names = dict(self._durable)
        pending = self._pending
        if random is not None and loose_names:
            survivors = [change for change in pending if random() < 0.5]
        else:
            survivors = pending[: 0 if random is None else _up_to(random, len(pending))]
        for goes, comes, content in survivors:
            _rename(names, goes, comes, content)
        left = MemoryDisk(where=self.where)
        for name, content in names.items():
            left._files[name] = content.after_crash(random, reorder)
        left._durable = dict(left._files)
        self._gone = True
        return left

    def content(self, name: str) -> bytes:
        """The bytes of a file as they are now."""
        return bytes(self._files[name].now)

    def part(self, name: str, position: int, size: int) -> bytes:
        """Up to `size` of these bytes, from `position` on."""
        return bytes(self._files[name].now[position : position + size])

    def content_size(self, name: str) -> int:
        """The number of these bytes."""
        return len(self._files[name].now)

    def stamp(self, name: str) -> int:
        """A number that no other content of any file has had."""
        return self._files[name].stamp

    def medium(self) -> dict[str, bytes]:
        """Files and bytes as a power cut would leave them now, were nothing unsynced to survive."""
        return {name: bytes(content.durable) for name, content in self._durable.items()}

    def lose(self, name: str) -> None:
        """A file is gone from the medium, even while it is open."""
        self._files.pop(name, None)
        self._durable.pop(name, None)
        self.names_stamp += 1
        self._meddled = True

    def put(self, name: str, data: bytes) -> None:
        """Set a file's bytes behind the storage's back, durably: a restored backup."""
        self._files[name] = self._durable[name] = _Content(data)
        self.names_stamp += 1
        self._meddled = True

    def overwrite(self, name: str, position: int, data: bytes) -> None:
        """Change bytes of a file on the medium, even while it is open: bit rot."""
        content = self._files[name]
        for held in (content.now, content.durable):
            held[position : position + len(data)] = data
        content.stamp = next(_STAMPS)


def _rename(names: dict[str, _Content], goes: str, comes: str, content: _Content | None) -> None:
    if goes:
        names.pop(goes, None)
    if comes and content is not None:
        names[comes] = content


class MemoryStorage(DiskStorage):
    """The contract of Storage over a MemoryDisk: the same code, no files, no clock, no random source."""

    def __init__(self, disk: MemoryDisk | None = None, options: LogOptions | None = None) -> None:
        self.disk = disk or MemoryDisk()
        super().__init__(self.disk, options or LogOptions())

    def crash(
        self, random: Random | None = None, *, reorder: bool = False, loose_names: bool = False
    ) -> MemoryStorage:
        """A new storage, not yet open, over what a power cut leaves; this one is dead."""
        left = self.disk.crash(random, reorder=reorder, loose_names=loose_names)
        return MemoryStorage(left, self._options)
