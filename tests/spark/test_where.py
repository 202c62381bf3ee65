"""The option `where` has the meaning of SQL, whatever it skips."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, IsNotNull, Not, StringStartsWith

from quorate.spark.decode.columns import COLUMNS
from quorate.spark.files.paths import SourceError
from quorate.spark.source.options import column_types
from quorate.spark.source.where import parse_where
from quorate.spark.source.zones import in_zone, session_zone_named
from spark.logs import batches, end_offset, log_directory, snapshot
from spark.test_plan import read


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments and a snapshot, of which one segment has a damaged batch."""
    folder = tmp_path_factory.mktemp("where")
    first = b"".join(batches())
    base = end_offset(first)
    second = bytearray(b"".join(batches(base=base)))
    second[-3] ^= 0xFF
    log_directory(folder, {0: first, base: bytes(second)}, {(10, 1): snapshot()})
    return folder


def same(left, compare, right):
    return left is not None and compare(left, right)


CONDITIONS = [
    ("offset = 3", lambda row: row["offset"] == 3),
    ("offset <> 3", lambda row: row["offset"] is not None and row["offset"] != 3),
    ("offset BETWEEN 3 AND 24", lambda row: same(row["offset"], lambda a, _: 3 <= a <= 24, 0)),
    ("offset > 30 and kind='log'", lambda row: row["kind"] == "log" and (row["offset"] or 0) > 30),
    ("type IN ('TopicRecord', 'none')", lambda row: row["type"] == "TopicRecord"),
    ("type <> 'TopicRecord'", lambda row: row["type"] not in (None, "TopicRecord")),
    ("type like 'Topic%'", lambda row: (row["type"] or "").startswith("Topic")),
    ("offset != 3 AND offset == 4", lambda row: row["offset"] == 4),
    ("type like '%Record'", lambda row: (row["type"] or "").endswith("Record")),
    ("type like '%pic%'", lambda row: "pic" in (row["type"] or "")),
    ("type like 'TopicRecord'", lambda row: row["type"] == "TopicRecord"),
    ("type NOT like '%pic%'", lambda row: row["type"] is not None and "pic" not in row["type"]),
    (
        "type not IN ('TopicRecord', 'none')",
        lambda row: row["type"] not in (None, "TopicRecord"),
    ),
    ("is_control = true", lambda row: row["is_control"] is True),
    ("IS_CONTROL = FALSE", lambda row: row["is_control"] is False),
    ("problem IS NULL", lambda row: row["problem"] is None),
    ("problem IS NOT NULL", lambda row: row["problem"] is not None),
    ("topic_name >= 't'", lambda row: same(row["topic_name"], lambda a, b: a >= b, "t")),
    ("epoch <= 0 AND epoch >= 1", lambda row: False),
]


@pytest.mark.parametrize(("where", "holds"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
def test_the_rows_are_those_for_which_it_holds(home: Path, where: str, holds):
    every = read(home)
    assert any(row["problem"] for row in every)
    wanted = [row for row in every if holds(row)]
    assert read(home, where=where) == wanted
    narrow = read(home, where=where, columns="segment")  # looked at without being given
    assert narrow == [{"segment": row["segment"]} for row in wanted]


def test_a_typed_view_is_asked_by_its_own_fields(home: Path):
    rows = read(home, view="TopicRecord", kinds="log")
    (first, *_) = rows
    condition = read(home, view="TopicRecord", kinds="log", where=f"name = '{first['name']}'")
    assert condition == [row for row in rows if row["name"] == first["name"]]
    with pytest.raises(SourceError, match="there is no column 'leader'"):
        read(home, view="TopicRecord", where="leader = 1")


def test_what_is_parsed():
    condition = "type='it''s' AND node_id IN (1, -2) and file like 's3://a%' AND epoch is not null"
    assert parse_where(condition + " AND node_id <> 3", COLUMNS) == (
        EqualTo(("type",), "it's"),
        In(("node_id",), (1, -2)),
        StringStartsWith(("file",), "s3://a"),
        IsNotNull(("epoch",)),
        Not(EqualTo(("node_id",), 3)),
    )
    (at,) = parse_where("timestamp = '2026-11-21 06:14:00'", COLUMNS)
    assert at == EqualTo(("timestamp",), datetime(2026, 11, 21, 6, 14))
    for zone, hour in ("+05:30", 0), ("Asia/Kolkata", 0), ("GMT+5:30", 0), ("UTC", 6):
        (there,) = in_zone([at], session_zone_named(zone))
        wanted = datetime(2026, 11, 21, hour, 14 if hour else 44, tzinfo=UTC)
        assert there == EqualTo(("timestamp",), wanted), zone
    with pytest.raises(SourceError, match="time zone Mars/Base is not known"):
        session_zone_named("Mars/Base")


@pytest.mark.parametrize("typed", ["", "TIMESTAMP "])
def test_a_time_may_name_its_zone(typed: str):
    condition = f"timestamp >= {typed}'2026-11-21 06:14:00 Europe/Berlin'"
    (at,) = in_zone(parse_where(condition, COLUMNS), session_zone_named("Asia/Kolkata"))
    assert at == GreaterThanOrEqual(("timestamp",), datetime(2026, 11, 21, 5, 14, tzinfo=UTC))


@pytest.mark.parametrize(
    ("where", "at", "says"),
    [
        ("ofset = 1", 1, "there is no column 'ofset'; there are cluster_id"),
        ("raw = 'x'", 1, "there is no column 'raw'"),
        ("offset === 1", 10, "a value is missing"),
        ("offset NOT BETWEEN 1 AND 2", 1, "NOT stands before IN and LIKE alone, and after IS"),
        ("offset", 7, "a comparison (=, <>, !=, <, <=, >, >=, BETWEEN, [NOT] IN, [NOT] LIKE, IS"),
        ("offset = 'x'", 9, "'x' is no value of type int64"),
        ("offset < 9223372036854775808", 9, "9223372036854775808 is no value of type int64"),
        ("type = TopicRecord", 7, "TopicRecord is no value of type string"),
        (
            "timestamp > 'noon'",
            12,
            "'noon' is no value of type timestamp: write '2026-11-21 06:14:00'",
        ),
        ("timestamp > 7", 12, "7 is no value of type timestamp: write"),
        (
            "timestamp > '2026-11-21 06:14:00 Mars/Base'",
            12,
            "the time zone Mars/Base is not known): write '2026-11-21 06:14:00' or a part of it; a "
            "zone may follow the seconds: Z, +01:00, Europe/Berlin",
        ),
        ("timestamp > 'now Europe/Berlin'", 12, "is another time for each query: use it in .where"),
        ("timestamp > TIMESTAMP 7", 22, "a time in quotes is missing"),
        ("is_control = 1", 13, "1 is no value of type bool"),
        ("offset = 1 OR offset = 2", 11, "AND is missing: nothing else joins conditions"),
        ("offset = 1 AND", 15, "the name of a column is missing"),
        ("type LIKE 'a%x'", 10, "LIKE takes a text with % at either end"),
        ("type LIKE 'a_'", 10, "LIKE takes a text with % at either end, and without _"),
        ("type IS 3", 8, "NULL or NOT NULL is missing"),
        ("offset IN (1, 2", 16, "',' or ')' is missing"),
        ("NOT offset = 1", 1, "there is no column 'NOT'"),
        ("offset around 1", 1, "'around' is none of"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place(where: str, at: int, says: str):
    with pytest.raises(SourceError) as caught:
        parse_where(where, column_types(None))
    assert str(caught.value).startswith(f"option where, at character {at} of {where!r}: ")
    assert says in str(caught.value)
