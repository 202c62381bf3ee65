"""What the files of a metadata log directory hold, read from their bytes.

Formats: the names of Kafka's `LogFileUtils` and `Snapshots`, batches of magic 2
(`DefaultRecordBatch`), and `SnapshotHeaderRecord` (KIP-630).
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quorate.verify.batches import RECORDS_AT, batch_at, record_value, varint

_LOG: Final = re.compile(r"(\d{20})\.log")
_CHECKPOINT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_TAIL_BYTES: Final = 256
"""So many bytes at the end of a segment are read again, each time."""
_HEADER_BYTES: Final = 256
"""More than the first batch of a snapshot has: one record, of a version and a timestamp."""
_Id = tuple[int, int]


class MediumFiles:
    """The files of `__cluster_metadata-0`, by name. Its methods raise OSError or QuorateError."""

    def names(self) -> list[str]:
        raise NotImplementedError

    def names_stamp(self) -> int | None:
        """A number that changes with the names; None: not known."""
        return None

    def size(self, name: str) -> int:
        """Return the size in bytes."""
        raise NotImplementedError

    def read(self, name: str, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on."""
        raise NotImplementedError

    def stamp(self, name: str) -> int | None:
        """A number that no other content of this file has had; None: not known."""
        return None


class PathDirectory(MediumFiles):
    """The files of a directory of the operating system."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        return os.listdir(self._path)

    def size(self, name: str) -> int:
        return (self._path / name).stat().st_size

    def read(self, name: str, position: int, size: int) -> bytes:
        with (self._path / name).open("rb") as file:
            file.seek(position)
            return file.read(size)

    # No stamps: times of files are too coarse to distinguish two writes.


@dataclass(slots=True)
class SegmentOnMedium:
    """A `.log` file. Offsets are exclusive ends, sizes bytes, timestamps ms since 1970."""

    base_offset: int
    end_offset: int
    size: int = 0
    first_timestamp: int | None = None
    max_timestamp: int = -1
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """(epoch, base offset of its first batch) of the batches, ascending."""
    rest: int = 0
    """Bytes after the last whole batch."""
    tail: bytes = b""
    """The last bytes of the batches."""
    is_altered: bool = False
    """Bytes that were read before are gone, or are others now."""
    stamp: int | None = None
    """That of the content that was read."""


@dataclass(frozen=True, slots=True)
class SnapshotOnMedium:
    """A `.checkpoint` file: the id of its name, its size in bytes, and the timestamp of its header
    (ms since 1970; None: it has no header)."""

    id: tuple[int, int]
    size: int
    last_contained_log_timestamp: int | None


class Listing:
    """The names of a directory, with segments and snapshots, each ascending."""

    def __init__(self, names: list[str], known: dict[str, int | _Id | None]) -> None:
        """Look names up in `known`, and add what it lacks: a log may have hundreds."""
        self.names = names
        self.segments: list[tuple[int, str]] = []
        """(base offset, file name)."""
        self.snapshots: list[tuple[_Id, str]] = []
        """((offset, epoch), file name)."""
        for name in names:
            if name not in known:
                known[name] = _meaning(name)
            meaning = known[name]
            if isinstance(meaning, int):
                self.segments.append((meaning, name))
            elif meaning is not None:
                self.snapshots.append((meaning, name))
        self.segments.sort()
        self.snapshots.sort()


def _meaning(name: str) -> int | _Id | None:
    """The base offset of a segment, the id of a snapshot, None of any other file."""
    if match := _LOG.fullmatch(name):
        return int(match[1])
    if match := _CHECKPOINT.fullmatch(name):
        return int(match[1]), int(match[2])
    return None


class Medium:
    """Reads a directory. What was read once of a segment is not read again until `forget`.

    Only its last bytes are, unless its stamp is the same: a write after a cut restores the size and
    leaves zeros.
    """

    def __init__(self, directory: MediumFiles) -> None:
        self._directory = directory
        self._known: dict[str, int | _Id | None] = {}
        self._listing = Listing([], self._known)
        self._names_stamp: int | None = None
        self._snapshot_stamps: list[int | None] = []
        self.segments: list[SegmentOnMedium] = []
        """As `update` read them, ascending."""
        self.snapshots: list[SnapshotOnMedium] = []
        """As `update_snapshots` read them, ascending. A new list where one has changed."""
        self.changed_from = 0
        """The first of `segments` that may be another than before. `update` lowers it."""

    def forget(self) -> None:
        """Batches were removed: read everything again."""
        self._listing, self._names_stamp = Listing([], self._known), None
        self.segments, self.changed_from = [], 0

    def update(self) -> None:
        """Read what is new. A log may have hundreds of segments, and most writes change one."""
        directory = self._directory
        names_stamp = directory.names_stamp()
        if names_stamp is None or names_stamp != self._names_stamp:
            self._names_stamp = names_stamp
            names = directory.names()
            if names != self._listing.names:
                self._list(names)
        for at, (_, name) in enumerate(self._listing.segments):
            stamp = directory.stamp(name)
            if stamp is None or self.segments[at].stamp != stamp:
                self._read(at, name, stamp)
                self.changed_from = min(self.changed_from, at)

    def update_snapshots(self) -> None:
        """Read the snapshots that the newest `update` has found, but those with a known stamp."""
        listed = self._listing.snapshots
        stamps = [self._directory.stamp(name) for _, name in listed]
        if None in stamps or stamps != self._snapshot_stamps or len(listed) != len(self.snapshots):
            self._snapshot_stamps = stamps
            self.snapshots = [self._snapshot(snapshot_id, name) for snapshot_id, name in listed]

    def newest_problem(self) -> str | None:
        """How the newest segment differs from what was read of it; None where it does not."""
        if not self.segments:
            return None
        name, known = self._listing.segments[-1][1], self.segments[-1]
        size = self._directory.size(name)
        if size != known.size:
            return f"{name} has {size} bytes"
        if self._directory.read(name, size - len(known.tail), len(known.tail)) != known.tail:
            return f"{name} ends with other bytes"
        return None

    def _list(self, names: list[str]) -> None:
        """The directory has these names now."""
        known = {one.base_offset: one for one in self.segments}
        self._listing = Listing(names, self._known)
        self.segments = [
            known.get(base) or SegmentOnMedium(base, base) for base, _ in self._listing.segments
        ]
        self.changed_from = 0

    def _snapshot(self, snapshot_id: _Id, name: str) -> SnapshotOnMedium:
        head = self._directory.read(name, 0, _HEADER_BYTES)
        return SnapshotOnMedium(snapshot_id, self._directory.size(name), header_timestamp(head))

    def _read(self, at: int, name: str, stamp: int | None) -> None:
        """Read on from the last bytes that were read. Where those are others, read everything."""
        known = self.segments[at]
        tail, size = known.tail, self._directory.size(name)
        begin = known.size - len(tail)
        data = self._directory.read(name, begin, max(size - begin, 0))
        if size < known.size or not data.startswith(tail):
            base = known.base_offset
            known = self.segments[at] = SegmentOnMedium(base, base, is_altered=True)
            tail, begin = b"", 0
            data = self._directory.read(name, 0, size)
        if size > known.size:
            read_batches(known, data[len(tail) :] if tail else data)
            known.tail = data[: known.size - begin][-_TAIL_BYTES:]
        known.rest = size - known.size
        known.stamp = stamp


def read_batches(segment: SegmentOnMedium, data: bytes) -> None:
    """Add the whole batches of `data`, which follows what the segment has."""
    at = 0
    while True:
        base, end_offset, epoch, max_timestamp, end = batch_at(data, at)
        if end < 0:
            break
        if not segment.epochs or segment.epochs[-1][0] != epoch:
            segment.epochs.append((epoch, base))
        if segment.first_timestamp is None:
            segment.first_timestamp = max_timestamp
        if max_timestamp > segment.max_timestamp:
            segment.max_timestamp = max_timestamp
        segment.end_offset = end_offset
        at = end
    segment.size += at


def header_timestamp(data: bytes) -> int | None:
    """`LastContainedLogTimestamp` of the snapshot that begins with these bytes."""
    try:
        _, at = varint(data, RECORDS_AT)  # the length of the record
        _, at = varint(data, record_value(data, at))  # the length of the value
        return int(struct.unpack_from(">hq", data, at)[1])
    except (IndexError, struct.error):
        return None
