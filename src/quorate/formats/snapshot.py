"""Snapshots of the metadata log: writing one, and checking and reading one.

A snapshot is a row of batches with offsets from 0: a control batch that begins with the header,
data batches, a control batch that ends with the footer (KIP-630, KIP-853; `RecordsSnapshotWriter`,
`RaftSnapshotWriter`). All carry the epoch of the snapshot's id. `bootstrap.checkpoint` and the
checkpoint 0-0 are snapshots too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import (
    HEADER_SIZE,
    MAX_BATCH_SIZE,
    BatchView,
    Buffer,
    control_records,
    encode_batch,
    encode_control_batch,
    iter_batches,
    values,
)
from quorate.formats.control import ControlRecord, SnapshotFooter, SnapshotHeader
from quorate.formats.errors import BatchError, FormatError
from quorate.raft.values import ControlState, KRaftVersion, Voters

BATCH_RECORDS: Final = 1024
"""Records in each full data batch, as Kafka's image writer asks for."""
_RECORD_OVERHEAD: Final = 19
"""Most bytes that a record needs beside its value."""


class SnapshotReader:
    """Checks a snapshot batch by batch, in order, and gives out what it holds.

    After the last batch `finish` must be called: only then is the snapshot known to be whole.
    """

    def __init__(self) -> None:
        self.header: SnapshotHeader | None = None
        """Known after the first batch."""
        self.control = ControlState(0, None)
        """kraft.version and voters; known after the first batch."""
        self._next_offset = 0
        self._epoch = -1
        self._footer_at: int | None = None
        self._size = 0

    def add(self, view: BatchView) -> list[bytes]:
        """The values of the batch's data records, none for a control batch.

        Raises BatchError when the batch is not the one that may come next.
        """
        if self._footer_at is not None:
            raise view.error("a batch follows the snapshot's footer")
        if view.base_offset != self._next_offset:
            raise view.error(f"a snapshot's batch should begin at offset {self._next_offset}")
        if self._epoch not in (-1, view.epoch):
            raise view.error(f"epoch {view.epoch} differs from {self._epoch} of the first batch")
        found = [] if view.is_control else values(view)
        if view.is_control:
            self._add_control(view)
        elif self.header is None:
            raise view.error("a snapshot must begin with its header")
        self._next_offset = view.end_offset
        self._epoch = view.epoch
        self._size = view.position + view.size
        return found

    def finish(self, snapshot_id: OffsetAndEpoch | None = None) -> None:
        """Raise BatchError unless the whole snapshot was added, and is of this id's epoch."""
        if self.header is None:
            raise BatchError("a snapshot without any batch", 0)
        if self._footer_at is None:
            raise BatchError("the snapshot ends without its footer", self._size)
        if snapshot_id is not None and snapshot_id.epoch != self._epoch:
            raise BatchError(
                f"the batches' epoch {self._epoch} is not the {snapshot_id.epoch} of the id", 0
            )

    def _add_control(self, view: BatchView) -> None:
        for index, record in enumerate(control_records(view)):
            if self._footer_at is not None:
                raise view.error("a record follows the snapshot's footer")
            first = self.header is None and index == 0
            if first != isinstance(record, SnapshotHeader):
                raise view.error(f"{record} is not what a snapshot has at this place")
            self._add_record(view, record)

    def _add_record(self, view: BatchView, record: ControlRecord) -> None:
        match record:
            case SnapshotHeader():
                self.header = record
            case SnapshotFooter():
                self._footer_at = view.position
            case KRaftVersion():
                self.control = ControlState(record.version, self.control.voters)
            case Voters():
                self.control = ControlState(self.control.kraft_version, record.voters)
            case _:
                raise view.error(f"{record} has no place in a snapshot")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole snapshot that was found sound."""

    last_contained_log_timestamp: int
    """ms; time of the last batch of the log that it covers."""
    control: ControlState
    values: tuple[bytes, ...]
    """The value of every metadata record, in order."""


def read_snapshot(buf: Buffer, snapshot_id: OffsetAndEpoch | None = None) -> Snapshot:
    """Check and read a whole snapshot; raises BatchError.

    For a large one drive a SnapshotReader piece by piece.
    """
    reader = SnapshotReader()
    found: list[bytes] = []
    for view in iter_batches(buf):
        found += reader.add(view)
    reader.finish(snapshot_id)
    header = reader.header or SnapshotHeader(0)
    return Snapshot(header.last_contained_log_timestamp, reader.control, tuple(found))


class SnapshotEncoder:
    """Makes the batches of a snapshot. Every method returns bytes to append to the file, in order.

    Times are ms. Call `begin` once, `add` for every record, `finish` once.
    """

    def __init__(
        self,
        snapshot_id: OffsetAndEpoch,
        control: ControlState,
        last_contained_log_timestamp: int,
        max_batch_size: int = MAX_BATCH_SIZE,
    ) -> None:
        self._epoch = snapshot_id.epoch
        self._control = control
        self._timestamp = last_contained_log_timestamp
        self._max_batch_size = max_batch_size
        self._next_offset = 0
        self._values: list[bytes] = []
        self._pending_size = 0

    def begin(self, now_ms: int) -> bytes:
        """The first batch: header, and from kraft.version 1 on the version and the voters."""
        records: list[ControlRecord] = [SnapshotHeader(self._timestamp)]
        if self._control.kraft_version >= 1:
            records.append(KRaftVersion(self._control.kraft_version))
            if self._control.voters is not None:
                records.append(Voters(self._control.voters))
        return self._control_batch(records, now_ms)

    def add(self, value: bytes, now_ms: int) -> bytes:
        """A batch when one became full, else nothing.

        Raises FormatError when this record alone is larger than a batch may be.
        """
        size = len(value) + _RECORD_OVERHEAD
        if HEADER_SIZE + size > self._max_batch_size:
            raise FormatError(
                f"a record of {len(value)} bytes does not fit a batch of {self._max_batch_size}"
            )
        full = b""
        if HEADER_SIZE + self._pending_size + size > self._max_batch_size:
            full = self._data_batch(now_ms)
        self._values.append(value)
        self._pending_size += size
        if len(self._values) >= BATCH_RECORDS:
            full += self._data_batch(now_ms)
        return full

    def finish(self, now_ms: int) -> bytes:
        """The last records, and the footer."""
        rest = self._data_batch(now_ms) if self._values else b""
        return rest + self._control_batch([SnapshotFooter()], now_ms)

    def _data_batch(self, now_ms: int) -> bytes:
        batch = encode_batch(self._next_offset, self._epoch, now_ms, self._values)
        self._next_offset += len(self._values)
        self._values = []
        self._pending_size = 0
        return batch

    def _control_batch(self, records: Sequence[ControlRecord], now_ms: int) -> bytes:
        batch = encode_control_batch(self._next_offset, self._epoch, now_ms, records)
        self._next_offset += len(records)
        return batch


def encode_snapshot(
    snapshot_id: OffsetAndEpoch,
    control: ControlState,
    last_contained_log_timestamp: int,
    values: Iterable[bytes],
    now_ms: int,
) -> Iterator[bytes]:
    """The bytes of a snapshot of these record values, batch by batch."""
    encoder = SnapshotEncoder(snapshot_id, control, last_contained_log_timestamp)
    yield encoder.begin(now_ms)
    for value in values:
        if batch := encoder.add(value, now_ms):
            yield batch
    yield encoder.finish(now_ms)


BOOTSTRAP_SNAPSHOT_ID: Final = OffsetAndEpoch(0, 0)
"""The id of 0-0, where a formatted directory keeps its first kraft.version and voters."""
