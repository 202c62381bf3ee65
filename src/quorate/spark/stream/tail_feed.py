"""Growing log directories as the feed of a stream: the driver looks where they end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from quorate.base.ids import OffsetAndEpoch
from quorate.spark.decode.rows import Origin
from quorate.spark.files.archives import FileGone, Shelf, UnsoundArchive, members
from quorate.spark.files.layout import UNKNOWN_CLUSTER, LogDirectory
from quorate.spark.files.paths import File, PassingFault, SourceError
from quorate.spark.files.scan import Damage, bad_piece, runs
from quorate.spark.source.options import Options
from quorate.spark.source.plan import Piece, logs_of, strangers
from quorate.spark.source.read import followed
from quorate.spark.stream.feed import Feed, Look, Maker, Part
from quorate.spark.stream.live_leader import Diverged
from quorate.spark.stream.options import END, MAJORITY, StreamOptions
from quorate.spark.stream.tail import Tail, majority_end, snapshot_end

if TYPE_CHECKING:
    import pyarrow as pa

_NEVER: Final = -1e9
"""Before any time of the clock, s."""


class Directories:
    """What is at the paths, listed again when it is older than the options allow."""

    def __init__(
        self, options: StreamOptions, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        self._options = options
        self._tell = tell
        self.passed_over: dict[str, str] = {}
        """Archives of which nothing is taken, and why; each is told once."""
        self._listed = _NEVER
        self._logs: dict[str, list[LogDirectory]] = {}
        self._compared: set[tuple[str, int]] = set()
        """Paths and first offsets of logs that are known to be of the clusters they say."""

    def clusters(self) -> dict[str, list[LogDirectory]]:
        """The directories of each cluster; raises SourceError."""
        now = time.monotonic()
        if now - self._listed >= self._options.poll_ms / 1000:
            rows = self._options.rows
            with Shelf() as shelf:
                logs, archives = logs_of(rows, shelf)
                self._refuse_strangers(logs, shelf)
            self._pass_over(archives)
            for log in logs:
                if log.packed:
                    self._pass(log.path, str(log.problem))
            logs = [log for log in logs if not log.packed]
            if self.passed_over and (rows.fail_fast or not logs):
                raise SourceError(next(iter(self.passed_over.values())))
            self._logs = {}
            for log in logs:
                id = rows.cluster_id or log.cluster_id
                if id == UNKNOWN_CLUSTER:
                    why = log.problem or (
                        f"{log.path}: no meta.properties beside it says of which cluster it is: "
                        "copy it too"
                    )
                    raise SourceError(f"{why}, or give the option clusterId")
                self._logs.setdefault(id, []).append(log)
            self._listed = now
        return self._logs

    def forget(self) -> None:
        """List them anew when they are asked for again."""
        self._listed = _NEVER

    def _pass_over(self, archives: Sequence[File]) -> None:
        for archive in archives:
            if archive.path not in self.passed_over:
                why = f"{archive.path}: an archive does not grow: use spark.read, or ingest"
                if archive.path.lower().endswith((".tar", ".zip")):  # else read for a log
                    try:
                        members(archive)
                    except UnsoundArchive as error:
                        why = f"{error}: a stream takes nothing of it, spark.read and ingest do"
                self._pass(archive.path, why)

    def _pass(self, path: str, why: str) -> None:
        if path not in self.passed_over:
            self.passed_over[path] = why
            self._tell(why)

    def _refuse_strangers(self, logs: Sequence[LogDirectory], shelf: Shelf) -> None:
        begins = {(log.path, log.segments[0][0]) for log in logs if log.segments}
        if begins != self._compared:
            for path, why in strangers(logs, shelf).items():
                raise SourceError(f"{path}: {why}: give the paths of one of them")
            self._compared = begins


def passed_over(options: StreamOptions) -> list[str]:
    """The archives at the paths of which a stream takes nothing, and why."""
    directories = Directories(options)
    directories.clusters()
    return list(directories.passed_over.values())


def unread_ends(options: StreamOptions) -> Iterator[str]:
    """What stands behind the last sound batch of each log: file, byte, and why it is none.

    A batch that is just being written looks so too.
    """
    with Shelf() as shelf:
        for logs in Directories(options).clusters().values():
            for _, file in (log.segments[-1] for log in logs if log.segments):
                for last in deque(runs(shelf.reader(file), file.size), maxlen=1):
                    if isinstance(last, Damage):
                        yield bad_piece(file.name, last.position, None, last.what)


class TailFeed(Feed):
    """The replicas of one cluster."""

    def __init__(self, cluster_id: str, directories: Directories, options: StreamOptions) -> None:
        self._cluster_id = cluster_id
        self._directories = directories
        self._up_to = options.up_to
        self._tails: dict[str, Tail] = {}
        self._committed = OffsetAndEpoch(0, 0)
        self.name = f"directories of {cluster_id}"

    def identify(self, patience_ms: int) -> str:
        return self._cluster_id

    def look(self, start: OffsetAndEpoch, patience_ms: int) -> Look:
        tails = self._read_on()
        end = self._bound(tails)
        if end is not None and end.offset > self._committed.offset:
            self._committed = end
        self._verify(start, tails)
        end = max(start, self._committed, key=lambda place: place.offset)
        return Look(self._first(start.offset), end)

    def _first(self, start: int) -> int:
        """From where on the committed log can be read, with no gap."""
        holder = next(iter(self._holders(start, self._committed)), None)
        if holder is None:
            return start  # nothing is known to be committed
        way = list(self._before(start, holder))
        return start if way and way[-1][2].offset == holder.start else holder.start

    def epoch_below(self, offset: int) -> int | None:
        holders = self._holders(offset, self._committed)
        others = self._tails.values() if holders else ()
        vouched = (tail for tail in others if offset <= tail.vouched_end(holders[0]))
        for tail in (*holders, *vouched):
            found = tail.epoch_below(offset)
            if found is not None:
                return found
        return None

    def parts(self, start: OffsetAndEpoch, end: OffsetAndEpoch, most: int) -> Sequence[TailPart]:
        if not self._tails:
            self._read_on()
        holders = self._holders(start.offset, end)
        if not holders:
            raise PassingFault(f"{self.name}: no replica has the log up to offset {end.offset}")
        tail = holders[0]
        way = list(self._before(start.offset, tail))
        come = way[-1][2].offset if way else start.offset
        base = max(come, tail.start)
        before = len(parts := [part for one in way for part in self._cut(*one, most)])
        parts += self._cut(tail, base, end, most)
        if base > come:
            parts[before] = replace(
                parts[before], missing=come, baseline=self._baseline(tail), resumed=come > 0
            )
        return parts

    def _cut(self, tail: Tail, start: int, end: OffsetAndEpoch, most: int) -> list[TailPart]:
        """A replica's log from `start` on, in parts."""
        cuts = range(start + most, end.offset, most)
        ends = [OffsetAndEpoch(cut, tail.epoch_below(cut) or 0) for cut in cuts] + [end]
        origin = Origin(self._cluster_id, tail.log.node_id, tail.log.path)
        return [
            TailPart(origin, self._pieces(tail, first, last.offset), first, last)
            for first, last in zip([start, *cuts], ends, strict=True)
        ]

    def _before(self, start: int, holder: Tail) -> Iterator[tuple[Tail, int, OffsetAndEpoch]]:
        """What others have of the log from `start` to where the holder's begins."""
        others = [tail for tail in self._tails.values() if tail is not holder]
        while start < holder.start:
            ends = [(tail.vouched_end(holder), tail) for tail in others if tail.start <= start]
            end, tail = max(ends, key=lambda one: one[0], default=(0, holder))
            if end <= start:
                return
            yield tail, start, OffsetAndEpoch(end, tail.epoch_below(end) or 0)
            start = end

    def close(self) -> None:
        self._tails.clear()

    def _read_on(self) -> list[Tail]:
        try:
            return self._look_on()
        except FileGone:
            self._directories.forget()  # cleaned since they were listed
            return self._look_on()

    def _look_on(self) -> list[Tail]:
        logs = self._directories.clusters().get(self._cluster_id, [])
        found: dict[str, Tail] = {}
        with Shelf() as shelf:
            for log in logs:
                tail = self._tails.get(log.path)
                if tail is None or not tail.goes_on(log, shelf):
                    tail = Tail(log)
                tail.look(log, shelf)
                found[log.path] = tail
        if not found:
            raise SourceError(f"{self.name}: they are gone from the paths of this stream")
        self._tails = found
        return list(found.values())

    def _bound(self, tails: Sequence[Tail]) -> OffsetAndEpoch | None:
        if self._up_to == END:
            return max((tail.last for tail in tails), key=lambda last: (last.epoch, last.offset))
        confirmed = snapshot_end(tails)
        if self._up_to == MAJORITY:
            counted = majority_end(tails)
            found = [place for place in (confirmed, counted) if place is not None]
            return max(found, key=lambda place: place.offset, default=None)
        return confirmed

    def _verify(self, start: OffsetAndEpoch, tails: Sequence[Tail]) -> None:
        """Whether a replica still has what was read before, or has cleaned it away."""
        if start.offset == 0:
            return
        epochs = {tail.epoch_below(start.offset) for tail in tails} - {None}
        longest = max((tail.last for tail in tails), key=lambda last: last.offset)
        if epochs and start.epoch not in epochs:
            why = f"they have epoch {sorted(filter(None, epochs))} there"
        elif longest.offset < start.offset:
            why = (
                f"the longest ends at offset {longest.offset} with epoch {longest.epoch}: these "
                "were formatted anew or have lost their end, or they are older copies"
            )
        else:
            return
        raise Diverged(
            f"{self.name}: no replica has the log that was read before: the stream has come to "
            f"offset {start.offset} with epoch {start.epoch}, {why}"
        )

    def _holders(self, start: int, end: OffsetAndEpoch) -> list[Tail]:
        """The replicas that have the log up to `end`; first those with the least damage on the way,
        then those that have it from `start` on."""
        found = [
            tail
            for tail in self._tails.values()
            if tail.end >= end.offset and tail.epoch_below(end.offset) == end.epoch
        ]

        def worth(tail: Tail) -> tuple[int, int, str]:
            holes = sum(start <= at < end.offset for at in tail.damaged)
            return holes, max(tail.start - start, 0), tail.log.path

        return sorted(found, key=worth)

    def _baseline(self, tail: Tail) -> tuple[OffsetAndEpoch, File] | None:
        """The oldest snapshot that stands for what is before the log's start."""
        for snapshot_id, file in tail.log.snapshots:
            if tail.start <= snapshot_id.offset:
                return snapshot_id, file
        return None

    def _pieces(self, tail: Tail, start: int, end: int) -> tuple[Piece, ...]:
        """What to read of the segments that hold the range."""
        mark = tail.mark_of(start)
        found = []
        for base, file in tail.log.segments:
            if base >= end or (mark is not None and base < mark.segment):
                continue
            position = mark.position if mark is not None and base == mark.segment else 0
            origin = Origin(self._cluster_id, tail.log.node_id, file.name, base)
            found.append(Piece(origin, file, position, file.size))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class TailPart(Part):
    """Offsets [start, end) of one replica's log."""

    replica: Origin
    """Its directory."""
    pieces: tuple[Piece, ...]
    start: int
    end: OffsetAndEpoch
    missing: int | None = None
    """The first offset that should have been read before `start` and is no more in any log."""
    baseline: tuple[OffsetAndEpoch, File] | None = None
    """The snapshot that stands for what is missing."""
    resumed: bool = False

    def read(self, rows: Options) -> Iterator[pa.RecordBatch]:
        maker = Maker(rows, self.start, self.end)
        with Shelf() as shelf:
            yield from self._instead(maker, shelf)
            for piece in self.pieces:
                if maker.next >= self.end.offset:
                    break
                found = runs(shelf.reader(piece.file), piece.file.size, piece.start)
                yield from maker.log(piece.origin, found, placed=True)
        if maker.next < self.end.offset:
            raise PassingFault(
                f"{self.pieces[-1].file.name if self.pieces else 'the log'}: offset {maker.next} "
                f"was there up to {self.end.offset} and is no more"
            )

    def _instead(self, maker: Maker, shelf: Shelf) -> Iterator[pa.RecordBatch]:
        if self.missing is None:
            return
        origin = self.pieces[0].origin if self.pieces else self.replica
        stands = "nothing stands for them"
        if self.baseline is not None:
            snapshot_id, file = self.baseline
            here = Origin(origin.cluster_id, origin.node_id, file.name, None, snapshot_id)
            piece = Piece(here, file, 0, file.size)
            yield from maker.snapshot(here, followed(piece, runs(shelf.reader(file), file.size)))
            stands = f"the snapshot {file.name} stands for them"
        if self.resumed or self.baseline is None:
            text = (
                f"the offsets {self.missing} to {self.start - 1} are in no log any more; {stands}"
            )
            yield maker.note(origin, text)
