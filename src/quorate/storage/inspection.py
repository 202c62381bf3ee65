"""What a node would find in its directory, without a start: nothing is locked, created or changed.

A node may run in the directory. A file that it deletes meanwhile is a StorageError.
"""

from __future__ import annotations

from quorate.base.ids import OffsetAndEpoch
from quorate.storage.disk import Disk
from quorate.storage.log import LogOptions, SegmentedLog
from quorate.storage.recovery import recovered, survey
from quorate.storage.scan import LogScan
from quorate.storage.snapshots import SnapshotStore


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
