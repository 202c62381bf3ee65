"""What is packed in archives, and the shelf from which every file is read.

Of a damaged archive the good part is told: the members before the damage, and of a member whatever
can be unpacked.
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
from quorate.spark.files.paths import File, PassingFault, SourceError, file_system
from quorate.spark.files.scan import Garbled, Read
from quorate.spark.files.zips import CutZip

_UNREADABLE: Final = (
    *(ArrowException, OSError, EOFError, KeyError, zlib.error, lzma.LZMAError),
    *(tarfile.TarError, zipfile.BadZipFile),
    RuntimeError,  # what zipfile says of a member that is encrypted or packed in a way unknown
)
_STEPS: Final = (65536, 64)
"""Bytes that are unpacked at a time, and where that fails: fewer than a batch has."""
_BAD_CHECKSUM: Final = "Bad CRC-32"
"""How zipfile begins what it says of a member whose last bytes it keeps back."""
_END_MARK: Final = "end of file header"
"""What tarfile calls the blocks of zeros that end an archive."""


class UnsoundArchive(SourceError):
    """What is in an archive can be told in part; names it, the reason and how far it was read."""

    def __init__(
        self, archive: File, position: int, reason: object, found: Mapping[str, File] | None = None
    ) -> None:
        self.archive = archive
        self.position = min(position, archive.size)
        self.found = found or {}
        """The members before the damage, of which the last may be cut, by their full names."""
        why = str(reason).partition("\n")[0].rstrip(":")
        super().__init__(
            f"{archive.path} is not a sound archive: {why} (read to byte {self.position} of "
            f"{archive.size})"
        )


class FileGone(PassingFault):
    """A file was listed and is no more."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path}: it was there and is gone: the log was cleaned meanwhile, or moved; start "
            "again, which goes on from what is there now"
        )


class GarbledMember(SourceError, Garbled):
    """A member of an archive that ends to make sense; names it and the reason."""

    def __init__(self, member: File, reason: str) -> None:
        super().__init__(f"{member.name}: {reason}")
        self.reason = reason


class _Unpacker:
    """Reads a packed member, of which whatever stands before is unpacked first: best in order."""

    def __init__(self, file: File, stream: Any, open_anew: Callable[[], Any]) -> None:
        self._file = file
        self._stream = stream
        self._open_anew = open_anew
        self._wrong: str | None = None

    def __call__(self, position: int, size: int) -> bytes:
        """Fewer bytes before what cannot be unpacked; there, raises GarbledMember.

        So it does at the end of what could be unpacked, but has not the checksum of a zip's member.
        """
        if self._wrong is not None and position >= self._file.size:
            raise GarbledMember(self._file, self._wrong)
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
                self._stream = self._open_anew()  # behind an error it is in no state to go on
                if str(error).startswith(_BAD_CHECKSUM):
                    self._wrong = f"all could be unpacked, but not as it was packed: {error}"
                    self._stream._expected_crc = None  # batches have checksums of their own
        if not found:
            why = f"cannot be unpacked from byte {position} on: {problem}"
            raise GarbledMember(self._file, why)
        return bytes(found)


class Shelf:
    """Reads files; keeps the file or archive open that was read last. Close it in the end."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._open = ExitStack()
        self._base: Any = None
        self._archive: tarfile.TarFile | zipfile.ZipFile | None = None

    def __enter__(self) -> Shelf:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def read_small(self, file: File) -> bytes:
        """All bytes of a file; raises SourceError."""
        read = self.reader(file)
        found = read(0, file.size)
        read(file.size, 0)  # where a wrong checksum is told
        return found

    def reader(self, file: File) -> Read:
        """The function that reads parts of the file; it and this raise SourceError.

        What is packed is read up to where it makes no sense, then GarbledMember is raised.
        """
        with _told(file.name):
            stream = self._stream(file)
        if not file.seekable:
            return _Unpacker(file, stream, lambda: self._stream(file))
        shift = file.start or 0

        def read(position: int, size: int) -> bytes:
            with _told(file.name):
                stream.seek(shift + position)
                data: bytes = stream.read(max(min(size, file.size - position), 0))
                return data

        return read

    def _stream(self, file: File) -> Any:
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
    """The file, or what is left of it; raises FileGone, and what the file system raises.

    Kafka takes a file out of a log by another name, and a minute later from the disk.
    """
    system, inner, _ = file_system(path)
    try:
        return system.open_input_file(inner)
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            return system.open_input_file(inner + DELETED_SUFFIX)
    raise FileGone(path)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Errors of reading, said of this file."""
    try:
        yield
    except _UNREADABLE as error:
        raise SourceError(f"{name}: {error}") from None


