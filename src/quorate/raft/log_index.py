"""What the core knows of its log without reading it: epochs, borders, snapshots."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from typing import Final

from quorate.base.check import check
from quorate.base.errors import QuorateError
from quorate.base.frozen import frozen
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.values import RaftLimits, RecoveredLog

BOOTSTRAP_SNAPSHOT: Final = OffsetAndEpoch(0, 0)
_USUAL: Final = RaftLimits()


@frozen
class Diverging:
    """The asked epoch ends elsewhere in this log: there, at this greatest common epoch."""

    end: OffsetAndEpoch


@frozen
class NeedsSnapshot:
    """The asked place is before this log's start: begin with this snapshot."""

    snapshot_id: OffsetAndEpoch


class LogIndex:
    """Start, end, epochs, batch borders and snapshots of the log (`RaftLog`, `KafkaRaftLog`)."""

    __slots__ = (
        "_borders",
        "_epochs",
        "_starts",
        "_window",
        "end_offset",
        "known_from",
        "snapshots",
        "start_offset",
    )

    start_offset: int
    end_offset: int
    """Exclusive; with what is not durable yet."""
    snapshots: list[OffsetAndEpoch]
    """Ascending; (0, 0) is the bootstrap snapshot."""

    def __init__(self, log: RecoveredLog, border_window: int = _USUAL.border_window) -> None:
        """Take what was recovered. Raises QuorateError where start, end and snapshots do not fit."""
        self._window = border_window
        self.start_offset = log.start_offset
        self.end_offset = log.end_offset
        self.snapshots = sorted(log.snapshots)
        self._epochs = [epoch for epoch, _ in log.epochs]
        self._starts = [start for _, start in log.epochs]
        self._borders = array("q", log.batch_ends[-border_window:])
        self.known_from = self._borders[0] if self._borders else log.end_offset
        """From this border on, `_borders` has every one."""
        newest = self.snapshots[-1] if self.snapshots else None
        if self.start_offset > 0 and (newest is None or newest.offset < self.start_offset):
            raise QuorateError(
                f"the log starts at offset {self.start_offset}, but no snapshot reaches that far "
                f"(newest: {newest}); restore the missing .checkpoint file or start this replica "
                "anew from an empty directory"
            )
        if newest is not None and newest.offset > self.end_offset:
            raise QuorateError(
                f"the log ends at offset {self.end_offset}, before the newest snapshot {newest}; "
                "storage must finish the interrupted install of that snapshot first"
            )

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record; of the newest snapshot when the log is empty; else 0."""
        if self._epochs:
            return self._epochs[-1]
        return self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """The end of the log, as a candidate claims it."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        """The first that the log goes on from. One that was in the making while the log was
        dropped for a newer one may stand before it: it says nothing of the log."""
        for snapshot_id in self.snapshots:
            if snapshot_id.offset >= self.start_offset:
                return snapshot_id
        return None

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """(epoch, start offset), ascending."""
        return tuple(zip(self._epochs, self._starts, strict=True))

    # -- what the log holds ------------------------------------------------------------------
    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The end of `epoch` in this log, with the greatest epoch known that is not above it.

        `LeaderEpochFileCache.endOffsetFor` as `KafkaRaftLog.endOffsetForEpoch` completes it: an
        epoch above the newest one gives the log's end and last epoch; one below the first known
        gives itself, at the first known start, or the earliest snapshot when that ends there.
        """
        if not self._epochs or epoch >= self._epochs[-1]:
            return OffsetAndEpoch(self.end_offset, self.last_epoch)
        higher = bisect_right(self._epochs, epoch)
        found = OffsetAndEpoch(self._starts[higher], self._epochs[higher - 1] if higher else epoch)
        earliest = self.earliest_snapshot or found
        return earliest if earliest.offset == found.offset and found.epoch == epoch else found

    def validate(self, offset: int, epoch: int) -> Diverging | NeedsSnapshot | None:
        """Is (`offset`, epoch of the record before it) a place in this log? None: yes.

        `RaftLog.validateOffsetAndEpoch`. It diverges when this log lacks `epoch`, or ends it
        before `offset`.
        """
        if offset == 0 and self.start_offset == 0:
            return None
        if self._epochs and epoch == self._epochs[-1] and self._starts[-1] < offset:
            end_offset = self.end_offset
            return None if offset <= end_offset else Diverging(OffsetAndEpoch(end_offset, epoch))
        earliest = self.earliest_snapshot
        if earliest is not None and (
            offset < self.start_offset
            or (offset == self.start_offset and epoch != earliest.epoch)
            or epoch < earliest.epoch
        ):
            return NeedsSnapshot(self.snapshots[-1])
        end = self.end_offset_for_epoch(epoch)
        if end.epoch != epoch or end.offset < offset:
            return Diverging(end)
        return None

    def truncation_offset(self, diverging: OffsetAndEpoch) -> int:
        """The offset to cut this log at when a leader says that its `diverging.epoch` ends there.

        `RaftLog.truncateToEndOffset`, moved down to a batch border.
        """
        if diverging.epoch == 0:
            cut = min(diverging.offset, self.end_offset)
        else:
            local = self.end_offset_for_epoch(diverging.epoch)
            same = local.epoch == diverging.epoch
            cut = min(local.offset, diverging.offset) if same else local.offset
        return self.border_at_or_before(cut)

    def is_border(self, offset: int) -> bool:
        """Is `offset` the edge of a batch? True too where that is too long ago to be known."""
        if offset in (self.start_offset, self.end_offset):
            return True
        if offset <= self.known_from:
            return self.start_offset < offset < self.end_offset
        index = bisect_left(self._borders, offset)
        return index < len(self._borders) and self._borders[index] == offset

    def border_at_or_before(self, offset: int) -> int:
        """The edge of a batch at or below `offset`; itself where that is too long ago."""
        if offset >= self.end_offset or offset <= self.known_from:
            return offset
        index = bisect_right(self._borders, offset)
        return self._borders[index - 1] if index else self.known_from

    # -- how the log changes -----------------------------------------------------------------
    def append(self, base_offset: int, end_offset: int, epoch: int) -> None:
        """A batch was appended: it continues the log, in its last epoch or a higher one."""
        check(base_offset == self.end_offset, "batch base offset", base_offset, self.end_offset)
        check(end_offset > base_offset, "batch without records", base_offset, end_offset)
        if not self._epochs or epoch > self._epochs[-1]:
            check(epoch >= self.last_epoch, "batch epoch", epoch, self.last_epoch)
            self._epochs.append(epoch)
            self._starts.append(base_offset)
        else:
            check(epoch == self._epochs[-1], "batch epoch", epoch, self._epochs[-1])
        self.end_offset = end_offset
        self._borders.append(end_offset)
        if len(self._borders) > 2 * self._window:
            del self._borders[: self._window]
            self.known_from = self._borders[0]

    def truncate(self, end_offset: int) -> None:
        """Everything at `end_offset` and after is gone."""
        check(self.start_offset <= end_offset <= self.end_offset, "truncation", end_offset)
        keep = bisect_left(self._starts, end_offset)
        del self._epochs[keep:], self._starts[keep:]
        del self._borders[bisect_right(self._borders, end_offset) :]
        self.end_offset = end_offset
        self.known_from = min(self.known_from, end_offset)

    def install(self, snapshot_id: OffsetAndEpoch) -> None:
        """The log was dropped: it is empty, and starts where the snapshot ends."""
        self.start_offset = self.end_offset = self.known_from = snapshot_id.offset
        self.snapshots = [s for s in self.snapshots if s > snapshot_id]
        self.snapshots.insert(0, snapshot_id)
        self._epochs.clear()
        self._starts.clear()
        del self._borders[:]

    def add_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        insort(self.snapshots, snapshot_id)

    def clean(self, snapshot_id: OffsetAndEpoch) -> None:
        """Snapshots older than this one are gone, and the log before it."""
        self.snapshots = [s for s in self.snapshots if s >= snapshot_id]
        self.start_offset = snapshot_id.offset
        first = bisect_right(self._starts, snapshot_id.offset) - 1
        if first > 0:
            del self._epochs[:first], self._starts[:first]
        if self._starts:
            self._starts[0] = max(self._starts[0], self.start_offset)
        del self._borders[: bisect_right(self._borders, self.start_offset)]
        self.known_from = max(self.known_from, self.start_offset)
