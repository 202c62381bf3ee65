"""Read the directory: nothing is changed, and damage other than a torn tail is refused.

Rules: `LogLoader`, `KafkaRaftLog.createLog` and `recoverSnapshots`, but damage that Kafka cuts
off silently is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from quorate.base.ids import METADATA_TOPIC_ID, OffsetAndEpoch, uuid_to_text
from quorate.base.notes import Warn
from quorate.formats.errors import FormatError, NewerFileError
from quorate.formats.files import (
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    QUORUM_STATE,
    TIME_INDEX_SUFFIX,
    decode_leader_epochs,
    decode_partition_metadata,
    decode_quorum_state,
    parse_segment_name,
    parse_snapshot_name,
    segment_name,
    snapshot_name,
)
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID
from quorate.formats.supported_levels import RUN_NEWER
from quorate.formats.versions import LATEST_PRODUCTION
from quorate.raft.values import ControlState, ElectionState
from quorate.storage.api import CorruptLogError, SnapshotInfo
from quorate.storage.disk import Disk, File, read_file
from quorate.storage.log import LogOptions
from quorate.storage.scan import CHUNK, DamageError, LogScan, find_sound_batch, scan_snapshot
from quorate.storage.segment import Segment

REJOIN: Final = (
    "if this disk cannot be trusted any more, remove this replica from the voters "
    "('metadata-quorum remove-controller' at another one), empty the directory, format it "
    "('storage format --no-initial-controllers'), start it, and let the replica join anew with its "
    "new directory id ('add-controller'); a voter that is alone has no other to join: docs/recovery.md"
)
_LOG_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX)
_SECTOR: Final = 512
"""What a disk writes whole or not at all; of the zeros that stand for what it did not write."""


@dataclass(slots=True)
class DirectorySurvey:
    """What was found, and what `repair` has to do about it."""

    names: frozenset[str]
    election: ElectionState | None = None
    snapshots: list[SnapshotInfo] = field(default_factory=list)
    snapshot_control: ControlState | None = None
    segments: list[Segment] = field(default_factory=list)
    dropped: list[Segment] = field(default_factory=list)
    """Of an older log, before a hole that a snapshot covers."""
    begun: int | None = None
    """The base offset of an empty segment at the newest snapshot, beside a log that it does not fit."""
    scan: LogScan = field(default_factory=lambda: LogScan(0))
    saved_epochs: tuple[tuple[int, int], ...] | None = None
    torn_bytes: int = 0
    """Behind the last whole batch of the last segment."""
    superseded: bool = False
    """The newest snapshot is newer than the log, which must be dropped whole."""
    start_offset: int = 0
    """Where the log begins once repaired."""
    notes: list[str] = field(default_factory=list)


def read_directory(disk: Disk, options: LogOptions) -> DirectorySurvey:
    """Read and check each file; raises StorageError or CorruptLogError."""
    found = DirectorySurvey(frozenset(disk.names()))
    _check_topic(disk, found)
    found.election = _election(disk, found)
    _read_snapshots(disk, found)
    found.saved_epochs = _saved_epochs(disk, found)
    _read_segments(disk, found, options)
    return found


def _check_topic(disk: Disk, found: DirectorySurvey) -> None:
    if PARTITION_METADATA not in found.names:
        return
    where = f"{disk.where}/{PARTITION_METADATA}"
    try:
        topic = decode_partition_metadata(read_file(disk, PARTITION_METADATA), where)
    except FormatError as error:
        raise CorruptLogError(
            f"{error}; if the directory is the right one, remove this file: it is written anew"
        ) from None
    if topic != METADATA_TOPIC_ID:
        raise CorruptLogError(
            f"{where}: the directory belongs to topic id {uuid_to_text(topic)}, not to the "
            f"metadata log ({uuid_to_text(METADATA_TOPIC_ID)}); give this node its own "
            "metadata.log.dir"
        )


def _election(disk: Disk, found: DirectorySurvey) -> ElectionState | None:
    if QUORUM_STATE not in found.names:
        return None
    where = f"{disk.where}/{QUORUM_STATE}"
    try:
        return decode_quorum_state(read_file(disk, QUORUM_STATE), where).election
    except NewerFileError as error:
        raise CorruptLogError(
            f"{error}. If so, {RUN_NEWER}. If not, restore the file: it holds this replica's vote, which "
            "must not be forgotten"
        ) from None
    except FormatError as error:
        raise CorruptLogError(
            f"{error}; it holds this replica's vote, which must not be forgotten: restore the "
            f"file, or {REJOIN}"
        ) from None


def _read_snapshots(disk: Disk, found: DirectorySurvey) -> None:
    ids = sorted(filter(None, map(parse_snapshot_name, found.names)))
    for snapshot_id in ids:
        file = disk.open(snapshot_name(snapshot_id))
        try:
            info, found.snapshot_control = scan_snapshot(file, snapshot_id)
        except DamageError as damage:
            path = f"{disk.where}/{snapshot_name(snapshot_id)}"
            if damage.newer:
                raise _newer_error(path, damage) from None
            raise CorruptLogError(
                f"{path}: damaged at byte {damage.position}: {damage.what}; "
                f"{_cure_of_snapshot(ids, found.names)}"
            ) from None
        finally:
            file.close()
        if found.snapshots and found.snapshots[-1].id.epoch > snapshot_id.epoch:
            raise CorruptLogError(
                f"{disk.where}: snapshot {snapshot_name(snapshot_id)} is of an older epoch than "
                f"{snapshot_name(found.snapshots[-1].id)}, which ends before it; {REJOIN}"
            )
        found.snapshots.append(info)


def _newer_error(path: str, found: DamageError) -> CorruptLogError:
    return CorruptLogError(
        f"{path}: {found.what}. The bytes are sound, and a release of Kafka after "
        f"{LATEST_PRODUCTION.release} wrote them: {RUN_NEWER}"
    )


def _cure_of_snapshot(ids: list[OffsetAndEpoch], names: frozenset[str]) -> str:
    """What to do about a damaged snapshot. A formatted directory has neither vote nor log."""
    has_state = not names.isdisjoint((QUORUM_STATE, LEADER_EPOCH_CHECKPOINT))
    has_log = any(name.endswith(_LOG_SUFFIXES) for name in names)
    if ids == [BOOTSTRAP_SNAPSHOT_ID] and not has_state and not has_log:
        return (
            "the directory has no vote and no log: if this replica has never run, empty the "
            "directory and format it anew, with the same voters ('storage format'); else " + REJOIN
        )
    return (
        "if an intact snapshot is beside it and the log reaches back to that one, move this file "
        f"away: the log holds all its records; else {REJOIN}"
    )


def _saved_epochs(disk: Disk, found: DirectorySurvey) -> tuple[tuple[int, int], ...] | None:
    """The epochs of leader-epoch-checkpoint; None when it is missing, damaged or has no bytes: the log has
    them."""
    if LEADER_EPOCH_CHECKPOINT not in found.names:
        return None
    data = read_file(disk, LEADER_EPOCH_CHECKPOINT)
    try:
        return decode_leader_epochs(data) or (() if data.split() == [b"0", b"0"] else None)
    except FormatError as error:
        found.notes.append(Warn(f"{error}: written anew from the log"))
        return None


def _read_segments(disk: Disk, found: DirectorySurvey, options: LogOptions) -> None:
    """Read the segments, and set aside what an interrupted install of Kafka's node left.

    That node begins the segment of the snapshot before it drops the last one of the old log
    (`LocalLog.truncateFullyAndStartAt`). A kill between the two leaves both.
    """
    bases = sorted(base for base in map(parse_segment_name, found.names) if base is not None)
    if not bases:
        return
    begun = _begun_at_snapshot(disk, found, bases)
    if begun is not None:
        bases.remove(begun)
    found.scan.end_offset = bases[0]
    for base in bases:
        if base != found.scan.end_offset:
            _drop_before_hole(disk, found, base)
        segment = Segment(base, disk.open(segment_name(base)), options.index_interval)
        found.segments.append(segment)
        size = segment.file.size()
        try:
            found.scan.run(segment, size)
        except DamageError as damage:
            _note_or_refuse_damage(disk, found, damage, size, last=base == bases[-1])
    if begun is not None and begun == found.scan.end_offset and not found.torn_bytes:
        file = disk.open(segment_name(begun))  # the log was rolled there
        found.segments.append(Segment(begun, file, options.index_interval))
    else:
        found.begun = begun


def _begun_at_snapshot(disk: Disk, found: DirectorySurvey, bases: list[int]) -> int | None:
    """The empty segment at the newest snapshot's offset, where there are others."""
    newest = found.snapshots[-1].id.offset if found.snapshots else 0
    if newest == 0 or len(bases) == 1 or newest not in bases:
        return None
    file = disk.open(segment_name(newest))
    is_empty = file.size() == 0
    file.close()
    return newest if is_empty else None


