"""The consistency of the files of a directory: was anything lost between them?

A batch's checksum covers neither its existence nor its epoch. Each file here knows something about
the others: indexes and the epoch checkpoint about segments, the log about quorum-state. A
contradiction that a crash cannot leave means lost records.
"""

from __future__ import annotations

from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.base.notes import Warn
from quorate.formats.files import (
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    QUORUM_STATE,
    parse_segment_name,
    segment_name,
    snapshot_name,
)
from quorate.storage.api import CorruptLogError
from quorate.storage.disk import Disk
from quorate.storage.log import LogOptions
from quorate.storage.scan import epoch_at
from quorate.storage.survey import REJOIN, DirectorySurvey, hole_error
from quorate.storage.witnesses import check_witnesses, is_announced_by_kafka

_NO_SNAPSHOT: Final = OffsetAndEpoch(0, 0)


def check_emptied(disk: Disk, found: DirectorySurvey, options: LogOptions) -> None:
    """Refuse an empty directory: a format leaves none, or one with a snapshot.

    A node makes it and the first segment in one step. Its vote is in there, so a node that starts in
    an emptied one votes again, and a lone voter gives all offsets anew.
    """
    if options.needs_vote and not found.names:
        raise CorruptLogError(
            f"{disk.where}: the directory is empty: the log and this replica's vote were there, and "
            "records that were acknowledged may be lost. If the first start after the format was "
            f"interrupted, remove the empty directory. Else restore its files, or {REJOIN}"
        )


def check_epochs(disk: Disk, found: DirectorySurvey) -> None:
    """Compare the epochs of the log with leader-epoch-checkpoint.

    The checksum of a batch covers neither base offset nor epoch, for the leader sets both after the
    batch is encoded. A damaged epoch would change which log counts as newer in an election.
    """
    saved = found.saved_epochs or ()
    scan = found.scan
    for epoch, start, name, position in scan.unannounced:
        if (epoch, start) not in saved:
            raise CorruptLogError(
                f"{disk.where}/{name}: damaged at byte {position}, offset {start}: epoch {epoch} "
                "begins there without a LeaderChange record, and leader-epoch-checkpoint does "
                f"not know it. Restore the file, or {REJOIN}"
            )
    log_start = found.segments[0].base_offset if found.segments else 0
    for epoch, start in saved:
        if not log_start <= start < scan.end_offset:
            continue
        found_epoch = epoch_at(scan.epochs, start)
        if found_epoch != epoch:
            raise CorruptLogError(
                f"{disk.where}: leader-epoch-checkpoint says that offset {start} is of epoch "
                f"{epoch}, the log says {found_epoch}: one of them is damaged. If it is "
                f"the checkpoint, remove it: it is rebuilt from the log; else {REJOIN}"
            )


def check_log_and_snapshots(disk: Disk, found: DirectorySurvey, options: LogOptions) -> None:
    """Do log and snapshots fit? (`KafkaRaftLog.recoverSnapshots`, `truncateToLatestSnapshot`)

    1. No segment: only an interrupted snapshot install leaves that (`_check_missing_log`).
    2. The records before the log's start are in a snapshot, else refuse.
    3. The newest snapshot is newer than the log: the crash came between its rename and the drop of
       the old log. Finish the install. Kafka's node may have begun the new segment (`begun`).
    4. No other file knows of records beyond the log and the snapshot, else refuse.
    5. In 1. and 3. this node did not lead alone, else refuse: nobody sent it a snapshot. With other
       voters a leader whose disk is slow may write a snapshot of records that only they have on disk.
    6. The log is empty and this node led alone: warn. The crash may have come right before its first
       record, or the records are lost.
    """
    newest = found.snapshots[-1].id if found.snapshots else None
    if not found.segments:
        _check_missing_log(disk, found, newest or _NO_SNAPSHOT)
        _check_not_led_alone(disk, found, options)
        found.start_offset = newest.offset if newest else 0
        return
    _check_start(disk, found, newest)
    if not found.scan.epochs:
        _check_missing_batches(disk, found, newest or _NO_SNAPSHOT)
    if newest is not None and _supersedes(disk, found, newest):
        _check_missing_batches(disk, found, newest)
        _check_not_led_alone(disk, found, options)
        found.superseded = True
        found.start_offset = newest.offset
    elif found.begun is not None:
        raise hole_error(disk, found.begun, found.scan.end_offset)
    elif not found.scan.epochs and (newest or _NO_SNAPSHOT).offset == 0:
        _warn_of_empty_log(disk, found, options)
    check_witnesses(disk, found, newest or _NO_SNAPSHOT)
    if newest is not None and found.superseded:
        text = (
            f"{disk.where}: snapshot {snapshot_name(newest)} is newer than the log, which ended at "
            f"offset {found.scan.end_offset}: dropped the log, it goes on behind the snapshot"
        )
        found.notes.append(Warn(text))


def _check_not_led_alone(disk: Disk, found: DirectorySurvey, options: LogOptions) -> None:
    """Refuse a log that a snapshot would replace, where this node led alone."""
    if _led_alone(found, options):
        assert found.election is not None
        raise CorruptLogError(
            f"{disk.where}: the log does not reach its newest snapshot, but {QUORUM_STATE} says that "
            f"this node, the only voter, led epoch {found.election.epoch}: records that were "
            f"acknowledged may be lost. Restore the log, or {REJOIN}"
        )


