"""The segments of the log, from the first to the one that is written.

One thread changes it; any thread reads. `_lock` guards the short moments in which the lists
change or are looked at; no disk is touched under it. A reader that found the log truncated
while it read tries again.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from quorate.base.check import check
from quorate.base.errors import InvariantError
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import BatchView, control_records, read_batch
from quorate.formats.errors import BatchError
from quorate.formats.files import LEADER_EPOCH_CHECKPOINT, encode_leader_epochs, segment_name
from quorate.raft.values import LeaderChange
from quorate.storage.api import AppendedBatch, SegmentInfo, StorageError, corruption_error
from quorate.storage.disk import Disk, replace_file
from quorate.storage.scan import CHUNK, batches, epoch_at
from quorate.storage.segment import Segment, Spot, remove_derived, remove_segments

_LOOK_AHEAD: Final = 64 * 1024
_MAX_RELATIVE_OFFSET: Final = 2**31 - 1
_Group = list[tuple[AppendedBatch, int]]
"""Batches on their way into one file, with their timestamps (ms)."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Sizes in bytes, times in ms; defaults are Kafka's (MetadataLogConfig, LogConfig)."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    index_interval: int = 4096
    needs_vote: bool = False
    """The owner saves an epoch before it writes a record of it: a log without quorum-state has lost
    that, and with it a vote."""
    node_id: int | None = None
    """Of the owner, as quorum-state names it; None: unknown."""
    static_voter_ids: tuple[int, ...] = ()
    """Of `controller.quorum.voters`; empty where the log has the voters."""
    sync_every: int = 4_194_304
    """A snapshot in the making is synced whenever so much of it was written."""


