"""The columns in docs/tables.md are those of the tables and views."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from quorate.spark.history.views import RUNS_TABLE, VIEWS
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import FOLDERS, RUNS, TABLES, VALIDITY
from quorate.spark.tables.orphans import LEFT_OUT
from quorate.spark.tables.read import spark_schema
from quorate.spark.tables.texts import column_text, description, table_text
from quorate.spark.who.causes import EVENTS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tables.md").read_text()
with_texts = runpy.run_path(str(ROOT / "tools/list_tables.py"))["with_texts"]
_ROW = re.compile(r"\| `(\w+)` \| `?([^|`]+)`? \| ([^|]+) \|")


def sections(level):
    """The text of each heading of a level, up to the next of that level or a higher one."""
    heads = re.split(rf"(?m)^{'#' * level} (.+)$", PAGE)
    ends = re.compile(rf"(?m)^#{{1,{level - 1}}} ")
    return {name: ends.split(text)[0] for name, text in zip(heads[1::2], heads[2::2], strict=True)}


def columns(text):
    return [(name, kind) for name, kind, _ in _ROW.findall(text.partition("####")[0])]


EVERY = {**TABLES, RUNS_TABLE: RUNS}


def schema(table):
    documented = [field.partition(" ") for field in re.split(", (?=`)", spark_schema(EVERY[table]))]
    return [(name.strip("`"), kind.replace("_ltz", "")) for name, _, kind in documented]


def test_the_page_is_up_to_date():
    """`python tools/list_tables.py` writes it."""
    assert with_texts(PAGE) == PAGE
    assert with_texts(PAGE.replace("| of the record, if it is readable |", "| old |")) == PAGE


@pytest.mark.parametrize("table", EVERY)
def test_the_page_has_the_text_of_each_table_and_column(table):
    section = " ".join(sections(3)[table].partition("####")[0].split())
    assert section.startswith(table_text(table))
    for column in EVERY[table].names:
        assert f"| {column_text(table, column)} |" in PAGE
    assert "`" not in description(table)


@pytest.mark.parametrize("table", EVERY)
def test_the_page_has_the_columns_of_each_table(table):
    wanted = schema(table)
    if table in KINDS:
        wanted = wanted[: -len(VALIDITY)]
    assert columns(sections(3)[table]) == wanted


def test_the_page_has_each_table_and_view_once_and_where_it_lies():
    assert re.findall(r"(?m)^### (.+)$", PAGE) == [*EVERY, *VIEWS]
    for head, text in sections(2).items():
        folder = head.partition(":")[0].lower()
        tables = [name for name in TABLES if FOLDERS[name] == folder] or list(VIEWS)
        tables += [RUNS_TABLE] if folder == "control" else []
        assert re.findall(r"(?m)^### (.+)$", text) == tables
    gold = next(text for head, text in sections(2).items() if head.startswith("Gold"))
    validity = columns(gold.partition("\n### ")[0])
    assert validity == schema("topics")[-len(VALIDITY) :]


def test_the_page_has_the_columns_of_each_view(spark):
    alone = spark.newSession()
    for table in TABLES:
        nothing = alone.createDataFrame([], spark_schema(TABLES[table]))
        nothing.createOrReplaceTempView(table)
        nothing.createOrReplaceTempView(f"{table}_now")
    documented = sections(3)
    for name, view in VIEWS.items():
        assert columns(documented[name]) == alone.sql(view.sql).dtypes, name


def test_the_page_lists_each_event_and_its_facts():
    text = PAGE.partition("#### Events")[2].partition("\n## ")[0]
    rows = re.findall(r"(?m)^\| (\w+) \| (`[^|]+) \| ([^|]+) \|$", text)
    documented = [event for _, events, _ in rows for event in re.findall(r"`(.+?)`", events)]
    assert sorted(documented) == sorted(EVENTS | {"snapshot loaded", LEFT_OUT})
    whole = {kind: set(re.findall(r"`(\w+)`", facts)) for kind, _, facts in reversed(rows)}
    for name, kind in KINDS.items():
        assert whole[name] == {value for value, _ in kind.values}
