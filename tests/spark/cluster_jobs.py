"""What the drivers of the cluster tests run: `job(spark, *arguments)`, results as plain values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.spark.audit import audit
from quorate.spark.history.job import history
from quorate.spark.history.timetravel import state_at
from quorate.spark.jobs.compact import compact_warehouse
from quorate.spark.jobs.follow import follow_clusters
from quorate.spark.report.job import report
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.warehouse import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def take(spark: SparkSession, path: str, home: str) -> bool:
    """Ingest; whether some of the input was bad."""
    return ingest(spark, [path], home).bad


def join_files(spark: SparkSession, home: str) -> tuple[int, int]:
    """Compact: files joined, files written."""
    done = compact_warehouse(spark, home, least_files=2, keep_hours=0)
    return done.joined, done.written


def answers(spark: SparkSession, home: str, cluster: str, offset: int) -> dict[str, list[str]]:
    """A question that shuffles, and the state of two kinds at an offset."""
    store = open_store(home)
    return {
        "leaders": _lines(history(spark, home, "leader_timeline")),
        "partitions": _lines(state_at(spark, store, "partitions", cluster, offset=offset)),
        "configs": _lines(state_at(spark, store, "configs", cluster, offset=offset)),
    }


def _lines(frame: DataFrame) -> list[str]:
    return sorted(json.dumps(row.asDict(recursive=True), default=str) for row in frame.collect())


def verdicts(spark: SparkSession, path: str) -> Any:
    """Audit, as JSON."""
    return json.loads(json.dumps(audit(spark, [path]).to_json(), default=str))


def page(spark: SparkSession, home: str, out: str) -> str:
    """The report's HTML."""
    report(spark, home, out)
    return Path(out).read_text()


def tail(spark: SparkSession, path: str, home: str) -> int:
    """Follow directories up to their end; the micro-batches."""
    options = {"path": path, "upTo": "end", "maxOffsetsPerTrigger": "8000"}
    return follow_clusters(spark, options, home).batches
