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
from typing import Final, Protocol

from quorate.verify.batches import RECORDS_AT, batches, record_value, varint

_LOG: Final = re.compile(r"(\d{20})\.log")
_CHECKPOINT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_TAIL_BYTES: Final = 256
"""So many bytes at the end of a segment are read again, each time."""
_HEADER_BYTES: Final = 256
"""More than the first batch of a snapshot has: one record, of a version and a timestamp."""
_Id = tuple[int, int]


class MediumFiles(Protocol):
    """The files of `__cluster_metadata-0`, by name. Its methods raise OSError or QuorateError."""

    def names(self) -> list[str]: ...

    def size(self, name: str) -> int:
        """Return the size in bytes."""

    def read(self, name: str, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on."""

    def stamp(self, name: str) -> int | None:
        """A number that no other content of this file has had; None: not known."""


class PathDirectory:
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

    def stamp(self, name: str) -> int | None:
        """Return None, because times of files are too coarse to distinguish two writes."""
        return None


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
        self._segments: dict[str, SegmentOnMedium] = {}
        self._known: dict[str, int | _Id | None] = {}
        self._listing = Listing([], self._known)

    def forget(self) -> None:
        """Batches were removed: read everything again."""
        self._segments.clear()

    def listing(self) -> Listing:
        """The files as they are now. Most steps add none, and a log may have hundreds."""
        names = self._directory.names()
        if names != self._listing.names:
            self._listing = Listing(names, self._known)
        return self._listing

    def segments(self, listing: Listing) -> list[SegmentOnMedium]:
        """The segments of the listing, ascending."""
        found = [self._segment(name, base) for base, name in listing.segments]
        if len(self._segments) > len(found):
            for name in self._segments.keys() - {name for _, name in listing.segments}:
                del self._segments[name]
        return found

    def newest_problem(self) -> str | None:
        """How the newest segment differs from what was read of it; None where it does not."""
        if not self._segments:
            return None
        name = max(self._segments)
        known, size = self._segments[name], self._directory.size(name)
        if size != known.size:
            return f"{name} has {size} bytes"
        if self._tail(name, known) != known.tail:
            return f"{name} ends with other bytes"
        return None

    def snapshots(self, listing: Listing) -> list[SnapshotOnMedium]:
        """The snapshots of the listing, ascending."""
        found = []
        for snapshot_id, name in listing.snapshots:
            head = self._directory.read(name, 0, _HEADER_BYTES)
            size = self._directory.size(name)
            found.append(SnapshotOnMedium(snapshot_id, size, header_timestamp(head)))
        return found

    def _segment(self, name: str, base: int) -> SegmentOnMedium:
        known = self._segments.get(name)
        stamp = self._directory.stamp(name)
        if known is not None and stamp is not None and known.stamp == stamp:
            return known
        size = self._directory.size(name)
        if known is None:
            known = self._segments[name] = SegmentOnMedium(base, base)
        elif size < known.size or self._tail(name, known) != known.tail:
            known = self._segments[name] = SegmentOnMedium(base, base, is_altered=True)
        if size > known.size:
            read_batches(known, self._directory.read(name, known.size, size - known.size))
            known.tail = self._tail(name, known)
        known.rest = size - known.size
        known.stamp = stamp
        return known

    def _tail(self, name: str, segment: SegmentOnMedium) -> bytes:
        size = min(segment.size, _TAIL_BYTES)
        return self._directory.read(name, segment.size - size, size)


def read_batches(segment: SegmentOnMedium, data: bytes) -> None:
    """Add the whole batches of `data`, which follows what the segment has."""
    for batch in batches(data):
        if not segment.epochs or segment.epochs[-1][0] != batch.epoch:
            segment.epochs.append((batch.epoch, batch.base_offset))
        if segment.first_timestamp is None:
            segment.first_timestamp = batch.max_timestamp
        segment.max_timestamp = max(segment.max_timestamp, batch.max_timestamp)
        segment.end_offset = batch.end_offset
        segment.size += len(batch.data)


def header_timestamp(data: bytes) -> int | None:
    """`LastContainedLogTimestamp` of the snapshot that begins with these bytes."""
    try:
        _, at = varint(data, RECORDS_AT)  # the length of the record
        _, at = varint(data, record_value(data, at))  # the length of the value
        return int(struct.unpack_from(">hq", data, at)[1])
    except (IndexError, struct.error):
        return None
