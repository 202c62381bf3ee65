"""The batch source inside Spark on two cores, beside what Spark can carry, and Kafka's dump."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.report import Report
from bench.systems import java_command
from bench.tools import DUMP_LOG, LIKE_THE_SCRIPTS, _seconds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FACTS = (
    "cluster_id,node_id,kind,offset,epoch,timestamp,type,version,topic_name,topic_id,partition,"
    "broker_id,leader,partition_epoch,resource"
)
READINGS = {
    "typed rows: key facts of every record": {"columns": FACTS},
    "typed rows: PartitionChangeRecord with all its fields": {"view": "PartitionChangeRecord"},
    "all columns, with the record as JSON": {},
}
"""What is read, by the options of the source; the first two are held to the goal."""
FAIR = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
"""Spark 4.3 weighs each row that it sends to Python, unless a batch may have any size: for lists
that took it 30 us a row, and the ceiling stood still."""


def spark_decode(quick: bool) -> Report:
    """Logs of several clusters to rows."""
    from quorate.spark import session
    from quorate.spark.generate import FleetSpec, generate

    report = Report()
    fleet = FleetSpec(clusters=2 if quick else 4, records=200_000 if quick else 1_000_000, seed=1)
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder:
        written = generate(Path(folder) / "fleet", fleet)
        report.add("size of the logs read", "quorate", written.size / 1e6, "MB")
        spark = session(
            "quorate-bench",
            "local[2]",
            **{"spark.driver.memory": "3g", "spark.local.dir": folder} | FAIR,
        )
        spark.sparkContext.setLogLevel("ERROR")
        try:
            for name, options in READINGS.items():
                _measure(spark, report, name, options, Path(folder), 2 if quick else 3)
        finally:
            spark.stop()
        _beside_kafka(report, Path(folder), fleet.records)
    return report


def _measure(
    spark: SparkSession,
    report: Report,
    name: str,
    options: dict[str, str],
    folder: Path,
    rounds: int,
) -> None:
    """One reading, and the same rows from Parquet through a Python function and back."""
    reader = spark.read.format("quorate-metadata").options(**options)
    frame = reader.load(str(folder / "fleet"))
    parquet = str(folder / f"{len(report.rows)}.parquet")
    frame.write.parquet(parquet)
    stored = spark.read.parquet(parquet)
    rows = stored.count()
    ceiling = stored.mapInArrow(_identity, stored.schema)
    ours = report.add(name, "quorate", rows / _best(frame, rounds), "rows/s")
    theirs = report.add(name, "Parquet -> mapInArrow", rows / _best(ceiling, rounds), "rows/s")
    if name.startswith("typed"):
        report.hold(f"{name}, rows/s", ours, 1_500_000)
    report.hold(f"{name}, over what Spark carries", ours / theirs, 0.5)


def _identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _best(frame: DataFrame, rounds: int) -> float:
    """Seconds until every row has come to the JVM; the best of some rounds."""
    return min(_timed(frame.write.format("noop").mode("overwrite").save) for _ in range(rounds))


def _timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _beside_kafka(report: Report, folder: Path, records: int) -> None:
    """Kafka's dump of one of the logs to text, against all columns of the source."""
    (log,) = (folder / "fleet" / "cluster-0").rglob("*.log")
    command = java_command(
        DUMP_LOG, "--cluster-metadata-decoder", "--files", str(log), jvm=LIKE_THE_SCRIPTS
    )
    name = "all columns, with the record as JSON"
    rate = report.add(name, "kafka dump-log", records / _seconds(command, 1), "rows/s")
    ours = report.value(name, "quorate")
    if ours is not None:
        report.hold(f"{name}, over Kafka's dump-log", ours / rate, 5.0)
