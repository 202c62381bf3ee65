"""Files by path or URI: local, in an object store, inside a tar or zip archive.

A path is a local one or a URI of a file system that PyArrow knows: `file`, `s3` (also written `s3a`
or `s3n`), `gs`, `abfss`, `hdfs`. Hadoop prints local paths as `file:/path`, with one slash; that
is taken too. Credentials and endpoints come from the environment, under the
names of each store's own tools. A member of an archive is written `archive!member`.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
import stat
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
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

from quorate.base.file_errors import is_file_name
from quorate.formats.errors import FormatError

ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_ANY_DEPTH: Final = "**"
_WILD: Final = frozenset("*?[")
_HADOOP_LOCAL: Final = "file:/"
"""The beginning of a local path as Hadoop's Path prints it."""
_SAME: Final = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "gcs": "gs"}
_AWS: Final = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another of AWS's ways"
_AZURE: Final = "set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET"
_GOOGLE: Final = "set GOOGLE_APPLICATION_CREDENTIALS to a key file"
_BUCKETS: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _AWS),
    **dict.fromkeys(("abfs", "abfss"), _AZURE),
    **dict.fromkeys(("gs", "gcs"), _GOOGLE),
}
"""Stores that have buckets, and what to do when one refuses access."""
_REFUSED: Final = ("ACCESS_DENIED", "HTTP status 403", "Forbidden", "redential")
_REQUEST: Final = re.compile(r"\s*\(Request ID: [^)]*\)")


class SourceError(FormatError):
    """The requested source is missing, or is no metadata log. Names the file and the reason."""

    exit_code = 2


class NoLogError(SourceError):
    """The path is a directory, but there is no metadata log below it."""


class TransientError(SourceError):
    """The source is missing at this moment: the caller can start again.

    The request was right, hence the exit code of a job that failed, not that of wrong usage.
    """

    exit_code = 70


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or a member of an archive. Tasks open it by themselves."""

    path: str
    size: int
    member: str | None = None
    start: int | None = None
    """The first byte of a member in an archive that is not compressed."""

    @property
    def name(self) -> str:
        """The name in messages and in the column `file`."""
        if self.member is None:
            return self.path
        return f"{self.path}!{posixpath.normpath(self.member)}"

    @property
    def seekable(self) -> bool:
        """Whether a part of it can be read without the bytes before."""
        return self.member is None or self.start is not None


def is_uri(path: str) -> bool:
    """Whether a path is a URI rather than a local path."""
    return "://" in path or path.startswith(_HADOOP_LOCAL)


def as_local(path: str) -> str:
    """The local path of a `file` URI; any other path as it is."""
    if not path.startswith(_HADOOP_LOCAL):
        return path
    return file_path(path)


def is_archive(path: str) -> bool:
    return path.lower().endswith(ARCHIVES)


def file_system(path: str) -> tuple[FileSystem, str, str]:
    """The file system of a path, the path in it, and the part of a URI before that path.

    In a store with buckets, the file system is that of the bucket.
    Raises SourceError for an unknown scheme, and for one whose libraries are missing.
    """
    if not is_file_name(path):
        shown = path.encode("unicode_escape").decode()
        raise SourceError(f"{shown}: it holds what no path may hold, a NUL or no UTF-8 text")
    scheme, found, rest = path.partition("://")
    if not found:
        if path.startswith(_HADOOP_LOCAL):
            return LocalFileSystem(), os.path.normpath(unquote(path[len("file:") :])), ""
        return LocalFileSystem(), os.path.abspath(path), ""
    authority, _, inner = rest.partition("/")
    if scheme == "file":
        return LocalFileSystem(), os.path.normpath("/" + unquote(inner)), ""
    if not authority and scheme in _BUCKETS:
        raise SourceError(f"{path}: a bucket must be named: {scheme}://bucket/...")
    uri = f"{_SAME.get(scheme, scheme)}://{authority}/"
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if uri.startswith("s3:") and region:
        uri += f"?region={region}"  # without it, PyArrow asks the bucket each time
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
    """The text of an error of a file system, and what to do."""
    text = _REQUEST.sub("", str(error)).strip().partition("\n")[0]
    if "Unrecognized filesystem" in text:
        return (
            f"'{scheme}' is no known file system: give a local path, or a URI of file, s3 (also s3a, "
            "s3n), gs, abfss, hdfs"
        )
    if "Unable to load libjvm" in text or "Unable to load libhdfs" in text:
        return f"{text}: HDFS needs JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob)"
    if any(word in text for word in _REFUSED):
        return f"{text}: access is refused: {_BUCKETS.get(scheme, 'may this user read it?')}"
    if "NO_SUCH_BUCKET" in text or "does not exist" in text:
        return f"{text}: is the bucket named right, and the endpoint?"
    return text


def file_path(path: str) -> str:
    """The path in the form of SourceFile.path: a local one becomes absolute."""
    _, inner, authority = file_system(path)
    return authority + inner


def expand(pattern: str) -> list[str]:
    """The paths that match a pattern (`*`, `?`, `[...]` within a name), sorted.

    `**` matches any number of directories, also none. A path that exists matches itself.
    Raises SourceError when no path matches.
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
            found = _matching(system, found[0], parts[first:])
        except (ArrowException, OSError) as error:
            raise SourceError(f"{pattern}: {_explained(_scheme(pattern), error)}") from None
    if not found:
        raise SourceError(f"{pattern}: no path matches this pattern")
    return [authority + path for path in sorted(found)]


