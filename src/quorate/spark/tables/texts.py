"""What each table and column holds, in words: `texts.json` is the one place for them.

The page docs/tables.md is made of it (`tools/list_tables.py`), and so is the metadata of the Delta
tables: the name and description of each table, and the comment of each column.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

import pyarrow as pa

from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import VALIDITY

COMMENT: Final = "comment"
"""The key of a column's text in Delta's schema, as Spark writes and reads it."""
_LINK: Final = re.compile(r"\[([^]]+)\]\([^)]+\)")


@cache
def _texts() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        files("quorate.spark.tables").joinpath("texts.json").read_text(encoding="utf-8")
    )
    return found


def table_text(table: str) -> str:
    """What a row of the table is, as Markdown."""
    text: str = _texts()["tables"][table]["text"]
    return text


def column_text(table: str, column: str) -> str:
    """What the column holds, as Markdown."""
    known: dict[str, str] = _texts()["tables"][table]["columns"]
    if column not in known and table in KINDS and column in dict(VALIDITY):
        known = _texts()["validity"]
    return known[column]


def description(table: str) -> str:
    """What a row of the table is, as plain text."""
    return _plain(table_text(table))


def with_comments(table: str, schema: pa.Schema) -> pa.Schema:
    """The schema of the table with the text of each column as its comment."""
    return pa.schema(
        [field.with_metadata({COMMENT: _plain(column_text(table, field.name))}) for field in schema]
    )


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("`", "")