class SegmentedLog:
    """Segments ascending, without a gap; the last one is written to."""

    def __init__(
        self,
        disk: Disk,
        options: LogOptions,
        segments: list[Segment],
        epochs: Iterable[tuple[int, int]],
    ) -> None:
        self._disk = disk
        self._options = options
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._epochs = list(epochs)
        self._lock = threading.Lock()
        self._generation = 0
        self._dirty = False
        self._has_new_epoch = False
        """The checkpoint lacks one that is in the log."""
        self.start_offset = segments[0].base_offset
        self.size = sum(segment.size for segment in segments)

    @property
    def end_offset(self) -> int:
        return self._segments[-1].end_offset

    def infos(self) -> tuple[SegmentInfo, ...]:
        """The segments as they stand, ascending."""
        with self._lock:
            return tuple(segment.info for segment in self._segments)

    # -- writing -----------------------------------------------------------------------------
    def append(self, appended: Iterable[AppendedBatch]) -> None:
        """Write with one call, or one per segment or epoch where they change."""
        group: _Group = []
        end, size = self.end_offset, 0
        for batch in appended:
            timestamp = _checked(batch, end)
            end = batch.last_offset + 1
            rises = self._begins_epoch(batch)
            rolls = self._must_roll(batch, timestamp, size, group)
            if rises or rolls:
                self._write(group)
                group, size = [], 0
            if rolls:
                self._roll(batch.base_offset)
            if rises:
                self._begin_epoch(batch)
            group.append((batch, timestamp))
            size += len(batch.data)
        self._write(group)

    def _begins_epoch(self, batch: AppendedBatch) -> bool:
        last = self._epochs[-1][0] if self._epochs else -1
        check(batch.epoch >= last, "an appended batch is of an older epoch", batch.epoch, last)
        return batch.epoch > last

    def _begin_epoch(self, batch: AppendedBatch) -> None:
        """The checkpoint never knows an epoch before its first batch is durable: a log without a
        batch has then lost some where it does (`recovery`). Only a batch that does not say itself
        that its epoch begins needs a word in the checkpoint first."""
        epochs = [*self._epochs, (batch.epoch, batch.base_offset)]
        if self._epochs and not _is_announced(batch):
            self._save_epochs(epochs)
        else:
            self._epochs, self._has_new_epoch = epochs, True

    def _must_roll(
        self,
        batch: AppendedBatch,
        timestamp: int,
        size: int,
        group: _Group,
    ) -> bool:
        """Would the batch overfill the segment (LogSegment.shouldRoll)? `size` bytes of `group`
        are on their way into it."""
        segment, options = self._segments[-1], self._options
        first = segment.first_timestamp
        if first is None:
            if not group:
                return False
            first = group[0][1]
        return (
            segment.size + size + len(batch.data) > options.segment_bytes
            or timestamp - first > options.segment_ms
            or batch.last_offset - segment.base_offset > _MAX_RELATIVE_OFFSET
        )

    def _write(self, group: _Group) -> None:
        if not group:
            return
        segment = self._segments[-1]
        data = group[0][0].data if len(group) == 1 else b"".join(batch.data for batch, _ in group)
        self._dirty = True
        segment.file.write_at(segment.size, data)
        with self._lock:
            for batch, timestamp in group:
                segment.add(batch.last_offset, len(batch.data), timestamp)
            self.size += len(data)

    def _roll(self, base_offset: int) -> None:
        """Begin a new segment.

        The old one is whole on disk before the new one has a name. So only the last segment can ever
        have a torn tail.
        """
        self.sync()
        self._segments[-1].write_indexes(self._disk)
        self._add_segment(create_segment(self._disk, base_offset, self._options))

    def _add_segment(self, segment: Segment) -> None:
        with self._lock:
            self._segments.append(segment)
            self._bases.append(segment.base_offset)

    def sync(self) -> None:
        if self._dirty:
            self._segments[-1].file.sync()
            self._dirty = False
        if self._has_new_epoch:
            self._save_epochs(self._epochs)

    def _save_epochs(self, epochs: list[tuple[int, int]]) -> None:
        replace_file(self._disk, LEADER_EPOCH_CHECKPOINT, encode_leader_epochs(epochs))
        self._epochs = epochs
        self._has_new_epoch = False

    def write_indexes(self) -> None:
        """Write the indexes of the last segment, after its bytes: an index must not outlive them."""
        self.sync()
        self._segments[-1].write_indexes(self._disk)

    def close(self) -> None:
        """Let go of the files; each closes when its last reader is done."""
        with self._lock:
            self._segments, self._bases = [], []

    # -- dropping ----------------------------------------------------------------------------
    def truncate(self, end_offset: int) -> None:
        """Durable on return. Every step leaves a whole log: the last segments go first, and what
        is written later cannot reach the disk before this has."""
        check(end_offset >= self.start_offset, "a truncation below the log's start", end_offset)
        if end_offset >= self.end_offset:
            return
        if end_offset <= self.start_offset:
            self._set_epochs([])  # first: see `_begin_epoch`
        keep = max(bisect_right(self._bases, end_offset), 1)
        with self._lock:
            dropped = self._segments[keep:]
            del self._segments[keep:], self._bases[keep:]
        self._forget_witnesses(end_offset)
        remove_segments(self._disk, reversed(dropped))
        self._cut_last(end_offset)
        self._set_epochs([entry for entry in self._epochs if entry[1] < self.end_offset])

    def _forget_witnesses(self, end_offset: int) -> None:
        """No file may know of a record that is gone: `witnesses` would miss it. Durable on return."""
        kept = [entry for entry in self._epochs if entry[1] < end_offset]
        if kept != self._epochs:
            replace_file(self._disk, LEADER_EPOCH_CHECKPOINT, encode_leader_epochs(kept))
        remove_derived(self._disk, self._segments[-1].base_offset)
        self._disk.sync()

    def cut_newer(self, snapshot_id: OffsetAndEpoch) -> None:
        """Cut off what begins before the snapshot's end in a newer epoch: a leader wrote it that
        no node followed. With such a tail recovery could not distinguish a half-installed snapshot
        from a log that has lost records. Durable on return."""
        for epoch, start in self._epochs:
            if epoch > snapshot_id.epoch and start < snapshot_id.offset:
                self.truncate(start)
                return

    def _cut_last(self, end_offset: int) -> None:
        segment = self._segments[-1]
        old_size = segment.size
        with self._lock:
            self._generation += 1
            segment.truncate(
                end_offset, lambda spot: self._as_written(segment, old_size, spot, self._epochs)
            )
            self._sum_up()
        segment.file.truncate(segment.size)
        # Synced before anything is written behind the cut: after a power cut the file may else have
        # new records and then old ones, which would look like one log.
        segment.file.sync()
        self._dirty = False

    def clean(self, start_offset: int) -> None:
        """Drop whole segments below `start_offset`, the first ones first; never the last."""
        if start_offset <= self.start_offset:
            return
        count = max(bisect_right(self._bases, start_offset) - 1, 0)
        with self._lock:
            dropped = self._segments[:count]
            del self._segments[:count], self._bases[:count]
            self.start_offset = start_offset
            self._sum_up()
        remove_segments(self._disk, dropped)
        self._set_epochs(epochs_from(self._epochs, self._bases[0], self.end_offset))

    def reset(self, start_offset: int) -> None:
        """Drop everything and begin anew there; durable on return.

        The last segments go first, so that every step leaves a whole log or none; with none,
        recovery begins at the newest snapshot.
        """
        remove_segments(self._disk, reversed(self._segments))
        self._set_epochs([])
        fresh = create_segment(self._disk, start_offset, self._options)
        with self._lock:
            self._segments, self._bases = [fresh], [start_offset]
            self.start_offset = start_offset
            self._dirty = False
            self._sum_up()

    def _sum_up(self) -> None:
        self.size = sum(segment.size for segment in self._segments)

    def _set_epochs(self, epochs: list[tuple[int, int]]) -> None:
        if epochs != self._epochs:
            self._save_epochs(epochs)

    # -- reading -----------------------------------------------------------------------------
    def read(self, offset: int, end: int, max_bytes: int) -> bytes:
        """Read whole batches, as `Storage.read` specifies."""
        while True:
            with self._lock:
                if not self.start_offset <= offset < self.end_offset:
                    return b""
                generation = self._generation
                first = max(bisect_right(self._bases, offset) - 1, 0)
                pieces = [(segment, segment.size) for segment in self._segments[first:]]
                spot = pieces[0][0].spot_before(offset)
                epochs = self._epochs
            data, trouble = b"", None
            try:
                data = self._read_segments(pieces, spot, epochs, (offset, end), max_bytes)
            except StorageError as error:
                trouble = error
            with self._lock:
                is_whole = generation == self._generation
            # Truncated meanwhile, the bytes may be a mix of before and after.
            if is_whole and trouble is not None:
                raise trouble
            if is_whole:
                return data

    def _read_segments(
        self,
        pieces: list[tuple[Segment, int]],
        spot: Spot,
        epochs: list[tuple[int, int]],
        wanted: tuple[int, int],
        max_bytes: int,
    ) -> bytes:
        """Whole batches of `wanted` (offset, end) from a spot in the first piece on."""
        offset, end = wanted
        found: list[bytes] = []
        room = max_bytes
        for segment, size in pieces:
            chunk = max(min(room, CHUNK), 0) + _LOOK_AHEAD
            at = spot if segment is pieces[0][0] else (0, segment.base_offset)
            for view in self._as_written(segment, size, at, epochs, chunk):
                if view.last_offset < offset:
                    continue
                if view.end_offset > end or (found and view.size > room):
                    return b"".join(found)
                found.append(view.data)
                room -= view.size
        return b"".join(found)

    def _as_written(
        self,
        segment: Segment,
        size: int,
        spot: Spot,
        epochs: list[tuple[int, int]],
        chunk: int = CHUNK,
    ) -> Iterator[BatchView]:
        """The batches from a spot on; raises StorageError where one is not what was written."""
        start, due = spot
        try:
            for view in batches(segment.file, size, start, chunk):
                _check_place(view, due, epochs)
                due = view.end_offset
                yield view
        except BatchError as error:
            raise corruption_error(f"{self._disk.where}/{segment.file.name}", error) from None


