"""The batches of one log or snapshot as text, by one process or shared among several.

A large file is shared: every process walks over its pieces, prints each n-th of them, and writes
the text when its turn comes. The turn goes round in a ring of pipes and carries the progress, so
that the output is in order and nothing is copied through another process.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Final, NoReturn

from quorate.formats.batch import HEADER_SIZE, BatchView, batch_size, iter_batches
from quorate.formats.dump import (
    DumpError,
    DumpOptions,
    RecordDump,
    Trail,
    batch_json,
    batch_line,
)
from quorate.formats.quick_json import RecordPrinter

_FLUSH_LINES: Final = 1000
_UP_TO_MAGIC: Final = 17
"""Kafka looks for no batch in fewer bytes than these at the end of a file."""
PIECE_SIZE: Final = 1024 * 1024
"""Bytes read, printed and handed on at a time."""
_SHARE_FROM: Final = 4 * PIECE_SIZE
"""Below this many bytes, more processes cost more than they bring."""
_MOST_PROCESSES: Final = 4


@dataclass(frozen=True, slots=True)
class BatchOptions:
    records: DumpOptions
    deep: bool
    """Print the records, not only the batches."""
    as_json: bool


@dataclass(slots=True)
class Output:
    """Lines on their way to a stream, written in large pieces."""

    stream: IO[bytes]
    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append(line)
        if len(self.lines) >= _FLUSH_LINES:
            self.flush()

    def extend(self, lines: list[str]) -> None:
        self.lines += lines
        if len(self.lines) >= _FLUSH_LINES:
            self.flush()

    def flush(self) -> None:
        if self.lines:
            self.lines.append("")
            self.stream.write("\n".join(self.lines).encode(errors="replace"))
            self.lines.clear()
            self.stream.flush()


@dataclass(slots=True)
class Progress:
    """How far a file has been printed."""

    position: int = 0
    """Exclusive: where the batches that were printed end."""
    trail: Trail = field(default_factory=lambda: Trail(-1, -1))
    """The first record should have offset 0, says Kafka's tool."""


@dataclass(frozen=True, slots=True)
class LogDump:
    """An open log or snapshot, of which the first `size` bytes are printed."""

    path: str
    fd: int
    size: int
    options: BatchOptions

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """(position, whole batches) until the end, or until a batch that is not whole.

        Raises DumpError where no batch can begin.
        """
        position = 0
        while position < self.size:
            piece = os.pread(self.fd, min(PIECE_SIZE, self.size - position), position)
            sound = _sound_size(piece)
            if not sound:
                needed = batch_size(piece)
                if needed is None or len(piece) <= _UP_TO_MAGIC:
                    return
                if needed < HEADER_SIZE:
                    raise DumpError(
                        f"{self.path}: the {needed} bytes of the batch at byte {position} are "
                        "fewer than its header has: the file is damaged"
                    )
                if needed > self.size - position:
                    return
                piece = os.pread(self.fd, needed, position)
                sound = len(piece)
            yield position, piece[:sound]
            position += sound

    def print(self, piece: tuple[int, bytes], printer: RecordPrinter, output: Output) -> Progress:
        """Print a piece; raises DumpError at what cannot be read, after what comes before it."""
        options, progress = self.options, Progress(piece[0], Trail())
        records = RecordDump(options.records, printer)
        progress.trail = records.trail
        line_of = batch_json if options.as_json else batch_line
        records_of = records.json_lines if options.as_json else records.lines
        try:
            for view in iter_batches(piece[1], piece[0], verify=False):
                self._check_format(view)
                output.add(line_of(view))
                if options.deep:
                    for lines in records_of(view):
                        output.extend(lines)
                progress.position = view.position + view.size
        finally:
            output.flush()
        return progress

    def _check_format(self, view: BatchView) -> None:
        if view.magic != 2:
            raise DumpError(
                f"{self.path}: batch at byte {view.position} has format {view.magic}: only format "
                "2 is supported, and a metadata log never holds another"
            )


def dump_alone(dump: LogDump, output: Output, progress: Progress) -> None:
    """Print the whole file; raises DumpError where it cannot be read on."""
    printer = RecordPrinter()
    output.flush()
    for piece in dump.pieces():
        part = dump.print(piece, printer, output)
        progress.trail.join(part.trail)
        progress.position = part.position


