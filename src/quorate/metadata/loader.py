"""Follows a log and its snapshots, and publishes images (`MetadataLoader`, `MetadataBatchLoader`).

A batch is applied as a whole; records of a metadata transaction (KIP-868) are published when the
transaction ends. Kafka's result depends on how the commits are divided into calls; this one does
not: an aborted transaction leaves nothing behind, and the epoch of an image is that of its last
record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.base.check import check
from quorate.base.frozen import frozen
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import BatchView, values
from quorate.formats.errors import RecordError
from quorate.formats.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    decode_record,
)
from quorate.metadata.bulk import replay_plain_partition, replay_value
from quorate.metadata.delta import ImageDelta
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import Image
from quorate.metadata.interning import Interner
from quorate.metadata.topics import ElectionCounts, Touched
from quorate.wire.schema import Message


class Provenance(NamedTuple):
    """The end of the log that an image contains (`MetadataProvenance`)."""

    offset: int = -1
    """Of the last record it holds; -1 for none."""
    epoch: int = -1
    """Of that record."""
    timestamp_ms: int = -1
    """When the leader appended that record."""
    batch_aligned: bool = False
    """True when `offset` ends a batch: only then may a snapshot be made."""

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.offset + 1, self.epoch)


@frozen
class Published:
    """An image for readers, and the end of the log that it contains."""

    image: Image
    provenance: Provenance


class LogBatch(NamedTuple):
    """A batch of the log; a control batch has no records.

    Records are those of `formats.records`, or their bytes as they stand in the log.
    """

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    records: Sequence[bytes | Message]


def log_batch(view: BatchView) -> LogBatch:
    """The batch that was read from a file or a fetch answer. Raises BatchError."""
    return LogBatch(
        view.base_offset,
        view.last_offset,
        view.epoch,
        view.max_timestamp,
        () if view.is_control else values(view),
    )


class Transaction(NamedTuple):
    """A metadata transaction that has begun and not ended."""

    name: str | None
    offset: int
    """Of its BeginTransactionRecord."""


class Loader:
    """Follows one log. Feed every batch in order; look at `published` after each.

    A batch that raises changes nothing. Not thread-safe; what it publishes is immutable.
    """

    def __init__(self) -> None:
        self.published = Published(Image(), Provenance())
        """The newest image for readers: without the records of an open transaction."""
        self.transaction: Transaction | None = None
        """The open transaction: a new active controller aborts it."""
        self.next_offset = 0
        """The offset that the next batch must begin at."""
        self._pending = self.published.image
        self._interner = Interner()
        self._touched: Touched = {}
        self.elections = ElectionCounts()
        """Of every batch that was fed."""

    def take_touched(self) -> Touched:
        """What `feed` has changed since the last call: in the image with the records of an open
        transaction. An aborted one is in it, too."""
        touched, self._touched = self._touched, {}
        return touched

    @property
    def touched(self) -> Touched:
        """What `take_touched` will give."""
        return self._touched

    def feed(self, batch: LogBatch) -> None:
        """Apply the next batch of the log.

        1. Replay its records onto a delta; an error leaves the loader as it was.
        2. Keep the new image as pending, also where a transaction is open.
        3. Without an open transaction publish it; else publish what came before the transaction.

        Raises ReplayError, with the offset, when a record is damaged or does not fit. Raises it too
        when a transaction begins inside another or ends without a begin.
        """
        check(
            batch.base_offset == self.next_offset,
            "the loader is fed batch after batch",
            batch.base_offset,
            self.next_offset,
        )
        step = _Step(self, batch)
        for index, record in enumerate(batch.records):
            try:
                step.replay(index, record)
            except (ReplayError, RecordError) as error:
                raise ReplayError(
                    f"cannot apply the record at offset {batch.base_offset + index} "
                    f"(epoch {batch.epoch}): {error}"
                ) from error
        self._pending = step.delta.apply()
        self.transaction = step.transaction
        self.next_offset = batch.last_offset + 1
        if step.transaction is None:
            provenance = Provenance(batch.last_offset, batch.epoch, batch.timestamp_ms, True)
            self.published = Published(self._pending, provenance)
        else:
            self.published = step.published

    def install(self, snapshot: Published) -> None:
        """Go on from a snapshot: its image replaces everything, an open transaction too."""
        self.published = snapshot
        self._pending = snapshot.image
        self.transaction = None
        self.next_offset = snapshot.provenance.offset + 1

    def delta(self) -> ImageDelta:
        """A delta on what was fed so far, open transaction included, that shares our tuples."""
        return ImageDelta(self._pending, self._interner, self._touched, self.elections)


class _Step:
    """The state of one batch in work; the loader takes it over when the whole batch is applied."""

    def __init__(self, loader: Loader, batch: LogBatch) -> None:
        self.batch = batch
        self.delta = loader.delta()
        self.published = loader.published
        self.transaction = loader.transaction
        self._interner = self.delta.interner
        self._touched = loader.touched
        self._elections = loader.elections

    def replay(self, index: int, record: bytes | Message) -> None:
        if isinstance(record, bytes):
            if replay_plain_partition(self.delta, record):
                return
            record = decode_record(record)[0]
        if isinstance(record, BeginTransactionRecord):
            self._begin(index, record)
        elif isinstance(record, EndTransactionRecord):
            self._open("EndTransactionRecord")
            self.transaction = None
        elif isinstance(record, AbortTransactionRecord):
            self._open("AbortTransactionRecord")
            self.transaction = None
            # Back to the image before BeginTransactionRecord, which was published there.
            self.delta = ImageDelta(
                self.published.image, self._interner, self._touched, self._elections
            )
        else:
            self.delta.replay(record)

    def _begin(self, index: int, record: BeginTransactionRecord) -> None:
        """Publish the records before it in this batch.

        That image is not batch-aligned, so no snapshot is made of it: a snapshot ends where a batch
        ends (KIP-630), or a replica that loads it could not fetch from there.
        """
        offset = self.batch.base_offset + index
        if self.transaction is not None:
            raise ReplayError(
                "BeginTransactionRecord: the transaction of offset "
                f"{self.transaction.offset} has not ended"
            )
        self.transaction = Transaction(record.name, offset)
        if index:
            image = self.delta.apply()
            batch = self.batch
            provenance = Provenance(offset - 1, batch.epoch, batch.timestamp_ms, False)
            self.published = Published(image, provenance)
            self.delta = ImageDelta(image, self._interner, self._touched, self._elections)

    def _open(self, record: str) -> None:
        if self.transaction is None:
            raise ReplayError(f"{record}: no transaction has begun")


class SnapshotBuilder:
    """Builds the image of a snapshot, a few records at a time.

    A million partitions make millions of objects that all stay alive. The caller may disable the
    garbage collector until `finish`, and call `gc.freeze()` then: each full collection would visit
    all of them and free none.
    """

    def __init__(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        """timestamp_ms: lastContainedLogTimestamp of the snapshot's header."""
        self.snapshot_id = snapshot_id
        self._timestamp_ms = timestamp_ms
        self._delta = ImageDelta(Image())
        self._count = 0

    def feed(self, records: Iterable[bytes | Message]) -> None:
        """Add the next records. Raises ReplayError with the number of the record."""
        delta, count = self._delta, self._count
        try:
            for record in records:
                if not isinstance(record, bytes):
                    delta.replay(record)
                else:
                    replay_value(delta, record)
                count += 1
        except (ReplayError, RecordError) as error:
            raise ReplayError(
                f"cannot apply record {count} of the snapshot that ends at offset "
                f"{self.snapshot_id.offset}, epoch {self.snapshot_id.epoch}: {error}"
            ) from error
        self._count = count

    def finish(self) -> Published:
        """The image of the whole snapshot, for `Loader.install`."""
        provenance = Provenance(
            self.snapshot_id.offset - 1, self.snapshot_id.epoch, self._timestamp_ms, True
        )
        return Published(self._delta.apply(), provenance)
