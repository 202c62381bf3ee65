"""The streaming source `quorate-metadata`: committed records of many clusters as they come.

    spark.readStream.format("quorate-metadata").option("bootstrap.controllers", "host:9093").load()
    spark.readStream.format("quorate-metadata").load("/data/fleet/*")

Offsets of the stream are `{cluster id: {"offset": ..., "epoch": ...}}`: where the cluster's log was
read up to (exclusive), and the epoch of the last record. A cluster that is not in them is read from
its beginning. Only the committed log is read, so nothing is ever taken back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from quorate.base.ids import OffsetAndEpoch
from quorate.spark.files.paths import SourceError
from quorate.spark.stream.feed import BEGIN, Feed, Look, Part
from quorate.spark.stream.live_feed import LiveFeed
from quorate.spark.stream.live_leader import Unreachable
from quorate.spark.stream.options import LATEST, WAIT, StreamOptions
from quorate.spark.stream.tail_feed import Directories, TailFeed

if TYPE_CHECKING:
    import pyarrow as pa

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
Offsets = dict[str, dict[str, int]]
_log: Final = logging.getLogger(__name__)
_RETRY_S: Final = 0.25
"""A cluster of which nobody answers is not asked more often."""


@dataclass
class _Watched:
    """A feed and what was last heard of it; times are of the monotonic clock."""

    feed: Feed
    look: Look | None = None
    asked: float = -1e9
    silent_since: float | None = None
    cluster_id: str | None = None


class MetadataStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """On the driver it finds the committed ends and cuts ranges; tasks read their part of one."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._watched: list[_Watched] | None = None
        self._target: dict[str, OffsetAndEpoch] | None = None
        self._waiting: list[str] = []
        """The clusters that are behind, first those that have waited longest for their turn."""

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_watched": None, "_target": None, "_waiting": []}

    # -- what Spark calls -----------------------------------------------------------------
    def initialOffset(self) -> Offsets:
        if self._options.start != LATEST:
            return {}
        return _as_json({id: look.end for id, look in self._ends({}).items()})

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {id: look.end for id, look in self._ends({}).items()}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        places = _places(start)
        ends: dict[str, OffsetAndEpoch] = {}
        bases: dict[str, int] = {}
        for watched in self._feeds:
            look = self._look(watched, places)
            id = watched.cluster_id
            if look is None or id is None:
                continue
            end = look.end if self._target is None else self._aim(id, look)
            begin = places.get(id, BEGIN)
            if end.offset > begin.offset:
                ends[id] = end
                bases[id] = max(begin.offset, look.start)
        self._refuse_strangers(places)
        if isinstance(limit, ReadMaxRows):
            ends = self._limited(bases, ends, limit.max_rows)
        return _as_json({**places, **ends})

    def reportLatestOffset(self) -> Offsets | None:
        known = {w.cluster_id: w.look.end for w in self._feeds if w.cluster_id and w.look}
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
        assert isinstance(partition, Part)
        yield from partition.read(self._options.rows)

    def stop(self) -> None:
        for watched in self._watched or ():
            watched.feed.close()

    # -- the feeds ------------------------------------------------------------------------
    @property
    def _feeds(self) -> list[_Watched]:
        if self._watched is None:
            told = feeds(self._options, _log.warning)
            self._watched = [_Watched(feed) for feed in told]
        return self._watched

    def _feed_of(self, cluster_id: str) -> Feed:
        """The feed of a cluster; others need not answer for it."""
        deadline = time.monotonic() + self._options.timeout_ms / 1000
        while True:
            silence: Unreachable | None = None
            for watched in sorted(self._feeds, key=lambda watched: watched.cluster_id is None):
                try:
                    watched.cluster_id = watched.cluster_id or watched.feed.identify(0)
                except Unreachable as error:
                    silence = error
                if watched.cluster_id == cluster_id:
                    return watched.feed
            if silence is None:
                raise self._stranger(cluster_id)
            if time.monotonic() > deadline:
                raise silence
            time.sleep(_RETRY_S)

    def _ends(self, places: Mapping[str, OffsetAndEpoch]) -> dict[str, Look]:
        """What every cluster has; waits for all of them, and goes on without those that are to be
        waited for longer. Raises Unreachable when none is left."""
        patience_ms = self._options.timeout_ms
        told, _ = answers(
            self._feeds,
            lambda watched: (watched, self._asked(watched, places, patience_ms)),
            self._options.on_silence,
        )
        found: dict[str, Look] = {}
        for watched, look in told:
            assert watched.cluster_id is not None
            if watched.cluster_id in found:
                raise SourceError(
                    f"{watched.feed.name}: cluster {watched.cluster_id} is given twice"
                )
            found[watched.cluster_id] = look
        return found

    def _look(self, watched: _Watched, places: Mapping[str, OffsetAndEpoch]) -> Look | None:
        """What a cluster has; None while nobody answers, so that the others can go on.

        Raises Unreachable when that has lasted longer than the timeout, unless it is to be waited
        for.
        """
        if self._target is not None:
            return self._look_again(watched, places)
        now = time.monotonic()
        pause = self._options.poll_ms / 1000 if watched.silent_since is None else _RETRY_S
        if now - watched.asked < pause:
            return watched.look if watched.silent_since is None else None
        try:
            return self._asked(watched, places, 0)
        except Unreachable as error:
            if watched.silent_since is None:
                watched.silent_since = now
            watched.asked = time.monotonic()
            silent = time.monotonic() - watched.silent_since
            if silent * 1000 < self._options.timeout_ms or self._options.on_silence == WAIT:
                return None
            why = error.reasons
            raise Unreachable(f"{watched.feed.name}: silent for {silent:.0f} s", why) from None

    def _look_again(self, watched: _Watched, places: Mapping[str, OffsetAndEpoch]) -> Look | None:
        """In AvailableNow: the log may have been cleaned since. Who fell silent has its turn in the
        next run."""
        waits = self._options.on_silence == WAIT
        if waits and (watched.look is None or watched.silent_since is not None):
            return None
        try:
            return self._asked(watched, places, self._options.timeout_ms)
        except Unreachable:
            if not waits:
                raise
            watched.silent_since = time.monotonic()
            return None

    def _asked(
        self, watched: _Watched, places: Mapping[str, OffsetAndEpoch], patience_ms: int
    ) -> Look:
        if watched.cluster_id is None:
            watched.cluster_id = watched.feed.identify(patience_ms)
        begin = places.get(watched.cluster_id, BEGIN)
        watched.look = watched.feed.look(begin, patience_ms)
        watched.asked, watched.silent_since = time.monotonic(), None
        return watched.look

    def _aim(self, id: str, look: Look) -> OffsetAndEpoch:
        """Where AvailableNow ends in a cluster: at what was committed when it began. Where the log
        was cleaned beyond that meanwhile, a snapshot stands for it, and what is behind that now."""
        assert self._target is not None
        target = self._target.get(id)
        if target is None:
            return BEGIN  # nobody answered then
        if look.start > target.offset:
            target = self._target[id] = look.end
        return target

    # -- admission ------------------------------------------------------------------------
    def _limited(
        self, bases: Mapping[str, int], ends: Mapping[str, OffsetAndEpoch], most: int
    ) -> dict[str, OffsetAndEpoch]:
        """Ends so that about `most` records come, of each cluster in proportion to what it has."""
        found: dict[str, OffsetAndEpoch] = {}
        offsets = {id: end.offset for id, end in ends.items()}
        self._waiting = [id for id in self._waiting if id in ends]
        self._waiting += sorted(ends.keys() - self._waiting)
        for id, offset in shares(bases, offsets, most, self._waiting).items():
            if offset > bases[id]:
                self._waiting.remove(id)
                self._waiting.append(id)
            if offset == ends[id].offset:
                found[id] = ends[id]
            elif offset > bases[id]:
                epoch = self._feed_of(id).epoch_below(offset)
                # cleaned just now: a snapshot stands for it, which is not cut in pieces
                found[id] = ends[id] if epoch is None else OffsetAndEpoch(offset, epoch)
        return found

    # -- checkpoints of other clusters ----------------------------------------------------
    def _refuse_strangers(self, places: Mapping[str, OffsetAndEpoch]) -> None:
        """A checkpoint of one cluster with the controllers of another is a mistake.

        Fewer clusters than before, or more, are not.
        """
        known = {watched.cluster_id for watched in self._feeds}
        if places and None not in known and not known & set(places):
            raise self._stranger(", ".join(sorted(places)))

    def _stranger(self, cluster_id: str) -> SourceError:
        given = "; ".join(f"{w.feed.name} are of {w.cluster_id}" for w in self._feeds)
        return SourceError(
            f"the checkpoint is of cluster {cluster_id}, but {given}: give the controllers of that "
            "cluster, or start with a new checkpoint"
        )


