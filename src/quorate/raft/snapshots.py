"""Snapshots of this replica's own state: when one may be made, and when older ones may go."""

from __future__ import annotations

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.inputs import CleanTo, SnapshotCreated
from quorate.raft.log_index import LogIndex
from quorate.raft.ready import Clean
from quorate.raft.state import RaftState


def snapshot_problem(log: LogIndex, high_watermark: int, snapshot_id: OffsetAndEpoch) -> str | None:
    """Why no snapshot with this id may be made; None: it may (`KafkaRaftLog.createNewSnapshot`)."""
    offset, epoch = snapshot_id
    if snapshot_id in log.snapshots:
        return "it exists already"
    if offset < log.start_offset:
        return f"it is before the log's start {log.start_offset}"
    if offset > high_watermark:
        return f"it is above the high watermark {high_watermark}"
    place = log.validate(offset, epoch)
    if place is not None:
        return f"the log has no such offset and epoch: {place}"
    if not log.is_border(offset):
        return "it is inside a batch"
    return None


def on_created(s: RaftState, event: SnapshotCreated) -> None:
    """The core ignores a snapshot that may not be; it stays on disk until cleaned.

    It may have been in the making while a newer one was installed: then it is there to be cleaned.
    """
    problem = snapshot_problem(s.log, s.high_watermark, event.snapshot_id)
    if problem is not None:
        known = event.snapshot_id in s.log.snapshots
        if event.snapshot_id.offset < s.log.start_offset and not known:
            s.log.add_snapshot(event.snapshot_id)
        s.note(f"snapshot {tuple(event.snapshot_id)} ignored: {problem}")
        return
    s.log.add_snapshot(event.snapshot_id)
    s.controls.compact(event.snapshot_id.offset - 1)


def on_clean(s: RaftState, event: CleanTo) -> None:
    """Delete the log and the snapshots before this snapshot; the newest one always stays.

    `KafkaRaftLog.deleteBeforeSnapshot`. A snapshot that is being installed drops all older ones, the
    one to be kept too.
    """
    log = s.log
    wanted = event.snapshot_id
    known = wanted in log.snapshots
    oldest = known and wanted == log.snapshots[0] and wanted.offset == log.start_offset
    before = wanted.offset < log.start_offset
    if s.installing is not None or not known or oldest or before:
        s.note(f"nothing to clean before {tuple(wanted)}")
        return
    log.clean(wanted)
    s.out.write(Clean(wanted))
    s.note(f"log starts at {wanted.offset}, older snapshots dropped")
