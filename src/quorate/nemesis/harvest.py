"""What a node has on its disk, read as it lies there and without the storage's own code."""

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

NumberOf = Callable[[bytes], int | None]
"""The number that a record's value writes, if it does."""
SeenIn = Callable[[tuple[bytes, ...]], set[int]]
"""The numbers of all writes that the values of a snapshot tell of."""


@dataclass(frozen=True, slots=True)
class Entry:
    epoch: int
    value: bytes
    """Of a control record key and value."""
    number: int | None


@dataclass(slots=True)
class Harvest:
    """The log from `start` to `end` (exclusive), and the writes that the newest snapshot knows."""

    node: str
    start: int = 0
    end: int = 0
    entries: dict[int, Entry] = field(default_factory=dict)
    snapshot_end: int = 0
    in_snapshot: set[int] | None = None
    """None when there is no snapshot that tells."""
    torn: str = ""
    """Why reading ended where it did, when that was not a file's end."""

    @property
    def is_complete(self) -> bool:
        """Nothing of the history is missing from log and snapshot together."""
        return self.start == 0 or (self.in_snapshot is not None and self.snapshot_end >= self.start)

    def numbers(self, until: int) -> set[int]:
        """The writes below the offset `until` that are known here."""
        found = {
            entry.number
            for offset, entry in self.entries.items()
            if offset < until and entry.number is not None
        }
        return found | (self.in_snapshot or set())


def harvest(
    node: str, partition: Path, number_of: NumberOf, seen_in: SeenIn | None = None
) -> Harvest:
    """Read the partition directory of a node that does not run.

    Sound batches are taken up to the first that is not. Raises QuorateError for a gap, and for a
    snapshot that is not sound.
    """
    found = Harvest(node)
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
            raise QuorateError(f"{path}: a gap before it: the log so far ends at {found.end}")
        _read_segment(found, path, number_of)
    if seen_in is not None:
        _read_snapshot(found, partition, seen_in)
    return found


def _read_segment(found: Harvest, path: Path, number_of: NumberOf) -> None:
    try:
        for view in iter_batches(path.read_bytes()):
            if view.base_offset != found.end:
                raise QuorateError(
                    f"{path}: offset {view.base_offset} follows {found.end - 1} at {view.position}"
                )
            for at, (key, value) in enumerate(raw_records(view), view.base_offset):
                data = value or b""
                number = None if view.is_control else number_of(data)
                whole = (key or b"") + data if view.is_control else data
                found.entries[at] = Entry(view.epoch, whole, number)
            found.end = view.end_offset
    except FormatError as error:
        found.torn = f"{path}: {error}"


def _read_snapshot(found: Harvest, partition: Path, seen_in: SeenIn) -> None:
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
            found.in_snapshot = seen_in(values)
        except QuorateError as error:
            raise QuorateError(f"{path}: {error}") from None
        found.snapshot_end = newest.offset
