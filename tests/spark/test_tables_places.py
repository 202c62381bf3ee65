"""Where a warehouse may be, and where a log may begin that continues it."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from narrow import as_any
from quorate.formats.batch import encode_batch
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.identity import Resolution
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.lineage import EpochGroup, EpochSpan
from quorate.spark.tables.log_starts import without_known_starts
from quorate.spark.tables.survey import InputSurvey
from quorate.spark.tables.warehouse import open_store
from spark.fleet import rows_of
from spark.logs import NO_OP, START_MS, end_offset, log_directory


def batches() -> list[bytes]:
    return [encode_batch(offset, 1, START_MS + offset, [NO_OP] * 5) for offset in range(0, 30, 5)]


@pytest.fixture
def halves():
    """A log's first and second half."""
    return b"".join(batches()[:3]), b"".join(batches()[3:])


def test_a_segment_that_begins_where_the_warehouse_ends_is_no_problem(spark, tmp_path, halves):
    first, second = halves
    start = end_offset(first)
    one = log_directory(tmp_path / "one", {0: first})
    two = log_directory(tmp_path / "two", {start: second})
    home = str(tmp_path / "home")
    early = ingest(spark, [str(two)], str(tmp_path / "other"))
    assert early.damaged_pieces == 1 and early.bad
    ingest(spark, [str(one)], home)
    for records in (end_offset(second) - start, 0):
        summary = ingest(spark, [str(two)], home)
        assert summary.records == records and not summary.bad, summary
    assert rows_of(open_store(home), "quarantine") == []
    broken = log_directory(tmp_path / "three", {start: b"\0" * 40 + second})
    assert ingest(spark, [str(broken)], home).damaged_pieces >= 1


@pytest.mark.parametrize(
    ("start", "known"),
    [(10, True), (20, True), (21, False), (39, False), (40, True), (50, True), (51, False)],
)
def test_a_beginning_is_known_where_the_state_is(start, known):
    """The log up to 20, then a snapshot at 40 and what follows it."""
    spans = (EpochSpan(1, 0, 20), EpochSpan(1, 40, 50))
    groups = {"a": [EpochGroup("/n", 1, 0, start, start + 4, 0)]}
    survey = InputSurvey(groups, damaged=1, notes=[("a", f"/n/{start:020}.log")])
    progress = {"a": ClusterProgress("a", spans, applied_end=50, unknown=((20, 40),))}
    assert (without_known_starts(as_any(None), survey, progress)[1].damaged == 0) is known
    assert without_known_starts(as_any(None), survey, {})[1].damaged == 1


@pytest.mark.parametrize("base", [0, 10])
def test_an_emptied_segment_is_damage_also_where_the_warehouse_has_its_records(base):
    """Found by a trial: the second ingest of a log that was emptied meanwhile said nothing."""
    groups = {"a": [EpochGroup("/n", 1, 0, 0, base - 1, 0)] if base else []}
    survey = InputSurvey(groups, damaged=1, notes=[("a", f"/n/{base:020}.log")])
    progress = {"a": ClusterProgress("a", (EpochSpan(1, 0, 20),), applied_end=20)}
    assert without_known_starts(as_any(None), survey, progress)[1].damaged == 1


def test_a_log_that_was_emptied_after_an_ingest_is_reported(spark, tmp_path, halves):
    one = log_directory(tmp_path / "one", {0: halves[0]})
    partition = one / "__cluster_metadata-0"
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    home = str(tmp_path / "home")
    assert not ingest(spark, [str(one)], home).bad
    (segment,) = partition.glob("*.log")
    segment.write_bytes(b"")
    summary = ingest(spark, [str(one)], home)
    assert summary.bad and summary.damaged_pieces == 1
    (row,) = rows_of(open_store(home), "quarantine")
    assert "the newest segment is empty" in row["problem"]


@pytest.mark.parametrize(
    ("form", "name", "like_it"),
    [("parquet", "[w] {x} %41 *", "w {x} %41 all"), ("delta", "w {x} é 5% *", "w {x} é 5% all")],
)
def test_a_warehouse_lies_in_a_folder_of_any_name(
    pipeline, spark, tmp_path, halves, form, name, like_it
):
    first, second = halves
    paths = [log_directory(tmp_path / "one", {0: first}), tmp_path / "two"]
    log_directory(paths[1], {0: first + second})
    other, home = tmp_path / like_it, tmp_path / name
    ingest(spark, [str(paths[0])], str(home), table_format=form)
    shutil.copytree(home, other)
    ingest(spark, [str(paths[1])], str(home), table_format=form)
    options = ("-w", home, "--format", form)
    code, out, err = pipeline("compact", *options, "--least-files", "2", "--keep-hours", "0")
    assert code == 0 and "joined: 2" in out, err
    code, out, err = pipeline("history", "SELECT count(*) AS n FROM log", *options)
    assert (code, out.split()[-1]) == (0, str(end_offset(second))), err
    code, out, _ = pipeline("repair", *options)
    assert code == 0 and "nothing is missing" in out
    assert {path.name for path in Path(tmp_path).iterdir()} == {"one", "two", name, like_it}


def test_a_path_that_delta_would_take_for_another_is_refused(pipeline, tmp_path):
    log = log_directory(tmp_path / "one", {0: b"".join(batches())})
    code, out, err = pipeline("ingest", log, "-w", tmp_path / "w %41")
    assert (code, out) == (2, "") and "'%41' in the path of a warehouse" in err
    assert not (tmp_path / "w %41").exists() and not (tmp_path / "w A").exists()


def test_the_queries_of_an_ingest_look_over_its_paths_once(tmp_path, monkeypatch):
    """Spark lists them for each query anyway; on an object store that is most of a small job.

    Finding the names of the clusters lists them once more, before the first query.
    """
    listed = []
    monkeypatch.setattr(
        "quorate.spark.frame.partitions", lambda survey: listed.append(survey.paths)
    )
    monkeypatch.setattr("quorate.spark.frame.register", lambda spark: None)
    monkeypatch.setattr(
        "quorate.spark.tables.ingest.ingest_rows",
        lambda spark, rows, *_: [rows(["offset"]), rows(["epoch"])],
    )
    monkeypatch.setattr("quorate.spark.tables.ingest.names_in", lambda *_: Resolution())
    ingest(MagicMock(), ["/logs"], str(tmp_path))
    assert listed == [("/logs",)]
