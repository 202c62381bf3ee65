"""A disk whose every change and sync passes a watch first: to record them, or to fail them."""

from __future__ import annotations

from collections.abc import Callable

from quorate.storage.api import StorageError
from quorate.storage.disk import Disk, File


class PowerCutError(BaseException):
    """The process is gone: no handler runs."""


class WatchedDisk:
    """Any disk, with the watch that a MemoryDisk has built in."""

    def __init__(self, disk: Disk, watch: Callable[[str, str], None]) -> None:
        self._disk = disk
        self._watch = watch
        self.where = disk.where
        self.lock, self.unlock, self.names = disk.lock, disk.unlock, disk.names
        self.look = disk.look

    def open(self, name: str, *, create: bool = False) -> File:
        if create and name not in self._disk.names():
            self._watch("create", name)
        return WatchedFile(self._disk.open(name, create=create), self._watch)

    def rename(self, old: str, new: str) -> None:
        self._watch("rename", old)
        self._disk.rename(old, new)

    def remove(self, name: str) -> None:
        if name in self._disk.names():
            self._watch("remove", name)
            self._disk.remove(name)

    def set_read_only(self, name: str) -> None:
        self._watch("set read-only", name)
        self._disk.set_read_only(name)

    def sync(self) -> None:
        self._watch("sync directory", "")
        self._disk.sync()


class WatchedFile:
    def __init__(self, file: File, watch: Callable[[str, str], None]) -> None:
        self._file = file
        self._watch = watch
        self.name = file.name
        self.read_at, self.size, self.close = file.read_at, file.size, file.close

    def write_at(self, position: int, data: bytes) -> None:
        self._watch("write", self.name)
        self._file.write_at(position, data)

    def truncate(self, size: int) -> None:
        self._watch("truncate", self.name)
        self._file.truncate(size)

    def sync(self) -> None:
        self._watch("sync", self.name)
        self._file.sync()


class Steps:
    """A watch that counts and records, and at step `stop_at` (from 0) raises `how`."""

    def __init__(self, stop_at: int = -1, how: type[BaseException] = PowerCutError) -> None:
        self.done: list[tuple[str, str]] = []
        self.stop_at = stop_at
        self._how = how

    def __call__(self, operation: str, name: str) -> None:
        if len(self.done) == self.stop_at:
            raise self._how(f"{operation} {name}")
        self.done.append((operation, name))


def fail(operation: str) -> Callable[[str, str], None]:
    """A watch that makes every such operation fail as a medium does."""

    def watch(doing: str, name: str) -> None:
        if doing == operation:
            raise StorageError(f"cannot {doing} {name}: injected")

    return watch
