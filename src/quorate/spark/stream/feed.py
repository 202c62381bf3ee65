"""The interface of a feed: the committed log of one cluster, read in partitions by tasks.

The driver plans a partition as a range of offsets. The end of the range carries the epoch of the
last record before it. A task that finds another epoch there has read another log than the driver
planned with: for example, the replica was truncated since. The task then fails.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from quorate.base.ids import OffsetAndEpoch
from quorate.spark.decode.rows import Item, Origin, chunked
from quorate.spark.files.paths import SourceError, TransientError
from quorate.spark.files.scan import BatchRun, Damage
from quorate.spark.source.options import SourceOptions
from quorate.spark.source.read import decoder_of

if TYPE_CHECKING:
    from quorate.spark.decode.batches import RowDecoder

BEGIN = OffsetAndEpoch(0, 0)


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The committed log of a cluster at one moment."""

    start: int
    """The first offset that can be read (inclusive)."""
    end: OffsetAndEpoch
    """The end of the committed log (exclusive), and the epoch of the last record before it."""


class StreamFeed(ABC):
    """The log of one cluster, as the driver sees it."""

    name: str
    """Names the feed in messages."""

    @abstractmethod
    def identify(self, timeout_ms: int) -> str:
        """The cluster id. Raises SourceError, UnreachableError."""

    @abstractmethod
    def log_bounds(self, start: OffsetAndEpoch, timeout_ms: int) -> LogBounds:
        """The bounds of the committed log now.

        `start` is the end of what the stream has read. Raises LogDivergedError when the log does
        not have `start` with its epoch, UnreachableError when no leader answers in time.
        """

    @abstractmethod
    def epoch_below(self, offset: int) -> int | None:
        """The epoch of the record before this committed offset; None when it was deleted."""

    @abstractmethod
    def parts(
        self, start: OffsetAndEpoch, end: OffsetAndEpoch, most: int
    ) -> Sequence[InputPartition]:
        """The range [start, end) in partitions of about `most` records each."""

    @abstractmethod
    def close(self) -> None:
        """Close connections and files. The feed opens them again when it is used."""


class StreamPart(InputPartition, ABC):
    """A range of the log of a cluster that one task reads."""

    @abstractmethod
    def read(self, rows: SourceOptions) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the log. Raises SourceError."""


class RowMaker:
    """Decodes the batches of a range of offsets to rows, and checks the epoch at its end."""

    def __init__(self, rows: SourceOptions, start: int, end: OffsetAndEpoch) -> None:
        self._names = list(rows.columns)
        names = rows.columns if "offset" in rows.columns else (*rows.columns, "offset")
        self._decoder: RowDecoder = decoder_of(replace(rows, columns=names))
        self._fail_fast = rows.fail_fast
        self._start, self._end = start, end
        self.next = start
        """The next offset that the range needs."""
        self._damaged = False

    def log(
        self, origin: Origin, items: Iterable[Item], *, has_positions: bool
    ) -> Iterator[pa.RecordBatch]:
        """The rows of batches of a log, without records outside the range.

        `has_positions`: byte positions refer to a file, not to a response.
        """
        for some in chunked(self._in_range(origin, items)):
            batch = self._decoder.decode(origin, some)
            if any(self._exceeds_range(item) for item in some):
                offsets = batch.column("offset")
                inside = pc.and_(
                    pc.greater_equal(offsets, self._start), pc.less(offsets, self._end.offset)
                )
                batch = batch.filter(pc.fill_null(inside, True))
            if batch.num_rows:
                yield self._shown(batch, has_positions)

    def snapshot(self, origin: Origin, items: Iterable[Item]) -> Iterator[pa.RecordBatch]:
        """Rows of a whole snapshot."""
        for some in chunked(self._raise_on_damage(origin, items)):
            yield self._shown(self._decoder.decode(origin, some), True)

    def note(self, origin: Origin, text: str) -> pa.RecordBatch:
        """A row whose column `problem` says why offsets are missing."""
        if self._fail_fast:
            raise SourceError(f"{origin.file}: {text}")
        return self._shown(self._decoder.decode(origin, [Damage(0, 0, text)]), False)

    def _exceeds_range(self, item: Item) -> bool:
        if isinstance(item, Damage):
            return False
        first, last = int(item.heads["base_offset"][0]), _end_of(item)
        return first < self._start or last > self._end.offset

    def _in_range(self, origin: Origin, items: Iterable[Item]) -> Iterator[Item]:
        """The batches that overlap the range, up to the batch that holds its last offset."""
        for item in self._raise_on_damage(origin, items):
            if self.next >= self._end.offset:
                return  # the leader may still be writing what follows
            if isinstance(item, Damage):
                self._damaged = True
                yield item
                continue
            bases = item.heads["base_offset"].astype(np.int64)
            ends = bases + item.heads["count"]
            inside = (ends > self.next) & (bases < self._end.offset)
            if not inside.any():
                if self._damaged and bases[0] >= self._end.offset:
                    # the damaged bytes held the rest of the range: the log goes on behind it
                    self.next = self._end.offset
                continue
            run = item if inside.all() else item.part(inside)
            self.next = min(_end_of(run), self._end.offset)
            if self.next == self._end.offset:
                self._check(origin, int(run.heads["epoch"][-1]))
            yield run

    def _check(self, origin: Origin, epoch: int) -> None:
        if epoch != self._end.epoch:
            raise TransientError(
                f"{origin.file}: the record before offset {self._end.offset} has epoch {epoch}, but "
                f"the committed record has epoch {self._end.epoch}: this replica has another log; "
                "start the stream again"
            )

    def _raise_on_damage(self, origin: Origin, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if self._fail_fast and isinstance(item, Damage):
                raise SourceError(f"{origin.file}: at byte {item.position}: {item.what}")
            yield item

    def _shown(self, batch: pa.RecordBatch, has_positions: bool) -> pa.RecordBatch:
        """The requested columns; `position` is null where it would refer to a response."""
        if not has_positions and "position" in self._names:
            index = batch.schema.get_field_index("position")
            nulls = pa.nulls(batch.num_rows, batch.schema.field(index).type)
            batch = batch.set_column(index, batch.schema.field(index), nulls)
        return batch.select(self._names)


def _end_of(run: BatchRun) -> int:
    return int(run.heads["base_offset"][-1]) + int(run.heads["count"][-1])
