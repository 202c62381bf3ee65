"""Lines in files of bounded size: the newest file has a fixed name, older ones have a number."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_NEWLINE = b"\n"


class RotatingFile:
    """Appends lines, and begins a new file when one is full. Its methods raise OSError.

    After an error the next `append` opens the file again.
    """

    def __init__(
        self, folder: Path, name_of: Callable[[int], str], max_bytes: int, max_files: int
    ) -> None:
        """Open nothing yet.

        name_of: the name of the file with this age, 0 is the newest; max_bytes: of one file; max_files:
        that are kept in all.
        """
        self._folder = folder
        self._names = [name_of(age) for age in range(max_files)]
        self._max_bytes = max_bytes
        self._file: int | None = None
        self._size = 0

    def open(self) -> None:
        """Open the newest file, and end a line that was cut off in it."""
        path = self._folder / self._names[0]
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        self._size = os.fstat(self._file).st_size
        if self._size and os.pread(self._file, 1, self._size - 1) != _NEWLINE:
            _write_all(self._file, _NEWLINE)  # the machine went down within a line
            self._size += 1

    def append(self, lines: bytes) -> None:
        """Append whole lines."""
        if self._file is None:
            self.open()
        if self._size and self._size + len(lines) > self._max_bytes:
            self._rotate()
        assert self._file is not None
        _write_all(self._file, lines)
        self._size += len(lines)

    def close(self) -> None:
        """Close the file; may be called again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _rotate(self) -> None:
        self.close()
        names = self._names
        (self._folder / names[-1]).unlink(missing_ok=True)
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            if (self._folder / newer).exists():
                (self._folder / newer).rename(self._folder / older)
        self.open()


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
