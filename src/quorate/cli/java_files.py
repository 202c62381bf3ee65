"""Names of files as `java.io.File` prints them, which keeps `.` and `..`."""

from __future__ import annotations

import os
import re


def file_text(path: str) -> str:
    """Return `File.getPath`: without repeated slashes and without one at the end."""
    text = re.sub("/+", "/", path)
    return text if text == "/" else text.removesuffix("/")


def absolute_text(path: str) -> str:
    """Return `File.getAbsolutePath`."""
    return file_text(os.path.join(os.getcwd(), path))
