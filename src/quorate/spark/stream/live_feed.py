"""A running quorum as a feed: the driver finds the end of the log, the tasks fetch records."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final

from quorate.base.ids import Address, OffsetAndEpoch
from quorate.base.sentences import sentence
from quorate.client.leader import Controllers
from quorate.client.log_fetcher import Fetched, LogFetcher
from quorate.formats.files import segment_name, snapshot_name
from quorate.spark.decode.rows import Origin
from quorate.spark.files.paths import SourceFile, TransientError
from quorate.spark.files.scan import runs
from quorate.spark.source.options import SourceOptions
from quorate.spark.source.plan import FileRange
from quorate.spark.source.read import with_missing_offsets
from quorate.spark.stream.feed import LogBounds, RowMaker, StreamFeed, StreamPart
from quorate.spark.stream.live import ANOTHER_LOG, LogDivergedError, StreamFetcher

if TYPE_CHECKING:
    import pyarrow as pa

_SPOOL_BYTES: Final = 64 * 1024 * 1024
"""A task keeps a larger snapshot on its disk."""
_TRIES: Final = 5
"""How often in a row a task tries again because the leader deletes log that it reads."""


class LiveFeed(StreamFeed):
    """The committed log of one cluster, read from its controllers."""

    def __init__(
        self, controllers: Controllers, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = f"controllers {controllers}"
        self._fetcher = StreamFetcher(controllers, monotonic=monotonic)
        self._verified: OffsetAndEpoch | None = None

    def identify(self, timeout_ms: int) -> str:
        return self._fetcher.identify(timeout_ms)

    def log_bounds(self, start: OffsetAndEpoch, timeout_ms: int) -> LogBounds:
        fetcher = self._fetcher
        fetcher.require_epoch(start.epoch)
        got = fetcher.fetch(start.offset, start.epoch, 1, timeout_ms)
        if got.diverging is not None:
            raise self._diverged(
                start,
                f"the log's epoch {got.diverging.epoch} ends before offset {got.diverging.offset}",
            )
        if got.snapshot is not None and start.offset >= max(got.log_start, 1):
            self._verify(start)
        end = got.committed
        if end is None or end.offset < start.offset:
            # A new leader returns no high watermark until it commits a record of its own epoch.
            # What the stream has read stays committed.
            end = start
        return LogBounds(got.log_start, end)

    def epoch_below(self, offset: int) -> int | None:
        return self._fetcher.epoch_below(offset)

    def parts(self, start: OffsetAndEpoch, end: OffsetAndEpoch, most: int) -> Sequence[LivePart]:
        self._fetcher.require_epoch(end.epoch)
        got = self._fetcher.fetch(start.offset, max_bytes=1)
        here = self._fetcher.known_controllers()
        cuts = range(max(start.offset, got.log_start) + most, end.offset, most)
        known = ((cut, self.epoch_below(cut)) for cut in cuts)
        inner = [OffsetAndEpoch(cut, epoch) for cut, epoch in known if epoch is not None]
        starts, ends = [start.offset, *(cut.offset for cut in inner)], [*inner, end]
        leader = self._fetcher.leader
        return [
            LivePart(here, leader, first, last, start.offset > 0)
            for first, last in zip(starts, ends, strict=True)
        ]

    def close(self) -> None:
        self._fetcher.close()

    def _verify(self, start: OffsetAndEpoch) -> None:
        """Raise LogDivergedError unless the log has `start`, where the leader does not check it.

        A leader answers an epoch older than its oldest snapshot with that snapshot, not with a
        diverging epoch, although it may have the records. So the record before `start` is fetched.
        """
        if self._verified != start:
            found = self._fetcher.epoch_below(start.offset)
            if found is not None and found != start.epoch:
                raise self._diverged(start, f"the record before that offset has epoch {found} now")
            self._verified = start

    def _diverged(self, start: OffsetAndEpoch, why: str) -> LogDivergedError:
        return LogDivergedError(
            f"{self.name}: the log of cluster {self._fetcher.cluster_id} is not the log that this "
            f"stream has read: the stream is at offset {start.offset} with epoch {start.epoch}, but "
            f"{sentence(why)} {ANOTHER_LOG}"
        )


@dataclass(frozen=True, slots=True)
class LivePart(StreamPart):
    """Offsets [start, end) of the log of a cluster."""

    controllers: Controllers
    leader: tuple[Address, int] | None
    """The address and epoch of the leader to ask first."""
    start: int
    end: OffsetAndEpoch
    resumed: bool
    """Whether the stream has read records before these: then a gap is a loss, and gets a row."""

    def read(self, rows: SourceOptions) -> Iterator[pa.RecordBatch]:
        maker = RowMaker(rows, self.start, self.end)
        tries = 0
        with StreamFetcher(self.controllers, self.leader) as fetcher:
            while maker.next < self.end.offset:
                before = maker.next
                got = fetcher.read(maker.next)
                if got.snapshot is not None:
                    yield from self._snapshot_at_log_start(fetcher, got, maker)
                else:
                    yield from self._log(fetcher, got, maker)
                tries = 0 if maker.next > before else tries + 1
                if tries > _TRIES:
                    raise TransientError(
                        f"controllers {self.controllers}: offset {maker.next} is committed but "
                        f"leader {got.leader_id} does not return it"
                    )

    def _log(self, fetcher: LogFetcher, got: Fetched, maker: RowMaker) -> Iterator[pa.RecordBatch]:
        data = got.records
        if maker.next == 0 and got.first_offset > 0:
            # The bootstrap record at offset 0 is a batch of its own, and a leader that has a
            # snapshot answers offset 0 with that. So the snapshot stands for offset 0.
            newest = fetcher.fetch(0, max_bytes=1).snapshot
            if newest is None or not (yield from self._snapshot(fetcher, newest, got, maker)):
                return  # the leader deleted the snapshot meanwhile: read() fetches again
        found = runs(lambda position, size: data[position : position + size], len(data))
        yield from maker.log(self._origin(got, "log"), found, has_positions=False)

    def _snapshot_at_log_start(
        self, fetcher: LogFetcher, got: Fetched, maker: RowMaker
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the snapshot at the log start offset, where the log begins after `next`.

        1. Deleted beyond the end of this range: another partition reads the snapshot; this one
           only says that its offsets are gone.
        2. Otherwise the snapshot that ends at the log start offset replaces the missing offsets.
        3. A stream that has read records before gets a row that names the loss.
        """
        missing, first = maker.next, got.log_start
        origin = self._origin(got, segment_name(missing))
        if first > self.end.offset:
            yield maker.note(origin, _deleted(missing, self.end.offset))
            maker.next = self.end.offset
            return
        epoch = fetcher.start_epoch(first)
        if epoch is None:
            return  # the leader deleted more of its log meanwhile: read() fetches again
        snapshot_id = OffsetAndEpoch(first, epoch)
        if not (yield from self._snapshot(fetcher, snapshot_id, got, maker)):
            return
        if self.resumed and missing < first:
            name = snapshot_name(snapshot_id)
            yield maker.note(
                origin, f"{_deleted(missing, first)}; the snapshot {name} replaces them"
            )
        maker.next = first

    def _snapshot(
        self, fetcher: LogFetcher, snapshot_id: OffsetAndEpoch, got: Fetched, maker: RowMaker
    ) -> Generator[pa.RecordBatch, None, bool]:
        """The rows of a snapshot; the generator returns False when the leader deleted it.

        The whole snapshot is fetched before any row is given. The oldest snapshot is the next one
        to be deleted, and the rows of half a snapshot would be wrong.
        """
        with SpooledTemporaryFile(_SPOOL_BYTES, prefix="quorate-snapshot-") as spool:
            size = fetcher.copy_snapshot(snapshot_id, spool)
            if size is None:
                return False

            def read(position: int, count: int) -> bytes:
                spool.seek(position)
                return spool.read(count)

            origin = self._origin(got, snapshot_name(snapshot_id))
            origin = replace(origin, snapshot_id=snapshot_id)
            file_range = FileRange(origin, SourceFile(origin.file, size), 0, size)
            yield from maker.snapshot(origin, with_missing_offsets(file_range, runs(read, size)))
        return True

    def _origin(self, got: Fetched, name: str) -> Origin:
        cluster_id = self.controllers.cluster_id
        assert cluster_id is not None, "the driver has identified the cluster"
        return Origin(cluster_id, got.leader_id, f"{self.controllers.folder}/{name}")


def _deleted(first: int, end: int) -> str:
    return f"the offsets {first} to {end - 1} were deleted from the log before they were read"
