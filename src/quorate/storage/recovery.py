"""Recovery of a directory at start: first read everything, then repair.

`survey` only reads: it raises, and nothing was changed, or returns what it found with the repairs
to make. `repair` makes them in an order that leaves a recoverable directory after every step, for
a crash may interrupt the recovery too.
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
from quorate.storage.agreement import (
    check_emptied,
    check_epochs,
    check_log_and_snapshots,
    check_vote,
)
from quorate.storage.api import Recovered
from quorate.storage.disk import Disk, replace_file
from quorate.storage.log import LogOptions, SegmentedLog, create_segment
from quorate.storage.scan import LogScan
from quorate.storage.segment import DERIVED_SUFFIXES, remove_segments
from quorate.storage.survey import DirectorySurvey, read_directory


def survey(disk: Disk, options: LogOptions, *, is_new: bool = False) -> DirectorySurvey:
    """Read and check everything; raises StorageError or CorruptLogError and changes nothing.

    `is_new`: the directory was made a moment ago.
    """
    found = read_directory(disk, options)
    if not is_new:
        check_emptied(disk, found, options)
    check_epochs(disk, found)
    check_log_and_snapshots(disk, found, options)
    check_vote(disk, found, options)
    return found


def repair(disk: Disk, found: DirectorySurvey, options: LogOptions) -> SegmentedLog:
    """Make the repairs of `found`; every step leaves a recoverable directory.

    1. Cut the torn tail.
    2. Drop what precedes a hole, the first segment first, and a log that the newest snapshot
       superseded, the last segment first.
    3. Create the segment that a log without one needs.
    4. Remove files of interrupted operations; write partition.metadata.
    5. Sync everything, then write the indexes.  6. Write the epoch checkpoint, if the log says otherwise.
    """
    if found.torn_bytes:
        last = found.segments[-1]
        last.file.truncate(last.size)  # synced below
    remove_segments(disk, found.dropped)
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
        # 5. A killed process may have left these bytes in the page cache only. The core counts them
        # as durable from here on: it votes and acknowledges with them.
        segment.file.sync()
    disk.sync()
    # Later: an index of bytes that a power cut then loses would show a loss (`witnesses`).
    for segment in found.segments:
        segment.write_indexes(disk)
    if (found.saved_epochs or ()) != tuple(found.scan.epochs):  # 6., last: it must
        # not name an epoch whose batch is not durable (`SegmentedLog._begin_epoch`)
        replace_file(disk, LEADER_EPOCH_CHECKPOINT, encode_leader_epochs(found.scan.epochs))
    return SegmentedLog(disk, options, found.segments, found.scan.epochs)


def _remove_stale(disk: Disk, found: DirectorySurvey) -> None:
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


def recovered(found: DirectorySurvey) -> Recovered:
    """What the core gets to start with, once the directory is repaired."""
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
