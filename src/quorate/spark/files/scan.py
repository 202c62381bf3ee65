"""The batches of a file in order, and the damage between them.

Several tasks can read ranges of one file. A batch belongs to the range that holds its first byte.
Damage belongs to the range in which the valid batch before it ends. So each byte is reported
exactly once, wherever the ranges are cut.

How a task reads its range:

1. In a range that does not begin at byte 0, find the first valid batch (`next_sound`).
2. Verify batches one after the other (`run`), many of one piece of the file at a time.
3. At a batch that is not valid, decide why (`at`), and search the next valid one (`_measured`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from fastcrc.crc32 import iscsi as crc32c

from quorate.formats.batch import (
    HEADER_SIZE,
    PREFIX_SIZE,
    BatchView,
    batch_size,
    read_batch,
)
from quorate.formats.errors import BatchError, FormatError, IncompleteBatchError

Read = Callable[[int, int], bytes]
"""`read(position, size)`: the bytes there, fewer at the end of the file. May raise
GarbledFileError."""
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PIECE_SIZE: Final = 1024 * 1024
"""Bytes that are read at a time: they hold about as many records as are decoded at a time."""
HEADER: Final = np.dtype(
    [
        *(("base_offset", ">i8"), ("length", ">i4"), ("epoch", ">i4"), ("magic", "i1")),
        *(("crc", ">u4"), ("attributes", ">i2"), ("last_delta", ">i4")),
        *(("base_timestamp", ">i8"), ("max_timestamp", ">i8"), ("producer_id", ">i8")),
        *(("producer_epoch", ">i2"), ("base_sequence", ">i4"), ("count", ">i4")),
    ]
)
"""The header of a batch, as numpy reads many of them."""
CONTROL: Final = 0x20
"""The attribute of a control batch."""

_LENGTH_AND_CRC: Final = struct.Struct(">i5xI")
_CRC_FROM: Final = 21
_LIKELY: Final = re.compile(rb"(?=\0\0.{6}\0.{3}[\0-\x7f].{3}\x02.{4}\0[\0\x20]\0)", re.DOTALL)
"""Where a batch may begin: offset below 2^48, length below 16 MiB, format 2, plain attributes."""
_LARGEST: Final = 1 << 24
_OFFSETS: Final = 1 << 48
"""No log reaches this offset. The checksum of a batch does not cover its base offset, so a damaged
one shows only here and as a gap."""
TORN: Final = "damaged length or torn tail"
"""Names damage at the end of a file that a crash while writing may have left."""
_BLOCK: Final = 512
"""Bytes of the smallest block that a disk writes."""


class GarbledFileError(FormatError):
    """Bytes of an archive that cannot be unpacked: the archive is damaged, not the disk."""

    reason: str
    """Without the file's name."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no valid batch."""

    position: int
    size: int
    what: str
    view: BatchView | None = None
    """The batch, when its header could be read and its size is right."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchRun:
    """Valid batches that follow each other in one piece of the file."""

    data: bytes
    origin: int
    """Position of `data` in the file."""
    starts: Ints
    """Where each batch begins in `data`."""
    heads: npt.NDArray[Any]
    """The header of each batch, of type HEADER."""

    @property
    def position(self) -> int:
        return self.origin + int(self.starts[0])

    @property
    def end(self) -> int:
        """Position behind the last batch."""
        return self.origin + int(self.starts[-1]) + PREFIX_SIZE + int(self.heads["length"][-1])

    @property
    def size(self) -> int:
        return self.end - self.position

    @property
    def records(self) -> int:
        return int(self.heads["count"].sum(dtype=np.int64))

    def part(self, which: slice | Mask) -> BatchRun:
        """Some of the batches."""
        return BatchRun(self.data, self.origin, self.starts[which], self.heads[which])

    def view(self, place: int) -> BatchView:
        """One of the batches."""
        return read_batch(self.data, int(self.starts[place]), self.origin)


def scan(
    read: Read, size: int, start: int = 0, end: int | None = None
) -> Iterator[BatchView | Damage]:
    """Yield what `runs` yields, with the batches one by one."""
    for found in runs(read, size, start, end):
        if isinstance(found, Damage):
            yield found
        else:
            yield from map(found.view, range(len(found.starts)))


def runs(
    read: Read, size: int, start: int = 0, end: int | None = None
) -> Iterator[BatchRun | Damage]:
    """The valid batches that begin in the range [start, end), and the damage between them.

    size: of the file; `end` is by default the same

    Damage extends to the next valid batch, also beyond `end`. Where bytes cannot be unpacked, it
    extends to the end of the file. A wrong checksum of the whole file is reported at its end.
    """
    position = start
    try:
        for found in _runs(read, size, start, end):
            yield found
            position = found.position + found.size
        if position >= size:
            read(size, 0)
    except GarbledFileError as error:
        yield Damage(position, size - position, error.reason)


def _runs(read: Read, size: int, start: int, end: int | None) -> Iterator[BatchRun | Damage]:
    window = _Window(read, size)
    end = size if end is None else min(end, size)
    position = start if start == 0 else window.next_sound(start)
    while position < end:
        run = window.run(position, end)
        if run is not None:
            yield run
            position = run.end
            continue
        found = window.at(position)
        if isinstance(found, Damage):
            found = _measured(window, found)
            yield found
        else:
            # larger than a piece
            yield _run_of(found.data, found.position, [0])
        position += found.size
    if 0 < end <= position < size:
        found = window.at(position)
        if isinstance(found, Damage):
            yield _measured(window, found)


def _run_of(data: bytes, origin: int, starts: list[int]) -> BatchRun:
    heads = b"".join([data[start : start + HEADER_SIZE] for start in starts])
    return BatchRun(data, origin, np.array(starts, np.int64), np.frombuffer(heads, HEADER))


def _measured(window: _Window, damage: Damage) -> Damage:
    """The damage, extended to where the next valid batch begins.

    1. A batch with a plausible length that is followed by a valid one: only that batch is damaged.
    2. Zeros up to the end of the file: a crash left blocks unwritten (a torn tail).
    3. Otherwise its length cannot be trusted: search the next valid batch.
    """
    after = damage.position + damage.size
    if damage.view is not None and after < window.size and window.is_sound(after):
        return damage
    if _is_zeroed(window, damage):
        what = f"{TORN}: zeros to the end of the file; {damage.what}"
        return Damage(damage.position, window.size - damage.position, what)
    if damage.view is not None and after == window.size:
        return damage
    after = window.next_sound(damage.position + 1)
    what = damage.what
    if after < window.size:
        what += f"; the next sound batch begins at byte {after}"
    return Damage(damage.position, after - damage.position, what)


def _is_zeroed(window: _Window, damage: Damage) -> bool:
    """Whether only zeros follow a part of one batch: blocks that never reached the disk."""
    batch = HEADER_SIZE if damage.view is None else damage.size
    last_block = max(window.size - _BLOCK, damage.position)
    return window.is_zero_from(min(damage.position + batch, last_block))


class _Window:
    """A piece of the file in memory; another one is read on demand."""

    def __init__(self, read: Read, size: int) -> None:
        self.size = size
        self._read = read
        self._start = 0
        self._bytes = b""

    def run(self, position: int, end: int) -> BatchRun | None:
        """The valid batches from `position` on that begin before `end`, within one piece.

        None when the first of them is damaged, or larger than a piece.
        """
        found = self._run(position, end)
        if found is None and self._start != position:
            self._load(position, PIECE_SIZE)
            found = self._run(position, end)
        return found

    def _run(self, position: int, end: int) -> BatchRun | None:
        data, origin = self._bytes, self._start
        if not origin <= position < origin + len(data):
            return None
        starts: list[int] = []
        unpack, view = _LENGTH_AND_CRC.unpack_from, memoryview(data)
        at, stop, room = position - origin, end - origin, len(data) - HEADER_SIZE
        while at < stop and at <= room:
            length, crc = unpack(data, at + 8)
            after = at + PREFIX_SIZE + length
            if length < HEADER_SIZE - PREFIX_SIZE or after > len(data):
                break
            if crc32c(view[at + _CRC_FROM : after]) != crc:
                break
            starts.append(at)
            at = after
        if not starts:
            return None
        run = _run_of(data, origin, starts)
        odd = np.flatnonzero(~_plain(run.heads))
        if len(odd) == 0:
            return run
        return run.part(slice(int(odd[0]))) if odd[0] else None

    def at(self, position: int) -> BatchView | Damage:
        """The batch at a position; else damage, of the size of the batch where that is known."""
        view = None
        try:
            view = self._batch(position)
            view.verify()
            if view.base_offset >= _OFFSETS:
                raise BatchError(
                    f"offset {view.base_offset} is more than a log can reach", position
                )
        except IncompleteBatchError as error:
            return Damage(position, self.size - position, f"{TORN}: {error}")
        except BatchError as error:
            size = 1 if view is None else view.size
            return Damage(position, size, str(error), view)
        return view

    def is_sound(self, position: int) -> bool:
        return isinstance(self.at(position), BatchView)

    def next_sound(self, position: int) -> int:
        """The position of the first valid batch at `position` or later; else the size of the file.

        `_LIKELY` finds candidates fast; a checksum decides.
        """
        while self.size - position >= HEADER_SIZE:
            data = self._piece(position, min(PIECE_SIZE, self.size - position))
            for match in _LIKELY.finditer(data):
                at = position + match.start()
                if self.is_sound(at):
                    return at
            # a header may cross the end of the piece
            position += max(len(data) - HEADER_SIZE + 1, 1)
        return self.size

    def is_zero_from(self, position: int) -> bool:
        """Whether there are only zeros up to the end of the file."""
        if any(self._read(self.size - 1, 1)):
            return False
        while position < self.size:
            data = self._piece(position, min(PIECE_SIZE, self.size - position))
            if data.count(0) < len(data):
                return False
            position += max(len(data), 1)
        return True

    def _batch(self, position: int) -> BatchView:
        prefix = self._piece(position, PREFIX_SIZE)
        size = batch_size(prefix)
        if size is None or size < HEADER_SIZE:
            return read_batch(prefix, 0, position)  # raises
        left = self.size - position
        if size > left:
            raise IncompleteBatchError(
                f"a batch of {size} bytes, of which the file has {left}", position
            )
        if size > _LARGEST:
            raise BatchError(f"length {size} is more than a batch may have", position)
        return read_batch(self._piece(position, size), 0, position)

    def _piece(self, position: int, size: int) -> bytes:
        start = position - self._start
        if start < 0 or start + size > len(self._bytes):
            self._load(position, size)
            start = 0
        return self._bytes[start : start + size]

    def _load(self, position: int, size: int) -> None:
        self._bytes = self._read(position, max(size, min(PIECE_SIZE, self.size - position)))
        self._start = position


def _plain(heads: npt.NDArray[Any]) -> Mask:
    """Which of these headers a metadata log may have: the same rules as in `at`."""
    return np.asarray(
        (heads["magic"] == 2)
        & (heads["attributes"] & ~CONTROL == 0)
        & (heads["base_offset"] >= 0)
        & (heads["base_offset"] < _OFFSETS)
        & (heads["epoch"] >= 0)
        & (heads["count"] >= 1)
        & (heads["last_delta"] == heads["count"] - 1)
    )


def located_problem(
    file: str | None, position: int | None, offset: int | None, problem: str
) -> str:
    """The text of a problem with its file, byte and offset."""
    byte = "" if position is None else f", byte {position}"
    record = "" if offset is None else f", offset {offset}"
    return f"{file}{byte}{record}: {problem}"
