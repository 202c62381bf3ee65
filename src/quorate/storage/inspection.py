"""What a node would find in its directory, without a start: nothing is locked, created or changed.

A node may run in the directory. `read_beside_writer` reads again what it changes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from quorate.base.errors import QuorateError
from quorate.base.file_stamp import FileStamp, file_stamp
from quorate.base.ids import OffsetAndEpoch
from quorate.storage.disk import Disk
from quorate.storage.log import LogOptions, SegmentedLog
from quorate.storage.recovery import recovered, survey
from quorate.storage.scan import LogScan
from quorate.storage.snapshots import SnapshotStore

_Found = TypeVar("_Found")
_MOST_READINGS: Final = 10


def read_beside_writer(directory: Path, reading: Callable[[], _Found]) -> _Found:
    """Return what `reading` returns for files that a node may write at the same time.

    A node appends to the log and then to its indexes. A reading that begins before and ends after
    sees an index that knows offsets beyond the log, which is also the sign of lost records. So a
    refusal stands only when no file changed during the reading, or when the next reading repeats
    it word for word. Raises the QuorateError of the last reading.
    """
    said = ""
    for attempt in range(1, _MOST_READINGS + 1):
        before = _stamps(directory)
        try:
            return reading()
        except QuorateError as error:
            is_still = _stamps(directory) == before
            if is_still or str(error) == said or attempt == _MOST_READINGS:
                raise
            said = str(error)
    raise AssertionError("the last reading returns or raises")


def _stamps(directory: Path) -> dict[str, FileStamp | None]:
    """The stamp of each file of the directory."""
    return {str(path): file_stamp(path) for path in directory.iterdir()}


class InspectedStorage:
    """The readings of `api.Storage`, from files that `DiskStorage.open` would recover.

    Raises StorageError and CorruptLogError where `open` would refuse the directory.
    """

    def __init__(self, disk: Disk, options: LogOptions) -> None:
        found = survey(disk, options)
        if found.superseded or not found.segments:  # `repair` begins such a log anew
            found.segments = []
            found.scan = LogScan(found.start_offset)
        self._log = (
            SegmentedLog(disk, options, found.segments, found.scan.epochs)
            if found.segments
            else None
        )
        self._snapshots = SnapshotStore(disk, found.snapshots)
        self.recovered = recovered(found)
        """What the core of a node would be given."""

    def read(self, offset: int, end: int, max_bytes: int) -> bytes:
        """Read whole batches, as `Storage.read` specifies."""
        return b"" if self._log is None else self._log.read(offset, end, max_bytes)

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """Read raw bytes, as `Storage.read_snapshot` specifies."""
        return self._snapshots.read(snapshot_id, position, max_bytes)

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """The size of a snapshot in bytes; None when there is no such snapshot."""
        return self._snapshots.size(snapshot_id)
