"""Do the files of a directory fit together, or was something lost between them?"""

from __future__ import annotations

from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.base.notes import Warn
from quorate.formats.files import (
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    QUORUM_STATE,
    parse_segment_name,
    segment_name,
    snapshot_name,
)
from quorate.storage.api import CorruptLog
from quorate.storage.disk import Disk, read_file
from quorate.storage.log import LogOptions
from quorate.storage.scan import epoch_at
from quorate.storage.segment import last_indexed
from quorate.storage.survey import ANEW, Survey

NOTHING: Final = OffsetAndEpoch(0, 0)


def check_epochs(disk: Disk, found: Survey) -> None:
    """An epoch is not covered by a batch's checksum: hold it against what else is known."""
    saved = found.saved_epochs or ()
    scan = found.scan
    for epoch, start, name, position in scan.unannounced:
        if (epoch, start) not in saved:
            raise CorruptLog(
                f"{disk.where}/{name}: damaged at byte {position}, offset {start}: epoch {epoch} "
                "begins there without a LeaderChange record, and leader-epoch-checkpoint does "
                f"not know it. Restore the file, or {ANEW}"
            )
    log_start = found.segments[0].base_offset if found.segments else 0
    for epoch, start in saved:
        if not log_start <= start < scan.end_offset:
            continue
        found_epoch = epoch_at(scan.epochs, start)
        if found_epoch != epoch:
            raise CorruptLog(
                f"{disk.where}: leader-epoch-checkpoint says that offset {start} is of epoch "
                f"{epoch}, the log says {found_epoch}: one of them is damaged. If it is "
                f"the checkpoint, remove it: it is rebuilt from the log; else {ANEW}"
            )


def check_together(disk: Disk, found: Survey) -> None:
    """Do log and snapshots fit? (`KafkaRaftLog.recoverSnapshots`, `truncateToLatestSnapshot`)"""
    newest = found.snapshots[-1].id if found.snapshots else None
    if not found.segments:
        _miss_log(disk, found, newest or NOTHING)
        found.start_offset = newest.offset if newest else 0
        return
    _miss_segment(disk, found)
    _check_start(disk, found, newest)
    if not found.scan.epochs:
        _miss_batches(disk, found, newest or NOTHING)
    if newest is not None and _supersedes(disk, found, newest):
        _miss_batches(disk, found, newest)
        found.superseded = True
        found.start_offset = newest.offset
        text = (
            f"{disk.where}: snapshot {snapshot_name(newest)} is newer than the log, which ended at "
            f"offset {found.scan.end_offset}: dropped the log, it goes on behind the snapshot"
        )
        found.notes.append(Warn(text))


def _check_start(disk: Disk, found: Survey, newest: OffsetAndEpoch | None) -> None:
    """What lies before the log must be in a snapshot."""
    start = found.start_offset = found.segments[0].base_offset
    if start > 0 and (newest is None or newest.offset < start):
        says = "there is none" if newest is None else f"the newest is {snapshot_name(newest)}"
        raise CorruptLog(
            f"{disk.where}: the log begins at offset {start}, which needs a snapshot that reaches "
            f"there, but {says}; restore the missing .checkpoint file, or {ANEW}"
        )


def _supersedes(disk: Disk, found: Survey, newest: OffsetAndEpoch) -> bool:
    """Was the newest snapshot installed where the log, older, was to be dropped?"""
    end, last_epoch = found.scan.end_offset, found.scan.last_epoch
    if newest.offset == found.start_offset == end:
        return False
    if newest.offset > end and newest.epoch < last_epoch:
        raise CorruptLog(
            f"{disk.where}: snapshot {snapshot_name(newest)} reaches beyond the log's end {end}, "
            f"but the log's last epoch {last_epoch} is newer; {ANEW}"
        )
    return newest.epoch > last_epoch or (newest.epoch == last_epoch and newest.offset > end)


def _miss_log(disk: Disk, found: Survey, newest: OffsetAndEpoch) -> None:
    """A replica has a segment before it has anything to remember; only installing a snapshot
    leaves none for a moment, of an epoch and an offset that no record of the epoch was beyond."""
    said = _later_epoch(found, newest) or _later_offset(disk, found, newest)
    if not said and newest.offset == 0 and found.election and found.election.epoch > 0:
        said = f"{QUORUM_STATE} is of epoch {found.election.epoch}"
    if said:
        raise CorruptLog(
            f"{disk.where}: there is no segment of the log ({segment_name(newest.offset)}), but "
            f"{said}: records that were acknowledged may be lost. Restore the log, or {ANEW}"
        )
    _miss_segments_of_indexes(
        disk,
        found,
        0,
        f"there is no log; records behind offset {newest.offset} are lost if a snapshot of the "
        "leader's did not just take their place",
    )


