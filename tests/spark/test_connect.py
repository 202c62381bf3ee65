"""The pipeline on a session of Spark Connect gives what it gives on a classic one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from formats.samples import DATA
from quorate.spark.audit.job import audit_here
from quorate.spark.history.job import history, json_rows
from quorate.spark.tables.ingest import ingest
from spark.jvm import QUICK_JVM
from time_budget import one_day_in

pytestmark = pytest.mark.slow
LOGS = DATA / "d-divergent"


@one_day_in(3, 1)
def test_the_jobs_on_a_session_of_spark_connect(spark, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("connect_jobs.py"), LOGS, tmp_path / "remote"],
        env={**os.environ, "SPARK_LAUNCHER_OPTS": " ".join(QUICK_JVM)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["class"].startswith("pyspark.sql.connect.")
    here = json.loads(json.dumps(audit_here([str(LOGS)]).to_json(), default=str))
    assert found["audit"] == here
    warehouse = str(tmp_path / "classic")
    summary = ingest(spark, [str(LOGS)], warehouse)
    assert found["rows"] >= summary.records > 0
    assert (found["ingest"]["records"], found["ingest"]["events"]) == (
        summary.records,
        summary.events,
    )
    assert found["again"]["records"] == 0
    for question in (
        "topics_created_and_deleted",
        "SELECT count(*) AS n, max(time) AS last FROM log",
    ):
        rows = [json.loads(row) for row in json_rows(history(spark, warehouse, question))]
        assert found[question] == rows
    assert "'DROP VIEW log' is no query" in found["refused"]