def _drop_before_hole(disk: Disk, found: DirectorySurvey, base: int) -> None:
    """Drop what precedes a hole that ends at a snapshot, which holds all of it; refuse another hole.

    Kafka's node starts on an interrupted install without a repair where old log and snapshot are of
    one epoch (`KafkaRaftLog.truncateToLatestSnapshot`), and appends behind the snapshot.
    """
    end, last_epoch = found.scan.end_offset, found.scan.last_epoch
    if base < end or not any(
        info.id.offset == base and info.id.epoch >= last_epoch for info in found.snapshots
    ):
        raise hole_error(disk, base, end)
    found.dropped += found.segments
    found.segments = []
    found.scan = LogScan(base)
    found.notes.append(
        Warn(
            f"{disk.where}: the log ended at offset {end} and goes on at {base}, where a snapshot ends: "
            "dropped what is before the snapshot, an install of it was interrupted"
        )
    )


def hole_error(disk: Disk, base: int, end: int) -> CorruptLogError:
    """The segment at `base` does not continue the log, which ends at `end` (exclusive)."""
    return CorruptLogError(
        f"{disk.where}/{segment_name(base)}: the segment before it ends at offset {end}, so records "
        f"are missing between them; restore the missing segment, or {REJOIN}"
    )


def _note_or_refuse_damage(
    disk: Disk, found: DirectorySurvey, damage: DamageError, size: int, *, last: bool
) -> None:
    """Note a torn tail; refuse any other damage.

    A torn tail is what an interrupted write leaves: cut bytes or a wrong checksum in the last
    segment, and no sound batch behind. It was never acknowledged, because no sync returned. A sound
    batch behind the damage may have been, so cutting there could lose committed records. Kafka's
    LogLoader cuts in both cases.
    """
    segment = found.segments[-1]
    path = f"{disk.where}/{segment.file.name}"
    if damage.newer:
        raise _newer_error(path, damage)
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
    raise CorruptLogError(
        f"{path}: damaged {at}: {damage.what}; {follows}, so cutting here could lose committed "
        f"records. Restore the file, or {REJOIN}"
    )


def _has_unwritten_sector(file: File, start: int, stop: int) -> bool:
    """Is a whole sector from byte `start` to `stop` zeros? Looks at the first CHUNK bytes."""
    first = -(-start // _SECTOR) * _SECTOR
    piece = file.read_at(first, min(stop - first, CHUNK))
    blank = bytes(_SECTOR)
    return any(piece[at : at + _SECTOR] == blank for at in range(0, len(piece), _SECTOR))
