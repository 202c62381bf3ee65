"""The records of a log file, each with the byte at which it begins.

A plain file is cut into pieces that tasks read apart from one another: a record belongs to the
piece in which it begins. A compressed one (`.gz`, `.bz2`, `.zst`) is read from its beginning, and
positions are those of its text.
"""

from __future__ import annotations

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
    """False for lines before the first record of a file, which belong to none."""


def pieces(path: str, size: int) -> list[Piece]:
    """How a file of this many bytes is cut."""
    if path.endswith(COMPRESSED):
        return [Piece(path, 0)]
    starts = range(0, size, PIECE_BYTES)
    return [Piece(path, start, min(start + PIECE_BYTES, size)) for start in starts]


def records(piece: Piece, layout: Layout) -> Iterator[Record]:
    """The records that begin in a piece. Raises SourceError where the file cannot be read."""
    try:
        with _open(piece.path) as stream:
            yield from _joined(_lines(stream, piece.start), layout, piece)
    except (ArrowException, OSError, EOFError) as error:
        raise SourceError(f"{piece.path}: {error}") from None


def is_text(piece: Piece) -> bool:
    """False when the beginning of the piece has bytes that no log has."""
    try:
        with _open(piece.path) as stream:
            if piece.start:
                stream.seek(piece.start)
            return b"\0" not in stream.read(4096)
    except (ArrowException, OSError, EOFError) as error:
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
        kept, size = _whole_line(stream)
        if not size:
            return
        yield position, kept.rstrip(b"\r\n")
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
    begun: tuple[int, list[str], int] | None = None  # position, lines, characters of them
    end = piece.end
    for position, line in lines:
        text = line.decode("utf-8", "replace")
        if layout.begin.match(text):
            if begun is not None:
                yield _record(*begun)
            if end is not None and position >= end:
                return
            begun = position, [text], len(text)
        elif begun is not None:
            if begun[2] < LONGEST:
                begun[1].append(text)
                begun = begun[0], begun[1], begun[2] + len(text)
        elif end is not None and position >= end:
            return
        elif piece.start == 0 and text:
            yield Record(position, text, False)
    if begun is not None:
        yield _record(*begun)


def _record(position: int, lines: list[str], _size: int) -> Record:
    return Record(position, "\n".join(lines), True)
