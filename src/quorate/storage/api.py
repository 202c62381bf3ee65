"""The contract of a replica's storage, and what `sync()` promises.

One owner calls it, in order, from one thread. Nothing is durable before `sync()` returns, except
where a method says so; `sync()` covers everything called before it. After a method raised
StorageError the state of the medium is unknown: the owner closes it and recovers anew.
A read never returns bytes whose checksum was not verified, either on recovery or on append.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from quorate.base.errors import QuorateError
from quorate.base.frozen import frozen
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.errors import BatchError
from quorate.raft.values import ElectionState, RecoveredLog


class StorageError(QuorateError):
    """Reading, writing or syncing failed; names the file, what was tried and what to do."""

    exit_code = 74


class CorruptLogError(StorageError):
    """Damage that recovery must not repair on its own: file, position and offset are named."""

    exit_code = 65


def corruption_error(where: str, error: BatchError) -> StorageError:
    """What to say of damage that came since the bytes were written or recovered."""
    return StorageError(
        f"{where}: bytes that were sound when they were written or recovered are not any more: "
        f"{error}; check the disk, then start this node again"
    )


@frozen
class AppendedBatch:
    """One encoded batch, base offset, epoch and CRC final."""

    base_offset: int
    last_offset: int
    epoch: int
    data: bytes


@frozen
class SnapshotInfo:
    id: OffsetAndEpoch
    size: int
    last_contained_log_timestamp: int


@frozen
class SegmentInfo:
    """One segment as the storage knows it. Ends are exclusive, sizes bytes, timestamps ms."""

    base_offset: int
    end_offset: int
    size: int
    first_timestamp: int | None
    """Of the first batch; None: there is none."""
    max_timestamp: int
    """Of all batches; -1: there is none."""


@frozen
class Recovered:
    """What `open` found. `log` is complete for the core; `election` is None at first start."""

    log: RecoveredLog
    election: ElectionState | None
    notes: tuple[str, ...] = ()
    """What recovery repaired or removed, one fact each: a torn tail cut, a stale file dropped."""


class SnapshotWriter(Protocol):
    """A snapshot of our own in the making; may be driven from another thread than the log."""

    def append(self, data: bytes) -> None:
        """Append encoded batches (not durable)."""

    def freeze(self) -> None:
        """Sync, publish under the final name, sync the directory: durable on return."""

    def abort(self) -> None:
        """Throw it away; harmless after freeze."""


class Storage(Protocol):
    """The disk of one replica (`__cluster_metadata-0` and quorum-state)."""

    def open(self) -> Recovered:
        """Lock, recover, report. Raises CorruptLogError or StorageError; then nothing was changed."""

    def close(self) -> None:
        """Release the lock; does not sync."""

    def look(self) -> None:
        """Check the directory: StorageError when a restart would not find what is written now."""

    # -- the log --------------------------------------------------------------------------
    def append(self, batches: Iterable[AppendedBatch]) -> None:
        """Append in order; the first base offset is the log's end offset."""

    def truncate(self, end_offset: int) -> None:
        """Drop every batch that reaches to `end_offset` or beyond it."""

    def sync(self) -> None:
        """Make the log durable as it stands now."""

    def read(self, offset: int, end: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds `offset`, none that reaches beyond `end`.

        At least one batch where there is one, then as many as fit into `max_bytes`. Empty at
        the log's end, and where the log does not hold `offset` (any more). May be called from any
        thread, beside one writer.
        """

    @property
    def start_offset(self) -> int:
        """Moved by `clean`; after `open` that of the first segment, which may be lower."""

    @property
    def end_offset(self) -> int: ...

    @property
    def size(self) -> int:
        """Bytes of all log segments."""

    def segments(self) -> tuple[SegmentInfo, ...]:
        """The log's segments, ascending."""

    # -- the vote -------------------------------------------------------------------------
    def save_election(
        self, state: ElectionState, kraft_version: int, voter_ids: tuple[int, ...]
    ) -> None:
        """Write quorum-state: temporary file, sync, rename, directory sync. Durable on return."""

    # -- snapshots ------------------------------------------------------------------------
    def snapshots(self) -> tuple[SnapshotInfo, ...]:
        """Those on disk, ascending, 0-0 included."""

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """Raw bytes; StorageError when it is gone. May be called from any thread."""

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """The size of a snapshot in bytes; None when there is no such snapshot."""

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> SnapshotWriter:
        """Begin a snapshot of our own."""

    def write_chunk(self, snapshot_id: OffsetAndEpoch, position: int, chunk: bytes) -> None:
        """Bytes of a downloaded snapshot; position 0 begins it anew. Not durable."""

    def abandon_download(self, snapshot_id: OffsetAndEpoch) -> None: ...

    def install_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Verify, sync, publish the download; drop the log; start at its offset. Durable.

        A crash on the way leaves the old log or the new one; of the old one that may be gone which
        contradicts the snapshot. Raises CorruptLogError when its bytes are not a whole snapshot; the
        download is thrown away and the log untouched.
        """

    def clean(self, snapshot_id: OffsetAndEpoch) -> None:
        """Drop snapshots older than this one and whole segments before it; move log start.

        Durable on return, but for the log start: see `start_offset`.
        """
