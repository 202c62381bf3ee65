"""Files wherever they are: local, in an object store, inside a tar or zip archive.

A path is a local one or a URI of a file system that PyArrow knows: `file`, `s3` (also written `s3a`
or `s3n`), `gs`, `abfss`, `hdfs`. Credentials and endpoints come from the environment, under the
names of each store's own tools. A member of an archive is written `archive!member`.
"""

from __future__ import annotations

import fnmatch
import lzma
import os
import posixpath
import re
import stat
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Self
from urllib.parse import unquote

from pyarrow import ArrowException
from pyarrow.fs import (
    FileInfo,
    FileSelector,
    FileSystem,
    FileType,
    LocalFileSystem,
    SubTreeFileSystem,
)

from quorate.formats.errors import FormatError
from quorate.formats.files import parse_segment_name, parse_snapshot_name
from quorate.spark.scan import Garbled, Read

ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_WILD: Final = frozenset("*?[")
_SAME: Final = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "gcs": "gs"}
_AWS: Final = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another of AWS's ways"
_AZURE: Final = "set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET"
_GOOGLE: Final = "set GOOGLE_APPLICATION_CREDENTIALS to a key file"
_BUCKETS: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _AWS),
    **dict.fromkeys(("abfs", "abfss"), _AZURE),
    **dict.fromkeys(("gs", "gcs"), _GOOGLE),
}
"""Stores that have buckets, and what to do when one refuses."""
_REFUSED: Final = ("ACCESS_DENIED", "HTTP status 403", "Forbidden", "redential")
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
_REQUEST: Final = re.compile(r"\s*\(Request ID: [^)]*\)")


class SourceError(FormatError):
    """What was asked for is not there or is not a metadata log; names file and reason."""

    exit_code = 2


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


