"""Log directories that grow: where each ends, and up to where the log is committed.

No file names the high watermark. It follows from the directories in two ways:

- An offset of the newest epoch is committed if a majority of the voters have it and none of these knows
  a later epoch. A leader counts the same way (Raft,
  5.4.2). The reader reads quorum-state after the log. When it still names that epoch, the voter
  stored the records of its log before it heard of any later epoch.
- A replica writes a snapshot of committed records only. So every offset below its end is committed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import raw_records
from quorate.formats.control import (
    ControlType,
    LeaderChangeMessage,
    VotersRecord,
    control_type,
    decode_message,
)
from quorate.formats.errors import FormatError, NewerRecordError
from quorate.formats.files import QUORUM_STATE, decode_quorum_state
from quorate.spark.files.archives import FileReaders
from quorate.spark.files.layout import LogDirectory
from quorate.spark.files.paths import SourceError, SourceFile, list_files
from quorate.spark.files.scan import CONTROL, BatchRun, runs

_HEAD: Final = 61
"""Bytes of a batch header, which identifies the batch by its offset, epoch and checksum."""
_OTHER_WAYS: Final = (
    "the option upTo=snapshot (what snapshots confirm) or upTo=end (also what may be truncated "
    "later: then the stream ends with an error)"
)


@dataclass(frozen=True, slots=True)
class BatchPosition:
    """Where a batch begins: its offset, its segment (base offset) and the byte in it."""

    offset: int
    segment: int
    position: int


class TailedLog:
    """The log of one replica. Each look reads only the batches that are new."""

    def __init__(self, log: LogDirectory) -> None:
        self.log = log
        self.end = 0
        """The end offset (exclusive) of the last valid batch."""
        self.epochs: list[tuple[int, int]] = []
        """(epoch, its first offset in this log), ascending."""
        self.voters: tuple[int, ...] = ()
        self.hides_voters = False
        """Whether a later release wrote the last record that may be a voter set."""
        self.quorum_epoch = -1
        """The epoch in quorum-state; -1 without that file."""
        self.damaged: list[int] = []
        """Offsets at which batches are missing or damaged, other than at the end of the log."""
        self._marks: list[BatchPosition] = []
        self._segment, self._position = -1, 0
        self._last = b""

    @property
    def start(self) -> int:
        """The first offset of the log."""
        if self.log.segments:
            return self.log.segments[0][0]
        return self.end

    @property
    def last(self) -> OffsetAndEpoch:
        """The end offset of the log, and the epoch of the last record."""
        epoch = self.epochs[-1][0] if self.epochs else self.epoch_below(self.end)
        return OffsetAndEpoch(self.end, epoch or 0)

    def epoch_below(self, offset: int) -> int | None:
        """The epoch of the record before an offset; None when this replica does not have it."""
        for snapshot_id, _ in self.log.snapshots:
            if snapshot_id.offset == offset:
                return snapshot_id.epoch
        if not self.start < offset <= self.end:
            return None
        place = bisect_right(self.epochs, offset - 1, key=lambda epoch: epoch[1])
        return self.epochs[place - 1][0] if place else None

    def matching_end(self, other: TailedLog) -> int:
        """Up to which offset (exclusive) this log is the missing beginning of the other; 0: none.

        Two logs that have a record of the same offset and epoch are equal before it (Raft, log
        matching). Such a common record is the last one of a snapshot of either replica, or the
        first record of the other log.
        """
        ids = [id for id, _ in (*self.log.snapshots, *other.log.snapshots)]
        first = other.epoch_below(other.start + 1)
        if first is not None:
            ids.append(OffsetAndEpoch(other.start + 1, first))
        ends = [at for at, epoch in ids if self.start < at <= self.end and self._wrote(at, epoch)]
        return min(max(ends, default=0), other.start)

    def _wrote(self, offset: int, epoch: int) -> bool:
        return self.epoch_below(offset) == epoch

    def batch_before(self, offset: int) -> BatchPosition | None:
        """The last known batch that begins at or before an offset; None when there is none."""
        place = bisect_right(self._marks, offset, key=lambda mark: mark.offset)
        return self._marks[place - 1] if place else None

    def read_on(self, log: LogDirectory, readers: FileReaders) -> None:
        """Read the batches that the directory has now and had not before. Raises SourceError."""
        self.log = log
        for base, file in log.segments:
            if base >= self._segment:
                self._read_on(base, file, readers)
        while self._marks and self._marks[0].segment < self.start:
            del self._marks[0]
        self._read_quorum_state(readers)
        if not self.voters and not self.hides_voters:
            self._read_snapshot(readers)

    def has_last_batch(self, log: LogDirectory, readers: FileReaders) -> bool:
        """Whether the last batch that was read is still there; False after a truncation."""
        if not self._last:
            return True
        file = dict(log.segments).get(self._segment)
        if file is None:
            return False
        head, position = self._last, self._position
        return readers.reader(file)(position, len(head)) == head

    def _read_on(self, base: int, file: SourceFile, readers: FileReaders) -> None:
        if base != self._segment:
            self._segment, self._position, self._last = base, 0, b""
        if not self.epochs:
            self.end = base  # an empty log behind a snapshot
        start = self._position
        for found in runs(readers.reader(file), file.size, start):
            # Damage at the end is a batch that the replica is writing just now: the next look
            # reads it. Damage before other batches shows as a gap in _take.
            if isinstance(found, BatchRun):
                self._take(base, found)

    def _take(self, base: int, run: BatchRun) -> None:
        heads = run.heads
        first, last = int(heads["base_offset"][0]), len(heads) - 1
        if first > (self.end if self.epochs else base):
            self.damaged.append(self.end)
        if not self._marks or first > self._marks[-1].offset:
            self._marks.append(BatchPosition(first, base, run.position))
        for offset, epoch in zip(
            heads["base_offset"].tolist(), heads["epoch"].tolist(), strict=True
        ):
            if not self.epochs or epoch > self.epochs[-1][0]:
                self.epochs.append((epoch, offset))
        for place in (heads["attributes"] & CONTROL).nonzero()[0].tolist():
            self._read_control(run, place)
        self.end = int(heads["base_offset"][last]) + int(heads["count"][last])
        at = int(run.starts[last])
        self._position, self._last = run.origin + at, run.data[at : at + _HEAD]

    def _read_control(self, run: BatchRun, place: int) -> None:
        """Take the voters from a LeaderChange or KRaftVoters record."""
        try:
            for key, value in raw_records(run.view(place)):
                self._read_voters(key, value)
        except FormatError:
            return

    def _read_voters(self, key: bytes | None, value: bytes | None) -> None:
        try:
            message = decode_message(key, value)
        except NewerRecordError:
            if control_type(key) not in (ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION):
                self.voters, self.hides_voters = (), True
            return
        if isinstance(message, LeaderChangeMessage | VotersRecord):
            self.voters = tuple(voter.voter_id for voter in message.voters)
            self.hides_voters = False

    def _read_quorum_state(self, readers: FileReaders) -> None:
        path = f"{self.log.path.rstrip('/')}/{QUORUM_STATE}"
        try:
            (file,) = list_files(path)[1].values()
            state = decode_quorum_state(readers.read_small(file), path)
        except FormatError:
            return
        self.quorum_epoch = state.election.epoch
        if not self.hides_voters:
            self.voters = self.voters or state.voter_ids

    def _read_snapshot(self, readers: FileReaders) -> None:
        for _, file in self.log.snapshots[-1:]:
            for found in runs(readers.reader(file), file.size, 0, 1):
                if isinstance(found, BatchRun):
                    self._read_control(found, 0)


def majority_end(tails: Sequence[TailedLog]) -> OffsetAndEpoch | None:
    """The end offset that a majority of the voters has in the newest epoch; None: no majority.

    1. The replica with the newest epoch names the voters.
    2. Only voters whose quorum-state has that same epoch count (see the module).
    3. The committed end is the highest one that a majority has reached.

    Raises SourceError when the directories are those of less than a majority, or lack quorum-state:
    then no later look would give an answer either.
    """
    newest = max(tails, key=lambda tail: (tail.last.epoch, tail.end))
    voters = set(newest.voters)
    if not newest.epochs:
        return None  # no replica has a record
    if newest.hides_voters:
        raise SourceError(
            f"{newest.log.path}: a newer Kafka may have written the voters in force, which this "
            f"release cannot read: nothing shows what is committed. Give {_OTHER_WAYS}"
        )
    needed = len(voters) // 2 + 1
    here = {tail.log.node_id: tail for tail in tails if tail.log.node_id in voters}
    knowing = sum(tail.quorum_epoch >= 0 for tail in here.values())
    if not voters or knowing < needed:
        what = f"directories of {len(here)} of the {len(voters)} voters {sorted(voters)} are given"
        if knowing < len(here):
            what += f", {knowing} of them with {QUORUM_STATE}"
        raise SourceError(
            f"{newest.log.path}: {what}: these do not show what is committed. Give the whole "
            f"directories of {needed} voters, or {_OTHER_WAYS}"
        )
    epoch = newest.last.epoch
    ends = sorted(
        tail.end for tail in here.values() if tail.last.epoch == epoch == tail.quorum_epoch
    )
    return OffsetAndEpoch(ends[-needed], epoch) if len(ends) >= needed else None


def snapshot_end(tails: Iterable[TailedLog]) -> OffsetAndEpoch | None:
    """The end offset and epoch of the newest snapshot of all replicas."""
    ids = [snapshot_id for tail in tails for snapshot_id, _ in tail.log.snapshots]
    return max(ids, key=lambda id: id.offset, default=None)
