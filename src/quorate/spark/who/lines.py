"""The records of a log file, each with the byte at which it begins.

A plain file is cut into pieces that tasks read apart from one another: a record belongs to the
piece in which it begins. A compressed one (`.gz`, `.bz2`, `.zst`) is read from its beginning, and
positions are those of its text.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NamedTuple, cast

from pyarrow import ArrowException

from quorate.spark.files.paths import SourceError, file_system
from quorate.spark.who.layout import Layout

PIECE_BYTES: Final = 32 << 20
LONGEST: Final = 4 << 20
"""Bytes of a line or a record that are kept; a FETCH in the request log can be long."""
COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4")
_BROKEN: Final = (ArrowException, OSError, EOFError)


@dataclass(frozen=True)
class Piece:
    """A part of a file: the records that begin at a byte from `start` to `end` (exclusive)."""

    path: str
    start: int
    end: int | None = None


class Record(NamedTuple):
    """A record's text, all its lines."""

    position: int
    text: str
    begins: bool
    """False for lines before the first record of a file, which belong to none, and for the word
    that a compressed file cannot be unpacked to its end."""
    is_utf8: bool = True
    """False where bytes are no UTF-8; in the text they are U+FFFD, so names are not known."""


def pieces(path: str, size: int) -> list[Piece]:
    """How a file of this many bytes is cut."""
    if path.endswith(COMPRESSED):
        return [Piece(path, 0)]
    starts = range(0, size, PIECE_BYTES)
    return [Piece(path, start, min(start + PIECE_BYTES, size)) for start in starts]


class _Cut(OSError):
    """A file cannot be read from `position` on."""

    def __init__(self, position: int, why: Exception) -> None:
        super().__init__(str(why))
        self.position = position


def records(piece: Piece, layout: Layout) -> Iterator[Record]:
    """The records that begin in a piece. Raises SourceError where the file cannot be read; of a
    compressed one, where nothing of it can."""
    try:
        with _open(piece.path) as stream:
            yield from _joined(_lines(stream, piece.start), layout, piece)
    except _BROKEN as error:
        raise SourceError(f"{piece.path}: {error}") from None


def is_text(piece: Piece) -> bool:
    """False when the beginning of the piece has bytes that no log has."""
    try:
        with _open(piece.path) as stream:
            if piece.start:
                stream.seek(piece.start)
            return b"\0" not in stream.read(4096)
    except _BROKEN as error:
        raise SourceError(f"{piece.path}: {error}") from None


def _open(path: str) -> BinaryIO:
    system, inner, _ = file_system(path)
    if path.endswith(COMPRESSED):
        return cast(BinaryIO, io.BufferedReader(_raw(system.open_input_stream(inner)), 1 << 20))
    return cast(BinaryIO, io.BufferedReader(_raw(system.open_input_file(inner)), 1 << 20))


def _raw(file: Any) -> io.RawIOBase:
    return cast(io.RawIOBase, file)


def _lines(stream: BinaryIO, start: int) -> Iterator[tuple[int, bytes]]:
    """The lines that begin at `start` or later, with their positions, without their ends."""
    position = start
    if start:
        stream.seek(start - 1)
        position += _whole_line(stream)[1] - 1
    while True:
        try:
            kept, size = _whole_line(stream)
        except _BROKEN as error:
            raise _Cut(position, error) from error
        if not size:
            return
        yield position, kept.removeprefix(codecs.BOM_UTF8 if position == 0 else b"").rstrip(b"\r\n")
        position += size


def _whole_line(stream: BinaryIO) -> tuple[bytes, int]:
    """What is kept of a line, and its length with its end; 0 at the end of the file."""
    kept = part = stream.readline(LONGEST)
    size = len(part)
    while len(part) == LONGEST and not part.endswith(b"\n"):
        part = stream.readline(LONGEST)
        size += len(part)
    return kept, size


def _joined(lines: Iterable[tuple[int, bytes]], layout: Layout, piece: Piece) -> Iterator[Record]:
    """Lines that begin no record, put to the one before."""
    begun: _Begun | None = None
    end = piece.end
    cut: Record | None = None
    try:
        for position, line in lines:
            text, is_utf8 = _text(line)
            if layout.begin.match(text):
                if begun is not None:
                    yield begun.record()
                if end is not None and position >= end:
                    return
                begun = _Begun(position, [text], len(text), is_utf8)
            elif begun is not None:
                begun.go_on(text, is_utf8)
            elif end is not None and position >= end:
                return
            elif piece.start == 0 and text:
                yield Record(position, text, False, is_utf8)
    except _Cut as found:
        if not found.position or not piece.path.endswith(COMPRESSED):
            raise
        cut = Record(found.position, f"cannot be unpacked from here on: {found}", False)
    if begun is not None:
        yield begun.record()
    if cut is not None:
        yield cut


@dataclass
class _Begun:
    """A record whose end has not come yet."""

    position: int
    lines: list[str]
    size: int
    """Characters of the lines."""
    is_utf8: bool

    def go_on(self, text: str, is_utf8: bool) -> None:
        """A line more, unless there are LONGEST characters already."""
        if self.size < LONGEST:
            self.lines.append(text)
            self.size += len(text)
            self.is_utf8 &= is_utf8

    def record(self) -> Record:
        return Record(self.position, "\n".join(self.lines), True, self.is_utf8)


def _text(line: bytes) -> tuple[str, bool]:
    """The line as text, and whether it is UTF-8; a letter that the cut halves is left out."""
    whole = len(line) < LONGEST
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(line, final=whole), True
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace"), False
