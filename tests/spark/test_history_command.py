"""The output of `quorate pipeline history`: a table or JSON, in any time zone."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from quorate.cli import main
from quorate.formats.batch import encode_batch, encode_control_batch
from quorate.raft.values import LeaderChange
from quorate.spark.history.job import history, json_rows
from quorate.spark.history.views import NAMES, VIEWS, register_views
from quorate.spark.session import active, isolated_session
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.warehouse import open_store
from spark.logs import START_MS, log_directory, topic
from spark.shared import SESSIONS, Shared

TOPICS = 60
RECORDS = TOPICS + 1
BEGAN = "2027-01-15T08:00:00.000Z"


@pytest.fixture(scope="module")
def home(spark, tmp_path_factory):
    """A warehouse with more rows than a table shows."""
    folder = tmp_path_factory.mktemp("history")
    leader = encode_control_batch(0, 1, START_MS, [LeaderChange(1, (1,), (1,))])
    values = [topic(number) for number in range(TOPICS)]
    log_directory(folder / "node1", {0: leader + encode_batch(1, 1, START_MS + 1, values)})
    ingest(spark, [str(folder / "node1")], str(folder / "warehouse"))
    return str(folder / "warehouse")


@pytest.fixture
def ask_anew(pipeline, home):
    return lambda *words: pipeline("history", "-w", home, "--quiet", *words)


@pytest.fixture(scope="module")
def known(spark, home):
    """A session that has the views of the warehouse, and so has each that is made beside it."""
    found = isolated_session(spark)
    with active(found):
        return found, register_views(found, open_store(home))


@pytest.fixture
def ask(ask_anew, known, monkeypatch):
    """The same without making the views for each question, which takes longer than the answer."""
    session, names = known
    monkeypatch.setattr(SESSIONS, "session", lambda *_, **__: Shared(session))
    monkeypatch.setattr("quorate.spark.history.job.register_views", lambda own, store, sql: names)
    return ask_anew


def strictly(text: str):
    """Strict JSON: Python accepts Infinity and NaN, too."""

    def refuse(word: str):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_has_all_rows_and_a_table_fifty(ask_anew, request):
    code, out, err = ask_anew("log", "--json")
    assert (code, len(strictly(out)), err) == (0, RECORDS, "")
    ask = request.getfixturevalue("ask")
    code, out, err = ask("log")
    assert (code, len(out.splitlines())) == (0, 2 + 50) and "only 50 are shown" in err
    code, out, err = ask("log", "--json", "--limit", "3", "--order-by", "offset")
    assert code == 0 and "only 3 are shown" in err
    assert [row["offset"] for row in strictly(out)] == [0, 1, 2]
    code, out, err = ask("log", "--limit", str(RECORDS), "--json")
    assert (code, len(strictly(out)), err) == (0, RECORDS, "")
    code, out, err = ask("SELECT * FROM log WHERE offset < 0", "--json")
    assert (code, strictly(out), err) == (0, [], "")


def test_what_jobs_did_can_be_asked_for(ask_anew):
    code, out, err = ask_anew("runs", "--json")
    assert code == 0, err
    rows = strictly(out)
    assert [(row["run"], row["job"]) for row in rows] == [(1, "bronze"), (2, "state")]
    done = [json.loads(row["summary"])["clusters"]["cluster-a"] for row in rows]
    keys = ["records", "log_end_offset", "applied_end_offset"]
    assert [[one[key] for key in keys] for one in done] == [
        [RECORDS, RECORDS, None],
        [RECORDS, RECORDS, RECORDS],
    ]
    code, out, _ = ask_anew("SELECT max(run) AS last FROM runs WHERE at <= now()", "--json")
    assert (code, strictly(out)) == (0, [{"last": 2}])


def test_times_are_utc_in_any_time_zone(ask, in_berlin):
    question = ("SELECT time, array(time) AS many, date(time) AS day FROM log WHERE offset = 0",)
    row = {"time": BEGAN, "many": [BEGAN], "day": "2027-01-15"}
    assert strictly(ask(*question, "--json")[1]) == [row]
    cells = ask(*question)[1].splitlines()[-1].split()
    assert cells == [BEGAN, f"[{BEGAN}]", "2027-01-15"]
    # and what is printed can be asked for
    found = strictly(ask("log", "--where", f"time = '{BEGAN}'", "--json")[1])
    assert [(one["offset"], one["time"]) for one in found] == [(0, BEGAN)]
    state = ("topics", "--at", "2027-01-15T09:00:00Z", "--cluster", "cluster-a", "--limit", "1")
    code, out, err = ask(*state, "--json")
    assert code == 0 and "the ingested log ends at 2027-01-15T08:00:00.001Z: this is" in err
    assert strictly(out)[0]["topic_name"].startswith("topic-")
    own = ("--conf", "spark.sql.session.timeZone=America/New_York")
    assert strictly(ask(*question, "--json", *own)[1]) == [row]


def test_json_is_strict(ask):
    sql = (
        "SELECT double('Infinity') AS a, float('NaN') AS b, X'00ff' AS bytes, 1.50 AS price, "
        "9007199254740993 AS big, map('at', timestamp'2026-01-02 03:04:05') AS map, 'ü\"\n' AS t, "
        "null AS nothing, timestamp'+12345-01-01 00:00:00' AS far"
    )
    code, out, err = ask(sql, "--json")
    assert code == 0, err
    [row] = strictly(out)
    assert base64.b64decode(row.pop("bytes")) == b"\0\xff"
    assert row == {
        "a": "Infinity",
        "b": "NaN",
        "price": 1.5,
        "big": 9007199254740993,
        "map": {"at": "2026-01-02T03:04:05.000Z"},
        "t": 'ü"\n',
        "nothing": None,
        "far": "+12345-01-01T00:00:00.000Z",
    }
    code, out, _ = ask(sql)
    assert code == 0 and "Infinity  NaN  AP8=   1.50" in out


def test_the_list_of_questions_is_json_too(monkeypatch, capsys):
    monkeypatch.setattr(SESSIONS, "session", None)
    assert main.run(["pipeline", "history", "-w", "w", "--json"]) == 0
    views = strictly(capsys.readouterr().out)
    assert [one["name"] for one in views] == list(VIEWS)
    assert views[0]["question"].startswith("Who led each partition")


def test_only_names_in_the_question_are_defined(spark, home):
    store, own = open_store(home), isolated_session(spark)
    with active(own):
        assert register_views(own, store, "FROM `Log` WHERE topic = 'LOGS_NOW'") == ["log"]
        assert register_views(own, store, "SELECT 1") == []
        names = register_views(own, store, "SELECT * FROM config_drift")
        assert set(names) == {
            *("clusters", "configs_now", "topics_now", "brokers_now", "config_drift")
        }
        assert len(register_views(own, store, "FROM IDENTIFIER('lo' || 'g')")) == len(NAMES)


def test_every_part_of_a_question_may_name_a_table(ask_anew):
    first = "offset = (SELECT min(offset) FROM log)"
    code, out, err = ask_anew(
        *("FROM VALUES (0), (1) AS t (offset)", "--where", first, "--json"),
        *("--order-by", "(SELECT count(*) FROM topics_now), offset"),
    )
    assert (code, strictly(out)) == (0, [{"offset": 0}]), err


REFUSED = [
    ("DROP TABLE log", "'DROP TABLE log' is no query: a query begins with"),
    ("CREATE TABLE x (a int)", "a query begins with SELECT"),
    ("FROM log INSERT INTO quarantine SELECT *", "a query begins with SELECT"),
    ("SET spark.sql.ansi.enabled=false", "a query begins with SELECT"),
    ("SHOW TABLES", "a query begins with SELECT"),
    ("CACHE TABLE log", "a query begins with SELECT"),
    ("SELECT 1) UNION (SELECT 2", "Syntax error at or near ')'"),
]
FAILING = [
    ("SELECT 1/0", "[DIVIDE_BY_ZERO] Division by zero."),
    ("SELECT 1 / (offset - 3) FROM log", "[DIVIDE_BY_ZERO] Division by zero."),
    ("SELECT CAST(type AS INT) FROM log", "[CAST_INVALID_INPUT]"),
    ("SELECT (SELECT offset FROM log)", "[SCALAR_SUBQUERY_TOO_MANY_ROWS]"),
    ("SELECT raise_error('no')", "[USER_RAISED_EXCEPTION] no"),
]
"""Queries that fail during execution, in a table or as JSON."""


@pytest.mark.parametrize(
    ("question", "message", "form"),
    [(*one, ()) for one in REFUSED + FAILING] + [(*one, ("--json",)) for one in FAILING],
)
def test_an_invalid_question_is_exit_code_2(ask, tmp_path, monkeypatch, question, message, form):
    monkeypatch.chdir(tmp_path)
    code, out, err = ask(question, *form)
    assert (code, out) == (2, ""), err
    assert message in err and len(err.splitlines()) == 1, err
    assert not list(Path(tmp_path).iterdir())


@pytest.mark.parametrize(
    "question",
    [
        "SELECT\toffset\nFROM\tlog;",
        "FROM log |> SELECT offset -- all",
        "TABLE log ; ",
        "VALUES (1)",
    ],
)
def test_queries_of_every_form_are_answered(ask, question):
    code, out, err = ask(question, "--json")
    assert code == 0, err
    assert len(strictly(out)) in (1, RECORDS)


def test_two_columns_of_one_name_are_printed_or_refused(ask):
    code, out, _ = ask("SELECT 1 AS a, 2 AS a")
    assert code == 0 and [line.split() for line in out.splitlines()][2] == ["1", "2"]
    code, out, err = ask("SELECT 1 AS a, 2 AS a", "--json")
    assert (code, out) == (2, "") and "two columns are called 'a'" in err


def test_json_rows_gives_the_same_text_in_python(spark, home):
    answer = history(spark, home, "SELECT time FROM log WHERE offset = 0")
    assert list(json_rows(answer)) == [f'{{"time":"{BEGAN}"}}']