def _later_epoch(found: Survey, newest: OffsetAndEpoch) -> str:
    """What leader-epoch-checkpoint knows beyond the newest snapshot; empty: nothing."""
    later = [epoch for epoch, _ in found.saved_epochs or () if epoch > newest.epoch]
    return f"{LEADER_EPOCH_CHECKPOINT} knows epoch {later[-1]}" if later else ""


def _later_offset(disk: Disk, found: Survey, newest: OffsetAndEpoch) -> str:
    """What an index knows of the newest snapshot's own epoch at its end or beyond; empty: nothing.

    Where the log's last epoch was an older one its tail may have diverged, and a snapshot that was
    installed below its end took its place. In the same epoch it is installed beyond the end only.
    """
    if not found.saved_epochs or found.saved_epochs[-1][0] != newest.epoch:
        return ""
    for name in sorted(found.names):
        base = parse_segment_name(name, INDEX_SUFFIX)
        if base is None:
            continue
        known = last_indexed(read_file(disk, name), base)
        if base > newest.offset or (known is not None and known >= newest.offset):
            return f"{name} knows offset {base if known is None else known}"
    return ""


def _miss_batches(disk: Disk, found: Survey, newest: OffsetAndEpoch) -> None:
    """Of a log that is empty, or older than the newest snapshot: the checkpoint learns of an epoch
    when its first batch is durable (`Log.append`)."""
    said = _later_epoch(found, newest)
    if said:
        raise CorruptLog(
            f"{disk.where}/{found.segments[-1].file.name}: the log ends at offset "
            f"{found.scan.end_offset}, but {said}: records that were acknowledged may be lost. "
            f"Restore the log, or {ANEW}"
        )


def _miss_segments_of_indexes(disk: Disk, found: Survey, least: int, why: str) -> None:
    """An index that begins at `least` or later should have a segment beside it."""
    for name in sorted(found.names):
        base = parse_segment_name(name, INDEX_SUFFIX)
        if base is not None and base >= least:
            found.notes.append(Warn(f"{disk.where}/{name}: its segment is missing, {why}"))


def _miss_segment(disk: Disk, found: Survey) -> None:
    end = found.scan.end_offset
    _miss_segments_of_indexes(
        disk,
        found,
        max(end, 1),
        f"and the log ends at offset {end}; records from there on are lost if nobody truncated "
        "them",
    )
    lost = [entry for entry in found.saved_epochs or () if entry[1] >= max(end, 1)]
    if lost:
        text = (
            f"{disk.where}/{LEADER_EPOCH_CHECKPOINT} knows epoch {lost[0][0]} from offset "
            f"{lost[0][1]} on, but the log ends at offset {end}; records from there on are lost "
            "if nobody truncated them"
        )
        found.notes.append(Warn(text))
    segment = found.segments[-1]
    index = segment_name(segment.base_offset, INDEX_SUFFIX)
    indexed = read_file(disk, index) if index in found.names else b""
    known = last_indexed(indexed, segment.base_offset)
    if known is not None and known >= end:
        text = (
            f"{disk.where}/{index} knows offset {known}, but the log ends at offset {end}; "
            "records from there on are lost if nobody truncated them"
        )
        found.notes.append(Warn(text))


def check_vote(disk: Disk, found: Survey, options: LogOptions) -> None:
    epoch = found.scan.last_epoch
    if QUORUM_STATE in found.names or (epoch == 0 and found.torn_bytes == 0):
        return
    log = f"reaches epoch {epoch}" if epoch else "has the beginning of a batch"
    missing = f"{disk.where}/{QUORUM_STATE} is missing, but the log {log}: "
    if options.needs_vote:
        raise CorruptLog(
            f"{missing}it held this replica's vote of that epoch or of a later one, which must "
            f"not be forgotten: restore the file, or {ANEW}"
        )
    found.notes.append(Warn(f"{missing}if this replica voted in a later epoch, that is forgotten"))
