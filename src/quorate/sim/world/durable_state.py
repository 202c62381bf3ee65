"""The guaranteed durable state of a disk, derived from completed jobs and not from the medium."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.ready import Clean, InstallSnapshot, SaveElection, Truncate
from quorate.raft.values import ElectionState
from quorate.replica.disk_jobs import AppendBatches, DiskWrite, Job, Write
from quorate.storage.api import Recovered


@dataclass(slots=True)
class Durable:
    """The state that the disk of a process returns after any crash from now on.

    Derived from completed jobs: `end_offset` (exclusive) and `last_epoch` of the log, the vote, and
    the newest snapshot's end offset (0: none).
    """

    election: ElectionState | None = None
    end_offset: int = 0
    last_epoch: int = 0
    snapshot_offset: int = 0


class DurableState:
    """The durable state of one disk during one incarnation."""

    def __init__(self, recovered: Recovered | None = None) -> None:
        """Begin as recovered. `recovered`: the state at this incarnation's start; None: an empty disk."""
        self.durable = Durable()
        self._epochs: list[tuple[int, int]] = []
        if recovered is not None:
            log = recovered.log
            self._epochs = list(log.epochs)
            newest = log.snapshots[-1] if log.snapshots else OffsetAndEpoch(0, 0)
            last_epoch = self._epochs[-1][0] if self._epochs else newest.epoch
            self.durable = Durable(recovered.election, log.end_offset, last_epoch, newest.offset)

    def done(
        self, jobs: Sequence[Job], seq: int, is_there: Callable[[OffsetAndEpoch], bool]
    ) -> None:
        """Everything up to `seq` is durable; `is_there`: whether a snapshot with an id exists."""
        for job in jobs:
            if not isinstance(job, Write) or job.seq > seq:
                continue
            for write in job.writes:
                if isinstance(write, InstallSnapshot):
                    if is_there(write.snapshot_id):
                        self._installed(write.snapshot_id)
                else:
                    self._wrote(write)
        if self._epochs:
            self.durable.last_epoch = self._epochs[-1][0]

    def _wrote(self, write: DiskWrite) -> None:
        durable = self.durable
        if isinstance(write, AppendBatches):
            for batch in write.batches:
                if not self._epochs or self._epochs[-1][0] < batch.epoch:
                    self._epochs.append((batch.epoch, batch.base_offset))
                durable.end_offset = batch.last_offset + 1
        elif isinstance(write, SaveElection):
            durable.election = write.state
        elif isinstance(write, Truncate):
            durable.end_offset = write.end_offset
            self._cut_epochs(write.end_offset)
        elif isinstance(write, Clean):
            durable.snapshot_offset = max(durable.snapshot_offset, write.snapshot_id.offset)

    def interrupted(self, job: Write) -> None:
        """The write was interrupted: what it removes counts as lost."""
        durable = self.durable
        for write in job.writes:
            if isinstance(write, Truncate):
                durable.end_offset = min(durable.end_offset, write.end_offset)
            elif isinstance(write, InstallSnapshot):
                durable.end_offset = min(durable.end_offset, write.snapshot_id.offset)

    def _installed(self, snapshot_id: OffsetAndEpoch) -> None:
        durable = self.durable
        durable.end_offset = durable.snapshot_offset = snapshot_id.offset
        durable.last_epoch = snapshot_id.epoch
        self._epochs = [(snapshot_id.epoch, snapshot_id.offset)]

    def _cut_epochs(self, end_offset: int) -> None:
        while self._epochs and self._epochs[-1][1] >= end_offset:
            self._epochs.pop()