def _check_place(view: BatchView, due: int, epochs: list[tuple[int, int]]) -> None:
    """No checksum covers a batch's base offset and epoch: they must be those of its place.

    `epochs` may begin later: nothing is known of batches before the log's start that share a
    segment with it, nor of any while a log is being emptied.
    """
    if view.base_offset != due:
        what = f"the batch says base offset {view.base_offset}, expected {due}"
        raise BatchError(what, view.position)
    if epochs and due >= epochs[0][1]:
        expected = epoch_at(epochs, due)
        if view.epoch != expected:
            what = f"the batch says epoch {view.epoch}, expected {expected}"
            raise BatchError(what, view.position)


def _checked(batch: AppendedBatch, end_offset: int) -> int:
    """The batch's timestamp (ms); InvariantError unless it is sound and comes next."""
    try:
        view = read_batch(batch.data, 0)
        view.verify()
    except BatchError as error:
        raise InvariantError(f"an appended batch is not sound: {error}") from None
    said = (view.base_offset, view.last_offset, view.epoch, view.size)
    meant = (batch.base_offset, batch.last_offset, batch.epoch, len(batch.data))
    check(said == meant, "an appended batch's bytes are not what they should be", said, meant)
    check(batch.base_offset == end_offset, "an appended batch is not next", said, end_offset)
    return view.max_timestamp


def _is_announced(batch: AppendedBatch) -> bool:
    view = read_batch(batch.data, 0)
    return view.is_control and isinstance(control_records(view)[0], LeaderChange)


def epochs_from(epochs: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Those of the log from `start` to `end` (exclusive); the one in force there begins there."""
    if start >= end:
        return []
    first = max(bisect_right([begin for _, begin in epochs], start) - 1, 0)
    return [(epoch, max(begin, start)) for epoch, begin in epochs[first:]]


def create_segment(disk: Disk, base_offset: int, options: LogOptions) -> Segment:
    """An empty segment whose name is durable."""
    remove_derived(disk, base_offset)
    file = disk.open(segment_name(base_offset), create=True)
    file.truncate(0)
    disk.sync()
    return Segment(base_offset, file, options.index_interval)
