"""The job that follows clusters into the warehouse: what is committed comes into the tables.

Each micro-batch is a run of `ingest_rows`, which takes every record once however often it is
offered; so a job that dies between a run and Spark's note of it loses nothing and doubles nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.errors import StreamingQueryException

from quorate.base.errors import QuorateError
from quorate.spark.data_source import FORMAT
from quorate.spark.files.paths import SourceError
from quorate.spark.jobs.checkpoints import checkpoint_for, reached
from quorate.spark.session import ours, reason, register
from quorate.spark.stream.feed import BEGIN, Feed
from quorate.spark.stream.options import END, WAIT, StreamOptions, parse_stream_options
from quorate.spark.stream.reader import answers, feeds
from quorate.spark.stream.tail_feed import passed_over, unread_ends
from quorate.spark.tables.bronze import BODY
from quorate.spark.tables.control import load_progress
from quorate.spark.tables.ingest import ingest_rows
from quorate.spark.tables.store import Store
from quorate.spark.tables.summary import (
    Summary,
    Told,
    again_while_overtaken,
    note_progress,
    of_cluster,
)
from quorate.spark.tables.warehouse import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S: Final = 1
_LAST_LOOK_MS: Final = 5_000
"""How long a job that is to end waits for clusters to say that they are there: an election."""
_TWO_STREAMS: Final = (
    "CONCURRENT_STREAM_LOG_UPDATE",
    "Multiple streaming queries are concurrently",
)
"""What Spark says of a checkpoint that two queries have."""


@dataclass
class Followed(Summary):
    """What a job took, all its micro-batches together."""

    batches: int = 0
    unread: list[str] = field(default_factory=list)
    """Ends of logs that are no whole batch: file, byte and why. The stream waits there."""

    passed_over: list[str] = field(default_factory=list)
    """Archives of which nothing is taken, and why."""

    silent: list[str] = field(default_factory=list)
    """Clusters of which nobody answers, and why, with onSilence=wait: when the job ended, or of one
    that goes no further than what was committed, at any time."""

    @property
    def bad(self) -> bool:
        return bool(self.passed_over or self.silent) or super().bad


def follow(
    spark: SparkSession,
    options: Mapping[str, str],
    warehouse: str,
    *,
    every_s: float | None = None,
    table_format: str = "delta",
    tell: Told = lambda text: None,
    go_on: Callable[[], bool] = lambda: True,
) -> Followed:
    """Take the committed records of these clusters into the warehouse as they come.

    options: of the stream (`bootstrap.controllers`, `path`, ...); with `failFast` the job ends with
        BadInput before it takes a micro-batch that has bad input, as `ingest` does
    every_s: seconds between the beginnings of two micro-batches, for ever; None: up to what is
        committed now, and no further
    go_on: asked about once a second; false ends the job after the micro-batch that runs

    Other jobs may follow other clusters into the warehouse meanwhile: a micro-batch that one of
    them overtakes is taken again. Raises SourceError, BadInput, WarehouseError, ConcurrentRun,
    QueryFailed.
    """
    told = parse_stream_options(options)
    began = time.monotonic()
    tell("asking which clusters these are")
    # what is wrong with them is told before Spark begins
    clusters, silent = _clusters(told)
    store = open_store(warehouse, table_format)
    folder = checkpoint_for(store, clusters, len(silent))
    checkpoint = f"{store.root}/{folder}"
    committed = bool(told.controllers) or told.up_to != END
    sink = _Sink(spark, store, told.rows.fail_fast, committed, tell)
    sink.followed.silent = silent
    words = {name: word for name, word in options.items() if name.lower() != "failfast"}
    if not told.controllers:
        sink.followed.passed_over = passed_over(told)
    register(spark)
    frame = spark.readStream.format(FORMAT).options(columns=",".join(BODY), **words).load()
    writer = frame.writeStream.foreachBatch(sink.take).option("checkpointLocation", checkpoint)
    if every_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds")
    tell("asking for what is committed")
    query = writer.start()
    try:
        try:
            while not (ended := query.awaitTermination(_LOOK_S)):
                if not go_on():
                    break
        finally:
            _ended(query)
    except StreamingQueryException as error:
        raise failure(sink.failure or error, checkpoint) from error
    if every_s is None and not told.controllers:
        sink.followed.unread = list(unread_ends(told))
    if told.on_silence == WAIT and every_s is not None:
        sink.followed.silent = _silent_now(told)
    elif told.on_silence == WAIT and ended:
        sink.followed.silent += fallen_silent(clusters, reached(store, folder))
    _note_ends(sink.followed, store, clusters)
    sink.followed.seconds = round(time.monotonic() - began, 3)
    return sink.followed


def _clusters(told: StreamOptions) -> tuple[dict[str, int], list[str]]:
    """The clusters, with where the committed log of each ends at least (exclusive), and those of
    which nobody answers.

    Raises SourceError, also of the latter, unless they are to be waited for and there are others.
    """

    def ask(feed: Feed) -> tuple[str, int]:
        with closing(feed):
            id = feed.identify(told.timeout_ms)
            # of directories nobody is silent
            return id, feed.look(BEGIN, told.timeout_ms).end.offset if told.controllers else 0

    found, silent = answers(feeds(told), ask, told.on_silence)
    return dict(found), [str(error) for error in silent]


def _silent_now(told: StreamOptions) -> list[str]:
    """The clusters of which nobody answers, and why."""
    found = []
    for feed in feeds(told) if told.controllers else ():
        try:
            with closing(feed):
                feed.look(BEGIN, min(told.timeout_ms, _LAST_LOOK_MS))
        except SourceError as error:
            found.append(str(error))
    return found


def fallen_silent(committed: Mapping[str, int], taken: Mapping[str, int]) -> list[str]:
    """The clusters of which less was taken than was committed before; offsets are exclusive."""
    return [
        f"cluster {id} fell silent: taken up to offset {taken.get(id, 0)} of {end}"
        for id, end in sorted(committed.items())
        if taken.get(id, 0) < end
    ]


def _note_ends(followed: Followed, store: Store, clusters: Collection[str]) -> None:
    """How far each cluster has come, also one of which nothing was taken; as `ingest` tells it."""
    store.recover()
    for id, now in load_progress(store).items():
        if id in clusters or id in followed.clusters:
            note_progress(of_cluster(followed, id), now)


class QueryFailed(QuorateError):
    """A query has ended, and may be started again."""

    exit_code = 70


def failure(error: Exception, checkpoint: str) -> Exception:
    """What to raise for what ended a query or one of its micro-batches.

    SourceError where starting it again would not help, QueryFailed where it may; errors of a
    micro-batch that are none of a task of ours as they are.
    """
    what, found = reason(error), ours(error)
    if any(word in what for word in _TWO_STREAMS):
        return QueryFailed(
            f"another stream of these clusters runs in this warehouse: its checkpoint {checkpoint} "
            "is for one at a time"
        )
    if "checkpoint" in what:
        what += (
            f". It is {checkpoint}; when that is moved away all is offered again, and what the "
            "warehouse has is not taken twice"
        )
    if found is not None:
        for_good = found[0].exit_code == SourceError.exit_code
        return SourceError(what) if for_good else QueryFailed(what)
    if isinstance(error, StreamingQueryException):
        return QueryFailed(f"the query failed: {what}")
    return error


def _ended(query: StreamingQuery) -> None:
    """Let the micro-batch that runs come to its end."""
    while query.isActive and query.status["isTriggerActive"] and query.status["isDataAvailable"]:
        if query.awaitTermination(_LOOK_S):
            return
    query.stop()


class _Sink:
    """Takes micro-batches; keeps what was taken, and the error that ended it."""

    def __init__(
        self, spark: SparkSession, store: Store, fail_fast: bool, committed: bool, tell: Told
    ) -> None:
        self.followed = Followed(store.root)
        self.failure: Exception | None = None
        self._spark, self._store, self._tell = spark, store, tell
        self._fail_fast, self._committed = fail_fast, committed

    def take(self, frame: DataFrame, batch_id: int) -> None:
        frame = frame.persist()  # what was fetched is looked at twice
        try:
            told = again_while_overtaken(
                lambda: self._once(frame, batch_id), self._tell, self.followed.add
            )
        except Exception as error:
            self.failure = error
            raise
        finally:
            frame.unpersist()
        self.followed.add(told)
        self.followed.batches += 1

    def _once(self, frame: DataFrame, batch_id: int) -> Summary:
        return ingest_rows(
            self._spark,
            lambda columns, where="": frame.where(where or "true").select(*columns),
            self._store,
            fail_fast=self._fail_fast,
            committed=self._committed,
            tell=lambda text: self._tell(f"batch {batch_id}: {text}"),
        )
