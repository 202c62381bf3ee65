"""The members of tar and zip archives, and the readers of all files.

Of a damaged archive the good part is read: the members before the damage, and of a damaged member
the bytes that can be unpacked.
"""

from __future__ import annotations

import lzma
import posixpath
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, Literal, Self

from pyarrow import ArrowException

from quorate.formats.files import DELETED_SUFFIX, parse_segment_name, parse_snapshot_name
from quorate.spark.files.paths import SourceError, SourceFile, TransientError, file_system
from quorate.spark.files.scan import GarbledFileError, Read
from quorate.spark.files.zips import TruncatedZip

_UNREADABLE: Final = (
    *(ArrowException, OSError, EOFError, KeyError, zlib.error, lzma.LZMAError),
    *(tarfile.TarError, zipfile.BadZipFile),
    RuntimeError,  # zipfile raises it for a member that is encrypted or of an unknown method
)
_STEPS: Final = (65536, 64)
"""Bytes that are unpacked at a time. Where the first fails, the second is smaller than a batch, so
that every whole batch before the damage is read."""
_BAD_CHECKSUM: Final = "Bad CRC-32"
"""The beginning of zipfile's message for a member with a wrong checksum: it holds back the last
bytes of such a member."""
_END_MARK: Final = "end of file header"
"""tarfile's message for the blocks of zeros at the end of an archive."""


class CorruptArchiveError(SourceError):
    """An archive can be read in part only. Names the archive, the reason, and the last byte read."""

    def __init__(
        self,
        archive: SourceFile,
        position: int,
        reason: object,
        found: Mapping[str, SourceFile] | None = None,
    ) -> None:
        self.archive = archive
        self.position = min(position, archive.size)
        self.found = found or {}
        """The members before the damage by full name; the last may be truncated."""
        why = str(reason).partition("\n")[0].rstrip(":")
        super().__init__(
            f"{archive.path} is not a sound archive: {why} (read to byte {self.position} of "
            f"{archive.size})"
        )


class FileGoneError(TransientError):
    """A file that was listed is gone."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path}: the file was listed and is gone: the replica deleted or moved it meanwhile. "
            "Start again: the job then reads what is there now"
        )


class GarbledMemberError(SourceError, GarbledFileError):
    """A member of an archive that cannot be unpacked further. Names the member and the reason."""

    def __init__(self, member: SourceFile, reason: str) -> None:
        super().__init__(f"{member.name}: {reason}")
        self.reason = reason


class _Unpacker:
    """Reads a compressed member. To read at a position, it unpacks all bytes before it."""

    def __init__(self, file: SourceFile, stream: Any, open_anew: Callable[[], Any]) -> None:
        self._file = file
        self._stream = stream
        self._open_anew = open_anew
        self._wrong: str | None = None

    def __call__(self, position: int, size: int) -> bytes:
        """The bytes at a position; fewer before bytes that cannot be unpacked.

        Raises GarbledMemberError at a position that cannot be unpacked. It also does at the end of a
        member whose bytes could all be unpacked but have a wrong checksum.
        """
        if self._wrong is not None and position >= self._file.size:
            raise GarbledMemberError(self._file, self._wrong)
        wanted = max(min(size, self._file.size - position), 0)
        found = bytearray()
        for step in _STEPS:
            try:
                self._stream.seek(position + len(found))
                while part := self._stream.read(min(wanted - len(found), step)):
                    found += part
                return bytes(found)
            except _UNREADABLE as error:
                problem = error
                self._stream = self._open_anew()  # a stream cannot go on after an error
                if str(error).startswith(_BAD_CHECKSUM):
                    self._wrong = (
                        f"all bytes could be unpacked, but differ from the packed ones: {error}"
                    )
                    # Read on without the checksum: each batch has its own, so the reader still
                    # finds the damaged ones.
                    self._stream._expected_crc = None
        if not found:
            why = f"cannot be unpacked from byte {position} on: {problem}"
            raise GarbledMemberError(self._file, why)
        return bytes(found)


class FileReaders:
    """Makes readers of files; keeps the last file or archive open. A context manager."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._open = ExitStack()
        self._base: Any = None
        self._archive: tarfile.TarFile | zipfile.ZipFile | None = None

    def __enter__(self) -> FileReaders:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def read_small(self, file: SourceFile) -> bytes:
        """All bytes of a file. Raises SourceError."""
        read = self.reader(file)
        found = read(0, file.size)
        read(file.size, 0)  # raises for a member with a wrong checksum
        return found

    def reader(self, file: SourceFile) -> Read:
        """The function that reads parts of a file. Both raise SourceError.

        The function raises GarbledMemberError where a compressed member cannot be unpacked.
        """
        with _as_source_errors(file.name):
            stream = self._stream(file)
        if not file.seekable:
            return _Unpacker(file, stream, lambda: self._stream(file))
        shift = file.start or 0

        def read(position: int, size: int) -> bytes:
            with _as_source_errors(file.name):
                stream.seek(shift + position)
                data: bytes = stream.read(max(min(size, file.size - position), 0))
                return data

        return read

    def _stream(self, file: SourceFile) -> Any:
        if self._path != file.path:
            self._open.close()
            self._archive = None
            self._base = self._open.enter_context(_opened(file.path))
            self._path = file.path
        if file.seekable:
            return self._base
        archive = self._archive or _archive(file.path, self._base)
        if self._archive is None:
            self._open.callback(archive.close)
            self._archive = archive
        member = str(file.member)
        if isinstance(archive, zipfile.ZipFile):
            return self._open.enter_context(archive.open(member))
        stream = archive.extractfile(_tar_member(archive, member))
        if stream is None:
            raise SourceError(f"{file.name}: not a plain file")
        return stream


