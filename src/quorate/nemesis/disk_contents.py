"""The contents of a node's disk, read without `quorate.storage`: its bugs must not hide here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from quorate.base.errors import QuorateError
from quorate.formats.batch import iter_batches, raw_records
from quorate.formats.errors import FormatError
from quorate.formats.files import (
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    parse_segment_name,
    parse_snapshot_name,
)
from quorate.formats.snapshot import read_snapshot

WriteNumber = Callable[[bytes], int | None]
"""The number that a record's value writes, if any."""
WritesInSnapshot = Callable[[tuple[bytes, ...]], set[int]]
"""The numbers of all writes that a snapshot's values cover."""


@dataclass(frozen=True, slots=True)
class DiskRecord:
    """A record of a log on disk."""

    epoch: int
    value: bytes
    """Of a control record the key, then the value."""
    number: int | None
    """The number that it writes, if any."""


@dataclass(slots=True)
class DiskContents:
    """The log from `start` to `end` (exclusive), and the writes that the newest snapshot covers."""

    node: str
    start: int = 0
    end: int = 0
    entries: dict[int, DiskRecord] = field(default_factory=dict)
    snapshot_end: int = 0
    in_snapshot: set[int] | None = None
    """None where no snapshot says which writes it covers."""
    torn: str = ""
    """Why the log could not be read beyond `end`; empty at the end of the files."""

    @property
    def is_complete(self) -> bool:
        """Snapshot and log together cover the whole history."""
        return self.start == 0 or (self.in_snapshot is not None and self.snapshot_end >= self.start)

    def numbers(self, until: int) -> set[int]:
        """The numbers of the writes below the offset `until`."""
        found = {
            entry.number
            for offset, entry in self.entries.items()
            if offset < until and entry.number is not None
        }
        return found | (self.in_snapshot or set())


def read_disk(
    node: str,
    partition: Path,
    write_number: WriteNumber,
    writes_in_snapshot: WritesInSnapshot | None = None,
) -> DiskContents:
    """Read the partition directory of a node that does not run.

    The log ends before the first damaged batch. Raises QuorateError for a gap in the log, and for a
    damaged snapshot.
    """
    found = DiskContents(node)
    segments = {
        base: path
        for path in partition.glob(f"*{LOG_SUFFIX}")
        if (base := parse_segment_name(path.name)) is not None
    }
    found.start = found.end = min(segments, default=0)
    for base, path in sorted(segments.items()):
        if base != found.end:
            if found.torn:
                break
            raise QuorateError(f"{path}: a gap before it: the log ends at {found.end}")
        _read_segment(found, path, write_number)
    if writes_in_snapshot is not None:
        _read_snapshot(found, partition, writes_in_snapshot)
    return found


def _read_segment(found: DiskContents, path: Path, write_number: WriteNumber) -> None:
    try:
        for view in iter_batches(path.read_bytes()):
            if view.base_offset != found.end:
                raise QuorateError(
                    f"{path}: offset {view.base_offset} follows {found.end - 1} at {view.position}"
                )
            for at, (key, value) in enumerate(raw_records(view), view.base_offset):
                data = value or b""
                number = None if view.is_control else write_number(data)
                whole = (key or b"") + data if view.is_control else data
                found.entries[at] = DiskRecord(view.epoch, whole, number)
            found.end = view.end_offset
    except FormatError as error:
        found.torn = f"{path}: {error}"


def _read_snapshot(
    found: DiskContents, partition: Path, writes_in_snapshot: WritesInSnapshot
) -> None:
    snapshots = {
        snapshot_id: path
        for path in partition.glob(f"*{SNAPSHOT_SUFFIX}")
        if (snapshot_id := parse_snapshot_name(path.name)) is not None and snapshot_id.offset > 0
    }
    if snapshots:
        newest = max(snapshots)
        path = snapshots[newest]
        try:
            values = read_snapshot(path.read_bytes(), newest).values
            found.in_snapshot = writes_in_snapshot(values)
        except QuorateError as error:
            raise QuorateError(f"{path}: {error}") from None
        found.snapshot_end = newest.offset
