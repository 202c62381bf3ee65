"""The streaming job: committed records of clusters are ingested as they come.

Each micro-batch is a run of `ingest_rows`, which ingests every record once however often it is
offered. So a job that dies between a run and Spark's commit of the micro-batch loses and duplicates
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import StreamingQueryException

from quorate.base.errors import QuorateError
from quorate.base.plural import pluralize
from quorate.spark.data_source import FORMAT
from quorate.spark.files.paths import SourceError
from quorate.spark.jobs.checkpoints import checkpoint_for, reached
from quorate.spark.session import reason, register, wrapped_error
from quorate.spark.stream.feed import BEGIN, StreamFeed
from quorate.spark.stream.lag import LagMeter, StreamLag
from quorate.spark.stream.options import END, WAIT, StreamOptions, parse_stream_options
from quorate.spark.stream.reader import open_feeds, poll_each
from quorate.spark.stream.tail_feed import skipped_archives, unreadable_ends
from quorate.spark.tables.bronze import BODY_COLUMNS
from quorate.spark.tables.control import load_progress
from quorate.spark.tables.ingest import IngestSettings, ingest_rows
from quorate.spark.tables.store import TableStore
from quorate.spark.tables.summary import (
    IngestSummary,
    Notify,
    note_progress,
    of_cluster,
    retry_while_overtaken,
)
from quorate.spark.tables.warehouse import open_store
from quorate.spark.write_errors import DiskWriteError, error_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S: Final = 1
_LAST_LOOK_MS: Final = 5_000
"""How long a job that ends waits for an answer of each cluster: an election may be under way."""
_TWO_STREAMS: Final = (
    "CONCURRENT_STREAM_LOG_UPDATE",
    "Multiple streaming queries are concurrently",
)
"""Parts of Spark's messages for a checkpoint that two queries use."""


@dataclass
class FollowSummary(IngestSummary):
    """What a job ingested in all its micro-batches."""

    batches: int = 0
    unread: list[str] = field(default_factory=list)
    """Incomplete batches at the ends of logs: file, byte and reason. The stream waits there."""

    passed_over: list[str] = field(default_factory=list)
    """Archives that are not read, and why; the name is a key of the command's JSON."""

    silent: list[str] = field(default_factory=list)
    """With onSilence=wait: clusters that do not answer, and why, when the job ended; with `--once`, at
    any time."""

    lag: dict[str, StreamLag] = field(default_factory=dict)
    """By cluster: how far the stream was behind when it was last measured."""

    @property
    def bad(self) -> bool:
        return bool(self.passed_over or self.silent) or super().bad

    def to_json(self) -> dict[str, Any]:
        lag = {id: one._asdict() for id, one in self.lag.items()}
        return {**super().to_json(), "lag": lag}


def follow_clusters(
    spark: SparkSession,
    options: Mapping[str, str],
    warehouse: str,
    *,
    every_s: float | None = None,
    table_format: str = "delta",
    notify: Notify = lambda text: None,
    should_continue: Callable[[], bool] = lambda: True,
) -> FollowSummary:
    """Ingest the committed records of these clusters into the warehouse as they come.

    options: of the stream (`bootstrap.controllers`, `path`, ...); with `failFast` the job ends with
        InvalidInputError before a micro-batch with bad input, like `ingest`
    every_s: seconds between the beginnings of two micro-batches; None: end when what is committed
        now is ingested
    should_continue: called about once a second; False ends the job after the current micro-batch

    Other jobs may write to the warehouse at the same time: a micro-batch is repeated when another
    job changes one of its clusters first. Raises SourceError, InvalidInputError, WarehouseError,
    ConcurrentRunError, QueryFailedError.
    """
    settings = parse_stream_options(options)
    began = time.monotonic()
    notify("asking for the cluster ids")
    # wrong addresses and paths are reported before Spark starts
    clusters, silent = _clusters(settings)
    store = open_store(warehouse, table_format)
    folder = checkpoint_for(store, clusters, len(silent))
    checkpoint = f"{store.root}/{folder}"
    committed = bool(settings.controllers) or settings.up_to != END
    sink = _Sink(spark, store, settings.rows.fail_fast, committed, notify)
    sink.followed.silent = silent
    words = {name: word for name, word in options.items() if name.lower() != "failfast"}
    if not settings.controllers:
        sink.followed.passed_over = skipped_archives(settings)
    register(spark)
    frame = spark.readStream.format(FORMAT).options(columns=",".join(BODY_COLUMNS), **words).load()
    writer = frame.writeStream.foreachBatch(sink.take).option("checkpointLocation", checkpoint)
    if every_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds")
    notify("asking for the committed offsets")
    query = writer.start()
    watch = LagWatch(notify)
    try:
        try:
            while not (ended := query.awaitTermination(_LOOK_S)):
                watch.look(query.lastProgress)
                if not should_continue():
                    break
        finally:
            _ended(query)
            watch.look(query.lastProgress)
            sink.followed.lag = watch.lag
    except StreamingQueryException as error:
        raise failure(sink.failure or error, checkpoint) from error
    if every_s is None and not settings.controllers:
        sink.followed.unread = list(unreadable_ends(settings))
    if settings.on_silence == WAIT and every_s is not None:
        sink.followed.silent = _silent_now(settings)
    elif settings.on_silence == WAIT and ended:
        sink.followed.silent += fallen_silent(clusters, reached(store, folder))
    _note_ends(sink.followed, store, clusters)
    sink.followed.seconds = round(time.monotonic() - began, 3)
    return sink.followed


