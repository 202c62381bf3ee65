"""Log directories that grow as a feed: the driver finds their ends, tasks read the files."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from quorate.base.ids import OffsetAndEpoch
from quorate.spark.decode.rows import Origin
from quorate.spark.files.archives import (
    CorruptArchiveError,
    FileGoneError,
    FileReaders,
    archive_members,
)
from quorate.spark.files.layout import UNKNOWN_CLUSTER, LogDirectory
from quorate.spark.files.naming import check_given
from quorate.spark.files.paths import SourceError, SourceFile, TransientError
from quorate.spark.files.scan import Damage, located_problem, runs
from quorate.spark.source.clusters import NO_META, Identity, identify
from quorate.spark.source.options import SourceOptions
from quorate.spark.source.plan import FileRange, logs_of
from quorate.spark.source.read import with_missing_offsets
from quorate.spark.stream.feed import LogBounds, RowMaker, StreamFeed, StreamPart
from quorate.spark.stream.live import LogDivergedError
from quorate.spark.stream.options import END, MAJORITY, StreamOptions
from quorate.spark.stream.tail import TailedLog, majority_end, snapshot_end

if TYPE_CHECKING:
    import pyarrow as pa

_NEVER: Final = -1e9
"""Before any time of the clock, s."""


class TailedDirectories:
    """The log directories at the paths of a stream, listed again at most every `pollMs`."""

    def __init__(
        self, options: StreamOptions, notify: Callable[[str], None] = lambda text: None
    ) -> None:
        self._options = options
        self._notify = notify
        self.passed_over: dict[str, str] = {}
        """Archives that the stream does not read, and why; each is reported once."""
        self._listed = _NEVER
        self._logs: dict[str, list[LogDirectory]] = {}
        self._identified: set[tuple[str, int]] = set()
        """Path and first offset of the logs whose clusters are known."""
        self._clusters: dict[str, Identity] = {}

    def clusters(self) -> dict[str, list[LogDirectory]]:
        """The directories of each cluster; raises SourceError."""
        now = time.monotonic()
        if now - self._listed >= self._options.poll_ms / 1000:
            rows = self._options.rows
            with FileReaders() as readers:
                logs, archives = logs_of(rows, readers)
                self._identify(logs, readers)
            self._pass_over(archives)
            for log in logs:
                if log.unreadable:
                    self._pass(log.path, str(log.problem))
            logs = [log for log in logs if not log.unreadable]
            self._logs = {}
            for log in logs:
                cluster = self._clusters[log.path]
                if cluster.cluster_id == UNKNOWN_CLUSTER or cluster.unreadable:
                    self._leave_out(log.path, cluster.problem)
                    continue
                if cluster.problem is not None:
                    self._pass(log.path, f"{log.path}: {cluster.problem}")
                self._logs.setdefault(cluster.cluster_id, []).append(log)
            if self.passed_over and (rows.fail_fast or not self._logs):
                raise SourceError(next(iter(self.passed_over.values())))
            self._listed = now
        return self._logs

    def forget(self) -> None:
        """List the directories again at the next call."""
        self._listed = _NEVER

    def _pass_over(self, archives: Sequence[SourceFile]) -> None:
        for archive in archives:
            if archive.path not in self.passed_over:
                why = f"{archive.path}: an archive does not grow: use spark.read, or ingest"
                # A damaged archive gets its reason. A compressed tar would have to be unpacked.
                if archive.path.lower().endswith((".tar", ".zip")):
                    try:
                        archive_members(archive)
                    except CorruptArchiveError as error:
                        why = f"{error}: a stream does not read it, spark.read and ingest do"
                self._pass(archive.path, why)

    def _pass(self, path: str, why: str) -> None:
        if path not in self.passed_over:
            self.passed_over[path] = why
            self._notify(why)

    def _leave_out(self, path: str, problem: str | None) -> None:
        self._pass(path, problem or f"{path}: {NO_META}")

    def _identify(self, logs: Sequence[LogDirectory], readers: FileReaders) -> None:
        """Find out whose the logs are; a cluster keeps its name while the stream runs.

        A directory of another cluster with the same id may appear meanwhile.
        """
        begins = {(log.path, log.segments[0][0] if log.segments else -1) for log in logs}
        if begins == self._identified:
            return
        if not self._identified:
            check_given(logs, self._options.rows.clusters)
        found = identify(logs, self._options.rows, readers).by_path
        kept = {
            new.cluster_id: self._clusters[path].cluster_id
            for path, new in found.items()
            if path in self._clusters
        }
        self._clusters = {
            path: replace(new, cluster_id=kept.get(new.cluster_id, new.cluster_id))
            for path, new in found.items()
        }
        self._identified = begins


def skipped_archives(options: StreamOptions) -> list[str]:
    """Why a stream does not read archives at its paths; a text for each."""
    directories = TailedDirectories(options)
    directories.clusters()
    return list(directories.passed_over.values())


def unreadable_ends(options: StreamOptions) -> Iterator[str]:
    """What follows the last valid batch of each log: file, byte, and why it is no batch.

    A batch that the replica is writing just now looks the same.
    """
    with FileReaders() as readers:
        for logs in TailedDirectories(options).clusters().values():
            for _, file in (log.segments[-1] for log in logs if log.segments):
                for last in deque(runs(readers.reader(file), file.size), maxlen=1):
                    if isinstance(last, Damage):
                        yield located_problem(file.name, last.position, None, last.what)


class TailFeed(StreamFeed):
    """The log of one cluster, read from the directories of its replicas."""

    def __init__(
        self, cluster_id: str, directories: TailedDirectories, options: StreamOptions
    ) -> None:
        self._cluster_id = cluster_id
        self._directories = directories
        self._up_to = options.up_to
        self._tails: dict[str, TailedLog] = {}
        self._committed = OffsetAndEpoch(0, 0)
        self.name = f"directories of {cluster_id}"

    def identify(self, timeout_ms: int) -> str:
        return self._cluster_id

    def log_bounds(self, start: OffsetAndEpoch, timeout_ms: int) -> LogBounds:
        tails = self._read_on()
        end = self._bound(tails)
        if end is not None and end.offset > self._committed.offset:
            self._committed = end
        self._verify(start, tails)
        end = max(start, self._committed, key=lambda place: place.offset)
        return LogBounds(self._first(start.offset), end)

    def _first(self, start: int) -> int:
        """The offset from which on the committed log can be read without a gap."""
        holder = next(iter(self._holders(start, self._committed)), None)
        if holder is None:
            return start  # no committed offset is known
        way = list(self._before(start, holder))
        return start if way and way[-1][2].offset == holder.start else holder.start

    def epoch_below(self, offset: int) -> int | None:
        holders = self._holders(offset, self._committed)
        others = self._tails.values() if holders else ()
        vouched = (tail for tail in others if offset <= tail.matching_end(holders[0]))
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
            raise TransientError(f"{self.name}: no replica has the log before offset {end.offset}")
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

    def _cut(self, tail: TailedLog, start: int, end: OffsetAndEpoch, most: int) -> list[TailPart]:
        """The log of a replica from `start` to `end`, in partitions of about `most` records."""
        cuts = range(start + most, end.offset, most)
        ends = [OffsetAndEpoch(cut, tail.epoch_below(cut) or 0) for cut in cuts] + [end]
        origin = Origin(self._cluster_id, tail.log.node_id, tail.log.path)
        return [
            TailPart(origin, self._pieces(tail, first, last.offset), first, last)
            for first, last in zip([start, *cuts], ends, strict=True)
        ]

    def _before(
        self, start: int, holder: TailedLog
    ) -> Iterator[tuple[TailedLog, int, OffsetAndEpoch]]:
        """Ranges of other replicas' logs that fill the gap from `start` to the holder's beginning.

        Replicas delete old segments at different times. `matching_end` makes sure that the other
        log is the beginning of the holder's.
        """
        others = [tail for tail in self._tails.values() if tail is not holder]
        while start < holder.start:
            ends = [(tail.matching_end(holder), tail) for tail in others if tail.start <= start]
            end, tail = max(ends, key=lambda one: one[0], default=(0, holder))
            if end <= start:
                return
            yield tail, start, OffsetAndEpoch(end, tail.epoch_below(end) or 0)
            start = end

    def close(self) -> None:
        self._tails.clear()

    def _read_on(self) -> list[TailedLog]:
        try:
            return self._look_on()
        except FileGoneError:
            self._directories.forget()  # the replica deleted the file after the listing
            return self._look_on()

    def _look_on(self) -> list[TailedLog]:
        logs = self._directories.clusters().get(self._cluster_id, [])
        found: dict[str, TailedLog] = {}
        with FileReaders() as readers:
            for log in logs:
                tail = self._tails.get(log.path)
                if tail is None or not tail.has_last_batch(log, readers):
                    tail = TailedLog(log)
                tail.read_on(log, readers)
                found[log.path] = tail
        if not found:
            raise SourceError(f"{self.name}: no directory is left at the paths of this stream")
        self._tails = found
        return list(found.values())

    def _bound(self, tails: Sequence[TailedLog]) -> OffsetAndEpoch | None:
        if self._up_to == END:
            return max((tail.last for tail in tails), key=lambda last: (last.epoch, last.offset))
        confirmed = snapshot_end(tails)
        if self._up_to == MAJORITY:
            counted = majority_end(tails)
            found = [place for place in (confirmed, counted) if place is not None]
            return max(found, key=lambda place: place.offset, default=None)
        return confirmed

    def _verify(self, start: OffsetAndEpoch, tails: Sequence[TailedLog]) -> None:
        """Raise LogDivergedError unless a replica has, or has deleted, what the stream has read."""
        if start.offset == 0:
            return
        epochs = {tail.epoch_below(start.offset) for tail in tails} - {None}
        longest = max((tail.last for tail in tails), key=lambda last: last.offset)
        if epochs and start.epoch not in epochs:
            why = f"they have epoch {sorted(filter(None, epochs))} there"
        elif longest.offset < start.offset:
            why = (
                f"the longest ends before offset {longest.offset} with epoch {longest.epoch}: they "
                "were formatted again, have lost their end, or are older copies"
            )
        else:
            return
        raise LogDivergedError(
            f"{self.name}: no replica has the log that this stream has read: the stream is at "
            f"offset {start.offset} with epoch {start.epoch}, {why}"
        )

    def _holders(self, start: int, end: OffsetAndEpoch) -> list[TailedLog]:
        """The replicas that have the log up to `end`, the best first.

        Least damage in the range counts first, then the fewest offsets missing at its beginning.
        """
        found = [
            tail
            for tail in self._tails.values()
            if tail.end >= end.offset and tail.epoch_below(end.offset) == end.epoch
        ]

        def worth(tail: TailedLog) -> tuple[int, int, str]:
            holes = sum(start <= at < end.offset for at in tail.damaged)
            return holes, max(tail.start - start, 0), tail.log.path

        return sorted(found, key=worth)

    def _baseline(self, tail: TailedLog) -> tuple[OffsetAndEpoch, SourceFile] | None:
        """The oldest snapshot that replaces what the log has deleted at its beginning."""
        for snapshot_id, file in tail.log.snapshots:
            if tail.start <= snapshot_id.offset:
                return snapshot_id, file
        return None

    def _pieces(self, tail: TailedLog, start: int, end: int) -> tuple[FileRange, ...]:
        """The ranges of the segment files that hold the offsets [start, end)."""
        mark = tail.batch_before(start)
        found = []
        for base, file in tail.log.segments:
            if base >= end or (mark is not None and base < mark.segment):
                continue
            position = mark.position if mark is not None and base == mark.segment else 0
            origin = Origin(self._cluster_id, tail.log.node_id, file.name, base)
            found.append(FileRange(origin, file, position, file.size))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class TailPart(StreamPart):
    """Offsets [start, end) of the log of one replica."""

    replica: Origin
    """The directory, as the origin of rows without a file."""
    ranges: tuple[FileRange, ...]
    start: int
    end: OffsetAndEpoch
    missing: int | None = None
    """The first offset before `start` that the stream has not read and no log has any more."""
    baseline: tuple[OffsetAndEpoch, SourceFile] | None = None
    """The snapshot that replaces the missing offsets."""
    resumed: bool = False

    def read(self, rows: SourceOptions) -> Iterator[pa.RecordBatch]:
        maker = RowMaker(rows, self.start, self.end)
        with FileReaders() as readers:
            yield from self._snapshot_rows(maker, readers)
            for file_range in self.ranges:
                if maker.next >= self.end.offset:
                    break
                found = runs(
                    readers.reader(file_range.file), file_range.file.size, file_range.start
                )
                yield from maker.log(file_range.origin, found, has_positions=True)
        if maker.next < self.end.offset:
            raise TransientError(
                f"{self.ranges[-1].file.name if self.ranges else 'the log'}: offsets "
                f"{maker.next} to {self.end.offset - 1} (inclusive) are gone: they were there when the "
                "batch was planned"
            )

    def _snapshot_rows(self, maker: RowMaker, readers: FileReaders) -> Iterator[pa.RecordBatch]:
        if self.missing is None:
            return
        origin = self.ranges[0].origin if self.ranges else self.replica
        replacement = "no snapshot replaces them"
        if self.baseline is not None:
            snapshot_id, file = self.baseline
            here = Origin(origin.cluster_id, origin.node_id, file.name, None, snapshot_id)
            file_range = FileRange(here, file, 0, file.size)
            yield from maker.snapshot(
                here, with_missing_offsets(file_range, runs(readers.reader(file), file.size))
            )
            replacement = f"the snapshot {file.name} replaces them"
        if self.resumed or self.baseline is None:
            text = f"the offsets {self.missing} to {self.start - 1} are in no log any more; {replacement}"
            yield maker.note(origin, text)
