"""The stream reader of `quorate-metadata`: committed records of many clusters.

    spark.readStream.format("quorate-metadata").option("bootstrap.controllers", "host:9093").load()
    spark.readStream.format("quorate-metadata").load("/data/fleet/*")

An offset of the stream is `{cluster id: {"offset": ..., "epoch": ...}}`: the end of what was read
of the log of the cluster (exclusive), and the epoch of the last record. The stream reads a cluster
that the offset does not name from its beginning. It reads only committed records, so it never has
to retract a row.

How a micro-batch comes about:

1. Spark calls `latestOffset`. The driver asks each feed for the bounds of its committed log, and
   cuts the ends to maxOffsetsPerTrigger.
2. Spark writes that offset to its checkpoint.
3. Spark calls `partitions` with the two offsets. After a restart it does so for the batch that the
   checkpoint names but that was not finished: the feeds must give the same records again.
4. Tasks call `read`. Each checks that its range ends with the planned epoch (see `feed`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from quorate.base.errors import QuorateError
from quorate.base.ids import OffsetAndEpoch
from quorate.spark.files.paths import SourceError
from quorate.spark.stream.feed import BEGIN, LogBounds, StreamFeed, StreamPart
from quorate.spark.stream.live import UnreachableError
from quorate.spark.stream.live_feed import LiveFeed
from quorate.spark.stream.options import LATEST, WAIT, StreamOptions
from quorate.spark.stream.tail_feed import TailedDirectories, TailFeed

if TYPE_CHECKING:
    import pyarrow as pa

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
Offsets = dict[str, dict[str, int]]
_log: Final = logging.getLogger(__name__)
_RETRY_S: Final = 0.25
"""The least time between two requests to a cluster that does not answer, s."""


@dataclass
class _WatchedFeed:
    """A feed and its last answer; times are of the monotonic clock."""

    feed: StreamFeed
    bounds: LogBounds | None = None
    asked_at: float = -1e9
    silent_since: float | None = None
    cluster_id: str | None = None


class MetadataStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream reader: on the driver it plans ranges of offsets, in tasks it reads them.

    names: of the columns in the user's schema, which may differ in case; None for the source's
    """

    def __init__(self, options: StreamOptions, names: tuple[str, ...] | None = None) -> None:
        self._options = options
        self._names = options.rows.columns if names is None else names
        self._watched: list[_WatchedFeed] | None = None
        self._target: dict[str, OffsetAndEpoch] | None = None
        self._waiting: list[str] = []
        """Clusters with unread records, the one that has waited longest first."""

    # Spark pickles the reader for the tasks: connections and open files stay on the driver.
    def __getstate__(self) -> dict[str, Any]:
        nothing: dict[str, Any] = {"_watched": None, "_target": None, "_waiting": []}
        return {"_options": self._options, "_names": self._names, **nothing}

    # -- called by Spark ------------------------------------------------------------------
    def initialOffset(self) -> Offsets:
        if self._options.start != LATEST:
            return {}
        return _as_json({id: bounds.end for id, bounds in self._ends({}).items()})

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {id: bounds.end for id, bounds in self._ends({}).items()}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        places = _places(start)
        ends: dict[str, OffsetAndEpoch] = {}
        bases: dict[str, int] = {}
        for watched in self._feeds:
            bounds = self._poll(watched, places)
            id = watched.cluster_id
            if bounds is None or id is None:
                continue
            end = bounds.end if self._target is None else self._available_now_end(id, bounds)
            begin = places.get(id, BEGIN)
            if end.offset > begin.offset:
                ends[id] = end
                bases[id] = max(begin.offset, bounds.start)
        self._refuse_foreign_clusters(places)
        if isinstance(limit, ReadMaxRows):
            ends = self._limited(bases, ends, limit.max_rows)
        return _as_json({**places, **ends})

    def reportLatestOffset(self) -> Offsets | None:
        """The newest committed offsets, for Spark's report after a micro-batch (see `lag`).

        It asks each cluster again, since a micro-batch may have taken long. A cluster that does not
        answer at once has the offset of its last answer.
        """
        for watched in self._feeds:
            self._look_ahead(watched)
        known = {w.cluster_id: w.bounds.end for w in self._feeds if w.cluster_id and w.bounds}
        return _as_json(known) or None

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        starts, parts = _places(start), list[InputPartition]()
        for id, last in _places(end).items():
            first = starts.get(id, BEGIN)
            if last.offset > first.offset:
                feed = self._feed_of(id)
                parts += feed.parts(first, last, self._options.partition_offsets)
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPart)
        for batch in partition.read(self._options.rows):
            yield batch.rename_columns(self._names)

    def stop(self) -> None:
        for watched in self._watched or ():
            watched.feed.close()

    # -- the feeds ------------------------------------------------------------------------
    @property
    def _feeds(self) -> list[_WatchedFeed]:
        if self._watched is None:
            opened = open_feeds(self._options, _log.warning)
            self._watched = [_WatchedFeed(feed) for feed in opened]
        return self._watched

    def _feed_of(self, cluster_id: str) -> StreamFeed:
        """The feed of a cluster; the other feeds need not answer."""
        deadline = time.monotonic() + self._options.timeout_ms / 1000
        while True:
            silence: UnreachableError | None = None
            for watched in sorted(self._feeds, key=lambda watched: watched.cluster_id is None):
                try:
                    watched.cluster_id = watched.cluster_id or watched.feed.identify(0)
                except UnreachableError as error:
                    silence = error
                if watched.cluster_id == cluster_id:
                    return watched.feed
            if silence is None:
                raise self._foreign_cluster_error(cluster_id)
            if time.monotonic() > deadline:
                raise silence
            time.sleep(_RETRY_S)

    def _ends(self, places: Mapping[str, OffsetAndEpoch]) -> dict[str, LogBounds]:
        """The bounds of each cluster's log, when the stream starts.

        It waits for each cluster up to the timeout. With onSilence=wait it goes on without those
        that did not answer. Raises UnreachableError when none answered.
        """
        timeout_ms = self._options.timeout_ms
        polled, _ = poll_each(
            self._feeds,
            lambda watched: (watched, self._ask_feed(watched, places, timeout_ms)),
            self._options.on_silence,
        )
        found: dict[str, LogBounds] = {}
        for watched, bounds in polled:
            assert watched.cluster_id is not None
            if watched.cluster_id in found:
                raise SourceError(
                    f"{watched.feed.name}: cluster {watched.cluster_id} is named twice"
                )
            found[watched.cluster_id] = bounds
        return found

    def _poll(
        self, watched: _WatchedFeed, places: Mapping[str, OffsetAndEpoch]
    ) -> LogBounds | None:
        """The bounds of a cluster's log; None while it does not answer, so that others go on.

        Raises UnreachableError after the timeout, except with onSilence=wait.
        """
        if self._target is not None:
            return self._poll_available_now(watched, places)
        now = time.monotonic()
        pause = self._options.poll_ms / 1000 if watched.silent_since is None else _RETRY_S
        if now - watched.asked_at < pause:
            return watched.bounds if watched.silent_since is None else None
        try:
            return self._ask_feed(watched, places, 0)
        except UnreachableError as error:
            if watched.silent_since is None:
                watched.silent_since = now
            watched.asked_at = time.monotonic()
            silent = time.monotonic() - watched.silent_since
            if silent * 1000 < self._options.timeout_ms or self._options.on_silence == WAIT:
                return None
            why = error.reasons
            raise UnreachableError(f"{watched.feed.name}: silent for {silent:.0f} s", why) from None

    def _poll_available_now(
        self, watched: _WatchedFeed, places: Mapping[str, OffsetAndEpoch]
    ) -> LogBounds | None:
        """The bounds in a run with Trigger.AvailableNow: the leader may have deleted log since.

        With onSilence=wait a cluster that stops answering is left to the next run.
        """
        waits = self._options.on_silence == WAIT
        if waits and (watched.bounds is None or watched.silent_since is not None):
            return None
        try:
            return self._ask_feed(watched, places, self._options.timeout_ms)
        except UnreachableError:
            if not waits:
                raise
            watched.silent_since = time.monotonic()
            return None

    def _ask_feed(
        self, watched: _WatchedFeed, places: Mapping[str, OffsetAndEpoch], timeout_ms: int
    ) -> LogBounds:
        if watched.cluster_id is None:
            watched.cluster_id = watched.feed.identify(timeout_ms)
        begin = places.get(watched.cluster_id, BEGIN)
        watched.bounds = watched.feed.log_bounds(begin, timeout_ms)
        watched.asked_at, watched.silent_since = time.monotonic(), None
        return watched.bounds

    def _look_ahead(self, watched: _WatchedFeed) -> None:
        """Ask for the bounds of a log without waiting; keep the known ones when that fails.

        The next micro-batch reports what is wrong.
        """
        pause = self._options.poll_ms / 1000
        if watched.bounds is None or time.monotonic() - watched.asked_at < pause:
            return
        with suppress(QuorateError):
            watched.bounds = watched.feed.log_bounds(watched.bounds.end, 0)

    def _available_now_end(self, id: str, bounds: LogBounds) -> OffsetAndEpoch:
        """Return where a run with Trigger.AvailableNow ends: at what was committed when it began.

        When the leader has deleted its log beyond that offset since, a snapshot replaces those
        records. A snapshot cannot be cut, so the run then ends where the log ends now.
        """
        assert self._target is not None
        target = self._target.get(id)
        if target is None:
            return BEGIN  # the cluster did not answer when the run began
        if bounds.start > target.offset:
            target = self._target[id] = bounds.end
        return target

    # -- admission ------------------------------------------------------------------------
    def _limited(
        self, bases: Mapping[str, int], ends: Mapping[str, OffsetAndEpoch], most: int
    ) -> dict[str, OffsetAndEpoch]:
        """Ends for about `most` records, divided among clusters by their unread records."""
        found: dict[str, OffsetAndEpoch] = {}
        offsets = {id: end.offset for id, end in ends.items()}
        self._waiting = [id for id in self._waiting if id in ends]
        self._waiting += sorted(ends.keys() - self._waiting)
        for id, offset in share_offsets(bases, offsets, most, self._waiting).items():
            if offset > bases[id]:
                self._waiting.remove(id)
                self._waiting.append(id)
            if offset == ends[id].offset:
                found[id] = ends[id]
            elif offset > bases[id]:
                epoch = self._feed_of(id).epoch_below(offset)
                # the leader deleted that record meanwhile; a snapshot replaces it and cannot be cut
                found[id] = ends[id] if epoch is None else OffsetAndEpoch(offset, epoch)
        return found

    # -- checkpoints of foreign clusters --------------------------------------------------
    def _refuse_foreign_clusters(self, places: Mapping[str, OffsetAndEpoch]) -> None:
        """Raise SourceError when no cluster of the checkpoint is given any more.

        A stream may be restarted with fewer clusters, or with more.
        """
        known = {watched.cluster_id for watched in self._feeds}
        if places and None not in known and not known & set(places):
            raise self._foreign_cluster_error(", ".join(sorted(places)))

    def _foreign_cluster_error(self, cluster_id: str) -> SourceError:
        given = "; ".join(f"{w.feed.name} are of {w.cluster_id}" for w in self._feeds)
        return SourceError(
            f"the checkpoint is of cluster {cluster_id}, but {given}: name the controllers of that "
            "cluster, or start with a new checkpoint"
        )


