"""Files beside the log that know of offsets beyond its end: were records lost?

A node writes what follows from a record only when the record is durable, and removes it before the
record goes. So a file that knows an offset beyond the log and the newest snapshot proves that the
record was there. It may have been acknowledged.

- `.index` and `.timeindex` hold offsets (`SegmentedLog.write_indexes`, `remove_segments`).
- The name of an index is the first offset of a segment: everything before it existed. A segment is
  begun for a batch that is about to be written, so without its `.log` that batch is gone too.
- The name of a `.snapshot` of Kafka's producer state is an end offset (exclusive).
- An entry of leader-epoch-checkpoint is the first offset of an epoch. Everything before it existed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.base.notes import Warn
from quorate.formats.files import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    TIME_INDEX_SUFFIX,
    parse_segment_name,
    segment_name,
)
from quorate.storage.api import CorruptLogError
from quorate.storage.disk import Disk, read_file
from quorate.storage.segment import (
    PRODUCER_STATE_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    last_indexed,
    last_timed,
)
from quorate.storage.survey import REJOIN, DirectorySurvey

_KAFKAS_INDEX: Final = 10_485_760
"""`segment.index.bytes` of the metadata log, which has the default (`KafkaRaftLog.createLog`)."""
_OF_SEGMENTS: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def check_witnesses(disk: Disk, found: DirectorySurvey, newest: OffsetAndEpoch) -> None:
    """Refuse a log that lost records of which another file knows. Raises CorruptLogError.

    `newest`: the newest snapshot, (0, 0) without one. What is before its end is in it.
    """
    if _tail_is_older(found, newest):
        return
    end = max(found.scan.end_offset if found.segments else 0, newest.offset)
    said = next(_knowing(disk, found, end), "")
    if said:
        what = f"there is no segment of the log ({segment_name(newest.offset)})"
        if found.segments:
            log = found.segments[-1]
            at = (
                f"{log.file.name} from byte {log.size} on is damaged, and "
                if found.torn_bytes
                else ""
            )
            what = f"{at}the log ends at offset {end}"
        raise CorruptLogError(
            f"{disk.where}: {what}, but {said}: records that were acknowledged may be lost. Restore "
            f"the log, or {REJOIN}"
        )
    for epoch, start in found.saved_epochs or ():
        # A batch that does not announce its epoch follows its entry (`SegmentedLog`), and Kafka's
        # node always writes the entry first: a crash may leave this.
        if start == end and found.segments and not found.superseded:
            found.notes.append(
                Warn(
                    f"{disk.where}/{LEADER_EPOCH_CHECKPOINT} knows epoch {epoch} from offset {start} "
                    f"on, but the log ends at offset {end}; records from there on are lost if no "
                    "crash came before the first of them"
                )
            )


def is_announced_by_kafka(disk: Disk, found: DirectorySurvey, newest: OffsetAndEpoch) -> bool:
    """May Kafka's node have been killed between the entry of an epoch and the epoch's first batch?

    It writes the entry first (`KafkaRaftLog.initializeLeaderEpoch`, `UnifiedLog.append`). The log has
    no batch behind the snapshot, and the loss of all batches looks alike. So all of this must hold:

    1. One epoch is newer than the snapshot's, and begins where the log ends.
    2. `quorum-state` knows it: an epoch is saved before anything is done in it.
    3. Both index files of the segment have the full size that a running node gives them, and no
       entry. So 4 KiB of batches at most, and one more, were ever in the segment.
    """
    end = max(newest.offset, found.scan.end_offset)
    later = [entry for entry in found.saved_epochs or () if entry[0] > newest.epoch]
    if found.election is None or len(later) != 1:
        return False
    ((epoch, start),) = later
    base = found.begun if found.begun is not None else found.segments[-1].base_offset
    return (
        start == end == base
        and epoch <= found.election.epoch
        and all(
            _is_unused(disk, found, segment_name(base, suffix), entry)
            for suffix, entry in ((INDEX_SUFFIX, 8), (TIME_INDEX_SUFFIX, 12))
        )
    )


def _is_unused(disk: Disk, found: DirectorySurvey, name: str, entry_size: int) -> bool:
    """Is it an index file as Kafka's node makes it: as many entries as may be, all zeros?"""
    if name not in found.names:
        return False
    data = read_file(disk, name)
    return len(data) == _KAFKAS_INDEX // entry_size * entry_size == data.count(0)


def _tail_is_older(found: DirectorySurvey, newest: OffsetAndEpoch) -> bool:
    """Was everything beyond the newest snapshot of older epochs than the snapshot?

    A leader replaced it by the snapshot. A log that is there and reaches the snapshot's epoch
    contradicts that. A log that begins behind the snapshot has no batch yet: the checkpoint would
    know the batch's epoch.
    """
    if found.scan.epochs and not found.superseded:
        return False
    saved = found.saved_epochs
    return saved is not None and len(saved) > 0 and saved[-1][0] < newest.epoch


def _knowing(disk: Disk, found: DirectorySurvey, end: int) -> Iterator[str]:
    """What knows of an offset at `end` or beyond, in words."""
    # Kafka's node empties the checkpoint before it removes the producer states of the old log.
    is_reset = not found.scan.epochs and found.saved_epochs == ()
    for name in sorted(found.names):
        if is_reset and name.endswith(PRODUCER_STATE_SUFFIX):
            continue
        if (state := parse_segment_name(name, PRODUCER_STATE_SUFFIX)) is not None and state > end:
            yield f"{name} knows offset {state - 1}"
        for suffix in _OF_SEGMENTS:
            base = parse_segment_name(name, suffix)
            if base is not None:
                yield from _of_index(disk, found, name, base, end)
    for epoch, start in found.saved_epochs or ():
        if start > end:
            yield f"{LEADER_EPOCH_CHECKPOINT} knows epoch {epoch} from offset {start} on"


def _of_index(disk: Disk, found: DirectorySurvey, name: str, base: int, end: int) -> Iterator[str]:
    log = segment_name(base)
    if log + DELETED_SUFFIX in found.names:
        return  # Kafka's node was interrupted while it deleted the segment, which is renamed first
    known = None
    if name.endswith(INDEX_SUFFIX):
        known = last_indexed(read_file(disk, name), base)
    elif name.endswith(TIME_INDEX_SUFFIX):
        known = last_timed(read_file(disk, name), base)
    if known is not None and known >= end:
        yield f"{name} knows offset {known}"
    elif base > end or (base == end > 0 and log not in found.names):
        yield f"{name} knows offset {base}"
