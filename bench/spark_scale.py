"""The same decoding on a standalone cluster with one worker of one core, then with two."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bench.systems  # noqa: F401 - the harness of the tests can be imported then
from bench.report import Report
from bench.spark_audit import KINDS, Watch
from bench.spark_decode import FACTS

from quorate.base.plural import pluralize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 3


def spark_scale(quick: bool) -> Report:
    """Rows per second, and per second of the processors of all of Spark.

    The second says whether a worker costs the others anything, also where it has to share its core
    with other programs; the first only where it has not.
    """
    from quorate.spark.generate import FleetSpec, generate
    from spark.cluster import started

    report = Report()
    fleet = FleetSpec(clusters=4, records=100_000 if quick else 500_000, seed=1)
    rows = fleet.clusters * fleet.records
    rates, costs = [], []
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder:
        logs = Path(folder) / "fleet"
        generate(logs, fleet)
        for workers in (1, 2):
            system = f"{pluralize(workers, 'worker')} of one core"
            watch = Watch()
            with started(Path(folder) / f"cluster-{workers}", workers) as driver:
                driver.submit(decode, str(logs), 1).result()  # Spark's first time
                watch.look()
                before = watch.spent(*KINDS)
                seconds = watch.during(driver.submit(decode, str(logs), ROUNDS).result)
                spent = watch.spent(*KINDS) - before
            rates.append(report.add("typed rows", system, rows / min(seconds), "rows/s"))
            costs.append(
                report.add(
                    "typed rows for a second of processor", system, ROUNDS * rows / spent, ""
                )
            )
            report.add("processors it had", system, spent / sum(seconds), "")
    report.hold("two workers over one, rows/s", rates[1] / rates[0], 1.6)
    report.hold("two workers over one, rows for a second of processor", costs[1] / costs[0], 0.8)
    return report


def decode(spark: SparkSession, path: str, rounds: int) -> list[float]:
    """The seconds until all rows have come to the JVMs, of each round."""
    options: dict[str, Any] = {"columns": FACTS, "maxPartitionBytes": str(4 << 20)}
    frame = spark.read.format("quorate-metadata").options(**options).load(path)
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - began)
    return seconds
