"""What is in the directory, whether it fits together, and what must be set right.

`survey` only reads: it either raises and nothing was changed, or returns what it found with the
repairs to make. `repair` makes them, in an order that leaves a recoverable directory at every
step. Rules: `LogLoader`, `KafkaRaftLog.createLog` and `recoverSnapshots`, but damage that Kafka
cuts off silently is refused here unless it is a torn tail.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from quorate.base.ids import METADATA_TOPIC_ID, OffsetAndEpoch, uuid_to_text
from quorate.base.notes import Warn
from quorate.formats.errors import FormatError
from quorate.formats.files import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    PART_SUFFIX,
    PARTITION_METADATA,
    QUORUM_STATE,
    decode_leader_epochs,
    decode_partition_metadata,
    decode_quorum_state,
    encode_leader_epochs,
    encode_partition_metadata,
    parse_segment_name,
    parse_snapshot_name,
    segment_name,
    snapshot_name,
)
from quorate.raft.values import ControlState, ElectionState, RecoveredLog
from quorate.storage.api import CorruptLog, Recovered, SnapshotInfo
from quorate.storage.disk import Disk, File, read_file, replace_file
from quorate.storage.log import Log, LogOptions, create_segment
from quorate.storage.scan import CHUNK, Damage, LogScan, find_sound_batch, scan_snapshot
from quorate.storage.segment import DERIVED_SUFFIXES, Segment, last_indexed, remove_segments

_ANEW: Final = (
    "if this disk cannot be trusted any more, remove this replica from the voters "
    "('metadata-quorum remove-controller' at another one), empty the directory, format it "
    "('storage format --no-initial-controllers'), start it, and let the replica join anew with its "
    "new directory id ('add-controller')"
)
_SECTOR: Final = 512
"""What a disk writes whole or not at all; of the zeros that stand for what it did not write."""


@dataclass(slots=True)
class Survey:
    """What was found, and what `repair` has to do about it."""

    names: frozenset[str]
    election: ElectionState | None = None
    snapshots: list[SnapshotInfo] = field(default_factory=list)
    snapshot_control: ControlState | None = None
    segments: list[Segment] = field(default_factory=list)
    scan: LogScan = field(default_factory=lambda: LogScan(0))
    saved_epochs: tuple[tuple[int, int], ...] | None = None
    torn_bytes: int = 0
    """Behind the last whole batch of the last segment."""
    superseded: bool = False
    """The newest snapshot is newer than the log, which must be dropped whole."""
    start_offset: int = 0
    """Where the log begins once repaired."""
    notes: list[str] = field(default_factory=list)


def survey(disk: Disk, options: LogOptions) -> Survey:
    """Read and check everything; raises StorageError or CorruptLog and changes nothing."""
    found = Survey(frozenset(disk.names()))
    _check_topic(disk, found)
    found.election = _election(disk, found)
    _read_snapshots(disk, found)
    found.saved_epochs = _saved_epochs(disk, found)
    _read_segments(disk, found, options)
    _check_epochs(disk, found)
    _check_together(disk, found)
    _miss_election(disk, found, options)
    return found


def _check_topic(disk: Disk, found: Survey) -> None:
    if PARTITION_METADATA not in found.names:
        return
    where = f"{disk.where}/{PARTITION_METADATA}"
    try:
        topic = decode_partition_metadata(read_file(disk, PARTITION_METADATA), where)
    except FormatError as error:
        raise CorruptLog(
            f"{error}; if the directory is the right one, remove this file: it is written anew"
        ) from None
    if topic != METADATA_TOPIC_ID:
        raise CorruptLog(
            f"{where}: the directory belongs to topic id {uuid_to_text(topic)}, not to the "
            f"metadata log ({uuid_to_text(METADATA_TOPIC_ID)}); give this node its own "
            "metadata.log.dir"
        )


def _election(disk: Disk, found: Survey) -> ElectionState | None:
    if QUORUM_STATE not in found.names:
        return None
    where = f"{disk.where}/{QUORUM_STATE}"
    try:
        return decode_quorum_state(read_file(disk, QUORUM_STATE), where).election
    except FormatError as error:
        raise CorruptLog(
            f"{error}; it holds this replica's vote, which must not be forgotten: restore the "
            f"file if a newer version did not write it, or {_ANEW}"
        ) from None


def _miss_election(disk: Disk, found: Survey, options: LogOptions) -> None:
    epoch = found.scan.last_epoch
    if QUORUM_STATE in found.names or epoch == 0:
        return
    missing = f"{disk.where}/{QUORUM_STATE} is missing, but the log reaches epoch {epoch}: "
    if options.needs_vote:
        raise CorruptLog(
            f"{missing}it held this replica's vote, in that epoch or a later one, which must not "
            f"be forgotten: restore the file, or {_ANEW}"
        )
    found.notes.append(Warn(f"{missing}if this replica voted in a later epoch, that is forgotten"))


def _read_snapshots(disk: Disk, found: Survey) -> None:
    ids = sorted(filter(None, map(parse_snapshot_name, found.names)))
    for snapshot_id in ids:
        file = disk.open(snapshot_name(snapshot_id))
        try:
            info, found.snapshot_control = scan_snapshot(file, snapshot_id)
        except Damage as damage:
            raise CorruptLog(
                f"{disk.where}/{snapshot_name(snapshot_id)}: damaged at byte {damage.position}: "
                f"{damage.what}; if an intact snapshot is beside it and the log reaches back to "
                f"that one, move this file away: the log holds all its records; else {_ANEW}"
            ) from None
        finally:
            file.close()
        if found.snapshots and found.snapshots[-1].id.epoch > snapshot_id.epoch:
            raise CorruptLog(
                f"{disk.where}: snapshot {snapshot_name(snapshot_id)} is of an older epoch than "
                f"{snapshot_name(found.snapshots[-1].id)}, which ends before it; {_ANEW}"
            )
        found.snapshots.append(info)


def _saved_epochs(disk: Disk, found: Survey) -> tuple[tuple[int, int], ...] | None:
    """None when the file is missing or is not what it should be: the log knows it all."""
    if LEADER_EPOCH_CHECKPOINT not in found.names:
        return None
    try:
        return decode_leader_epochs(read_file(disk, LEADER_EPOCH_CHECKPOINT))
    except FormatError as error:
        found.notes.append(Warn(f"{error}: written anew from the log"))
        return None


def _read_segments(disk: Disk, found: Survey, options: LogOptions) -> None:
    bases = sorted(base for base in map(parse_segment_name, found.names) if base is not None)
    if not bases:
        return
    found.scan.end_offset = bases[0]
    for base in bases:
        if base != found.scan.end_offset:
            raise CorruptLog(
                f"{disk.where}/{segment_name(base)}: the segment before it ends at offset "
                f"{found.scan.end_offset}, so records are missing between them; restore the "
                f"missing segment, or {_ANEW}"
            )
        segment = Segment(base, disk.open(segment_name(base)), options.index_interval)
        found.segments.append(segment)
        size = segment.file.size()
        try:
            found.scan.run(segment, size)
        except Damage as damage:
            _judge(disk, found, damage, size, last=base == bases[-1])


def _judge(disk: Disk, found: Survey, damage: Damage, size: int, *, last: bool) -> None:
    """A torn tail is noted; anything else is refused."""
    segment = found.segments[-1]
    path = f"{disk.where}/{segment.file.name}"
    at = f"at byte {damage.position}, offset {damage.offset}"
    beyond = None
    if last and damage.torn:
        beyond = find_sound_batch(segment.file, damage.position + 1, size, damage.offset)
        if beyond is None:
            found.torn_bytes = size - damage.position
            text = f"{path}: cut a torn tail of {found.torn_bytes} bytes {at}: {damage.what}"
            found.notes.append(Warn(text))
            return
    if beyond is not None:
        follows = f"a sound batch follows at byte {beyond}"
        if _has_unwritten_sector(segment.file, damage.position, beyond):
            follows += (
                ". What is before it holds zeros, as writes that a power cut lost do, but whether "
                "they had been acknowledged cannot be seen"
            )
    elif last:
        follows = "its checksum is right, so this is no torn write"
    else:
        follows = "sound segments follow"
    raise CorruptLog(
        f"{path}: damaged {at}: {damage.what}; {follows}, so cutting here could lose committed "
        f"records. Restore the file, or {_ANEW}"
    )


def _has_unwritten_sector(file: File, start: int, stop: int) -> bool:
    """Is a whole sector from byte `start` to `stop` zeros? Looks at the first CHUNK bytes."""
    first = -(-start // _SECTOR) * _SECTOR
    piece = file.read_at(first, min(stop - first, CHUNK))
    blank = bytes(_SECTOR)
    return any(piece[at : at + _SECTOR] == blank for at in range(0, len(piece), _SECTOR))


def _check_epochs(disk: Disk, found: Survey) -> None:
    """An epoch is not covered by a batch's checksum: hold it against what else is known."""
    saved = found.saved_epochs or ()
    scan = found.scan
    for epoch, start, name, position in scan.unannounced:
        if (epoch, start) not in saved:
            raise CorruptLog(
                f"{disk.where}/{name}: damaged at byte {position}, offset {start}: epoch {epoch} "
                "begins there without a LeaderChange record, and leader-epoch-checkpoint does "
                f"not know it. Restore the file, or {_ANEW}"
            )
    log_start = found.segments[0].base_offset if found.segments else 0
    for epoch, start in saved:
        if log_start <= start < scan.end_offset and scan.epoch_at(start) != epoch:
            raise CorruptLog(
                f"{disk.where}: leader-epoch-checkpoint says that offset {start} is of epoch "
                f"{epoch}, the log says {scan.epoch_at(start)}: one of them is damaged. If it is "
                f"the checkpoint, remove it: it is rebuilt from the log; else {_ANEW}"
            )


