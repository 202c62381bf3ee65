"""The options of a table in Spark's catalog (`CREATE TABLE ... USING`).

Spark 4.3 gives the options of such a table to `DataSource.schema` only, mixed with properties that
the catalog adds. `reader` gets none of them, but the schema as `schema` has returned it. So the
options travel as metadata of the first column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

_METADATA: Final = "quorate.options"
_OPTION: Final = "option."
"""The catalog repeats each option with this prefix; without it they look like its own properties."""
_PLACES: Final = ("paths", "bootstrap.controllers")
"""Options in place of a path. Spark gives a table without a path one of its own."""


def is_table(options: Mapping[str, str]) -> bool:
    """Whether `DataSource.schema` is asked for a table of the catalog, by options in lower case."""
    return "provider" in options


def table_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that `CREATE TABLE` names, and its LOCATION as `path`.

    options: in lower case, with what the catalog adds to them
    """
    found = {
        name.removeprefix(_OPTION): value
        for name, value in options.items()
        if name.startswith(_OPTION)
    }
    has_place = any(name.startswith(_PLACES) for name in found)
    path = options.get("path") or options.get("location")
    return found if has_place or not path else {**found, "path": path}


def with_options(rows: StructType, options: Mapping[str, str]) -> StructType:
    """The type of the rows, with the options as metadata of its first column."""
    first, *rest = rows.fields
    metadata = {**(first.metadata or {}), _METADATA: json.dumps(dict(options))}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *rest])


def options_in(rows: StructType) -> dict[str, str]:
    """The options that `with_options` has put there; none in other types."""
    for field in rows.fields:
        if _METADATA in (field.metadata or {}):
            found: dict[str, str] = json.loads(field.metadata[_METADATA])
            return found
    return {}
