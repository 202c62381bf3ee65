"""Print the batches of one log or snapshot, with one process or several.

Several processes share a large file:

1. Each process reads the whole file in pieces, and formats each n-th piece.
2. A token travels through a ring of pipes. Who holds it writes its piece to stdout, adds its piece to the
   token's progress, and passes the token on. So the output is in order, and no text is copied through
   another process.
3. The process that reaches the end or an error sends it to the parent, through a separate pipe.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Final, NamedTuple, NoReturn

from quorate.formats.batch import HEADER_SIZE, batch_size, iter_batches
from quorate.formats.dump import DumpOptions, RecordDump, Trail, batch_json, batch_line
from quorate.formats.dump_contents import Contents
from quorate.formats.loose_records import CutLineError, DumpError

_FLUSH_LINES: Final = 1000
_UP_TO_MAGIC: Final = 17
"""Kafka's tool ignores a rest of this many bytes or fewer at the end of a file."""
PIECE_SIZE: Final = 1024 * 1024
"""Bytes that are read and printed at a time."""
_SHARE_FROM: Final = 4 * PIECE_SIZE
"""Below this size, starting processes takes longer than they save."""
_MAX_PROCESSES: Final = 4


class BatchOptions(NamedTuple):
    """What to print of a batch."""

    records: DumpOptions
    deep: bool
    """Print the records too."""
    as_json: bool


class Output:
    """Buffers lines and writes them to a stream in large pieces."""

    def __init__(self, stream: IO[bytes], encoding: str = "utf-8") -> None:
        self.stream = stream
        self.encoding = encoding
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        """Add a line, without its line feed."""
        self.lines.append(line)
        if len(self.lines) >= _FLUSH_LINES:
            self.flush()

    def extend(self, lines: list[str]) -> None:
        """Add lines."""
        self.lines += lines
        if len(self.lines) >= _FLUSH_LINES:
            self.flush()

    def flush(self) -> None:
        """Write all buffered lines."""
        if self.lines:
            self.lines.append("")
            errors = "replace" if self.encoding == "utf-8" else "backslashreplace"
            self.stream.write("\n".join(self.lines).encode(self.encoding, errors))
            self.lines.clear()
            self.stream.flush()


class DumpProgress:
    """How far a file has been printed."""

    def __init__(self, position: int = 0, trail: Trail | None = None) -> None:
        """position: end of the printed batches, in bytes (exclusive).

        As in Kafka's tool, a file whose first record does not have offset 0 has a gap.
        """
        self.position = position
        self.trail = Trail(-1, -1) if trail is None else trail


