"""One segment of the log: its file, its sparse index, and the index files Java nodes keep.

Formats and intervals are those of Kafka's `LogSegment`, `OffsetIndex` and `TimeIndex`. The
index files are derived: recovery writes them anew and nothing here ever trusts them.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from quorate.formats.batch import BatchView
from quorate.formats.files import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, segment_name
from quorate.storage.api import SegmentInfo
from quorate.storage.disk import Disk, File

TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
PRODUCER_STATE_SUFFIX: Final = ".snapshot"
DERIVED_SUFFIXES: Final = (
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    PRODUCER_STATE_SUFFIX,
)
"""Files beside a segment that can be made from it."""
_INDEX_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
Spot = tuple[int, int]
"""Where in the file a batch begins, and its base offset."""


class Segment:
    """Batches from `base_offset` on. Owned by the writer; readers hold the log's lock."""

    __slots__ = (
        "_base_offsets",
        "_interval",
        "_last_offsets",
        "_positions",
        "_since_entry",
        "_timestamps",
        "base_offset",
        "end_offset",
        "file",
        "first_timestamp",
        "max_timestamp",
        "max_timestamp_offset",
        "size",
    )

    def __init__(self, base_offset: int, file: File, index_interval: int) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.file = file
        self.size = 0
        self.first_timestamp: int | None = None
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self._interval = index_interval
        self._since_entry = 0
        # One entry every `index_interval` bytes: the batch of these offsets begins here.
        self._base_offsets = array("q")
        self._last_offsets = array("q")
        self._positions = array("q")
        self._timestamps: list[tuple[int, int]] = []

    @property
    def info(self) -> SegmentInfo:
        return SegmentInfo(
            self.base_offset, self.end_offset, self.size, self.first_timestamp, self.max_timestamp
        )

    def add(self, last_offset: int, size: int, timestamp: int) -> None:
        """A batch of `size` bytes now stands at the segment's end."""
        if self.first_timestamp is None:
            self.first_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = timestamp, last_offset
        if self._since_entry > self._interval:
            self._base_offsets.append(self.end_offset)
            self._last_offsets.append(last_offset)
            self._positions.append(self.size)
            self._add_timestamp()
            self._since_entry = 0
        self._since_entry += size
        self.size += size
        self.end_offset = last_offset + 1

    def _add_timestamp(self) -> None:
        if self.max_timestamp > (self._timestamps[-1][0] if self._timestamps else -1):
            self._timestamps.append((self.max_timestamp, self.max_timestamp_offset))

    def truncate(self, offset: int, batches_from: Callable[[Spot], Iterator[BatchView]]) -> None:
        """Forget every batch that reaches to `offset`; `batches_from` a spot reads the file."""
        keep = bisect_left(self._last_offsets, offset)
        del self._base_offsets[keep:]
        del self._last_offsets[keep:]
        del self._positions[keep:]
        last_kept = self._last_offsets[-1] if keep else self.base_offset - 1
        self._timestamps = [entry for entry in self._timestamps if entry[1] <= last_kept]
        newest = self._timestamps[-1] if self._timestamps else (-1, self.base_offset)
        self.max_timestamp, self.max_timestamp_offset = newest
        start, base = self._spot(keep - 1)
        self.size, self.end_offset, self._since_entry = start, self.base_offset, 0
        for view in batches_from((start, base)):
            if view.last_offset >= offset:
                break
            if keep and view.position == start:  # the batch of the last entry that is kept
                self.size += view.size
                self._since_entry = view.size
                self.end_offset = view.end_offset
            else:
                self.add(view.last_offset, view.size, view.max_timestamp)
        if self.size == 0:
            self.first_timestamp = None

    def spot_before(self, offset: int) -> Spot:
        """The place to search from for the batch that holds `offset`: a batch begins there."""
        return self._spot(bisect_right(self._last_offsets, offset) - 1)

    def _spot(self, slot: int) -> Spot:
        """The place of an entry of the index; of the segment's front for -1."""
        if slot < 0:
            return 0, self.base_offset
        return self._positions[slot], self._base_offsets[slot]

    def index_bytes(self) -> bytes:
        """The `.index` file: int32 relative last offset, int32 position of each entry."""
        base = self.base_offset
        entries = zip(self._last_offsets, self._positions, strict=True)
        return b"".join(_INDEX_ENTRY.pack(last - base, position) for last, position in entries)

    def time_index_bytes(self) -> bytes:
        """The `.timeindex` file: int64 timestamp, int32 relative offset, ending with the newest."""
        last = (self.max_timestamp, self.max_timestamp_offset)
        entries = self._timestamps
        tail = [] if last[0] < 0 or (entries and entries[-1][0] >= last[0]) else [last]
        base = self.base_offset
        return b"".join(_TIME_ENTRY.pack(time, at - base) for time, at in chain(entries, tail))

    def write_indexes(self, disk: Disk) -> None:
        """Replace both index files; not synced, for a torn one is rebuilt."""
        for suffix, data in (
            (INDEX_SUFFIX, self.index_bytes()),
            (TIME_INDEX_SUFFIX, self.time_index_bytes()),
        ):
            file = disk.open(segment_name(self.base_offset, suffix), create=True)
            try:
                if file.size() != len(data) or file.read_at(0, len(data)) != data:
                    file.truncate(0)
                    file.write_at(0, data)
            finally:
                file.close()


def remove_segments(disk: Disk, segments: Iterable[Segment]) -> None:
    """Remove segments one after the other; durable on return. Descriptors stay for their readers.

    Names that are not synced may reach the medium in any order. Therefore, for each segment:
    1. What was derived from it is gone for good before the segment is: an index without its segment
       shows a loss (`witnesses`).
    2. The segment is gone for good before the next one is: a power cut must not leave a hole.
    """
    for segment in segments:
        remove_derived(disk, segment.base_offset)
        disk.sync()
        disk.remove(segment_name(segment.base_offset, LOG_SUFFIX))
        disk.sync()


def last_indexed(index: bytes, base_offset: int) -> int | None:
    """The offset of the last entry of an `.index` file; None where it has none."""
    return _last_entry(((entry[1], entry[0]) for entry in _whole(index, _INDEX_ENTRY)), base_offset)


def last_timed(index: bytes, base_offset: int) -> int | None:
    """The offset of the last entry of a `.timeindex` file; None where it has none."""
    return _last_entry(_whole(index, _TIME_ENTRY), base_offset)


def _whole(index: bytes, entry: struct.Struct) -> Iterator[tuple[int, int]]:
    """The entries of an index file that may be cut."""
    return entry.iter_unpack(index[: len(index) // entry.size * entry.size])


def _last_entry(entries: Iterable[tuple[int, int]], base_offset: int) -> int | None:
    """The offset of the last of the (position or time, relative offset) that ascend from the first.

    Java gives the file of a segment that is written to its full size: zeros follow the entries.
    """
    last = None
    for at, relative in entries:
        if (
            at <= 0
            or relative < 0
            or (last is not None and not (at > last[0] and relative >= last[1]))
        ):
            break
        last = at, relative
    return None if last is None else base_offset + last[1]


def remove_derived(disk: Disk, base_offset: int) -> None:
    """Remove the index and producer-state files of a segment."""
    for suffix in DERIVED_SUFFIXES:
        disk.remove(segment_name(base_offset, suffix))
