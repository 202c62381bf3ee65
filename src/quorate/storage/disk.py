"""One directory of files: the interface between the storage and the operating system.

`OsDisk` is the real thing; `memory.MemoryDisk` loses what was not synced. Every method raises
StorageError, which names the file, what was tried and what to do; nothing else escapes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, Protocol

from quorate.formats.files import LOCK, PART_SUFFIX, PARTITION_DIRECTORY
from quorate.storage.api import StorageError

_FULL: Final = "the disk is full: free space on it, then start this node again if it has ended"
_DENIED: Final = "let the user that runs this node own the directory and all files in it"
_ADVICE: Final = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
    errno.EIO: "the device failed: look at the system's log and replace the disk",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: "the file system is mounted read-only: look at the system's log why",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit on open files",
    errno.ENOENT: "someone removed it, or it is a link to nothing: do not touch the files of a "
    "running node",
}
_NOT_SUPPORTED: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY})
"""A file system that knows no full sync says so; fsync is the best there is on it."""


class File(Protocol):
    """An open file; reads are safe from any thread, beside one writer."""

    name: str

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def write_at(self, position: int, data: bytes) -> None:
        """Write all of `data`; what was written is unknown when it raises."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def sync(self) -> None:
        """The bytes and the length are durable on return (not the name: `Disk.sync`)."""

    def close(self) -> None: ...


class Disk(Protocol):
    where: str
    """The directory's path, for messages."""

    def lock(self) -> bool:
        """Keep every other process out of the directory; make it if it is missing, and say so."""

    def unlock(self) -> None: ...

    def names(self) -> list[str]: ...

    def open(self, name: str, *, create: bool = False) -> File: ...

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces `new`."""

    def remove(self, name: str) -> None:
        """Harmless when there is no such file."""

    def set_read_only(self, name: str) -> None: ...

    def sync(self) -> None:
        """Make creations, renames and removals durable."""

    def look(self) -> None:
        """Raise StorageError unless the name still leads to the directory that was locked."""


def storage_error(error: OSError, what: str, path: str) -> StorageError:
    """The StorageError of a failed system call: operation, file, reason, and what to do."""
    advice = _ADVICE.get(error.errno or 0, "look at the system's log")
    return StorageError(f"cannot {what} {path}: {error.strerror or error}; {advice}")


def _raise(error: OSError, what: str, path: str) -> NoReturn:
    raise storage_error(error, what, path) from error


def read_regular(path: str) -> bytes:
    """All bytes of a file. Raises OSError; also for what is no file, where a read might never end,
    as of a pipe without a writer."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    with os.fdopen(fd, "rb") as file:
        return file.read()