class LogDump(NamedTuple):
    """An open log or snapshot, of which the first `size` bytes are printed."""

    path: str
    fd: int
    size: int
    options: BatchOptions

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Read (position, whole batches) up to the end, or to an incomplete batch.

        Raises DumpError at bytes that cannot be a batch.
        """
        position = 0
        while position < self.size:
            piece = os.pread(self.fd, min(PIECE_SIZE, self.size - position), position)
            sound = _whole_batches_size(piece)
            if not sound:
                needed = batch_size(piece)
                if needed is None or len(piece) <= _UP_TO_MAGIC:
                    return
                if needed < HEADER_SIZE:
                    raise DumpError(
                        f"{self.path}: the batch at byte {position} has {needed} bytes, fewer than "
                        "a batch header: the file is damaged"
                    )
                if needed > self.size - position:
                    return
                piece = os.pread(self.fd, needed, position)
                sound = len(piece)
            yield position, piece[:sound]
            position += sound

    def print(self, piece: tuple[int, bytes], contents: Contents, output: Output) -> DumpProgress:
        """Print a piece. Raises DumpError at an unreadable batch, after printing those before it."""
        options, progress = self.options, DumpProgress(piece[0], Trail())
        records = RecordDump(options.records, contents)
        progress.trail = records.trail
        line_of = batch_json if options.as_json else batch_line
        records_of = records.json_lines if options.as_json else records.lines
        try:
            for view in iter_batches(piece[1], piece[0], verify=False):
                output.add(line_of(view))
                if options.deep:
                    for lines in records_of(view):
                        output.extend(lines)
                progress.position = view.position + view.size
        except CutLineError as error:
            if error.start:
                output.add(error.start)
            raise DumpError(f"{self.path}: {error}") from None
        finally:
            output.flush()
        return progress


def dump_alone(dump: LogDump, output: Output, progress: DumpProgress) -> None:
    """Print the whole file in this process. Raises DumpError at an unreadable batch."""
    contents = dump.options.records.contents()
    output.flush()
    for piece in dump.pieces():
        part = dump.print(piece, contents, output)
        progress.trail.join(part.trail)
        progress.position = part.position


def can_share(dump: LogDump, output: Output) -> bool:
    """Whether several processes can write to the output, and would be faster."""
    if dump.size < _SHARE_FROM or _processes() < 2 or not hasattr(os, "fork"):
        return False
    try:
        return output.stream.fileno() >= 0
    except OSError:
        return False


def dump_shared(dump: LogDump, output: Output, progress: DumpProgress) -> None:
    """Dump as `dump_alone`, with several processes."""
    output.flush()
    out, count = output.stream.fileno(), max(_processes(), 2)
    ring = [os.pipe() for _ in range(count)]
    result = os.pipe()
    children = []
    for me in range(count):
        child = os.fork()
        if not child:
            _work(dump, me, ring, (*result, out), output.encoding)
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
        raise DumpError(f"{dump.path}: a worker process was killed")
    progress.position, progress.trail = found.position, found.trail


RingMessage = DumpProgress | BaseException | None


def _work(
    dump: LogDump,
    me: int,
    ring: list[tuple[int, int]],
    ends: tuple[int, int, int],
    encoding: str,
) -> NoReturn:
    """A worker process: print each `len(ring)`-th piece, then exit.

    `ends`: the result pipe (reader, writer) and the descriptor of the output.
    """
    try:
        result_reader, result, out = ends
        previous, following = ring[me][0], ring[(me + 1) % len(ring)][1]
        for pipe in {*sum(ring, ()), result_reader} - {previous, following}:
            os.close(pipe)
        last: RingMessage
        try:
            last = _work_in_turn(dump, me, len(ring), (previous, following, out), encoding)
        except Exception as error:
            last = error
        if last is not None:
            _send(result, last)
    finally:
        os._exit(0)


def _work_in_turn(
    dump: LogDump, me: int, count: int, pipes: tuple[int, int, int], encoding: str
) -> DumpProgress | DumpError | None:
    """Print this process's pieces in turn; returns the result of the dump if it holds the token last."""
    previous, following, out = pipes
    contents, number = dump.options.records.contents(), 0
    try:
        for piece in dump.pieces():
            if number % count == me:
                text, failure, part = io.BytesIO(), None, DumpProgress()
                try:
                    part = dump.print(piece, contents, Output(text, encoding))
                except DumpError as error:
                    failure = error
                progress = _receive(previous)
                if not isinstance(progress, DumpProgress):
                    return None
                _write(out, text.getbuffer())
                if failure is not None:
                    return failure
                progress.trail.join(part.trail)
                progress.position = part.position
                _send(following, progress)
            number += 1
    except DumpError as error:
        # Every process finds the same damage; the one that would hold the token reports it.
        return error if number % count == me and _receive(previous) is not None else None
    progress = _receive(previous) if number % count == me else None
    return progress if isinstance(progress, DumpProgress) else None


def _write(out: int, text: memoryview) -> None:
    while text:
        text = text[os.write(out, text) :]


def _send(pipe: int, message: RingMessage) -> None:
    """Send a message; a dead receiver is ignored, for the parent notices it at the result pipe."""
    import pickle  # only for a large file: the module takes 3 ms to load

    data = pickle.dumps(message)
    data = len(data).to_bytes(4, "big") + data
    with suppress(BrokenPipeError):
        while data:
            data = data[os.write(pipe, data) :]


def _receive(pipe: int) -> RingMessage:
    """Receive a message; None when the sender has closed the pipe."""
    import pickle

    head = os.read(pipe, 4)
    left, data = int.from_bytes(head, "big"), b""
    while len(data) < left:
        part = os.read(pipe, left - len(data))
        if not part:
            return None
        data += part
    message: RingMessage = pickle.loads(data) if data else None  # noqa: S301 - our own processes wrote it
    return message


def _processes() -> int:
    return min(os.cpu_count() or 1, _MAX_PROCESSES)


def _whole_batches_size(piece: bytes) -> int:
    """Size in bytes of the complete batches at the start of a piece."""
    start, end = 0, len(piece)
    while end - start > _UP_TO_MAGIC:
        size = int.from_bytes(piece[start + 8 : start + 12], "big", signed=True) + 12
        if size < HEADER_SIZE or start + size > end:
            break
        start += size
    return start
