"""Standard streams of every kind for a command in the test's own process."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from contextlib import suppress
from typing import NamedTuple

import pytest

from narrow import as_any
from quorate.cli import main


class Screen(io.RawIOBase):
    """What a stream writes to: a terminal or a pipe whose reader goes away after `takes` writes."""

    def __init__(self, *, is_terminal: bool = False, takes: int | None = None) -> None:
        super().__init__()
        self.is_terminal = is_terminal
        self.left = takes
        self.data = b""
        self._null = os.open(os.devnull, os.O_WRONLY)

    def close(self) -> None:
        if not self.closed:
            os.close(self._null)
        super().close()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.is_terminal

    def fileno(self) -> int:
        """Where `main` puts its last output when the reader has gone."""
        return self._null

    def write(self, data: object) -> int:
        if self.left is not None:
            if not self.left:
                raise BrokenPipeError(errno.EPIPE, "Broken pipe")
            self.left -= 1
        piece = bytes(data)  # type: ignore[call-overload]
        self.data += piece
        return len(piece)


class Played(NamedTuple):
    code: int
    out: str
    err: str


class _EndError(BaseException):
    """In the place of the end of the process, which nothing may catch."""


class Player:
    """Runs `quorate WORDS...` as the console script does, up to the last flush."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(
        self,
        words: list[str],
        *,
        out: Screen | None = None,
        err: Screen | None = None,
        encoding: str = "utf-8",
        text: str = "",
    ) -> Played:
        """The exit code, and what arrived at stdout and stderr. `text`: what stdin has."""
        out, err = out or Screen(), err or Screen()
        threshold = gc.get_threshold()

        def end(code: int) -> None:
            raise _EndError(code)

        with self._monkeypatch.context() as patch:
            streams: dict[str, io.TextIOWrapper] = {
                "stdin": io.TextIOWrapper(io.BytesIO(text.encode()), newline="\n")
            }
            for name, screen in (("stdout", out), ("stderr", err)):
                streams[name] = io.TextIOWrapper(
                    as_any(io.BufferedWriter(screen)),
                    encoding,
                    "strict" if name == "stdout" else "backslashreplace",
                    line_buffering=screen.is_terminal or name == "stderr",
                )
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            patch.setattr(sys, "argv", ["quorate", *words])
            patch.setattr(os, "_exit", end)
            try:
                main.main()
            except _EndError as ended:
                code = ended.args[0]
            finally:
                gc.set_threshold(*threshold)
                for stream in streams.values():
                    _forget(stream)
        shown = [screen.data.decode(encoding, "replace") for screen in (out, err)]
        return Played(code, *shown)


def _forget(stream: io.TextIOWrapper) -> None:
    """Close it without the error of what it could not write; `main` may have taken its buffer."""
    with suppress(OSError, ValueError):
        stream.close()
