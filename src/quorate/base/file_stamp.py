"""The stamp of a file, which changes when the file is written, replaced, or gets another owner or mode."""

from __future__ import annotations

import os
from pathlib import Path

FileStamp = tuple[int, int, int, int]
"""(time of the last write in ns, that of the last change of its owner, mode or name, size in bytes, inode)."""


def file_stamp(path: str | Path) -> FileStamp | None:
    """The stamp of the file now; None: it is not there or cannot be looked at."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