class LagWatch:
    """Measures the lag of the job's query, and reports it once for each micro-batch that lacks some.

    lag: by cluster, as last measured
    """

    def __init__(self, notify: Notify, meter: LagMeter | None = None) -> None:
        self.lag: dict[str, StreamLag] = {}
        self._notify, self._meter = notify, meter or LagMeter()
        self._last: tuple[Any, Any] = (None, None)

    def look(self, progress: Mapping[str, Any] | None) -> None:
        """Take Spark's newest report; None: there is none yet."""
        if progress is None:
            return
        this = progress["batchId"], progress["timestamp"]
        if this == self._last:
            return
        self._last = this
        self.lag = self._meter.update(progress)
        for cluster_id, one in sorted(self.lag.items()):
            if one.records:
                self._notify(f"batch {this[0]}: {cluster_id} is {lag_text(one)} behind")


def lag_text(lag: StreamLag) -> str:
    """A lag as text: `1 record, 0.5 s`."""
    return f"{pluralize(lag.records, 'record')}, {lag.ms / 1000:.1f} s"


def _clusters(settings: StreamOptions) -> tuple[dict[str, int], list[str]]:
    """The clusters with a lower bound of their committed end (exclusive), and messages about those
    that do not answer.

    Raises SourceError, also for the latter unless onSilence=wait and another one answers.
    """

    def ask(feed: StreamFeed) -> tuple[str, int]:
        with closing(feed):
            id = feed.identify(settings.timeout_ms)
            # directories always answer
            return id, feed.log_bounds(
                BEGIN, settings.timeout_ms
            ).end.offset if settings.controllers else 0

    found, silent = poll_each(open_feeds(settings), ask, settings.on_silence)
    return dict(found), [str(error) for error in silent]


def _silent_now(settings: StreamOptions) -> list[str]:
    """Messages about the clusters that do not answer."""
    found = []
    for feed in open_feeds(settings) if settings.controllers else ():
        try:
            with closing(feed):
                feed.log_bounds(BEGIN, min(settings.timeout_ms, _LAST_LOOK_MS))
        except SourceError as error:
            found.append(str(error))
    return found


def fallen_silent(committed: Mapping[str, int], taken: Mapping[str, int]) -> list[str]:
    """Messages about clusters of which less was ingested than was committed; offsets are exclusive."""
    return [
        f"cluster {id} stopped answering: offsets {taken.get(id, 0)} to {end - 1} "
        "(inclusive) are committed and not ingested"
        for id, end in sorted(committed.items())
        if taken.get(id, 0) < end
    ]


def _note_ends(followed: FollowSummary, store: TableStore, clusters: Collection[str]) -> None:
    """Add the progress of every cluster, also of one without new records, as `ingest` does."""
    for id, now in load_progress(store.version()).items():
        if id in clusters or id in followed.clusters:
            note_progress(of_cluster(followed, id), now)


class QueryFailedError(QuorateError):
    """A query failed; starting it again may help."""

    exit_code = 70


def failure(error: Exception, checkpoint: str) -> Exception:
    """The exception to raise for an error that ended a query or one of its micro-batches.

    SourceError where starting it again does not help, QueryFailedError where it may. Other errors
    of a micro-batch are returned as they are.
    """
    what, found = reason(error), wrapped_error(error)
    if any(word in what for word in _TWO_STREAMS):
        return QueryFailedError(
            f"another stream of these clusters runs in this warehouse: only one at a time may use the "
            f"checkpoint {checkpoint}"
        )
    if "checkpoint" in what:
        what += (
            f". It is {checkpoint}; when it is moved away, the stream reads everything again, and "
            "ingests nothing twice"
        )
    if found is None and error_number(error) is not None:
        return DiskWriteError(checkpoint, error)
    if found is not None:
        for_good = found[0].exit_code == SourceError.exit_code
        return SourceError(what) if for_good else QueryFailedError(what)
    if isinstance(error, StreamingQueryException):
        return QueryFailedError(f"the query failed: {what}")
    return error


def _ended(query: StreamingQuery) -> None:
    """Stop a query after its current micro-batch."""
    while query.isActive and query.status["isTriggerActive"] and query.status["isDataAvailable"]:
        if query.awaitTermination(_LOOK_S):
            return
    query.stop()


class _Sink:
    """Ingests micro-batches; keeps the summary, and the error that ended the query."""

    def __init__(
        self,
        spark: SparkSession,
        store: TableStore,
        fail_fast: bool,
        committed: bool,
        notify: Notify,
    ) -> None:
        self.followed = FollowSummary(store.root)
        self.failure: Exception | None = None
        self._spark, self._store, self._notify = spark, store, notify
        self._fail_fast, self._committed = fail_fast, committed

    def take(self, frame: DataFrame, batch_id: int) -> None:
        frame = frame.persist()  # two passes over what was fetched
        try:
            summary = retry_while_overtaken(
                lambda: self._once(frame, batch_id), self._notify, self.followed.add
            )
        except Exception as error:
            self.failure = error
            raise
        finally:
            frame.unpersist()
        self.followed.add(summary)
        self.followed.batches += 1

    def _once(self, frame: DataFrame, batch_id: int) -> IngestSummary:
        return ingest_rows(
            self._spark,
            lambda columns, where="": frame.where(where or "true").select(*columns),
            self._store,
            IngestSettings(self._fail_fast, committed=self._committed, whole=False),
            lambda text: self._notify(f"batch {batch_id}: {text}"),
        )
