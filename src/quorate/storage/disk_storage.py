"""A replica's storage over any disk: the one implementation of the contract in `api`.

`FileStorage` is the one over files; `memory.MemoryStorage` the one in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

from quorate.base.check import check
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import QUORUM_STATE, encode_quorum_state
from quorate.raft.values import ElectionState
from quorate.storage.api import (
    AppendedBatch,
    CorruptLogError,
    Recovered,
    SegmentInfo,
    SnapshotInfo,
    SnapshotWriter,
    StorageError,
)
from quorate.storage.disk import Disk, OsDisk, replace_file, sync_all, sync_file
from quorate.storage.log import LogOptions, SegmentedLog
from quorate.storage.recovery import recovered, repair, survey
from quorate.storage.snapshots import SnapshotStore


class DiskStorage:
    """Storage of one replica; see `api.Storage` for what each method promises.

    After a write or sync failed, every method but `close` raises StorageError: whether the bytes
    of a failed sync reached the medium cannot be found out by trying again.
    """

    def __init__(self, disk: Disk, options: LogOptions) -> None:
        self._disk = disk
        self._options = options
        self._gate = _Gate(disk.where)
        self._maybe_log: SegmentedLog | None = None
        self._maybe_snapshots: SnapshotStore | None = None

    def open(self) -> Recovered:
        check(self._maybe_log is None, "a storage that is open already", self._disk.where)
        is_new = self._disk.lock()
        try:
            found = survey(self._disk, self._options, is_new=is_new)
            self._maybe_log = repair(self._disk, found, self._options)
        except BaseException:
            self._disk.unlock()
            raise
        self._maybe_snapshots = SnapshotStore(self._disk, found.snapshots, self._options.sync_every)
        self._gate.shut = None
        return recovered(found)

    def look(self) -> None:
        with self._gate:
            self._disk.look()

    def close(self) -> None:
        log, snapshots = self._maybe_log, self._maybe_snapshots
        if log is None or snapshots is None:
            return
        self._maybe_log = self._maybe_snapshots = None
        try:
            if self._gate.shut is None:
                log.write_indexes()
        finally:
            self._gate.shut = "is closed"
            log.close()
            snapshots.close()
            self._disk.unlock()

    # -- the log -----------------------------------------------------------------------------
    def append(self, batches: Iterable[AppendedBatch]) -> None:
        with self._gate:
            self._log.append(batches)

    def truncate(self, end_offset: int) -> None:
        with self._gate:
            newest = max((info.id.offset for info in self._snapshots.all()), default=0)
            check(end_offset >= newest, "a truncation of what a snapshot holds", end_offset, newest)
            self._log.truncate(end_offset)

    def sync(self) -> None:
        with self._gate:
            self._log.sync()

    def read(self, offset: int, end: int, max_bytes: int) -> bytes:
        self._gate.check()
        return self._log.read(offset, end, max_bytes)

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def size(self) -> int:
        return self._log.size

    def segments(self) -> tuple[SegmentInfo, ...]:
        return self._log.infos()

    # -- the vote ----------------------------------------------------------------------------
    def save_election(
        self, state: ElectionState, kraft_version: int, voter_ids: tuple[int, ...]
    ) -> None:
        with self._gate:
            data = encode_quorum_state(state, kraft_version, voter_ids)
            replace_file(self._disk, QUORUM_STATE, data)

    # -- snapshots ---------------------------------------------------------------------------
    def snapshots(self) -> tuple[SnapshotInfo, ...]:
        return self._snapshots.all()

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        self._gate.check()
        return self._snapshots.read(snapshot_id, position, max_bytes)

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        return self._snapshots.size(snapshot_id)

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> SnapshotWriter:
        self._gate.check()
        return self._snapshots.create(snapshot_id)

    def write_chunk(self, snapshot_id: OffsetAndEpoch, position: int, chunk: bytes) -> None:
        with self._gate:
            self._snapshots.write_chunk(snapshot_id, position, chunk)

    def abandon_download(self, snapshot_id: OffsetAndEpoch) -> None:
        with self._gate:
            self._snapshots.abandon_download(snapshot_id)

    def install_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        # S6 of `raft.following`:
        # 1. Verify the download; a damaged one changes nothing.
        # 2. Cut a log tail of a newer epoch below the snapshot's end: recovery could not
        #    distinguish it from a log that lost records.
        # 3. Publish the snapshot. From here on recovery finishes an interrupted install, because
        #    the snapshot is newer than the log.
        # 4. Drop the log and begin it anew at the snapshot.  5. Drop older snapshots.
        with self._gate:
            verified = self._snapshots.verify_download(snapshot_id)
            self._log.cut_newer(snapshot_id)
            self._snapshots.publish_download(verified)
            self._log.reset(snapshot_id.offset)
            self._snapshots.drop_before(snapshot_id)

    def clean(self, snapshot_id: OffsetAndEpoch) -> None:
        with self._gate:
            known = self._snapshots.size(snapshot_id) is not None
            check(known, "cleaning to a snapshot that is not there", snapshot_id)
            check(snapshot_id.offset <= self.end_offset, "cleaning beyond the log", snapshot_id)
            self._log.clean(snapshot_id.offset)
            self._snapshots.drop_before(snapshot_id)

    @property
    def _log(self) -> SegmentedLog:
        if self._maybe_log is None:
            raise StorageError(f"{self._disk.where} is not open")
        return self._maybe_log

    @property
    def _snapshots(self) -> SnapshotStore:
        if self._maybe_snapshots is None:
            raise StorageError(f"{self._disk.where} is not open")
        return self._maybe_snapshots


class _Gate:
    """Rejects every change after one failed.

    The kernel may drop dirty pages after a failed fsync and report success to the next one, so a
    retry proves nothing (PostgreSQL's "fsyncgate", 2018).
    """

    __slots__ = ("_where", "shut")

    def __init__(self, where: str) -> None:
        self._where = where
        self.shut: str | None = "is not open"
        """Why nothing passes."""

    def check(self) -> None:
        if self.shut is not None:
            raise StorageError(f"{self._where} {self.shut}")

    def __enter__(self) -> None:
        self.check()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A damaged download changed nothing.
        if error is not None and not isinstance(error, CorruptLogError):
            self.shut = f"is not used any more since this failed: {error}; start the node again"


class FileStorage(DiskStorage):
    """`directory` is metadata.log.dir: it gets `.lock` and `__cluster_metadata-0`.

    `sync` makes the descriptor of a file durable, `sync_directory` that of a directory; both
    raise OSError. Tests and measurements replace them.
    """

    def __init__(
        self,
        directory: Path,
        options: LogOptions | None = None,
        *,
        sync: Callable[[int], None] = sync_file,
        sync_directory: Callable[[int], None] = sync_all,
    ) -> None:
        super().__init__(OsDisk(directory, sync, sync_directory), options or LogOptions())