def _check_together(disk: Disk, found: Survey) -> None:
    """KafkaRaftLog.recoverSnapshots and truncateToLatestSnapshot."""
    newest = found.snapshots[-1].id if found.snapshots else None
    if not found.segments:
        _miss_log(disk, found, newest or OffsetAndEpoch(0, 0))
        found.start_offset = newest.offset if newest else 0
        return
    _miss_segment(disk, found)
    start, end = found.segments[0].base_offset, found.scan.end_offset
    if start > 0 and (newest is None or newest.offset < start):
        says = "there is none" if newest is None else f"the newest is {snapshot_name(newest)}"
        raise CorruptLog(
            f"{disk.where}: the log begins at offset {start}, which needs a snapshot that reaches "
            f"there, but {says}; restore the missing .checkpoint file, or {_ANEW}"
        )
    found.start_offset = start
    last_epoch = found.scan.last_epoch
    if not found.scan.epochs:
        _miss_batches(disk, found, newest or OffsetAndEpoch(0, 0))
    if newest is None or newest.offset == start == end:
        return
    found.superseded = newest.epoch > last_epoch or (
        newest.epoch == last_epoch and newest.offset > end
    )
    if newest.offset > end and not found.superseded:
        raise CorruptLog(
            f"{disk.where}: snapshot {snapshot_name(newest)} reaches beyond the log's end {end}, "
            f"but the log's last epoch {last_epoch} is newer; {_ANEW}"
        )
    if found.superseded:
        _miss_batches(disk, found, newest)
        found.start_offset = newest.offset
        text = (
            f"{disk.where}: snapshot {snapshot_name(newest)} is newer than the log, which ended at "
            f"offset {end}: dropped the log, it goes on behind the snapshot"
        )
        found.notes.append(Warn(text))


def _miss_log(disk: Disk, found: Survey, newest: OffsetAndEpoch) -> None:
    """A replica has a segment before it has anything to remember; only installing a snapshot
    leaves none for a moment, of an epoch and an offset that no record of the epoch was beyond."""
    said = _later_epoch(found, newest) or _later_offset(disk, found, newest)
    if not said and newest.offset == 0 and found.election and found.election.epoch > 0:
        said = f"{QUORUM_STATE} is of epoch {found.election.epoch}"
    if said:
        raise CorruptLog(
            f"{disk.where}: there is no segment of the log ({segment_name(newest.offset)}), but "
            f"{said}: records that were acknowledged may be lost. Restore the log, or {_ANEW}"
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
            f"Restore the log, or {_ANEW}"
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