def _opened(path: str) -> Any:
    """The open file. Raises FileGoneError, and the errors of the file system.

    Kafka deletes a file of a log in two steps: it renames the file (`.deleted`), and removes it
    a minute later (internal.metadata.delete.delay.millis). So a file that was just listed may have
    that name.
    """
    system, inner, _ = file_system(path)
    try:
        return system.open_input_file(inner)
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            return system.open_input_file(inner + DELETED_SUFFIX)
    raise FileGoneError(path)


@contextmanager
def _as_source_errors(name: str) -> Iterator[None]:
    """Raise errors of reading as SourceError that names this file."""
    try:
        yield
    except _UNREADABLE as error:
        raise SourceError(f"{name}: {error}") from None


def _archive(path: str, base: Any) -> tarfile.TarFile | zipfile.ZipFile:
    if path.lower().endswith(".zip"):
        try:
            return zipfile.ZipFile(base)
        except zipfile.BadZipFile as error:
            return TruncatedZip(base, error)
    mode: Literal["r:", "r:*"] = "r:" if _is_plain_tar(path) else "r:*"
    return tarfile.open(fileobj=base, mode=mode, tarinfo=_CheckedTarInfo)


class _CheckedTarInfo(tarfile.TarInfo):
    """Raises on damage: tarfile stops without an error there, as at the end of an archive."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tar)
        except tarfile.HeaderError as error:
            if str(error) == _END_MARK:
                raise
            raise tarfile.ReadError(
                f"{error} where a member or the end of the archive should be"
            ) from None


def _is_plain_tar(path: str) -> bool:
    return path.lower().endswith(".tar")


def archive_members(archive: SourceFile) -> dict[str, SourceFile]:
    """The files in an archive by full name. Raises CorruptArchiveError.

    To list a compressed tar, all of it is unpacked.
    """
    path = archive.path
    system, inner, _ = file_system(path)
    problem: Exception | None = None
    with _as_source_errors(path), system.open_input_file(inner) as base:
        try:
            with _archive(path, base) as opened:
                if isinstance(opened, zipfile.ZipFile):
                    found = list(_zip_members(path, opened))
                    if isinstance(opened, TruncatedZip):
                        problem = opened.problem
                        base.seek(opened.reached)
                else:
                    there, problem = _headers(opened)
                    if problem is None and not _is_plain_tar(path):
                        problem = _unsound_end(opened)
                    found = list(_tar_members(archive, there, whole=problem is None))
        except _UNREADABLE as error:
            raise CorruptArchiveError(archive, base.tell(), error) from None
        by_name = {file.name: file for file in found}
        if problem is not None:
            raise CorruptArchiveError(archive, base.tell(), problem, by_name)
    return by_name


def _headers(archive: tarfile.TarFile) -> tuple[dict[str, tarfile.TarInfo], Exception | None]:
    """The members by name, and the error that ended the list, if any."""
    found: dict[str, tarfile.TarInfo] = {}
    try:
        for member in archive:
            found[posixpath.normpath(member.name)] = member
    except _UNREADABLE as error:
        return found, error
    return found, None


def _unsound_end(archive: tarfile.TarFile) -> Exception | None:
    """The error behind the last member, where gzip and xz keep their checksums; None: no error."""
    try:
        while archive.fileobj is not None and archive.fileobj.read(1 << 16):
            pass
    except _UNREADABLE as error:
        return error
    return None


def _zip_members(path: str, archive: zipfile.ZipFile) -> Iterator[SourceFile]:
    for member in archive.infolist():
        if not member.is_dir():
            yield SourceFile(path, member.file_size, member.filename)


def _tar_members(
    archive: SourceFile, there: Mapping[str, tarfile.TarInfo], *, whole: bool
) -> Iterator[SourceFile]:
    """Plain files, and links to them: incremental backups link files that did not change."""
    path = archive.path
    for name, member in there.items():
        plain = _linked(there, member)
        if plain is None:
            if whole and _is_of_a_log(name):
                link = member.linkname
                raise SourceError(f"{path}!{name}: a link to {link}, which is not in the archive")
        elif plain.isfile() and _is_plain_tar(path) and plain.sparse is None:
            left = max(archive.size - plain.offset_data, 0)
            yield SourceFile(path, min(plain.size, left), member.name, plain.offset_data)
        elif plain.isfile():
            yield SourceFile(path, plain.size, member.name)


def _tar_member(archive: tarfile.TarFile, name: str) -> tarfile.TarInfo:
    """The member or the one that it links to, also when a later one is damaged. Raises KeyError."""
    there, _ = _headers(archive)
    found = _linked(there, there[posixpath.normpath(name)])
    if found is None:
        raise KeyError(f"{name} links to no member")
    return found


def _linked(
    there: Mapping[str, tarfile.TarInfo], member: tarfile.TarInfo
) -> tarfile.TarInfo | None:
    """The member, or the one that its links lead to; None when that is missing."""
    seen = set()
    found: tarfile.TarInfo | None = member
    while found is not None and (found.islnk() or found.issym()):
        if found.name in seen:
            return None
        seen.add(found.name)
        folder = posixpath.dirname(found.name) if found.issym() else ""
        found = there.get(posixpath.normpath(posixpath.join(folder, found.linkname)))
    return found


def _is_of_a_log(name: str) -> bool:
    base = posixpath.basename(name)
    return parse_segment_name(base) is not None or parse_snapshot_name(base) is not None
