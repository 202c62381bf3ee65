"""Read the file of a store. A dynamic config may name any file, and the event loop reads it."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

MOST_BYTES: Final = 16_777_216


def read_store_file(path: str) -> bytes:
    """The bytes of a regular file of at most `MOST_BYTES`.

    A pipe or a device may never answer, or never end: it is not read. Raises OSError, and ValueError for
    a name that no file has.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES} bytes")
    return data
