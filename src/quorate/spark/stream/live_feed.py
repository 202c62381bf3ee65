"""A live quorum as the feed of a stream: the driver finds the end, tasks fetch for themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final

from quorate.base.ids import Address, OffsetAndEpoch
from quorate.formats.files import segment_name, snapshot_name
from quorate.spark.decode.rows import Origin
from quorate.spark.files.paths import File, PassingFault
from quorate.spark.files.scan import runs
from quorate.spark.source.options import Options
from quorate.spark.source.plan import Piece
from quorate.spark.source.read import followed
from quorate.spark.stream.feed import Feed, Look, Maker, Part
from quorate.spark.stream.live import Fetched, Observer
from quorate.spark.stream.live_leader import ANOTHER_LOG, Controllers, Diverged

if TYPE_CHECKING:
    import pyarrow as pa

_SPOOL_BYTES: Final = 64 * 1024 * 1024
"""A larger snapshot waits on the disk of its task."""
_TRIES: Final = 5
"""How often in a row a log may be cleaned under a task's hands."""


class LiveFeed(Feed):
    """What the controllers of one cluster tell."""

    def __init__(
        self, controllers: Controllers, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = f"controllers {controllers}"
        self._observer = Observer(controllers, monotonic=monotonic)
        self._verified: OffsetAndEpoch | None = None

    def identify(self, patience_ms: int) -> str:
        return self._observer.identify(patience_ms)

    def look(self, start: OffsetAndEpoch, patience_ms: int) -> Look:
        observer = self._observer
        observer.at_least(start.epoch)
        got = observer.fetch(start.offset, start.epoch, 1, patience_ms)
        if got.diverging is not None:
            raise self._diverged(
                start,
                f"it has epoch {got.diverging.epoch} up to offset {got.diverging.offset} at most",
            )
        if got.snapshot is not None and start.offset >= max(got.log_start, 1):
            self._verify(start)
        end = got.committed
        if end is None or end.offset < start.offset:
            end = start  # a new leader that has committed nothing of its own yet
        return Look(got.log_start, end)

    def epoch_below(self, offset: int) -> int | None:
        return self._observer.epoch_below(offset)

    def parts(self, start: OffsetAndEpoch, end: OffsetAndEpoch, most: int) -> Sequence[LivePart]:
        self._observer.at_least(end.epoch)
        got = self._observer.fetch(start.offset, max_bytes=1)
        here = self._observer.told()
        cuts = range(max(start.offset, got.log_start) + most, end.offset, most)
        known = ((cut, self.epoch_below(cut)) for cut in cuts)
        inner = [OffsetAndEpoch(cut, epoch) for cut, epoch in known if epoch is not None]
        starts, ends = [start.offset, *(cut.offset for cut in inner)], [*inner, end]
        leader = self._observer.leader
        return [
            LivePart(here, leader, first, last, start.offset > 0)
            for first, last in zip(starts, ends, strict=True)
        ]

    def close(self) -> None:
        self._observer.close()

    def _verify(self, start: OffsetAndEpoch) -> None:
        """Whether the log has `start`, where the leader does not say so by itself.

        It tells nothing of epochs that are older than its oldest snapshot, although it may have
        their records.
        """
        if self._verified != start:
            found = self._observer.epoch_below(start.offset)
            if found is not None and found != start.epoch:
                raise self._diverged(start, f"its record before that is of epoch {found}")
            self._verified = start

    def _diverged(self, start: OffsetAndEpoch, why: str) -> Diverged:
        return Diverged(
            f"{self.name}: the log of cluster {self._observer.cluster_id} is not the one that was "
            f"read before: the stream has come to offset {start.offset} with epoch {start.epoch}, "
            f"{why}. {ANOTHER_LOG}"
        )


@dataclass(frozen=True, slots=True)
class LivePart(Part):
    """Offsets [start, end) of a cluster's log."""

    controllers: Controllers
    leader: tuple[Address, int] | None
    """Whom to ask first."""
    start: int
    end: OffsetAndEpoch
    resumed: bool
    """The stream has read records before these: a gap is a loss, and is told."""

    def read(self, rows: Options) -> Iterator[pa.RecordBatch]:
        maker = Maker(rows, self.start, self.end)
        tries = 0
        with Observer(self.controllers, self.leader) as observer:
            while maker.next < self.end.offset:
                before = maker.next
                got = observer.read(maker.next)
                if got.snapshot is not None:
                    yield from self._fallen_back(observer, got, maker)
                else:
                    yield from self._log(observer, got, maker)
                tries = 0 if maker.next > before else tries + 1
                if tries > _TRIES:
                    raise PassingFault(
                        f"controllers {self.controllers}: offset {maker.next} is committed but "
                        f"leader {got.leader_id} does not give it"
                    )

    def _log(self, observer: Observer, got: Fetched, maker: Maker) -> Iterator[pa.RecordBatch]:
        data = got.records
        if maker.next == 0 and got.first_offset > 0:
            # offset 0 stands alone in its batch, and no leader with a snapshot gives it
            newest = observer.fetch(0, max_bytes=1).snapshot
            if newest is None or not (yield from self._snapshot(observer, newest, got, maker)):
                return  # the log was cleaned just now: look again
        found = runs(lambda position, size: data[position : position + size], len(data))
        yield from maker.log(self._origin(got, "log"), found, placed=False)

    def _fallen_back(
        self, observer: Observer, got: Fetched, maker: Maker
    ) -> Iterator[pa.RecordBatch]:
        """The log begins later: the snapshot at its start stands for what is missing."""
        missing, first = maker.next, got.log_start
        origin = self._origin(got, segment_name(missing))
        if first > self.end.offset:
            # another batch gets the snapshot
            yield maker.note(origin, _gone(missing, self.end.offset))
            maker.next = self.end.offset
            return
        epoch = observer.start_epoch(first)
        if epoch is None:
            return  # the log was cleaned again: look again
        snapshot_id = OffsetAndEpoch(first, epoch)
        if not (yield from self._snapshot(observer, snapshot_id, got, maker)):
            return
        if self.resumed and missing < first:
            name = snapshot_name(snapshot_id)
            yield maker.note(
                origin, f"{_gone(missing, first)}; the snapshot {name} stands for them"
            )
        maker.next = first

    def _snapshot(
        self, observer: Observer, snapshot_id: OffsetAndEpoch, got: Fetched, maker: Maker
    ) -> Generator[pa.RecordBatch, None, bool]:
        """The rows of a snapshot; false when the leader has it no more.

        All of it is fetched first: the oldest snapshot is the one that goes next, and half of one
        is of no use.
        """
        with SpooledTemporaryFile(_SPOOL_BYTES, prefix="quorate-snapshot-") as spool:
            size = observer.copy_snapshot(snapshot_id, spool)
            if size is None:
                return False

            def read(position: int, count: int) -> bytes:
                spool.seek(position)
                return spool.read(count)

            origin = self._origin(got, snapshot_name(snapshot_id))
            origin = replace(origin, snapshot_id=snapshot_id)
            piece = Piece(origin, File(origin.file, size), 0, size)
            yield from maker.snapshot(origin, followed(piece, runs(read, size)))
        return True

    def _origin(self, got: Fetched, name: str) -> Origin:
        cluster_id = self.controllers.cluster_id
        assert cluster_id is not None, "the driver has asked for it"
        return Origin(cluster_id, got.leader_id, f"{self.controllers.folder}/{name}")


def _gone(first: int, end: int) -> str:
    return f"the offsets {first} to {end - 1} were deleted from the log before they were read"