class GarbledMember(SourceError, Garbled):
    """A member of an archive that ends to make sense; names it and the reason."""

    def __init__(self, member: File, reason: str) -> None:
        super().__init__(f"{member.name}: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class File:
    """A file, or a member of an archive, that workers can open on their own."""

    path: str
    size: int
    member: str | None = None
    start: int | None = None
    """Where a member stands in an archive that is not compressed."""

    @property
    def name(self) -> str:
        """As it is shown."""
        if self.member is None:
            return self.path
        return f"{self.path}!{posixpath.normpath(self.member)}"

    @property
    def seekable(self) -> bool:
        """True when a part of it can be read without what stands before."""
        return self.member is None or self.start is not None


def is_archive(path: str) -> bool:
    return path.lower().endswith(ARCHIVES)


def file_system(path: str) -> tuple[FileSystem, str, str]:
    """The file system of a path, the path in it, and what stands before that in a URI.

    Of a store with buckets the file system is that of the bucket.
    Raises SourceError for a scheme that is not known or whose libraries are missing.
    """
    scheme, found, rest = path.partition("://")
    if not found:
        return LocalFileSystem(), os.path.abspath(path), ""
    authority, _, inner = rest.partition("/")
    if scheme == "file":
        return LocalFileSystem(), os.path.normpath("/" + unquote(inner)), ""
    if not authority and scheme in _BUCKETS:
        raise SourceError(f"{path}: a bucket must be named: {scheme}://bucket/...")
    uri = f"{_SAME.get(scheme, scheme)}://{authority}/"
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if uri.startswith("s3:") and region:
        uri += f"?region={region}"  # else the bucket is asked for it, each time
    try:
        system, base = FileSystem.from_uri(uri)
    except (ArrowException, OSError, ValueError) as error:
        raise SourceError(f"{path}: {_explained(scheme, error)}") from None
    before = f"{scheme}://{authority}"
    if scheme in _BUCKETS:
        return SubTreeFileSystem(base, system), inner.rstrip("/"), f"{before}/"
    root = "/" if base.startswith("/") else ""
    return system, root + inner.rstrip("/"), before if root else f"{before}/"


def _explained(scheme: str, error: Exception) -> str:
    """What an error of a file system means, and what to do."""
    text = _REQUEST.sub("", str(error)).strip().partition("\n")[0]
    if "Unrecognized filesystem" in text:
        return (
            f"'{scheme}' is no file system that is known: a local path, or a URI of file, s3 (also "
            "s3a, s3n), gs, abfss, hdfs"
        )
    if "Unable to load libjvm" in text or "Unable to load libhdfs" in text:
        return f"{text}: HDFS needs JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob)"
    if any(word in text for word in _REFUSED):
        return f"{text}: access is refused: {_BUCKETS.get(scheme, 'may this user read it?')}"
    if "NO_SUCH_BUCKET" in text or "does not exist" in text:
        return f"{text}: is the bucket named right, and the endpoint?"
    return text


def file_path(path: str) -> str:
    """The path as files are named by: a local one is made absolute."""
    _, inner, authority = file_system(path)
    return authority + inner


def expand(pattern: str) -> list[str]:
    """The paths that a pattern (`*`, `?`, `[...]` within a name) stands for, sorted.

    A path that is there stands for itself. Raises SourceError when there is none.
    """
    if not pattern:
        raise SourceError("a path is empty: is a variable not set?")
    system, inner, authority = file_system(pattern)
    parts = inner.split("/")
    first = next((n for n, part in enumerate(parts) if _WILD & set(part)), None)
    found = [inner]
    if first is not None:
        found = ["/".join(parts[:first]) or ("/" if inner.startswith("/") else "")]
        try:
            if system.get_file_info(inner).type != FileType.NotFound:
                return [authority + inner]
            for part in parts[first:]:
                found = [
                    child
                    for parent in found
                    for child in _children(system, parent)
                    if fnmatch.fnmatchcase(posixpath.basename(child), part)
                ]
        except (ArrowException, OSError) as error:
            raise SourceError(f"{pattern}: {_explained(_scheme(pattern), error)}") from None
    if not found:
        raise SourceError(f"{pattern}: no path matches this pattern")
    return [authority + path for path in sorted(found)]


def _children(system: FileSystem, parent: str) -> list[str]:
    infos = system.get_file_info(FileSelector(parent, allow_not_found=True))
    return [info.path for info in infos]


def _scheme(path: str) -> str:
    return path.partition("://")[0] if "://" in path else ""


def list_files(path: str) -> tuple[bool, dict[str, File]]:
    """Whether the path is a directory, and the files below it by their full paths.

    Raises SourceError when there is nothing there, or it may not be read.
    """
    system, inner, authority = file_system(path)
    try:
        info: FileInfo = system.get_file_info(inner)
        if info.type == FileType.NotFound:
            raise SourceError(f"{path}: {_missing(path, system)}")
        if info.type == FileType.File:
            return False, {authority + inner: File(authority + inner, info.size)}
        if info.type == FileType.Unknown:
            raise SourceError(
                f"{path}: neither a file nor a directory, but a device, pipe or socket"
            )
        if isinstance(system, LocalFileSystem):
            return True, {file.path: file for file in _tree(inner, authority)}
        infos = system.get_file_info(FileSelector(inner, recursive=True))
    except (ArrowException, OSError) as error:
        raise SourceError(f"{path}: {_explained(_scheme(path), error)}") from None
    files = (found for found in infos if found.type == FileType.File)
    return True, {authority + file.path: File(authority + file.path, file.size) for file in files}


def _tree(root: str, authority: str) -> Iterator[File]:
    """The files below a local directory, each once: by links only those that no other way leads to.

    What is gone before it is looked at is left out.
    """
    seen: set[str] = set()
    waiting = deque([(root, os.path.realpath(root))])
    links: deque[str] = deque()
    while waiting or links:
        if waiting:
            path, real = waiting.popleft()
        else:
            path = links.popleft()
            real = os.path.realpath(path)
        if real in seen:
            continue
        seen.add(real)
        try:
            found = os.stat(path)
            if stat.S_ISREG(found.st_mode):
                yield File(authority + path, found.st_size)
            if not stat.S_ISDIR(found.st_mode):
                continue
            with os.scandir(path) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    if entry.is_symlink():
                        links.append(entry.path)
                    else:
                        waiting.append((entry.path, os.path.join(real, entry.name)))
        except FileNotFoundError:
            continue


def _missing(path: str, system: FileSystem) -> str:
    """What is not there: the file, or the whole bucket."""
    if _scheme(path) in _BUCKETS and system.get_file_info("").type == FileType.NotFound:
        return "there is no such bucket, or these credentials do not show it"
    return "there is no such file or directory"


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
            system, inner, _ = file_system(file.path)
            self._base = self._open.enter_context(system.open_input_file(inner))
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


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Errors of reading, said of this file."""
    try:
        yield
    except _UNREADABLE as error:
        raise SourceError(f"{name}: {error}") from None


def _archive(path: str, base: Any) -> tarfile.TarFile | zipfile.ZipFile:
    if path.lower().endswith(".zip"):
        return zipfile.ZipFile(base)
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


def by_directory(files: Mapping[str, File]) -> dict[str, dict[str, File]]:
    """Files by the directory that they stand in, then by their names."""
    found: dict[str, dict[str, File]] = {}
    for path in sorted(files):
        folder, name = split(path)
        found.setdefault(folder, {})[name] = files[path]
    return found


def split(path: str) -> tuple[str, str]:
    """Directory and name; the top of an archive is `archive!`."""
    archive, mark, member = path.rpartition("!")
    folder, name = posixpath.split(member)
    return (f"{archive}{mark}{folder}", name)


def parent(folder: str) -> str:
    """The directory above a directory."""
    return split(folder.rstrip("/"))[0]