def can_share(dump: LogDump, output: Output) -> bool:
    """True when several processes can write the text, and it pays."""
    if dump.size < _SHARE_FROM or _processes() < 2 or not hasattr(os, "fork"):
        return False
    try:
        return output.stream.fileno() >= 0
    except OSError:
        return False


def dump_shared(dump: LogDump, output: Output, progress: Progress) -> None:
    """As dump_alone, by several processes."""
    output.flush()
    out, count = output.stream.fileno(), max(_processes(), 2)
    ring = [os.pipe() for _ in range(count)]
    result = os.pipe()
    children = []
    for me in range(count):
        child = os.fork()
        if not child:
            _work(dump, me, ring, (*result, out))
        children.append(child)
    for reader, writer in ring[1:]:
        os.close(reader)
        os.close(writer)
    os.close(ring[0][0])
    os.close(result[1])
    try:
        _send(ring[0][1], progress)
        os.close(ring[0][1])
        found = _receive(result[0])
    finally:
        os.close(result[0])
        for child in children:
            os.waitpid(child, 0)
    if isinstance(found, BaseException):
        raise found
    if found is None:
        raise DumpError(f"{dump.path}: a process that printed a part of it was killed")
    progress.position, progress.trail = found.position, found.trail


Message = Progress | BaseException | None


def _work(
    dump: LogDump, me: int, ring: list[tuple[int, int]], ends: tuple[int, int, int]
) -> NoReturn:
    """One process: print each `len(ring)`-th piece when the turn comes, then exit.

    `ends`: the pipe for the result (reader, writer), and where the text goes.
    """
    try:
        result_reader, result, out = ends
        previous, following = ring[me][0], ring[(me + 1) % len(ring)][1]
        for pipe in {*sum(ring, ()), result_reader} - {previous, following}:
            os.close(pipe)
        last: Message
        try:
            last = _work_in_turn(dump, me, len(ring), (previous, following, out))
        except Exception as error:
            last = error
        if last is not None:
            _send(result, last)
    finally:
        os._exit(0)


def _work_in_turn(
    dump: LogDump, me: int, count: int, pipes: tuple[int, int, int]
) -> Progress | DumpError | None:
    """Returns what ends the whole dump; None when that is not for this process to say."""
    previous, following, out = pipes
    printer, number = RecordPrinter(), 0
    try:
        for piece in dump.pieces():
            if number % count == me:
                text, failure, part = io.BytesIO(), None, Progress()
                try:
                    part = dump.print(piece, printer, Output(text))
                except DumpError as error:
                    failure = error
                progress = _receive(previous)
                if not isinstance(progress, Progress):
                    return None
                _write(out, text.getbuffer())
                if failure is not None:
                    return failure
                progress.trail.join(part.trail)
                progress.position = part.position
                _send(following, progress)
            number += 1
    except DumpError as error:
        # every process comes to the same place; the one whose turn it would be tells
        return error if number % count == me and _receive(previous) is not None else None
    progress = _receive(previous) if number % count == me else None
    return progress if isinstance(progress, Progress) else None


def _write(out: int, text: memoryview) -> None:
    while text:
        text = text[os.write(out, text) :]


def _send(pipe: int, message: Message) -> None:
    """A process that is gone misses nothing: that it died shows at the pipe for the result."""
    data = pickle.dumps(message)
    data = len(data).to_bytes(4, "big") + data
    with suppress(BrokenPipeError):
        while data:
            data = data[os.write(pipe, data) :]


def _receive(pipe: int) -> Message:
    """None when the other end was closed."""
    head = os.read(pipe, 4)
    left, data = int.from_bytes(head, "big"), b""
    while len(data) < left:
        part = os.read(pipe, left - len(data))
        if not part:
            return None
        data += part
    message: Message = pickle.loads(data) if data else None
    return message


def _processes() -> int:
    return min(os.cpu_count() or 1, _MOST_PROCESSES)


def _sound_size(piece: bytes) -> int:
    """Bytes of the whole batches at the front of a piece."""
    start, end = 0, len(piece)
    while end - start > _UP_TO_MAGIC:
        size = int.from_bytes(piece[start + 8 : start + 12], "big", signed=True) + 12
        if size < HEADER_SIZE or start + size > end:
            break
        start += size
    return start
