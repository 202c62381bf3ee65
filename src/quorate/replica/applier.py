"""Feeds a state machine with committed batches, in slices.

1. Where there is a snapshot, it is loaded first (`load`).
2. Then the log is applied up to the high watermark: from the tail in memory, else by read jobs.
3. Each step applies one slice, and of it no more than the state machine takes. So a long replay
   does not keep a replica from answering its peers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.base.errors import InvariantError
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import (
    BatchView,
    iter_batches,
    values,
    whole_batches_size,
)
from quorate.formats.errors import BatchError
from quorate.formats.files import snapshot_name
from quorate.formats.snapshot import SnapshotReader
from quorate.replica.disk_jobs import Job, LogRead, ReadLog, ReadSnapshot, SnapshotRead
from quorate.replica.state_machine import CommittedBatch, ReplicatedStateMachine
from quorate.replica.tail import Tail
from quorate.storage.api import corruption_error

BOOTSTRAP: Final = OffsetAndEpoch(0, 0)
SLICE_BYTES: Final = 64 * 1024
_SLICES_READ: Final = 16
"""What a read job asks for."""


class Applier:
    """The position of the state machine: `applied` is its end offset (exclusive) and epoch.

    The position, and all other attributes, move from batch to batch: a snapshot ends between two.
    `timestamp_ms` is the newest batch's time, since 1970; `bytes_applied` counts the bytes of the
    log since the last snapshot was begun or loaded; `snapshot_size` is the size of that one.
    """

    def __init__(self, machine: ReplicatedStateMachine, slice_bytes: int = SLICE_BYTES) -> None:
        self._machine = machine
        self._slice = slice_bytes
        self._read = slice_bytes * _SLICES_READ
        self.applied = BOOTSTRAP
        self.timestamp_ms = 0
        self.bytes_applied = 0
        self.snapshot_size = 0
        self.loading: OffsetAndEpoch | None = None
        self._reader = SnapshotReader()
        self._position = 0
        self._rest = b""
        self._reading = 0
        """Token of the read job under way; 0: none."""
        self._data = b""
        self._left: CommittedBatch | None = None
        """Of the first batch of `_data`, when the machine took a part of it."""

    def load(self, snapshot_id: OffsetAndEpoch) -> None:
        """Start again with this snapshot; the results of earlier read jobs are ignored."""
        self.loading = snapshot_id
        self._reader = SnapshotReader()
        self._position = 0
        self._rest = self._data = b""
        self._left = None
        self._reading = 0

    @property
    def is_inside_a_batch(self) -> bool:
        """A batch was applied in part: the state is that of no offset, so no snapshot fits it."""
        return self._left is not None

    @property
    def is_reading(self) -> bool:
        """The disk reads a part of the log, or of a snapshot, for the state machine."""
        return self._reading != 0

    @property
    def has_unapplied_data(self) -> bool:
        """A part of the committed log is in memory and not yet applied."""
        return bool(self._data)

    def is_at(self, high_watermark: int) -> bool:
        """Everything up to there (exclusive) is applied, and nothing else is being read."""
        return self.loading is None and not self._data and self.applied[0] >= high_watermark

    def advance(self, high_watermark: int, tail: Tail, token: int, jobs: list[Job]) -> bool:
        """Apply one slice, or what the state machine takes of it; True: there is more to do at once.

        `token` (not 0) names a read job, when one is needed; pass its result to `took`.
        """
        if self._reading:
            return False
        if self.loading is not None:
            self._reading = token
            jobs.append(ReadSnapshot(token, self.loading, self._position, self._read))
            return False
        if not self._data:
            if self.applied.offset >= high_watermark:
                return False
            data = tail.read(self.applied.offset, high_watermark, self._slice)
            if data is None:
                self._reading = token
                jobs.append(ReadLog(token, self.applied.offset, high_watermark, self._read))
                return False
            self._data = data
        self._apply_log_slice()
        return bool(self._data) or self.applied.offset < high_watermark

    def took(self, result: LogRead | SnapshotRead) -> bool:
        """Take the result of a read job; False when it is not the one that `advance` waits for.

        Raises StorageError where the snapshot is corrupt.
        """
        if result.token != self._reading:
            return False
        self._reading = 0
        if isinstance(result, LogRead):
            self._data = result.data
        elif self.loading is not None:  # unreached: what ends a load forgets its read, too
            try:
                self._take_snapshot(self.loading, result)
            except BatchError as error:
                raise corruption_error(snapshot_name(self.loading), error) from None
        return True

    def _apply_log_slice(self) -> None:
        if not self._data:
            raise InvariantError(f"no batch at offset {self.applied.offset} of the committed log")
        done = 0
        for view in iter_batches(self._data, verify=False):
            goes_on = self.is_inside_a_batch
            if view.end_offset > self.applied.offset and not self._apply(view):
                break
            self.applied = OffsetAndEpoch(view.end_offset, view.epoch)
            self.bytes_applied += view.size
            done += view.size
            # A batch that was begun in an earlier step ends the slice: the step after it may write
            # a snapshot, which a state machine that always takes parts would never allow.
            if done >= self._slice or goes_on:
                break
        self._data = self._data[done:]

    def _take_snapshot(self, snapshot_id: OffsetAndEpoch, result: SnapshotRead) -> None:
        if result.size is None:
            raise InvariantError(f"snapshot {snapshot_id} was removed while it was loaded")
        data = self._rest + result.data
        origin = self._position - len(self._rest)
        self._position += len(result.data)
        size = whole_batches_size(data, origin)
        for view in iter_batches(data[:size], origin):
            found = self._reader.add(view)
            header = self._reader.header
            if view.base_offset == 0 and header is not None:
                self.timestamp_ms = header.last_contained_log_timestamp
                self._machine.begin_load(snapshot_id, self.timestamp_ms)
            if found:
                self._machine.load(found)
        self._rest = data[size:]
        if self._position >= result.size:
            self._end_load(snapshot_id)

    def _end_load(self, snapshot_id: OffsetAndEpoch) -> None:
        self._reader.finish(snapshot_id)
        self._machine.end_load()
        self.loading = None
        self.applied = snapshot_id
        self.bytes_applied = 0
        self.snapshot_size = self._position

    def _apply(self, view: BatchView) -> bool:
        """Apply the rest of the batch; False when the state machine did not take all of it."""
        entry = self._left or _entry(view)
        taken = self._machine.apply(entry)
        if taken == len(entry.values):
            self._left = None
            self.timestamp_ms = view.max_timestamp
            return True
        if taken:
            base = entry.base_offset + taken
            self._left = replace(entry, base_offset=base, values=entry.values[taken:])
        return False


def _entry(view: BatchView) -> CommittedBatch:
    found = () if view.is_control else values(view)
    return CommittedBatch(view.base_offset, view.last_offset, view.epoch, view.max_timestamp, found)