def _archive(path: str, base: Any) -> tarfile.TarFile | zipfile.ZipFile:
    if path.lower().endswith(".zip"):
        try:
            return zipfile.ZipFile(base)
        except zipfile.BadZipFile as error:
            return CutZip(base, error)
    mode: Literal["r:", "r:*"] = "r:" if _is_plain_tar(path) else "r:*"
    return tarfile.open(fileobj=base, mode=mode, tarinfo=_Header)


class _Header(tarfile.TarInfo):
    """Tells damage from the end of an archive: tarfile stops in silence at either."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tar)
        except tarfile.HeaderError as error:
            if str(error) == _END_MARK:
                raise
            raise tarfile.ReadError(f"{error} where a member or the end mark should be") from None


def _is_plain_tar(path: str) -> bool:
    return path.lower().endswith(".tar")


def members(archive: File) -> dict[str, File]:
    """The files in an archive by their full names; raises UnsoundArchive.

    Of a compressed tar everything is read for it.
    """
    path = archive.path
    system, inner, _ = file_system(path)
    problem: Exception | None = None
    with _told(path), system.open_input_file(inner) as base:
        try:
            with _archive(path, base) as opened:
                if isinstance(opened, zipfile.ZipFile):
                    found = list(_zip_members(path, opened))
                    if isinstance(opened, CutZip):
                        problem = opened.problem
                        base.seek(opened.reached)
                else:
                    there, problem = _headers(opened)
                    if problem is None and not _is_plain_tar(path):
                        problem = _unsound_end(opened)
                    found = list(_tar_members(archive, there, whole=problem is None))
        except _UNREADABLE as error:
            raise UnsoundArchive(archive, base.tell(), error) from None
        by_name = {file.name: file for file in found}
        if problem is not None:
            raise UnsoundArchive(archive, base.tell(), problem, by_name)
    return by_name


def _headers(archive: tarfile.TarFile) -> tuple[dict[str, tarfile.TarInfo], Exception | None]:
    """The members by their names, and why those that follow cannot be told."""
    found: dict[str, tarfile.TarInfo] = {}
    try:
        for member in archive:
            found[posixpath.normpath(member.name)] = member
    except _UNREADABLE as error:
        return found, error
    return found, None


def _unsound_end(archive: tarfile.TarFile) -> Exception | None:
    """What is wrong behind the last member, where gzip and xz keep their checksums."""
    try:
        while archive.fileobj is not None and archive.fileobj.read(1 << 16):
            pass
    except _UNREADABLE as error:
        return error
    return None


def _zip_members(path: str, archive: zipfile.ZipFile) -> Iterator[File]:
    for member in archive.infolist():
        if not member.is_dir():
            yield File(path, member.file_size, member.filename)


def _tar_members(
    archive: File, there: Mapping[str, tarfile.TarInfo], *, whole: bool
) -> Iterator[File]:
    """Plain files, and links to them: backups of many days share what did not change."""
    path = archive.path
    for name, member in there.items():
        plain = _linked(there, member)
        if plain is None:
            if whole and _is_of_a_log(name):
                link = member.linkname
                raise SourceError(f"{path}!{name}: a link to {link}, which is not in the archive")
        elif plain.isfile() and _is_plain_tar(path) and plain.sparse is None:
            left = max(archive.size - plain.offset_data, 0)
            yield File(path, min(plain.size, left), member.name, plain.offset_data)
        elif plain.isfile():
            yield File(path, plain.size, member.name)


def _tar_member(archive: tarfile.TarFile, name: str) -> tarfile.TarInfo:
    """What this member is or leads to, also where a later one is damaged; raises KeyError."""
    there, _ = _headers(archive)
    found = _linked(there, there[posixpath.normpath(name)])
    if found is None:
        raise KeyError(f"{name} leads nowhere")
    return found


def _linked(
    there: Mapping[str, tarfile.TarInfo], member: tarfile.TarInfo
) -> tarfile.TarInfo | None:
    """What a member is or leads to by links; None when that is not there."""
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
