"""Errors of writing: which path, how much space its disk has, and what to do.

A disk may be full for this process, for a task on an executor, or for Spark's Java side. The last
two reach the driver as text within an error of Spark.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.spark.files.paths import as_local, is_uri

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_FULL_TEXTS: Final = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "File too large": errno.EFBIG,
    "Read-only file system": errno.EROFS,
}
"""What libraries in other languages leave of the number of an error."""
_AGAIN: Final = "start the job again: nothing is lost or taken twice"
_ADVICE: Final = {
    errno.ENOSPC: f"free space there, then {_AGAIN}",
    errno.EDQUOT: f"free space there or raise the quota, then {_AGAIN}",
    errno.EFBIG: f"raise the limit on file sizes (ulimit -f), then {_AGAIN}",
    errno.EROFS: f"the file system is mounted read-only; make it writable, then {_AGAIN}",
    errno.EACCES: f"let the user of the job write there, then {_AGAIN}",
    errno.EPERM: f"let the user of the job write there, then {_AGAIN}",
}
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP: Final = 1024


class DiskWriteError(QuorateError):
    """A path cannot be written: its disk is full or read-only, or a limit is reached."""

    exit_code = 70

    def __init__(self, path: str, error: Exception) -> None:
        super().__init__(cannot_write(path, error))


def cannot_write(path: str, error: Exception) -> str:
    """The message about a path that cannot be written."""
    number = error_number(error)
    reason = plain_reason(error) if number is None else os.strerror(number)
    space = _space(path) if number in (errno.ENOSPC, errno.EDQUOT) else ""
    advice = _ADVICE.get(number or 0)
    return f"{path}: cannot be written: {reason}{space}" + (f": {advice}" if advice else "")


def error_number(error: Exception) -> int | None:
    """The number (errno) of an error of writing, also of one that has it only in its text."""
    if isinstance(error, OSError) and error.errno in _ADVICE:
        return error.errno
    text = str(error)
    return next((number for words, number in _FULL_TEXTS.items() if words in text), None)


def plain_reason(error: Exception) -> str:
    """The message of a library's error, on one line and without colours."""
    lines = (line.strip(" \u21b3") for line in _COLOURS.sub("", str(error)).splitlines())
    return ": ".join(line for line in lines if line)


def fullest(paths: Iterable[str]) -> str | None:
    """Return the path whose disk has the least free space; None when none is known."""
    known = {path: free for path in paths if (free := _free(path)) is not None}
    return min(known, key=lambda path: known[path][0], default=None)


def _space(path: str) -> str:
    """The free space of the disk of a path as text; empty where it is not known."""
    found = _free(path)
    return "" if found is None else f" ({_size(found[0])} free of {_size(found[1])})"


def _free(path: str) -> tuple[int, int] | None:
    """Bytes that are free and all bytes of the disk of a path, which need not exist."""
    path = as_local(path)
    if is_uri(path):
        return None
    place = Path(path).absolute()
    for folder in (place, *place.parents):
        try:
            usage = shutil.disk_usage(folder)
        except OSError:
            continue
        return usage.free, usage.total
    return None


def _size(count: float) -> str:
    for unit in _UNITS[:-1]:
        if count < _STEP:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _STEP
    return f"{count:.1f} {_UNITS[-1]}"