def open_feeds(
    options: StreamOptions, notify: Callable[[str], None] = lambda text: None
) -> list[StreamFeed]:
    """One feed for each cluster that the options name. `notify` gets a text per skipped archive."""
    if options.controllers:
        return [LiveFeed(controllers) for controllers in options.controllers]
    directories = TailedDirectories(options, notify)
    return [TailFeed(id, directories, options) for id in sorted(directories.clusters())]


def poll_each(
    asked_at: Iterable[_Asked], ask: Callable[[_Asked], _Answer], on_silence: str
) -> tuple[list[_Answer], list[UnreachableError]]:
    """The answer of each, and the errors of those that did not answer in time.

    Raises UnreachableError for the first of these, unless `on_silence` is `wait`; then only when
    none has answered.
    """
    found: list[_Answer] = []
    silent: list[UnreachableError] = []
    for one in asked_at:
        try:
            found.append(ask(one))
        except UnreachableError as error:
            if on_silence != WAIT:
                raise
            silent.append(error)
    if silent and not found:
        raise silent[0]
    return found, silent


def share_offsets(
    bases: Mapping[str, int], ends: Mapping[str, int], most: int, waiting: Sequence[str] = ()
) -> dict[str, int]:
    """Return where to stop in each cluster, for `most` offsets in all; each gets at least one.

    bases: the first unread offset of each cluster (inclusive); ends: its last (exclusive)
    waiting: the clusters in the order of their turn: with more clusters than offsets, one offset
        goes to each of the first
    """
    backlog = {id: max(ends[id] - bases[id], 0) for id in ends}
    whole = sum(backlog.values())
    if whole <= most:
        return dict(ends)
    turn = {id: number for number, id in enumerate(waiting)}
    behind = sorted(
        (id for id, count in backlog.items() if count),
        key=lambda id: (turn.get(id, len(turn)), id),
    )
    served = behind[:most]
    # one offset for each, and the rest in proportion to what each has besides
    rest, more = most - len(served), whole - len(behind)
    share = {id: 1 + rest * (backlog[id] - 1) // max(more, 1) for id in served}
    return {id: bases[id] + share.get(id, 0) for id in ends}


def _places(offsets: Mapping[str, Mapping[str, int]]) -> dict[str, OffsetAndEpoch]:
    return {id: OffsetAndEpoch(at["offset"], at["epoch"]) for id, at in offsets.items()}


def _as_json(places: Mapping[str, OffsetAndEpoch]) -> Offsets:
    """The same offsets always give the same text: Spark compares texts of offsets."""
    return {id: {"offset": at.offset, "epoch": at.epoch} for id, at in sorted(places.items())}
