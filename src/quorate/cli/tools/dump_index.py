"""Print and check offset and time indexes of log segments, as Kafka's dump-log does.

Both are arrays of fixed-size entries: int32 relative offset and int32 position; int64 timestamp (ms)
and int32 relative offset (`OffsetIndex`, `TimeIndex`). A live node preallocates them with zeroes.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.cli.java_files import absolute_text
from quorate.formats.batch import HEADER_SIZE, PREFIX_SIZE, BatchView, read_batches
from quorate.formats.dump import batch_last_offset, newest_timestamp
from quorate.formats.errors import BatchError, IncompleteBatchError
from quorate.formats.files import LOG_SUFFIX
from quorate.formats.legacy_batch import FIRST_MAGIC
from quorate.formats.loose_records import DumpError

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_LAST_OFFSET_DELTA_AT: Final = 23
_MAGIC_AT: Final = 16
_LEAST_LENGTH: Final = 14
"""Bytes of a record of format 0 without key and value (`LegacyRecord.RECORD_OVERHEAD_V0`)."""


@dataclass(slots=True)
class IndexFaults:
    """Disagreements between indexes and logs by file; reported after all files."""

    offsets: dict[str, dict[int, int]] = field(default_factory=dict)
    timestamps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    order: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    missing: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """The report, in Kafka's words."""
        for path, pairs in self.offsets.items():
            yield f"Mismatches in :{path}"
            for offset in sorted(pairs, reverse=True):
                yield f"  Index offset: {offset}, log offset: {pairs[offset]}"
        for path, found in self.timestamps.items():
            yield f"Found timestamp mismatch in :{path}"
            for index, log in found:
                yield f"  Index timestamp: {index}, log timestamp: {log}"
        for path, found in self.order.items():
            yield f"Found out of order timestamp in :{path}"
            for index, before in found:
                yield f"  Index timestamp: {index}, Previously indexed timestamp: {before}"
        for path, found in self.missing.items():
            yield f"The following indexed offsets are not found in :{path}"
            for index, log in found:
                yield f"Indexed offset: {index}, found log offset: {log}"


class IndexChecks(NamedTuple):
    """What to do with an index."""

    verify_only: bool
    """Check without printing entries."""
    sanity_only: bool
    """Check only what a node checks at its start."""
    max_message_size: int


class IndexLine(NamedTuple):
    """A line about an index: as text, and its facts for JSON."""

    text: str
    facts: dict[str, object]


def _checked(path: str, result: str, text: str) -> IndexLine:
    return IndexLine(f"{path} {text}", {"kind": "indexCheck", "path": path, "result": result})


def dump_index(path: str, checks: IndexChecks, faults: IndexFaults) -> Iterator[IndexLine]:
    """Dump an offset index. Raises DumpError, OSError."""
    base = base_offset(path)
    data = _read(path)
    entries = [(base + offset, at) for offset, at in _entries(_OFFSET_ENTRY, data)]
    with open(_beside(path, LOG_SUFFIX), "rb") as log:
        if not entries:
            yield _checked(path, "empty", "is empty.")
            return
        if checks.sanity_only:
            _check_sanity(path, len(data), _OFFSET_ENTRY.size, "index", entries[-1][0], base)
            yield _checked(path, "sane", "passed sanity check.")
            return
        for number, (offset, position) in enumerate(entries):
            if offset == base and number:
                return  # the zeroes of a preallocated file
            found = _last_offset(log.fileno(), path, position, checks.max_message_size)
            if found != offset:
                faults.offsets.setdefault(absolute_text(path), {})[offset] = found
            if not checks.verify_only:
                yield IndexLine(
                    f"offset: {offset} position: {position}",
                    {"kind": "index", "offset": offset, "position": position},
                )


