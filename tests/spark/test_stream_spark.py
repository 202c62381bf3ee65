"""Spark on the live source: checkpoints, triggers, a sink, and the job that fills the tables."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from interop.kafka import Quorum
from interop.process import free_port, wait_for
from metadata.samples import DATA
from quorate.base.errors import QuorateError
from quorate.cli import main
from quorate.spark import reason
from quorate.spark.data_source import FORMAT
from quorate.spark.files.archives import FileGoneError
from quorate.spark.files.paths import SourceError
from quorate.spark.jobs.follow import QueryFailedError, failure, follow_clusters
from quorate.spark.stream.lag import StreamLag, offsets_in
from quorate.spark.stream.live import LogDivergedError
from quorate.spark.tables.control import load_progress
from quorate.spark.tables.store import WarehouseWriteError
from quorate.spark.tables.warehouse import open_store
from spark.fleet import DYNAMIC, rows_of
from spark.logs import batches, log_directory
from spark.shared import SESSIONS, Shared
from spark.streams import batch_rows
from time_budget import one_day_in

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def raises(error: QuorateError):
    """Something that happens in place of what a job does with a micro-batch."""

    def happens(*_, **__):
        raise error

    return happens


COLUMNS = "kind,offset,epoch,type,record,problem"


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    with Quorum(tmp_path_factory.mktemp("live"), dict.fromkeys((1, 2, 3), "quorate")) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        yield quorum


def started(spark, quorum, home: Path, **options):
    frame = spark.readStream.format(FORMAT).option("bootstrap.controllers", quorum.bootstrap)
    frame = frame.options(columns=COLUMNS, **options).load()
    return frame.writeStream.format("parquet").option("checkpointLocation", str(home / "at"))


def once(spark, quorum, home: Path, **options):
    writer = started(spark, quorum, home, **options).trigger(availableNow=True)
    query = writer.start(str(home / "rows"))
    query.awaitTermination()
    return query


def written(spark, home: Path):
    return [
        tuple(row) for row in spark.read.parquet(str(home / "rows")).orderBy("offset").collect()
    ]


def expected(quorum, end: int):
    rows = batch_rows(quorum.leader().data, end)
    return [tuple(row[name] for name in COLUMNS.split(",")) for row in rows]


def test_a_query_survives_restarts_and_a_killed_leader(spark, quorum, tmp_path):
    quorum.write(12)
    stopped = once(spark, quorum, tmp_path, maxOffsetsPerTrigger="9")
    reports = [offsets_in(one)[quorum.cluster_id] for one in stopped.recentProgress]
    assert reports[0][0] == 9 and reports[0][1] > 9  # Spark reports how far the query is behind
    assert [read for read, _ in reports] == sorted(read for read, _ in reports)
    before = quorum.leader()
    query = started(spark, quorum, tmp_path).start(str(tmp_path / "rows"))
    before.kill()
    quorum.write(6)
    end = quorum.view().high_watermark

    def come():
        assert query.exception() is None
        return query.lastProgress is not None and _end(query, quorum) >= end

    try:
        wait_for(come, f"the query to come to {end}", 60)
    finally:
        query.stop()
    before.start()
    quorum.write(3)
    once(spark, quorum, tmp_path)
    rows = written(spark, tmp_path)
    assert len(rows) > end
    assert rows == expected(quorum, len(rows))


def _end(query, quorum) -> int:
    offsets = query.lastProgress["sources"][0]["endOffset"]
    offsets = json.loads(offsets) if isinstance(offsets, str) else offsets
    return offsets.get(quorum.cluster_id, {"offset": 0})["offset"]


def test_a_query_without_controllers_ends_with_their_addresses(spark, tmp_path):
    port = free_port()
    frame = spark.readStream.format(FORMAT).option("bootstrap.controllers", f"127.0.0.1:{port}")
    query = frame.option("timeoutMs", "300").load().writeStream.format("noop")
    query = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    assert f"Cannot connect to 127.0.0.1:{port}" in reason(caught.value)


def test_the_job_takes_every_committed_record_into_the_tables_once(spark, quorum, tmp_path):
    quorum.write(4)
    words = {"bootstrap.controllers": quorum.bootstrap}
    first = follow_clusters(spark, words, str(tmp_path / "warehouse"), table_format="parquet")
    assert first.records > 0 and not first.bad
    assert first.lag == {quorum.cluster_id: StreamLag(0, 0)}
    quorum.write(4)
    second = follow_clusters(spark, words, str(tmp_path / "warehouse"), table_format="parquet")
    store = open_store(str(tmp_path / "warehouse"), "parquet")
    log = sorted(rows_of(store, "log"), key=lambda row: row["offset"])
    summary = second.clusters[quorum.cluster_id]
    assert [row["offset"] for row in log] == list(range(first.records + second.records))
    assert summary.log_end_offset == summary.applied_end_offset == len(log)
    wanted = batch_rows(quorum.leader().data, len(log))
    for name in ("epoch", "type", "record"):
        assert [row[name] for row in log] == [row[name] for row in wanted]


@pytest.fixture
def other(tmp_path):
    """A second cluster, of one node, that writes nothing of its own accord."""
    quiet = {"metadata.max.idle.interval.ms": 0}
    with Quorum(tmp_path / "other", {1: "quorate"}, config=quiet) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        yield quorum


def both(quorum, other) -> dict[str, str]:
    return {
        "bootstrap.controllers.one": quorum.bootstrap,
        "bootstrap.controllers.other": other.bootstrap,
        "onSilence": "wait",
        "timeoutMs": "2000",
    }


@one_day_in(2, 0)
def test_a_cluster_that_stops_answering_in_a_run_is_reported(spark, quorum, other, tmp_path):
    other.write(2)
    (node,) = other.controllers

    def notify(text: str) -> None:
        if text == "asking for the committed offsets":
            node.kill()

    warehouse = str(tmp_path / "warehouse")
    summary = follow_clusters(
        spark, both(quorum, other), warehouse, table_format="parquet", notify=notify
    )
    (silent,) = summary.silent
    assert summary.bad and summary.records > 0
    assert f"cluster {other.cluster_id} stopped answering: offsets 0 to " in silent
    node.start()
    other.leader()
    assert (
        follow_clusters(spark, both(quorum, other), warehouse, table_format="parquet").silent == []
    )


@one_day_in(2, 1)
def test_a_cluster_that_is_silent_at_the_end_of_a_job_is_reported(spark, quorum, other, tmp_path):
    """Not one that has come in since the job began.

    What was planned of a cluster must be read, so it may fall silent only when all of it is taken.
    """
    other.write(2)
    (node,) = other.controllers
    warehouse = str(tmp_path / "warehouse")

    def taken() -> int:
        progress = load_progress(open_store(warehouse, "parquet")).get(other.cluster_id)
        return progress.log_end if progress else 0

    def come() -> bool:
        return taken() > 0

    def start_it(text: str) -> None:
        if text == "asking for the committed offsets":
            node.start()

    node.kill()
    words: dict[str, Any] = {"table_format": "parquet", "every_s": 0.5}
    summary = follow_clusters(
        spark,
        both(quorum, other),
        warehouse,
        **words,
        notify=start_it,
        should_continue=lambda: not come(),
    )
    assert summary.silent == [] and other.cluster_id in summary.clusters
    assert (
        follow_clusters(
            spark, both(quorum, other), warehouse, **words, should_continue=lambda: False
        ).silent
        == []
    )

    def stop_with_it() -> bool:
        view = other.view()
        if view is None or taken() < view.high_watermark:
            return True
        node.kill()
        return False

    summary = follow_clusters(
        spark, both(quorum, other), warehouse, **words, should_continue=stop_with_it
    )
    (silent,) = summary.silent
    assert silent.startswith("controllers other") and summary.bad


def test_the_command_follows_directories_and_ends_where_a_majority_ends(
    spark, tmp_path, monkeypatch, capfd
):
    """Of seven copied directories, one with a tail that was never committed: that is not taken."""
    monkeypatch.setattr(SESSIONS, "session", lambda *_, **__: Shared(spark))
    warehouse = str(tmp_path / "warehouse")
    words = ("-w", warehouse, "--format", "parquet", "--once", "--json", "--quiet")
    code = main.run(["pipeline", "stream", str(DATA / "d-divergent"), *words])
    summary = json.loads(capfd.readouterr().out)
    assert (code, summary["records"], summary["bad"]) == (0, 332, False)
    assert summary["clusters"][DYNAMIC]["applied_end_offset"] == 332


def lose_the_worker(spark, *_, **__):
    spark.sparkContext.parallelize([0], 1).foreach(lambda _: os._exit(1))


@pytest.mark.parametrize(
    ("happens", "code", "says"),
    [
        (lose_the_worker, 70, "Python worker exited unexpectedly"),
        (raises(FileGoneError("x.log")), 70, "x.log: the file was listed and is gone"),
        (raises(LogDivergedError("another log")), 2, "another log"),
        (raises(WarehouseWriteError("/w", OSError("disk full"))), 70, "disk full"),
    ],
)
def test_the_error_that_ends_a_stream_is_one_line_with_its_exit_code(
    pipeline, tmp_path, monkeypatch, happens, code, says
):
    """2 for what is wrong until somebody changes it, 70 for what a later run may not meet."""
    monkeypatch.setattr("quorate.spark.jobs.follow.ingest_rows", happens)
    home = log_directory(tmp_path / "node1", {0: b"".join(batches((3,)))})
    words = ("-w", tmp_path / "warehouse", "--format", "parquet", "--once", "--up-to", "end")
    found, out, err = pipeline("stream", home, *words, "--quiet")
    said = [line for line in err.splitlines() if line]
    assert (found, out) == (code, "") and says in said[-1]
    assert "STREAM_FAILED" not in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("cause", "kind", "says"),
    [
        ("Traceback (most recent call last):\n  File \"x\", line 1\n"
         "quorate.spark.stream.live.LogDivergedError: another log", SourceError, "another log"),
        ("Traceback (most recent call last):\n  File \"x\", line 1\n"
         "quorate.spark.stream.live.UnreachableError: c: nobody", QueryFailedError, "c: nobody"),
        ("Python worker failed to connect back. SQLSTATE: XXKST", QueryFailedError,
         "the query failed: Python worker failed to connect back. SQLSTATE: XXKST"),
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs "
         "detected for 3.", QueryFailedError, "another stream of these clusters"),
    ],
)  # fmt: skip
def test_only_what_is_wrong_for_good_is_the_callers_fault(cause, kind, says):
    head = "[STREAM_FAILED] Query [id = f9cb-d004, runId = 7a70-66d0] terminated with exception: "
    found = failure(StreamingQueryException(head + cause), "/warehouse/control/_stream/x")
    assert type(found) is kind and str(found).startswith(says)


def test_a_batch_that_fails_after_the_stop_request_is_reported_too(pipeline, tmp_path, monkeypatch):
    def ended(query) -> None:
        query.stop()
        raise StreamingQueryException(
            "[STREAM_FAILED] Query [id = f9cb] terminated with exception: "
            "[CONCURRENT_STREAM_LOG_UPDATE] Multiple streaming jobs detected for 0."
        )

    monkeypatch.setattr("quorate.spark.jobs.follow._ended", ended)
    home = log_directory(tmp_path / "node1", {0: b"".join(batches((3,)))})
    words = ("-w", tmp_path / "warehouse", "--format", "parquet", "--once", "--up-to", "end")
    code, _, err = pipeline("stream", home, *words, "--quiet")
    assert code == 70 and "another stream of these clusters" in err.splitlines()[-1]


def test_a_cluster_that_cannot_continue_is_reported_each_time(pipeline, tmp_path):
    """Also by a run that takes nothing, as `ingest` does."""
    home = log_directory(tmp_path / "node1", {6: b"".join(batches((3,), base=6))})
    words = ("-w", tmp_path / "warehouse", "--format", "parquet", "--once", "--up-to", "end")
    for records, taken in ((4, 1), (0, 0)):
        code, out, err = pipeline("stream", home, *words, "--json", "--quiet")
        summary = json.loads(out)
        one = summary["clusters"]["cluster-a"]
        assert (code, summary["bad"], err) == (1, True, "")
        assert (summary["batches"], one["records"], one["log_end_offset"]) == (taken, records, 10)
        assert one["problem"].startswith("offsets 0 to 5 are missing")
    code, out, _ = pipeline("stream", home, *words)
    assert code == 1 and "    offsets 0 to 5 are missing: ingest the part of the log" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give either --bootstrap-controllers or PATHS"),
        (("-b", "h:1", "/x"), "give either --bootstrap-controllers or PATHS"),
        (("-b", "a=h:1", "-b", "a=h:2"), "each cluster needs a label of its own"),
    ],
)
def test_a_wrong_command_line_is_refused(words, message, capfd):
    assert main.run(["pipeline", "stream", "-w", "nowhere", *words]) == 2
    assert message in capfd.readouterr().err