def _matching(system: FileSystem, root: str, parts: Sequence[str]) -> list[str]:
    """The paths below a directory whose names match these parts, level by level."""
    found = [root]
    for number, part in enumerate(parts, 1):
        last = number == len(parts)
        if part == _ANY_DEPTH:
            if not last:  # as the last part it adds nothing: directories are read recursively
                found += [path for one in found for path in _directories(system, one)]
            continue
        found = [
            info.path
            for directory in dict.fromkeys(found)
            for info in _infos(system, directory)
            if fnmatch.fnmatchcase(posixpath.basename(info.path), part)
            and (last or info.type == FileType.Directory)
        ]
    return list(dict.fromkeys(found))


def _directories(system: FileSystem, root: str) -> list[str]:
    """The directories below a directory, at any depth."""
    infos = _infos(system, root, recursive=True)
    return [info.path for info in infos if info.type == FileType.Directory]


def _infos(system: FileSystem, root: str, *, recursive: bool = False) -> list[FileInfo]:
    """The entries of a directory; none when it does not exist."""
    selector = FileSelector(root, allow_not_found=True, recursive=recursive)
    try:
        found: list[FileInfo] = system.get_file_info(selector)
    except NotADirectoryError:
        return []
    return found


def _scheme(path: str) -> str:
    return path.partition("://")[0] if "://" in path else ""


def list_files(path: str) -> tuple[bool, dict[str, SourceFile]]:
    """Whether the path is a directory, and the files below it by full path.

    Raises SourceError when the path does not exist or may not be read.
    """
    system, inner, authority = file_system(path)
    try:
        info: FileInfo = system.get_file_info(inner)
        if info.type == FileType.NotFound:
            raise SourceError(f"{path}: {_missing(path, system)}")
        if info.type == FileType.File:
            return False, {authority + inner: SourceFile(authority + inner, info.size)}
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
    return True, {
        authority + file.path: SourceFile(authority + file.path, file.size) for file in files
    }


def _tree(root: str, authority: str) -> Iterator[SourceFile]:
    """The files below a local directory, each once.

    Symbolic links are followed last, so that a file is named by its real path where it has one
    below the directory. A file that is deleted during the walk is left out.
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
                yield SourceFile(authority + path, found.st_size)
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
    """What is missing: the file or the whole bucket."""
    if _scheme(path) in _BUCKETS and system.get_file_info("").type == FileType.NotFound:
        return "there is no such bucket, or these credentials may not see it"
    return "there is no such file or directory"


def by_directory(files: Mapping[str, SourceFile]) -> dict[str, dict[str, SourceFile]]:
    """Files by directory, then by name."""
    found: dict[str, dict[str, SourceFile]] = {}
    for path in sorted(files):
        folder, name = split(path)
        found.setdefault(folder, {})[name] = files[path]
    return found


def split(path: str) -> tuple[str, str]:
    """Directory and name of a path; the root of an archive is `archive!`."""
    archive, mark, member = path.rpartition("!")
    folder, name = posixpath.split(member)
    return (f"{archive}{mark}{folder}", name)


def parent(folder: str) -> str:
    """The directory above a directory."""
    return split(folder.rstrip("/"))[0]