def dump_time_index(path: str, checks: IndexChecks, faults: IndexFaults) -> Iterator[IndexLine]:
    """Dump a time index. Raises DumpError, OSError."""
    base = base_offset(path)
    data = _read(path)
    entries = [(time, base + offset) for time, offset in _entries(_TIME_ENTRY, data)]
    if checks.sanity_only:
        if entries:
            if entries[-1][0] < entries[0][0]:
                raise DumpError(
                    f"Corrupt time index found, time index file ({absolute_text(path)}) has "
                    f"non-zero size but the last timestamp is {entries[-1][0]} which is less than "
                    f"the first timestamp {entries[0][0]}"
                )
            last = entries[-1][1]
            _check_sanity(path, len(data), _TIME_ENTRY.size, "time index", last, base)
        yield _checked(path, "sane", "passed sanity check.")
        return
    batches = _Batches(_beside(path, LOG_SUFFIX))
    before, where = -1, absolute_text(path)
    for number, (time, offset) in enumerate(entries):
        if offset == base and number:
            return
        batch = batches.reaching(offset)
        if batch is None or batch_last_offset(batch) != offset:
            found = -1 if batch is None else batch_last_offset(batch)
            faults.missing.setdefault(where, []).append((offset, found))
        else:
            newest = newest_timestamp(batch)
            if newest != time:
                faults.timestamps.setdefault(where, []).append((time, newest))
            if before >= time:
                faults.order.setdefault(where, []).append((time, before))
        if not checks.verify_only:
            yield IndexLine(
                f"timestamp: {time} offset: {offset}",
                {"kind": "timeIndex", "timestamp": time, "offset": offset},
            )
        before = time


def wrong_name(path: str, why: str) -> Exception:
    """The error about a file's name; where there is no such file, this is the error."""
    if not os.path.lexists(path):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return DumpError(f"{path}: {why}")


def base_offset(path: str) -> int:
    """The base offset in a segment's file name. Raises DumpError, and OSError without the file."""
    stem = os.path.basename(path).partition(".")[0]
    if not (stem.isascii() and stem.isdigit()):
        raise wrong_name(path, "the file name does not begin with the segment's base offset")
    return int(stem)


class _Batches:
    """The batches of a log in order, for lookups of increasing offsets."""

    def __init__(self, path: str) -> None:
        data = _read(path)
        pieces = read_batches(lambda at, size: data[at : at + size], len(data), verify=False)
        self._path = path
        self._rest = pieces
        self._seen: list[BatchView] = []

    def reaching(self, offset: int) -> BatchView | None:
        """The first batch whose last offset is at least `offset`; None after the log's end.

        Raises DumpError at bytes that cannot be a batch.
        """
        for batch in self._seen:
            if batch_last_offset(batch) >= offset:
                return batch
        try:
            for batch in self._rest:
                self._seen.append(batch)
                if batch_last_offset(batch) >= offset:
                    return batch
        except IncompleteBatchError:
            return None
        except BatchError as error:
            raise DumpError(f"{self._path}: {error}") from None
        return None


def _check_sanity(
    path: str, size: int, entry_size: int, what: str, last_offset: int, base: int
) -> None:
    where = absolute_text(path)
    if last_offset < base:
        raise DumpError(
            f"Corrupt {what} found, {what} file {where} has non-zero size but the last offset is "
            f"{last_offset} which is less than the base offset {base}"
        )
    if size % entry_size:
        raise DumpError(
            f"{what.capitalize()} file {where} is corrupt, found {size} bytes which is neither "
            f"positive nor a multiple of {entry_size}"
        )


def _entries(entry: struct.Struct, data: bytes) -> list[tuple[int, int]]:
    whole = len(data) // entry.size * entry.size
    return [(first, second) for first, second in entry.iter_unpack(data[:whole])]


def _last_offset(fd: int, path: str, position: int, max_message_size: int) -> int:
    """The last offset of the batch at byte `position`, from its header alone. Raises DumpError."""
    header = os.pread(fd, HEADER_SIZE, position)
    first, length = struct.unpack_from(">qi", header.ljust(PREFIX_SIZE, b"\0"))
    size = PREFIX_SIZE + length
    if length < _LEAST_LENGTH or size > os.fstat(fd).st_size - position:
        raise DumpError(f"{path}: an entry points to byte {position}, where the log has no batch")
    if size > max_message_size:
        raise DumpError(
            f"{path}: the batch at byte {position} of the log has {size} bytes: "
            "set a larger --max-message-size"
        )
    header = header.ljust(HEADER_SIZE, b"\0")
    if struct.unpack_from(">b", header, _MAGIC_AT)[0] < FIRST_MAGIC:
        return int(first)
    return int(first) + int(struct.unpack_from(">i", header, _LAST_OFFSET_DELTA_AT)[0])


def _beside(path: str, suffix: str) -> str:
    name = os.path.basename(path).partition(".")[0]
    return os.path.join(os.path.dirname(path), name + suffix)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