def sync_file(fd: int) -> None:
    """Bytes and length of a file, durable."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        sync_all(fd)


def sync_all(fd: int) -> None:
    """A directory, or a file with its metadata; on macOS past the drive's own cache.

    A directory needs this one: fdatasync may leave out a change that keeps its length.
    """
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(fd, full)
            return
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
    os.fsync(fd)


class OsFile:
    """A file of the operating system. The descriptor lives until the last user lets go of it, so
    that a reader in another thread never reads a reused descriptor."""

    __slots__ = ("_fd", "_path", "_sync", "name")

    def __init__(
        self, path: str, name: str, flags: int, sync: Callable[[int], None], mode: int = 0o644
    ) -> None:
        self.name = name
        self._path = path
        self._sync = sync
        self._fd = -1
        try:
            self._fd = os.open(path, flags | os.O_CLOEXEC, mode)
        except OSError as error:
            _raise(error, "open", path)

    def read_at(self, position: int, size: int) -> bytes:
        parts: list[bytes] = []
        try:
            while size > 0:
                part = os.pread(self._fd, size, position)
                if not part:
                    break
                parts.append(part)
                position += len(part)
                size -= len(part)
        except OSError as error:
            _raise(error, "read", self._path)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write_at(self, position: int, data: bytes) -> None:
        try:
            written = os.pwrite(self._fd, data, position)
            while written < len(data):
                more = os.pwrite(self._fd, memoryview(data)[written:], position + written)
                if more == 0:
                    raise OSError(errno.EIO, "nothing more was written")
                written += more
        except OSError as error:
            _raise(error, "write", self._path)

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            _raise(error, "truncate", self._path)

    def size(self) -> int:
        try:
            return os.fstat(self._fd).st_size
        except OSError as error:
            _raise(error, "look at", self._path)

    def sync(self) -> None:
        try:
            self._sync(self._fd)
        except OSError as error:
            _raise(error, "sync", self._path)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


_locked: Final[set[str]] = set()
"""Lock files held by this process: POSIX locks keep out other processes only."""


def _identity(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


class OsDisk:
    """`__cluster_metadata-0` inside `directory`, with `.lock` beside it, as Kafka has them.

    `sync` makes the descriptor of a file durable, `sync_directory` that of a directory (both raise
    OSError); replace them to delay or to record.
    """

    def __init__(
        self,
        directory: Path,
        sync: Callable[[int], None] = sync_file,
        sync_directory: Callable[[int], None] = sync_all,
    ) -> None:
        self._parent = directory
        self._path = directory / PARTITION_DIRECTORY
        self.where = str(self._path)
        self._sync = sync
        self._sync_directory = sync_directory
        self._lock_fd = -1
        self._lock_key = ""
        self._identity: tuple[int, int] | None = None

    def lock(self) -> bool:
        if not self._parent.is_dir():
            raise StorageError(
                f"{self._parent} is not a directory: create it and format it with 'storage format'"
            )
        self._take_lock(self._parent / LOCK)
        try:
            is_new = not self._path.is_dir()
            if is_new:
                os.mkdir(self._path)
            try:
                # Also where it is there: a process that was killed may have made it.
                _sync_directory(self._parent, self._sync_directory)
                self._identity = _identity(self._path)
            except BaseException:
                if is_new:  # an empty directory would be one that was emptied
                    os.rmdir(self._path)
                raise
        except OSError as error:
            self.unlock()
            _raise(error, "create", self.where)
        except StorageError:
            self.unlock()
            raise
        return is_new

    def _take_lock(self, path: Path) -> None:
        """Java's FileChannel.lock is a POSIX record lock over the whole file: so is lockf."""
        key = str(path.resolve())
        held = StorageError(
            f"cannot lock {path}: another node uses this directory; stop it, or give this node a "
            "metadata.log.dir of its own"
        )
        # Looked up before the file is opened: closing any descriptor of it drops the lock.
        if key in _locked:
            raise held
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            _raise(error, "open", str(path))
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise held from None
            _raise(error, "lock", str(path))
        _locked.add(key)
        self._lock_fd, self._lock_key = fd, key

    def unlock(self) -> None:
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            os.close(fd)
            _locked.discard(self._lock_key)

    def look(self) -> None:
        try:
            now = _identity(self._path)
        except OSError as error:
            raise storage_error(error, "find", self.where) from error
        if now != self._identity:
            raise StorageError(
                f"{self.where} is another directory than the one that was opened: it was replaced, "
                "or a file system was mounted over it; put the old one back before the next start"
            )

    def names(self) -> list[str]:
        try:
            return os.listdir(self._path)
        except OSError as error:
            _raise(error, "list", self.where)

    def open(self, name: str, *, create: bool = False) -> File:
        path = f"{self.where}/{name}"
        if create:
            # A snapshot holds the hashes of all passwords: its owner's alone, as Kafka's are.
            mode = 0o600 if name.endswith(PART_SUFFIX) else 0o644
            return OsFile(path, name, os.O_RDWR | os.O_CREAT, self._sync, mode)
        # A finished snapshot is read-only.
        writable = os.access(path, os.W_OK) or not os.access(path, os.F_OK)
        return OsFile(path, name, os.O_RDWR if writable else os.O_RDONLY, self._sync)

    def rename(self, old: str, new: str) -> None:
        try:
            os.replace(self._path / old, self._path / new)
        except OSError as error:
            _raise(error, f"rename {old} to", str(self._path / new))

    def remove(self, name: str) -> None:
        try:
            os.unlink(self._path / name)
        except FileNotFoundError:
            pass
        except OSError as error:
            _raise(error, "remove", str(self._path / name))

    def set_read_only(self, name: str) -> None:
        try:
            os.chmod(self._path / name, 0o400)
        except OSError as error:
            _raise(error, "set read-only", str(self._path / name))

    def sync(self) -> None:
        _sync_directory(self._path, self._sync_directory)


def _sync_directory(path: Path, sync: Callable[[int], None]) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        _raise(error, "sync the directory", str(path))


def read_file(disk: Disk, name: str) -> bytes:
    """All bytes of a small file."""
    file = disk.open(name)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def replace_file(disk: Disk, name: str, data: bytes) -> None:
    """Temporary file, sync, rename, directory sync: the old content or the new, never a mix."""
    temporary = name + ".tmp"
    disk.remove(temporary)
    file = disk.open(temporary, create=True)
    try:
        file.write_at(0, data)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, name)
    disk.sync()
