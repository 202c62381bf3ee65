"""Jobs for the owner of the disk, and their results, as data.

The replica makes jobs; the owner of the disk (a thread of the server, or the simulator) performs
them in order. One sync may cover many of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.base.frozen import frozen
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.ready import (
    AbandonSnapshot,
    Clean,
    InstallSnapshot,
    SaveElection,
    SnapshotChunk,
    Truncate,
)
from quorate.raft.values import ControlState
from quorate.storage.api import AppendedBatch, SnapshotInfo


@frozen
class AppendBatches:
    """Encoded batches with their final offsets and epochs."""

    batches: tuple[AppendedBatch, ...]


DiskWrite = (
    SaveElection
    | AppendBatches
    | Truncate
    | SnapshotChunk
    | InstallSnapshot
    | AbandonSnapshot
    | Clean
)


# -- jobs ---------------------------------------------------------------------------------------
@frozen
class Write:
    """The writes of one Ready, in order; answered by Written(seq) once they are durable."""

    seq: int
    writes: tuple[DiskWrite, ...]


@frozen
class ReadLog:
    """Whole batches from `offset`, none beyond `end`: `Storage.read`; answered by LogRead."""

    token: int
    offset: int
    end: int
    max_bytes: int


@frozen
class ReadSnapshot:
    """Bytes [position, position + max_bytes) of a snapshot; answered by SnapshotRead."""

    token: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


@frozen
class WriteSnapshot:
    """Write a snapshot of the own state, beside the log and without delaying it.

    `values` yields the data records, from state that cannot change; it may be consumed on another
    thread. Answered by SnapshotWritten or SnapshotFailed.
    """

    snapshot_id: OffsetAndEpoch
    last_contained_log_timestamp: int
    control: ControlState
    values: Iterable[bytes]
    now_ms: int
    """Since 1970: the timestamp of its batches."""


@frozen
class Survey:
    """Measure the log and list the snapshots, for retention; answered by Surveyed."""


Job = Write | ReadLog | ReadSnapshot | WriteSnapshot | Survey


# -- results ------------------------------------------------------------------------------------
@frozen
class Written:
    """Every Write up to and including `seq` is durable."""

    seq: int


@frozen
class Installed:
    """The InstallSnapshot in Write(seq) is done; `control` was read from the snapshot."""

    seq: int
    snapshot_id: OffsetAndEpoch
    control: ControlState


@frozen
class InstallRefused:
    """The download of Write(seq) is corrupt and was deleted."""

    seq: int
    snapshot_id: OffsetAndEpoch
    reason: str


@frozen
class LogRead:
    token: int
    data: bytes


@frozen
class SnapshotRead:
    """`size` is that of the whole snapshot; None when there is no such snapshot."""

    token: int
    size: int | None
    data: bytes


@frozen
class SnapshotWritten:
    snapshot_id: OffsetAndEpoch
    size: int


@frozen
class SnapshotFailed:
    snapshot_id: OffsetAndEpoch
    reason: str


@frozen
class Surveyed:
    log_size: int
    snapshots: tuple[SnapshotInfo, ...]


@frozen
class DiskFailed:
    """A read, write or sync failed; no later job was performed."""

    reason: str


Result = (
    Written
    | Installed
    | InstallRefused
    | LogRead
    | SnapshotRead
    | SnapshotWritten
    | SnapshotFailed
    | Surveyed
    | DiskFailed
)
