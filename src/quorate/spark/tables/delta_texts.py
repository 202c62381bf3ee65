"""Creates Delta tables, and gives existing ones the columns and texts of this release.

The metadata of a table has its name and description, and a comment for each column. To change them
rewrites no data file.
"""

from __future__ import annotations

import posixpath
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from quorate.spark.tables.delta_log import RUNS_PATH
from quorate.spark.tables.layout import RUNS, TABLES
from quorate.spark.tables.texts import COMMENT, description, with_comments


def table_schema(path: str) -> pa.Schema:
    """The columns of the table at a path in the warehouse, with their texts."""
    table = _name(path)
    return with_comments(table, RUNS if path == RUNS_PATH else TABLES[table])


def create_table(uri: str, path: str, options: Mapping[str, str] | None = None) -> Any:
    """Create the table unless it exists. Returns it; raises what deltalake raises."""
    from deltalake import DeltaTable

    return DeltaTable.create(
        uri,
        table_schema(path),
        mode="ignore",
        name=_name(path),
        description=description(_name(path)),
        storage_options=dict(options or {}) or None,
    )


def creation_text(path: str) -> str:
    """The text of the first commit of a table: delta-rs writes it to a temporary folder."""
    with tempfile.TemporaryDirectory() as home:
        create_table(home, path)
        return Path(home, "_delta_log", f"{0:020}.json").read_text(encoding="utf-8")


def is_described(table: Any, path: str) -> bool:
    """Whether the table has all columns and texts of this release."""
    metadata = table.metadata()
    wanted = (_name(path), description(_name(path)))
    return (metadata.name, metadata.description) == wanted and not _outdated(table, path)


def describe(table: Any, path: str) -> None:
    """Give the table its missing columns and texts: other readers see only what its log has."""
    from deltalake import Schema

    outdated = _outdated(table, path)
    if outdated:
        table.alter.add_columns(Schema.from_arrow(pa.schema(outdated)).fields)
    metadata = table.metadata()
    if metadata.name != _name(path):
        table.alter.set_table_name(_name(path))
    if metadata.description != description(_name(path)):
        table.alter.set_table_description(description(_name(path)))


def _outdated(table: Any, path: str) -> list[pa.Field]:
    """The columns that the table lacks or that have another text."""
    known = {field.name: field.metadata.get(COMMENT) for field in table.schema().fields}
    wanted = table_schema(path)
    return [
        field
        for field in wanted
        if known.get(field.name) != field.metadata[COMMENT.encode()].decode()
    ]


def _name(path: str) -> str:
    return posixpath.basename(path)