def feeds(options: StreamOptions, tell: Callable[[str], None] = lambda text: None) -> list[Feed]:
    """What the options name; one feed for each cluster. `tell` hears what is passed over."""
    if options.controllers:
        return [LiveFeed(controllers) for controllers in options.controllers]
    directories = Directories(options, tell)
    return [TailFeed(id, directories, options) for id in sorted(directories.clusters())]


def answers(
    asked: Iterable[_Asked], ask: Callable[[_Asked], _Answer], on_silence: str
) -> tuple[list[_Answer], list[Unreachable]]:
    """What each of them says, and the silence of those that are to be waited for longer.

    Raises Unreachable where none are to be, and where nobody has answered.
    """
    found: list[_Answer] = []
    silent: list[Unreachable] = []
    for one in asked:
        try:
            found.append(ask(one))
        except Unreachable as error:
            if on_silence != WAIT:
                raise
            silent.append(error)
    if silent and not found:
        raise silent[0]
    return found, silent


def shares(
    bases: Mapping[str, int], ends: Mapping[str, int], most: int, waiting: Sequence[str] = ()
) -> dict[str, int]:
    """Where to stop in each cluster for `most` offsets of all; every one goes on a little.

    `bases` is where each begins (inclusive), `ends` where it ends (exclusive). Where there are more
    clusters than offsets, one goes to each that stands first in `waiting`, then to others.
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
    # one for each, and of the rest a share of what it has besides
    rest, more = most - len(served), whole - len(behind)
    share = {id: 1 + rest * (backlog[id] - 1) // max(more, 1) for id in served}
    return {id: bases[id] + share.get(id, 0) for id in ends}


def _places(offsets: Mapping[str, Mapping[str, int]]) -> dict[str, OffsetAndEpoch]:
    return {id: OffsetAndEpoch(at["offset"], at["epoch"]) for id, at in offsets.items()}


def _as_json(places: Mapping[str, OffsetAndEpoch]) -> Offsets:
    """Always written alike: Spark compares the texts."""
    return {id: {"offset": at.offset, "epoch": at.epoch} for id, at in sorted(places.items())}
