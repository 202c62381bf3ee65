"""Performs disk jobs on a Storage: in order, and one sync for all that is queued.

Owned by one thread of the server, or called by a simulator. Snapshots of our own are written by
`write_snapshot`, which may run on another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import read_batch
from quorate.formats.snapshot import SnapshotReader, encode_snapshot
from quorate.raft.ready import (
    AbandonSnapshot,
    Clean,
    InstallSnapshot,
    SaveElection,
    SnapshotChunk,
    Truncate,
)
from quorate.replica.disk_jobs import (
    AppendBatches,
    DiskFailed,
    DiskWrite,
    Installed,
    InstallRefused,
    Job,
    LogRead,
    ReadLog,
    ReadSnapshot,
    Result,
    SnapshotFailed,
    SnapshotRead,
    SnapshotWritten,
    Surveyed,
    Write,
    WriteSnapshot,
    Written,
)
from quorate.storage.api import CorruptLogError, Storage, StorageError

_HEAD: Final = 1024 * 1024
_RECORDS_IN_A_ROW: Final = 64


class DiskWriter:
    """The one writer of a storage. After a failure nothing more is performed.

    `sync` is called instead of the storage's own, to time it.
    """

    def __init__(self, storage: Storage, sync: Callable[[], None] | None = None) -> None:
        self._storage = storage
        self._sync_storage = sync or storage.sync
        self._failed = False
        self._dirty = False
        self._unsynced: int | None = None

    def perform(self, jobs: Sequence[Job]) -> list[Result]:
        """Perform the jobs in order and sync once at the end.

        WriteSnapshot is not for here. A failure ends the list with DiskFailed.
        """
        results: list[Result] = []
        if self._failed:
            return results
        try:
            for job in jobs:
                self._perform(job, results)
            self._sync(results)
        except StorageError as error:
            self._failed = True
            results.append(DiskFailed(str(error)))
        except BaseException:
            self._failed = True
            raise
        return results

    def look(self) -> list[Result]:
        """DiskFailed when the directory is gone: nothing written there could be read again."""
        if self._failed:
            return []
        try:
            self._storage.look()
        except StorageError as error:
            self._failed = True
            return [DiskFailed(str(error))]
        return []

    def _perform(self, job: Job, results: list[Result]) -> None:
        storage = self._storage
        match job:
            case Write():
                self._unsynced = job.seq
                for write in job.writes:
                    self._write(job.seq, write, results)
            case ReadLog():
                data = storage.read(job.offset, job.end, job.max_bytes)
                results.append(LogRead(job.token, data))
            case ReadSnapshot():
                results.append(self._read_snapshot(job))
            case WriteSnapshot():
                raise AssertionError("snapshots are written beside the log")
            case _:
                results.append(Surveyed(storage.size, storage.snapshots()))

    def _write(self, seq: int, write: DiskWrite, results: list[Result]) -> None:
        storage = self._storage
        match write:
            case AppendBatches():
                storage.append(write.batches)
                self._dirty = True
            case SaveElection():
                storage.save_election(write.state, write.kraft_version, write.voter_ids)
            case Truncate():
                storage.truncate(write.end_offset)
                self._dirty = True
            case SnapshotChunk():
                storage.write_chunk(write.snapshot_id, write.position, write.chunk)
            case AbandonSnapshot():
                storage.abandon_download(write.snapshot_id)
            case InstallSnapshot():
                self._install(seq, write.snapshot_id, results)
            case Clean():
                storage.clean(write.snapshot_id)

    def _install(self, seq: int, snapshot_id: OffsetAndEpoch, results: list[Result]) -> None:
        """Install a downloaded snapshot (S6 of `raft.following`).

        1. Make the writes before it durable, and report them without this one.
        2. Let the storage install it. Installed or InstallRefused reports this write as durable.
        3. Read the control records at its start: the core needs the voters of the new log.
        """
        # 1. InstallRefused reports `seq` as durable and leaves the log: appends before it in the
        # same list need their sync first.
        self._unsynced = seq - 1
        self._sync(results)
        # 2. Only this error leaves the log as it was, so any other ends the node.
        try:
            self._storage.install_snapshot(snapshot_id)
        except CorruptLogError as error:
            results.append(InstallRefused(seq, snapshot_id, str(error)))
            return
        # 3. The first batch has the header, KRaftVersion and Voters, as Kafka writes them.
        reader = SnapshotReader()
        reader.add(read_batch(self._storage.read_snapshot(snapshot_id, 0, _HEAD), 0))
        results.append(Installed(seq, snapshot_id, reader.control))

    def _read_snapshot(self, job: ReadSnapshot) -> SnapshotRead:
        size = self._storage.snapshot_size(job.snapshot_id)
        if size is None or not 0 <= job.position < size:
            return SnapshotRead(job.token, size, b"")
        data = self._storage.read_snapshot(job.snapshot_id, job.position, job.max_bytes)
        return SnapshotRead(job.token, size, data)

    def _sync(self, results: list[Result]) -> None:
        if self._dirty:
            self._sync_storage()
            self._dirty = False
        if self._unsynced is not None:
            results.append(Written(self._unsynced))
            self._unsynced = None


def write_snapshot(
    storage: Storage,
    job: WriteSnapshot,
    pause: Callable[[], None] = lambda: None,
) -> SnapshotWritten | SnapshotFailed:
    """Write a whole snapshot; `pause` is called every few records, to let other threads run.

    A QuorateError of `job.values` gives SnapshotFailed; any other exception is raised. No file is
    left in either case.
    """
    writer = None
    size = 0
    try:
        writer = storage.create_snapshot(job.snapshot_id)
        for data in encode_snapshot(
            job.snapshot_id,
            job.control,
            job.last_contained_log_timestamp,
            _with_pauses(job.values, pause),
            job.now_ms,
        ):
            writer.append(data)
            size += len(data)
        writer.freeze()
    except Exception as error:
        if writer is not None:
            writer.abort()
        if not isinstance(error, QuorateError):
            raise
        return SnapshotFailed(job.snapshot_id, str(error))
    return SnapshotWritten(job.snapshot_id, size)


def _with_pauses(values: Iterable[bytes], pause: Callable[[], None]) -> Iterator[bytes]:
    for number, value in enumerate(values):
        if number % _RECORDS_IN_A_ROW == 0:
            pause()
        yield value
