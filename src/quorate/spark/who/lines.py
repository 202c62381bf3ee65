"""The records of a log file, each with the byte at which it begins.

Tasks read a plain file in pieces: a record belongs to the piece in which it begins. A compressed
file (`.gz`, `.bz2`, `.zst`, `.lz4`) is one piece, and positions are those of the uncompressed text.
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
"""Bytes of a line, and characters of a record, that are kept: a FETCH in the request log can be
long."""
COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4")
_BROKEN: Final = (ArrowException, OSError, EOFError)


@dataclass(frozen=True)
class LogPiece:
    """A part of a file: the records that begin at a byte from `start` to `end` (exclusive)."""

    path: str
    start: int
    end: int | None = None


class RawRecord(NamedTuple):
    """The text of a record, with all its lines."""

    position: int
    text: str
    begins: bool
    """False for lines before the first record of a file, and for the message that a compressed file
    cannot be unpacked to its end."""
    is_utf8: bool = True
    """False where bytes are no UTF-8; the text has U+FFFD for them, so its names are unknown."""


def pieces(path: str, size: int) -> list[LogPiece]:
    """The pieces of a file of this many bytes."""
    if path.endswith(COMPRESSED):
        return [LogPiece(path, 0)]
    starts = range(0, size, PIECE_BYTES)
    return [LogPiece(path, start, min(start + PIECE_BYTES, size)) for start in starts]


class _CutError(OSError):
    """A file cannot be read from `position` (bytes of its text) on."""

    def __init__(self, position: int, why: Exception) -> None:
        super().__init__(str(why))
        self.position = position


def records(piece: LogPiece, layout: Layout) -> Iterator[RawRecord]:
    """The records that begin in a piece.

    Raises SourceError where the file cannot be read. A compressed file that is damaged after its
    beginning gives what can be unpacked, then a record that says so.
    """
    try:
        with _open(piece.path) as stream:
            yield from _join_lines(_lines(stream, piece.start), layout, piece)
    except _BROKEN as error:
        raise SourceError(f"{piece.path}: {error}") from None


def is_text(piece: LogPiece) -> bool:
    """False when the beginning of the piece has zero bytes, which no log has."""
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
    """The lines that begin at `start` or later: (position, line without its line break)."""
    position = start
    if start:
        stream.seek(start - 1)
        position += _whole_line(stream)[1] - 1
    while True:
        try:
            kept, size = _whole_line(stream)
        except _BROKEN as error:
            raise _CutError(position, error) from error
        if not size:
            return
        yield position, kept.removeprefix(codecs.BOM_UTF8 if position == 0 else b"").rstrip(b"\r\n")
        position += size


def _whole_line(stream: BinaryIO) -> tuple[bytes, int]:
    """The kept part of a line, and its length with the line break; 0 at the end of the file."""
    kept = part = stream.readline(LONGEST)
    size = len(part)
    while len(part) == LONGEST and not part.endswith(b"\n"):
        part = stream.readline(LONGEST)
        size += len(part)
    return kept, size


def _join_lines(
    lines: Iterable[tuple[int, bytes]], layout: Layout, piece: LogPiece
) -> Iterator[RawRecord]:
    """Records: lines that begin no record belong to the one before."""
    open_record: _OpenRecord | None = None
    end = piece.end
    cut: RawRecord | None = None
    try:
        for position, line in lines:
            text, is_utf8 = _text(line)
            if layout.begin.match(text):
                if open_record is not None:
                    yield open_record.record()
                if end is not None and position >= end:
                    return
                open_record = _OpenRecord(position, [text], len(text), is_utf8)
            elif open_record is not None:
                open_record.append(text, is_utf8)
            elif end is not None and position >= end:
                return
            elif piece.start == 0 and text:
                yield RawRecord(position, text, False, is_utf8)
    except _CutError as found:
        if not found.position or not piece.path.endswith(COMPRESSED):
            raise
        cut = RawRecord(found.position, f"cannot be unpacked from here on: {found}", False)
    if open_record is not None:
        yield open_record.record()
    if cut is not None:
        yield cut


@dataclass
class _OpenRecord:
    """A record that may have further lines."""

    position: int
    lines: list[str]
    size: int
    """Characters of the lines."""
    is_utf8: bool

    def append(self, text: str, is_utf8: bool) -> None:
        """Add a line, unless the record has LONGEST characters already."""
        if self.size < LONGEST:
            self.lines.append(text)
            self.size += len(text)
            self.is_utf8 &= is_utf8

    def record(self) -> RawRecord:
        return RawRecord(self.position, "\n".join(self.lines), True, self.is_utf8)


def _text(line: bytes) -> tuple[str, bool]:
    """The line as text, and whether it is UTF-8; a character that the limit splits is left out."""
    whole = len(line) < LONGEST
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(line, final=whole), True
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace"), False
