"""An in-memory disk: batches, snapshots and the election state."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.base.check import check
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.ready import (
    AbandonSnapshot,
    Append,
    Clean,
    InstallSnapshot,
    SaveElection,
    SnapshotChunk,
    Truncate,
    Write,
)
from quorate.raft.values import (
    Batch,
    ControlState,
    ElectionState,
    KRaftVersion,
    RecoveredLog,
    Voters,
)


@dataclass
class MemoryLog:
    """Batches and snapshots in offset order; `empty_end`: the log end without batches."""

    start: int = 0
    batches: list[Batch] = field(default_factory=list)
    snapshots: dict[OffsetAndEpoch, ControlState] = field(default_factory=dict)
    election: ElectionState | None = None
    empty_end: int = 0

    def copy(self) -> MemoryLog:
        return MemoryLog(
            self.start, list(self.batches), dict(self.snapshots), self.election, self.empty_end
        )

    @property
    def end(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.empty_end

    def apply(self, write: Write, contents: dict[OffsetAndEpoch, ControlState]) -> None:
        if isinstance(write, SaveElection):
            self.election = write.state
        elif isinstance(write, Append):
            for batch in write.batches:
                check(batch.base_offset == self.end, "append elsewhere than at the end", batch)
                self.batches.append(batch)
        elif isinstance(write, Truncate):
            self.batches = [b for b in self.batches if b.end_offset <= write.end_offset]
            check(self.end == write.end_offset, "truncation inside a batch", write, self.end)
        elif isinstance(write, Clean):
            self.drop_before(write.snapshot_id)
        elif isinstance(write, InstallSnapshot):
            wanted = write.snapshot_id
            self.batches = []
            self.start = self.empty_end = wanted.offset
            self.snapshots = {wanted: contents[wanted]}
        else:
            assert isinstance(write, SnapshotChunk | AbandonSnapshot)

    def drop_before(self, snapshot_id: OffsetAndEpoch) -> None:
        self.snapshots = {k: v for k, v in self.snapshots.items() if k >= snapshot_id}
        self.batches = [b for b in self.batches if b.end_offset > snapshot_id.offset]
        self.start = self.empty_end = snapshot_id.offset

    def read(self, offset: int, end: int, max_bytes: int) -> tuple[Batch, ...]:
        found: list[Batch] = []
        size = 0
        for batch in self.batches:
            if batch.end_offset <= offset or batch.end_offset > end:
                continue
            if found and size + batch.size > max_bytes:
                break
            found.append(batch)
            size += batch.size
        return tuple(found)

    def recovered(self) -> RecoveredLog:
        epochs: list[tuple[int, int]] = []
        control = []
        for batch in self.batches:
            if not epochs or epochs[-1][0] < batch.epoch:
                epochs.append((batch.epoch, max(batch.base_offset, self.start)))
            for i, record in enumerate(batch.control):
                if isinstance(record, KRaftVersion | Voters):
                    control.append((batch.base_offset + i, record))
        ids = tuple(sorted(self.snapshots))
        return RecoveredLog(
            self.start,
            self.end,
            tuple(epochs),
            ids,
            self.snapshots[ids[-1]] if ids else None,
            tuple(control),
            tuple(b.end_offset for b in self.batches),
        )
