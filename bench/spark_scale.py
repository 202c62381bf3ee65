"""The same decoding on a standalone cluster with one worker of one core, then with two."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bench.systems  # noqa: F401 - the harness of the tests can be imported then
from bench.report import Report
from bench.spark_audit import WORKER, Watch
from bench.spark_decode import FACTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 3


def spark_scale(quick: bool) -> Report:
    """Rows per second, and per second of the Python workers' processors."""
    from quorate.spark.generate import Fleet, generate
    from spark.cluster import started

    report = Report()
    fleet = Fleet(clusters=4, records=100_000 if quick else 1_000_000, seed=1)
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder:
        logs = Path(folder) / "fleet"
        generate(logs, fleet)
        rates = []
        for workers in (1, 2):
            system = f"{workers} worker{'s' * (workers > 1)} of one core"
            watch = Watch()
            with started(Path(folder) / f"cluster-{workers}", workers) as (_, driver):
                driver.submit(decode, str(logs), 1).result()  # Spark's first time
                watch.look()
                before = watch.spent(WORKER)
                rows, seconds = watch.during(driver.submit(decode, str(logs), ROUNDS).result)
                spent = (watch.spent(WORKER) - before) / ROUNDS
            rates.append(report.add("typed rows", system, rows / seconds, "rows/s"))
            report.add("typed rows for a second of processor", system, rows / spent, "rows/s")
        report.hold("two workers over one, rows/s", rates[1] / rates[0], 1.6)
    return report


def decode(spark: SparkSession, path: str, rounds: int) -> tuple[int, float]:
    """Rows, and the seconds until all have come to the JVMs; the best of some rounds."""
    options: dict[str, Any] = {"columns": FACTS, "maxPartitionBytes": str(4 << 20)}
    frame = spark.read.format("quorate-metadata").options(**options).load(path)
    rows, best = frame.count(), float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        best = min(best, time.perf_counter() - began)
    return rows, best
