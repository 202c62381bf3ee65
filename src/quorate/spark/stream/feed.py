"""What a stream reads from: something that has a cluster's committed log, and can be cut in parts.

A part is read by a task. Its end has an epoch, that of the last record before it: where the task
finds another one there, the log that it read from is not the one that was planned with.
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
from quorate.spark.files.paths import PassingFault, SourceError
from quorate.spark.files.scan import Damage, Run
from quorate.spark.source.options import Options
from quorate.spark.source.read import decoder_of

if TYPE_CHECKING:
    from quorate.spark.decode.batches import AnyDecoder

BEGIN = OffsetAndEpoch(0, 0)


@dataclass(frozen=True, slots=True)
class Look:
    """What a cluster has; offsets."""

    start: int
    """The first that can be read."""
    end: OffsetAndEpoch
    """Where the committed log ends (exclusive), with the epoch of the last record."""


class Feed(ABC):
    """One cluster's log, as the driver sees it."""

    name: str
    """For messages."""

    @abstractmethod
    def identify(self, patience_ms: int) -> str:
        """The cluster's id; raises SourceError, Unreachable."""

    @abstractmethod
    def look(self, start: OffsetAndEpoch, patience_ms: int) -> Look:
        """What there is now, of the log that has `start`.

        Raises Diverged when it is another log, Unreachable.
        """

    @abstractmethod
    def epoch_below(self, offset: int) -> int | None:
        """The epoch of the record before this committed offset; None: that was cleaned away."""

    @abstractmethod
    def parts(
        self, start: OffsetAndEpoch, end: OffsetAndEpoch, most: int
    ) -> Sequence[InputPartition]:
        """The range in parts of about `most` records."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is open; it may be used again."""


class Part(InputPartition, ABC):
    """A range of a cluster's log that one task reads."""

    @abstractmethod
    def read(self, rows: Options) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the log. Raises SourceError."""


class Maker:
    """Makes the rows of a range of offsets."""

    def __init__(self, rows: Options, start: int, end: OffsetAndEpoch) -> None:
        self._names = list(rows.columns)
        names = rows.columns if "offset" in rows.columns else (*rows.columns, "offset")
        self._decoder: AnyDecoder = decoder_of(replace(rows, columns=names))
        self._fail_fast = rows.fail_fast
        self._start, self._end = start, end
        self.next = start
        """The offset that comes next."""
        self._damaged = False

    def log(
        self, origin: Origin, items: Iterable[Item], *, placed: bool
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a log; those beyond the range are left out. `placed`: positions are in a file."""
        for some in chunked(self._followed(origin, items)):
            batch = self._decoder.decode(origin, some)
            if any(self._juts_out(item) for item in some):
                offsets = batch.column("offset")
                inside = pc.and_(
                    pc.greater_equal(offsets, self._start), pc.less(offsets, self._end.offset)
                )
                batch = batch.filter(pc.fill_null(inside, True))
            if batch.num_rows:
                yield self._shown(batch, placed)

    def snapshot(self, origin: Origin, items: Iterable[Item]) -> Iterator[pa.RecordBatch]:
        """Rows of a whole snapshot."""
        for some in chunked(self._failing(origin, items)):
            yield self._shown(self._decoder.decode(origin, some), True)

    def note(self, origin: Origin, text: str) -> pa.RecordBatch:
        """A row that says why there are none."""
        if self._fail_fast:
            raise SourceError(f"{origin.file}: {text}")
        return self._shown(self._decoder.decode(origin, [Damage(0, 0, text)]), False)

    def _juts_out(self, item: Item) -> bool:
        if isinstance(item, Damage):
            return False
        first, last = int(item.heads["base_offset"][0]), _end_of(item)
        return first < self._start or last > self._end.offset

    def _followed(self, origin: Origin, items: Iterable[Item]) -> Iterator[Item]:
        """The batches that reach into the range; checks the epoch at its end."""
        for item in self._failing(origin, items):
            if self.next >= self._end.offset:
                return  # what follows may be half written
            if isinstance(item, Damage):
                self._damaged = True
                yield item
                continue
            bases = item.heads["base_offset"].astype(np.int64)
            ends = bases + item.heads["count"]
            inside = (ends > self.next) & (bases < self._end.offset)
            if not inside.any():
                if self._damaged and bases[0] >= self._end.offset:
                    self.next = self._end.offset  # what was damaged reaches beyond the range
                continue
            run = item if inside.all() else item.part(inside)
            self.next = min(_end_of(run), self._end.offset)
            if self.next == self._end.offset:
                self._check(origin, int(run.heads["epoch"][-1]))
            yield run

    def _check(self, origin: Origin, epoch: int) -> None:
        if epoch != self._end.epoch:
            raise PassingFault(
                f"{origin.file}: the record before offset {self._end.offset} is of epoch {epoch}, "
                f"but the committed one is of epoch {self._end.epoch}: this replica has another "
                "log; start again"
            )

    def _failing(self, origin: Origin, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if self._fail_fast and isinstance(item, Damage):
                raise SourceError(f"{origin.file}: at byte {item.position}: {item.what}")
            yield item

    def _shown(self, batch: pa.RecordBatch, placed: bool) -> pa.RecordBatch:
        """With the columns that were asked for; no position where it would be one in a message."""
        if not placed and "position" in self._names:
            index = batch.schema.get_field_index("position")
            nulls = pa.nulls(batch.num_rows, batch.schema.field(index).type)
            batch = batch.set_column(index, batch.schema.field(index), nulls)
        return batch.select(self._names)


def _end_of(run: Run) -> int:
    return int(run.heads["base_offset"][-1]) + int(run.heads["count"][-1])
