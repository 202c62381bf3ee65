"""What a log and its snapshots must be after the disk jobs of a replica."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import Protocol

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.ready import Clean, Truncate
from quorate.replica.disk_jobs import AppendBatches, Job, Write

_Id = tuple[int, int]


class LogFacts(Protocol):
    """A log as recovered."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def epochs(self) -> Iterable[tuple[int, int]]:
        """(epoch, start offset), ascending."""

    @property
    def snapshots(self) -> Iterable[OffsetAndEpoch]: ...


class ExpectedLog:
    """Start and end (exclusive) of the log, its epochs, and the ids of the snapshots."""

    def __init__(self, log: LogFacts) -> None:
        self.start = log.start_offset
        self.end = log.end_offset
        self.snapshots: list[_Id] = sorted({(found.offset, found.epoch) for found in log.snapshots})
        """Ascending."""
        self.epochs: list[tuple[int, int]] = list(log.epochs)
        self.start_was_set = False
        """A snapshot has set the start. A recovered log starts with its first segment, which may
        begin before the snapshot that had set the start."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; that of the newest snapshot where the log is empty."""
        if self.epochs and self.start < self.end:
            return self.epochs[-1][0]
        return self.snapshots[-1][1] if self.snapshots else 0

    def submitted(self, jobs: Iterable[Job]) -> bool:
        """Apply the writes of the jobs, but installs, whose outcome the disk decides. Whether
        batches were removed."""
        removed = False
        for job in jobs:
            if not isinstance(job, Write):
                continue
            for write in job.writes:
                if isinstance(write, AppendBatches):
                    for batch in write.batches:
                        self._append(batch.base_offset, batch.last_offset + 1, batch.epoch)
                elif isinstance(write, Truncate):
                    removed = True
                    self._truncate(write.end_offset)
                elif isinstance(write, Clean):
                    removed = True
                    self._clean((write.snapshot_id.offset, write.snapshot_id.epoch))
        return removed

    def installed(self, snapshot_id: _Id) -> None:
        """A snapshot took the place of the log."""
        self.start = self.end = snapshot_id[0]
        self.start_was_set = True
        self.epochs.clear()
        self._drop_before(snapshot_id)
        self.wrote(snapshot_id)

    def wrote(self, snapshot_id: _Id) -> None:
        """The replica wrote a snapshot of its own state."""
        if snapshot_id not in self.snapshots:
            insort(self.snapshots, snapshot_id)

    def _append(self, base: int, end: int, epoch: int) -> None:
        if not self.epochs or self.epochs[-1][0] != epoch:
            self.epochs.append((epoch, base))
        self.end = end

    def _truncate(self, end: int) -> None:
        self.end = min(self.end, end)
        while self.epochs and self.epochs[-1][1] >= end:
            self.epochs.pop()

    def _clean(self, snapshot_id: _Id) -> None:
        self.start = max(self.start, snapshot_id[0])
        self.start_was_set = True
        self._drop_before(snapshot_id)

    def _drop_before(self, snapshot_id: _Id) -> None:
        self.snapshots = [known for known in self.snapshots if known >= snapshot_id]
