"""The live source on a controller of ours: how fast it catches up, and how fresh its rows are.

The log to catch up with is one of `quorate.spark.generate`, put behind the controller's own while
it is down: the mixture of a busy cluster, and more of it than could be written in the time.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.report import Goal, Report
from bench.spark_decode import FACTS
from bench.systems import wait_for

from interop.kafka import Quorum
from quorate.base.ids import Address
from quorate.client.connection import Connection
from quorate.formats.batch import iter_batches, with_base_offset_and_epoch
from quorate.formats.files import segment_name
from quorate.wire.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

QUIET = {"metadata.log.max.record.bytes.between.snapshots": 1 << 40}
RATE = 1000
"""Records a second whose freshness is measured."""


def spark_stream(quick: bool) -> Report:
    """Typed key facts of records, fetched from the leader."""
    from quorate.spark import session
    from quorate.spark.generate import FleetSpec, generate

    report = Report()
    records = 100_000 if quick else 1_000_000
    with (
        tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder,
        Quorum(Path(folder) / "quorum", {1: "quorate"}, config=QUIET) as quorum,
    ):
        quorum.format()
        quorum.start()
        node = quorum.leader()
        node.kill()
        generate(Path(folder) / "fleet", FleetSpec(records=records, seed=1))
        (source,) = (Path(folder) / "fleet").rglob("*.log")
        end = append(node.partition / segment_name(0), source)
        node.start()
        quorum.wait_until(lambda view: view.high_watermark > end, "the seeded log", 300)
        spark = session("quorate-bench", "local[2]", **{"spark.local.dir": folder})
        spark.sparkContext.setLogLevel("ERROR")
        try:
            _catch_up(spark, report, quorum.bootstrap, Path(folder), 2 if quick else 3)
            with _writing(node.port, 0):
                _freshness(spark, report, quorum.bootstrap, Path(folder), 6 if quick else 15)
        finally:
            spark.stop()
    return report


def append(log: Path, source: Path) -> int:
    """Put the data batches of another log behind this one's; its end."""
    data = log.read_bytes()
    (*_, last) = iter_batches(data)
    end = last.end_offset
    with log.open("ab") as out:
        for view in iter_batches(source.read_bytes(), verify=False):
            if not view.is_control:
                out.write(with_base_offset_and_epoch(bytes(view.data), end, last.epoch))
                end += view.count
    return end


def write(port: int, first: int, count: int) -> None:
    """Commit so many records in one request."""
    entry = AlterClientQuotasRequest.EntryData
    entries = [
        entry(
            entity=[entry.EntityData(entity_type="user", entity_name=f"user-{number}")],
            ops=[entry.OpData(key="producer_byte_rate", value=1000.0 + number)],
        )
        for number in range(first, first + count)
    ]
    with Connection(Address("127.0.0.1", port), "bench", 5_000) as connection:
        answer = connection.call(
            AlterClientQuotasRequest(entries=entries), AlterClientQuotasResponse, 30_000
        )
    assert not any(entry.error_code for entry in answer.entries), answer.entries[0].error_message


def _reader(spark: SparkSession, bootstrap: str) -> DataStreamReader:
    reader = spark.readStream.format("quorate-metadata").option("bootstrap.controllers", bootstrap)
    return reader.option("columns", FACTS)


def _catch_up(
    spark: SparkSession, report: Report, bootstrap: str, folder: Path, rounds: int
) -> None:
    """From the beginning of the log to its end, into nothing; the best batch of some rounds."""
    rates = []
    for number in range(rounds):
        frame = _reader(spark, bootstrap).option("maxOffsetsPerPartition", 100_000).load()
        writer = frame.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(folder / f"at-{number}")).start()
        query.awaitTermination()
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                ms = progress["durationMs"]["addBatch"]
                rates.append(1000 * progress["numInputRows"] / ms)
    rate = report.add("stream, catching up", "quorate", max(rates), "records/s")
    report.hold("stream, catching up, records/s", rate, 200_000)


@contextmanager
def _writing(port: int, first: int) -> Iterator[None]:
    """RATE records a second, ten times a second, until the block ends."""
    ended = threading.Event()

    def write_more() -> None:
        number, due = first, time.monotonic()
        while not ended.is_set():
            write(port, number, RATE // 10)
            number, due = number + RATE // 10, due + 0.1
            ended.wait(max(due - time.monotonic(), 0))

    thread = threading.Thread(target=write_more)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _freshness(
    spark: SparkSession, report: Report, bootstrap: str, folder: Path, seconds: int
) -> None:
    """From the leader's timestamp of a record to the end of the work on its row in a sink."""
    ages: list[float] = []

    def sink(frame: DataFrame, batch_id: int) -> None:
        stamps = frame.select("timestamp").toArrow().column(0).cast("int64").to_pylist()
        now = time.time()
        ages.extend(now - stamp / 1e6 for stamp in stamps)

    frame = _reader(spark, bootstrap).option("startingOffsets", "latest").load()
    writer = frame.writeStream.foreachBatch(sink)
    query = writer.option("checkpointLocation", str(folder / "fresh")).start()
    try:
        wait_for(lambda: len(ages) > 5 * RATE, "the first batches, which warm up", 120)
        ages.clear()
        query.awaitTermination(seconds)
        wait_for(lambda: ages, "a batch", 60)
    finally:
        query.stop()
    p50 = report.add(
        f"stream, freshness p50 at {RATE} records/s", "quorate", statistics.median(ages), "s"
    )
    p99 = statistics.quantiles(ages, n=100)[98]
    report.add(f"stream, freshness p99 at {RATE} records/s", "quorate", p99, "s")
    report.goals.append(Goal("stream, freshness p50, s", p50, 2.0))
