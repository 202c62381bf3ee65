"""Jobs on a session with other settings than those of this package."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from narrow import not_none
from quorate.spark.frame import read_metadata
from quorate.spark.history.job import _JSON, history, json_rows
from quorate.spark.history.timetravel import state_at
from quorate.spark.history.views import VIEWS, register_views
from quorate.spark.jobs.follow import follow_clusters
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.warehouse import open_store
from quorate.spark.who import LogPaths, Reading, who
from spark.fleet import DYNAMIC, places, rows_of
from spark.test_who import SAMPLE
from time_budget import one_day_in

OTHERWISE = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.shuffle.partitions": "2",
}
AS_JSON = "map({})".format(", ".join(f"{text!r}" for pair in _JSON.items() for text in pair))
"""What `json_rows` makes of a row, in the words of SQL."""


def own_session(spark, **settings):
    """A session that knows nothing of this package: no source is registered."""
    found = spark.newSession()
    for name, value in settings.items():
        found.conf.set(name, value)
    return found


@pytest.fixture(scope="module")
def theirs(spark):
    return own_session(spark, **OTHERWISE)


@pytest.fixture(scope="module")
def both(spark, theirs, tmp_path_factory):
    """One log, taken in on either session: (session, warehouse)."""
    folder = tmp_path_factory.mktemp("both")
    found = []
    for name, session in (("ours", spark), ("theirs", theirs)):
        ingest(session, places("e-truncated/node1"), str(folder / name))
        found.append((session, str(folder / name)))
    return found


def test_ingest_on_their_session_makes_the_same_tables(both):
    ours, theirs = (open_store(home) for _, home in both)
    for table in TABLES:
        assert rows_of(theirs, table) == rows_of(ours, table), table
    assert len(rows_of(theirs, "partitions")) > 30


@one_day_in(2, 1)
def test_every_question_has_the_same_answer(both):
    every = " UNION ALL ".join(
        f"SELECT '{name}' AS view, to_json(struct(*), {AS_JSON}) AS text FROM {name}"
        for name in VIEWS
    )
    answers = []
    for session, home in both:
        register_views(session, open_store(home))
        answers.append({name: sorted(json_rows(session.table(name))) for name in VIEWS})
        asked: dict[str, list[str]] = {name: [] for name in VIEWS}
        for row in history(session, home, every).collect():
            asked[row["view"]].append(row["text"])
        answers.append({name: sorted(rows) for name, rows in asked.items()})
    assert answers[0] == answers[1] == answers[2] == answers[3]
    silent = [name for name in VIEWS if not answers[0][name]]
    assert silent == ["config_drift"], "one cluster has nothing to differ from"


def test_sql_means_the_same(both):
    day = "2026-11-21 06:14:26"
    found = []
    for session, home in both:
        before = {name: session.conf.get(name) for name in OTHERWISE}
        asked = history(
            session, home, "SELECT Time, hour(time) AS h FROM log", where=f"time > '{day}'"
        )
        found.append(sorted(json_rows(asked)))
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            history(session, home, "SELECT 1 / (offset - 3) FROM log").collect()
        assert {name: session.conf.get(name) for name in OTHERWISE} == before
        state = state_at(session, open_store(home), "partitions", DYNAMIC, offset=250)
        found.append(sorted(json_rows(state)))
    assert found[:2] == found[2:] and found[0] and found[1]
    assert all('"h":6}' in row for row in found[0])


def test_a_question_leaves_their_views_alone(theirs, both):
    theirs.createDataFrame([(1,)], "mine int").createOrReplaceTempView("log")
    assert history(theirs, both[1][1], "SELECT count(*) AS n FROM log").collect()[0].n > 100
    assert theirs.table("log").columns == ["mine"]
    assert not_none(SparkSession.getActiveSession())._jsparkSession.equals(theirs._jsparkSession)
    theirs.catalog.dropTempView("log")


def test_the_source_is_known_on_any_session(spark, tmp_path):
    found = read_metadata(own_session(spark), *places("e-truncated/node1"))
    assert found.count() > 100
    words = {"path": places("e-truncated/node1")[0], "upTo": "end"}
    summary = follow_clusters(own_session(spark), words, str(tmp_path / "followed"))
    assert summary.records > 100 and not summary.bad


def test_who_did_it_is_the_same(spark, theirs, tmp_path):
    ingest(spark, [str(SAMPLE / "metadata")], str(tmp_path / "w"))
    logs = LogPaths(authorizer=[str(SAMPLE)], request=[str(SAMPLE)])
    found = []
    for session in (spark, theirs):
        answer = who(
            session, open_store(str(tmp_path / "w")), logs, reading=Reading(zone="Europe/Berlin")
        )
        found.append((sorted(json_rows(answer.rows)), answer.summary()))
        answer.close()
    assert found[0] == found[1] and found[0][1]["caused_by"]["request"] == 29