def _warn_of_empty_log(disk: Disk, found: DirectorySurvey, options: LogOptions) -> None:
    if _led_alone(found, options):
        assert found.election is not None
        found.notes.append(
            Warn(
                f"{disk.where}: the log is empty, but {QUORUM_STATE} says that this node, the only voter, "
                f"led epoch {found.election.epoch}: records that were acknowledged are lost, unless "
                "its first start was interrupted"
            )
        )


def _led_alone(found: DirectorySurvey, options: LogOptions) -> bool:
    election, control = found.election, found.snapshot_control
    if election is None or election.epoch == 0 or election.leader_id != options.node_id:
        return False
    voters = options.static_voter_ids
    if control is not None and control.voters is not None:
        voters = tuple(voter.key.id for voter in control.voters)
    return voters == (options.node_id,)


def _check_start(disk: Disk, found: DirectorySurvey, newest: OffsetAndEpoch | None) -> None:
    """What lies before the log must be in a snapshot."""
    start = found.start_offset = found.segments[0].base_offset
    if newest is not None and _diverged(found, newest):
        return  # an install was interrupted when it had dropped the first segments
    if start > 0 and (newest is None or newest.offset < start):
        says = "there is none" if newest is None else f"the newest is {snapshot_name(newest)}"
        raise CorruptLogError(
            f"{disk.where}: the log begins at offset {start}, which needs a snapshot that reaches "
            f"there, but {says}; restore the missing .checkpoint file, or {REJOIN}"
        )


def _diverged(found: DirectorySurvey, newest: OffsetAndEpoch) -> bool:
    """Is all of the log older than the snapshot's last record? Then none beyond was committed."""
    known = found.scan.epochs or found.saved_epochs or ()
    return len(known) > 0 and known[-1][0] < newest.epoch


def _supersedes(disk: Disk, found: DirectorySurvey, newest: OffsetAndEpoch) -> bool:
    """Was the newest snapshot installed where the log, older, was to be dropped?"""
    end, last_epoch = found.scan.end_offset, found.scan.last_epoch
    if newest.offset == found.start_offset == end:
        return False
    if newest.offset > end and newest.epoch < last_epoch:
        raise CorruptLogError(
            f"{disk.where}: snapshot {snapshot_name(newest)} reaches beyond the log's end {end}, "
            f"but the log's last epoch {last_epoch} is newer; {REJOIN}"
        )
    return newest.epoch > last_epoch or (newest.epoch == last_epoch and newest.offset > end)


def _check_missing_log(disk: Disk, found: DirectorySurvey, newest: OffsetAndEpoch) -> None:
    """A replica has a segment before it has anything to remember; only installing a snapshot
    leaves none for a moment, of an epoch and an offset that no record of the epoch was beyond."""
    said = _newer_epoch(found, newest)
    if not said and newest.offset == 0 and found.election and found.election.epoch > 0:
        said = f"{QUORUM_STATE} is of epoch {found.election.epoch}"
    if not said and newest.offset == 0 and PARTITION_METADATA in found.names:
        said = f"{PARTITION_METADATA} is there, which is written after the first segment"
    if said:
        raise CorruptLogError(
            f"{disk.where}: there is no segment of the log ({segment_name(newest.offset)}), but "
            f"{said}: records that were acknowledged may be lost. Restore the log, or {REJOIN}"
        )
    check_witnesses(disk, found, newest)
    for name in sorted(found.names):
        if parse_segment_name(name, INDEX_SUFFIX) is not None:
            found.notes.append(
                Warn(
                    f"{disk.where}/{name}: its segment is missing, there is no log; records behind "
                    f"offset {newest.offset} are lost if a snapshot of the leader's did not just take "
                    "their place"
                )
            )


def _newer_epoch(found: DirectorySurvey, newest: OffsetAndEpoch) -> str:
    """What leader-epoch-checkpoint knows beyond the newest snapshot; empty: nothing."""
    later = [epoch for epoch, _ in found.saved_epochs or () if epoch > newest.epoch]
    return f"{LEADER_EPOCH_CHECKPOINT} knows epoch {later[-1]}" if later else ""


def _check_missing_batches(disk: Disk, found: DirectorySurvey, newest: OffsetAndEpoch) -> None:
    """Refuse a log that is empty or older than the newest snapshot, where the checkpoint knows more.

    The checkpoint gets an epoch when its first batch is durable (`SegmentedLog.append`), but in
    Kafka's node before it is written.
    """
    said = _newer_epoch(found, newest)
    if said and not is_announced_by_kafka(disk, found, newest):
        raise CorruptLogError(
            f"{disk.where}/{found.segments[-1].file.name}: the log ends at offset "
            f"{found.scan.end_offset}, but {said}: records that were acknowledged may be lost. "
            f"Restore the log, or {REJOIN}"
        )


def check_vote(disk: Disk, found: DirectorySurvey, options: LogOptions) -> None:
    in_snapshot = found.snapshots[-1].id.epoch if found.snapshots else 0
    epoch = max(found.scan.last_epoch, in_snapshot)
    if QUORUM_STATE in found.names or (epoch == 0 and found.torn_bytes == 0):
        return
    log = "the log has the beginning of a batch"
    if epoch:
        what = "the newest snapshot" if in_snapshot > found.scan.last_epoch else "the log"
        log = f"{what} reaches epoch {epoch}"
    missing = f"{disk.where}/{QUORUM_STATE} is missing, but {log}: "
    if options.needs_vote:
        raise CorruptLogError(
            f"{missing}it held this replica's vote of that epoch or of a later one, which must "
            f"not be forgotten: restore the file, or {REJOIN}"
        )
    found.notes.append(Warn(f"{missing}if this replica voted in a later epoch, that is forgotten"))
