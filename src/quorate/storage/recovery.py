"""A directory as it is found and set right.

`survey` only reads: it either raises and nothing was changed, or returns what it found with the
repairs to make. `repair` makes them, in an order that leaves a recoverable directory at every
step.
"""

from __future__ import annotations

from quorate.formats.files import (
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    PART_SUFFIX,
    PARTITION_METADATA,
    encode_leader_epochs,
    encode_partition_metadata,
    snapshot_name,
)
from quorate.raft.values import RecoveredLog
from quorate.storage.agreement import check_epochs, check_together, check_vote
from quorate.storage.api import Recovered
from quorate.storage.disk import Disk, replace_file
from quorate.storage.log import Log, LogOptions, create_segment
from quorate.storage.scan import LogScan
from quorate.storage.segment import DERIVED_SUFFIXES, remove_segments
from quorate.storage.survey import Survey, read_directory


def survey(disk: Disk, options: LogOptions) -> Survey:
    """Read and check everything; raises StorageError or CorruptLog and changes nothing."""
    found = read_directory(disk, options)
    check_epochs(disk, found)
    check_together(disk, found)
    check_vote(disk, found, options)
    return found


def repair(disk: Disk, found: Survey, options: LogOptions) -> Log:
    """Cut, drop and write what `found` asks for; every step leaves a recoverable directory."""
    if found.torn_bytes:
        last = found.segments[-1]
        last.file.truncate(last.size)  # synced below
    if found.superseded:
        remove_segments(disk, reversed(found.segments))
        found.segments = []
        found.scan = LogScan(found.start_offset)
    if not found.segments:
        found.segments = [create_segment(disk, found.start_offset, options)]
        found.scan.end_offset = found.start_offset
    _remove_stale(disk, found)
    if PARTITION_METADATA not in found.names:
        replace_file(disk, PARTITION_METADATA, encode_partition_metadata())
    for segment in found.segments:
        segment.write_indexes(disk)
        # A process that was killed may have left all this in the system's cache only. From now
        # on it counts as durable, so it has to be.
        segment.file.sync()
    disk.sync()
    if (found.saved_epochs or ()) != tuple(found.scan.epochs):  # after what it tells of
        replace_file(disk, LEADER_EPOCH_CHECKPOINT, encode_leader_epochs(found.scan.epochs))
    return Log(disk, options, found.segments, found.scan.epochs)


def _remove_stale(disk: Disk, found: Survey) -> None:
    """Half-made and half-removed files, indexes without a segment, snapshots below the log."""
    bases = {segment.base_offset for segment in found.segments}
    stale = [name for name in found.names if _is_stale(name, bases)]
    old = [info.id for info in found.snapshots if info.id.offset < found.start_offset]
    found.snapshots = [info for info in found.snapshots if info.id not in old]
    stale += map(snapshot_name, old)
    for name in sorted(stale):
        disk.remove(name)
        if not name.endswith(DERIVED_SUFFIXES):
            found.notes.append(f"{disk.where}/{name}: removed, no longer of use")
    if stale:
        disk.sync()


def _is_stale(name: str, bases: set[int]) -> bool:
    if name.endswith((PART_SUFFIX, DELETED_SUFFIX, ".tmp")):
        return True
    stem, dot, suffix = name.partition(".")
    return f"{dot}{suffix}" in DERIVED_SUFFIXES and stem.isdecimal() and int(stem) not in bases


def recovered(found: Survey) -> Recovered:
    """For the core, once repaired."""
    scan = found.scan
    log = RecoveredLog(
        start_offset=found.start_offset,
        end_offset=scan.end_offset,
        epochs=tuple(scan.epochs),
        snapshots=tuple(info.id for info in found.snapshots),
        snapshot_control=found.snapshot_control,
        control_records=tuple(scan.control),
        batch_ends=tuple(scan.batch_ends),
    )
    return Recovered(log, found.election, tuple(found.notes))
