"""Log directories that grow: where each ends, and up to where the cluster's log is committed.

No file says what is committed. What can be known from directories:

- an offset of the newest epoch that a majority of the voters has in its log, while none of them has
  heard of a later epoch (quorum-state), is committed: that is how a leader itself counts (Raft,
  5.4.2). The epoch is read after the log, so what the log had then was stored before.
- a snapshot holds nothing that is not committed, so everything below its end is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import raw_records
from quorate.formats.control import LeaderChangeMessage, VotersRecord, decode_message
from quorate.formats.errors import FormatError
from quorate.formats.files import QUORUM_STATE, decode_quorum_state
from quorate.spark.files.archives import Shelf
from quorate.spark.files.layout import LogDirectory
from quorate.spark.files.paths import File, SourceError, list_files
from quorate.spark.files.scan import CONTROL, Run, runs

_HEAD: Final = 61
"""Bytes of a batch's header: offset, epoch and checksum tell one batch from another."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a log where a batch begins."""

    offset: int
    segment: int
    position: int


class Tail:
    """One replica's log, looked at again and again; only what is new is read."""

    def __init__(self, log: LogDirectory) -> None:
        self.log = log
        self.end = 0
        """Exclusive: of the last sound batch."""
        self.epochs: list[tuple[int, int]] = []
        """(epoch, first offset here), ascending."""
        self.voters: tuple[int, ...] = ()
        self.quorum_epoch = -1
        """The newest that the node has heard of; -1: no quorum-state."""
        self.damaged: list[int] = []
        """The offsets at which something is missing that was not the end of the log."""
        self._marks: list[Mark] = []
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
        """The log's end and the epoch of the last record."""
        epoch = self.epochs[-1][0] if self.epochs else self.epoch_below(self.end)
        return OffsetAndEpoch(self.end, epoch or 0)

    def epoch_below(self, offset: int) -> int | None:
        """The epoch of the record before an offset; None when it is not here."""
        for snapshot_id, _ in self.log.snapshots:
            if snapshot_id.offset == offset:
                return snapshot_id.epoch
        if not self.start < offset <= self.end:
            return None
        place = bisect_right(self.epochs, offset - 1, key=lambda epoch: epoch[1])
        return self.epochs[place - 1][0] if place else None

    def vouched_end(self, other: Tail) -> int:
        """Up to where (exclusive) this log is what comes before that one's beginning; 0: nowhere.

        Told by a snapshot that ends in it, or by the first record of the other (log matching).
        """
        ids = [id for id, _ in (*self.log.snapshots, *other.log.snapshots)]
        first = other.epoch_below(other.start + 1)
        if first is not None:
            ids.append(OffsetAndEpoch(other.start + 1, first))
        ends = [at for at, epoch in ids if self.start < at <= self.end and self._wrote(at, epoch)]
        return min(max(ends, default=0), other.start)

    def _wrote(self, offset: int, epoch: int) -> bool:
        return self.epoch_below(offset) == epoch

    def mark_of(self, offset: int) -> Mark | None:
        """Whence to read to come to an offset; None when it is not here."""
        place = bisect_right(self._marks, offset, key=lambda mark: mark.offset)
        return self._marks[place - 1] if place else None

    def look(self, log: LogDirectory, shelf: Shelf) -> None:
        """Read on, in the directory as it is now. Raises SourceError."""
        self.log = log
        for base, file in log.segments:
            if base >= self._segment:
                self._read_on(base, file, shelf)
        while self._marks and self._marks[0].segment < self.start:
            del self._marks[0]
        self._read_quorum_state(shelf)
        if not self.voters:
            self._read_snapshot(shelf)

    def goes_on(self, log: LogDirectory, shelf: Shelf) -> bool:
        """Whether the last batch that was read is still there: false of a truncated log."""
        if not self._last:
            return True
        file = dict(log.segments).get(self._segment)
        if file is None:
            return False
        head, position = self._last, self._position
        return shelf.reader(file)(position, len(head)) == head

    def _read_on(self, base: int, file: File, shelf: Shelf) -> None:
        if base != self._segment:
            self._segment, self._position, self._last = base, 0, b""
        if not self.epochs:
            self.end = base  # nothing is here yet, behind a snapshot
        start = self._position
        for found in runs(shelf.reader(file), file.size, start):
            if isinstance(found, Run):  # damage at the end is what is being written just now
                self._take(base, found)

    def _take(self, base: int, run: Run) -> None:
        heads = run.heads
        first, last = int(heads["base_offset"][0]), len(heads) - 1
        if first > (self.end if self.epochs else base):
            self.damaged.append(self.end)
        if not self._marks or first > self._marks[-1].offset:
            self._marks.append(Mark(first, base, run.position))
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

    def _read_control(self, run: Run, place: int) -> None:
        """The voters, as each leader names them and each change of them does."""
        try:
            for key, value in raw_records(run.view(place)):
                message = decode_message(key, value)
                if isinstance(message, LeaderChangeMessage | VotersRecord):
                    self.voters = tuple(voter.voter_id for voter in message.voters)
        except FormatError:
            return

    def _read_quorum_state(self, shelf: Shelf) -> None:
        path = f"{self.log.path.rstrip('/')}/{QUORUM_STATE}"
        try:
            (file,) = list_files(path)[1].values()
            state = decode_quorum_state(shelf.read_small(file), path)
        except FormatError:
            return
        self.quorum_epoch = state.election.epoch
        self.voters = self.voters or state.voter_ids

    def _read_snapshot(self, shelf: Shelf) -> None:
        for _, file in self.log.snapshots[-1:]:
            for found in runs(shelf.reader(file), file.size, 0, 1):
                if isinstance(found, Run):
                    self._read_control(found, 0)


def majority_end(tails: Sequence[Tail]) -> OffsetAndEpoch | None:
    """The end of what a majority of the voters has of the newest epoch; None when none has.

    Raises SourceError when directories of too few voters are here ever to know, or such that have
    no quorum-state: an epoch that a voter may have heard of since counts.
    """
    newest = max(tails, key=lambda tail: (tail.last.epoch, tail.end))
    voters = set(newest.voters)
    if not newest.epochs:
        return None  # there are no records to count
    needed = len(voters) // 2 + 1
    here = {tail.log.node_id: tail for tail in tails if tail.log.node_id in voters}
    knowing = sum(tail.quorum_epoch >= 0 for tail in here.values())
    if not voters or knowing < needed:
        what = f"directories of {len(here)} of the {len(voters)} voters {sorted(voters)} are given"
        if knowing < len(here):
            what += f", {knowing} of them with their {QUORUM_STATE}"
        raise SourceError(
            f"{newest.log.path}: {what}: what is committed cannot be known from them. Give those "
            f"of {needed} voters, whole, or the option upTo=snapshot (what snapshots confirm) or "
            "upTo=end (also what may be taken back: the stream ends with an error then)"
        )
    epoch = newest.last.epoch
    ends = sorted(
        tail.end for tail in here.values() if tail.last.epoch == epoch == tail.quorum_epoch
    )
    return OffsetAndEpoch(ends[-needed], epoch) if len(ends) >= needed else None


def snapshot_end(tails: Iterable[Tail]) -> OffsetAndEpoch | None:
    """The end of the newest snapshot of all replicas."""
    ids = [snapshot_id for tail in tails for snapshot_id, _ in tail.log.snapshots]
    return max(ids, key=lambda id: id.offset, default=None)
