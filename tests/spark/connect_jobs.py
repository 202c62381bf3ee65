"""The jobs on a session of Spark Connect; a process of its own, since a process has one kind.

    python tests/spark/connect_jobs.py LOGS WAREHOUSE

Prints what each job returns, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from quorate.spark.audit.job import audit
from quorate.spark.history.job import UnknownQuestionError, history, json_rows
from quorate.spark.java import find_java_home
from quorate.spark.session import register
from quorate.spark.tables.ingest import ingest

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.ui.enabled": "false",
}


def jobs(spark: SparkSession, logs: str, warehouse: str) -> dict[str, Any]:
    """The result of each job."""
    register(spark)
    source = spark.read.format("quorate-metadata").option("kinds", "log").load(logs)
    found: dict[str, Any] = {"class": type(spark).__module__, "rows": source.count()}
    found["audit"] = audit(spark, [logs]).to_json()
    found["ingest"] = ingest(spark, [logs], warehouse).to_json()
    found["again"] = ingest(spark, [logs], warehouse).to_json()
    for question in (
        "topics_created_and_deleted",
        "SELECT count(*) AS n, max(time) AS last FROM log",
    ):
        found[question] = [
            json.loads(row) for row in json_rows(history(spark, warehouse, question))
        ]
    try:
        history(spark, warehouse, "DROP VIEW log")
    except UnknownQuestionError as refused:
        found["refused"] = str(refused)
    return found


def main(logs: str, warehouse: str) -> None:
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.remote("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        print(json.dumps(jobs(spark, logs, warehouse), default=str))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
