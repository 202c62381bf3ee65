"""The stamp of a file, which changes when the file is written, replaced, or gets another owner or mode."""

from __future__ import annotations

import os
from pathlib import Path

FileStamp = tuple[int, int, int, int]
"""(last write, last change of owner, mode or name, size, inode); times in ns, the size in bytes."""


def file_stamp(path: str | Path) -> FileStamp | None:
    """The stamp of the file now; None: it is not there or cannot be looked at."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
