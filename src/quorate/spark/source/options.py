"""The options of the batch source, parsed and checked before any file is read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import Filter
from pyspark.sql.pandas.types import to_arrow_schema

from quorate.spark.decode.columns import COLUMNS, in_any_case
from quorate.spark.decode.typed import VIEWS, view_type
from quorate.spark.files.naming import ClusterPaths
from quorate.spark.files.paths import SourceError
from quorate.spark.source.where import parse_where

PARTITION_BYTES: Final = 32 * 1024 * 1024
_KINDS: Final = {"log": ("log",), "snapshot": ("snapshot",), "both": ("log", "snapshot")}
_OPTIONS: Final = {
    name.lower(): name
    for name in (
        *("path", "paths", "raw", "kinds", "failFast", "maxPartitionBytes", "clusterId"),
        *("nodeId", "clusters", "columns", "view", "where", "pushdown"),
    )
}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a reader; see docs/spark-source.md."""

    paths: tuple[str, ...]
    columns: tuple[str, ...] = tuple(COLUMNS)
    view: str | None = None
    """The record type whose typed view is read, instead of the rows of the source."""
    raw: bool = False
    kinds: tuple[str, ...] = ("log", "snapshot")
    fail_fast: bool = False
    partition_bytes: int = PARTITION_BYTES
    cluster_id: str | None = None
    node_id: int | None = None
    where: tuple[Filter, ...] = ()
    """Conditions that must all hold for a row; times without a zone are of the session's."""
    clusters: ClusterPaths = ()


def parse_options(given: Mapping[str, str], *, needs_path: bool = True) -> SourceOptions:
    """The options of `spark.read`. Raises SourceError, which names the wrong option."""
    words = {key.lower(): value for key, value in given.items()}
    _flag(words, "pushdown")  # checked, and of no effect
    for word in words:
        if word not in _OPTIONS:
            raise SourceError(
                f"there is no option '{word}'; there are {', '.join(_OPTIONS.values())}"
            )
    asked = [name.strip() for name in words.get("columns", "").split(",") if name.strip()]
    view = words.get("view")
    if view is not None:
        view = _known(view, VIEWS, f"option view={view}: there is no such record type, only ")
    every = tuple(COLUMNS) if view is None else tuple(view_type(VIEWS[view]).names)
    columns = column_names(asked, every)
    kinds = words.get("kinds", "both").lower()
    if kinds not in _KINDS:
        raise SourceError(f"option kinds={kinds}: must be log, snapshot or both")
    node_id = words.get("nodeid")
    return SourceOptions(
        _paths(words, needs_path),
        columns or every,
        view,
        _flag(words, "raw"),
        _KINDS[kinds],
        _flag(words, "failfast"),
        number("maxPartitionBytes", words.get("maxpartitionbytes", str(PARTITION_BYTES)), 1),
        words.get("clusterid"),
        None if node_id is None else number("nodeId", node_id, 0),
        parse_where(words["where"], column_types(view)) if words.get("where") else (),
        _clusters(words.get("clusters")),
    )


def column_types(view: str | None) -> dict[str, pa.DataType]:
    """The Arrow type of each column of the source or view."""
    if view is None:
        return dict(COLUMNS)
    arrow = to_arrow_schema(view_type(VIEWS[view]), timezone="UTC")
    return dict(zip(arrow.names, arrow.types, strict=True))


def column_names(asked: Sequence[str], every: Sequence[str]) -> tuple[str, ...]:
    """The columns of these names, without regard to case.

    Raises SourceError for an unknown column, and for one that is named twice.
    """
    found = [_known(name, every, f"there is no column '{name}'; there are ") for name in asked]
    for name in found:
        if found.count(name) > 1:
            raise SourceError(f"column {name} is named {found.count(name)} times")
    return tuple(found)


def _known(asked: str, names: Collection[str], refusal: str) -> str:
    """The name that is equal without regard to case. Raises SourceError."""
    found = in_any_case(asked, names)
    if found is None:
        raise SourceError(refusal + ", ".join(names))
    return found


def _paths(words: Mapping[str, str], needed: bool) -> tuple[str, ...]:
    found = [words["path"]] if words.get("path") else []
    if words.get("paths"):
        found += json.loads(words["paths"])
    if needed and not found:
        raise SourceError(
            "no path is given: load(path) takes log directories, files, archives. A table that was "
            "created with a list of columns has no path either: create it without the list, and "
            "choose columns by OPTIONS (columns '...')"
        )
    return tuple(found)


def _clusters(text: str | None) -> ClusterPaths:
    """The option `clusters`: JSON of `{name: [path, ...]}`. Raises SourceError."""
    if text is None:
        return ()
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(map(_names_paths, found, found.values())):
        raise SourceError(f'option clusters={text}: must be JSON like {{"name": ["path", ...]}}')
    return tuple((name, tuple(paths)) for name, paths in found.items())


def _names_paths(name: str, paths: object) -> bool:
    return bool(name) and isinstance(paths, list) and all(isinstance(path, str) for path in paths)


def _flag(words: Mapping[str, str], name: str) -> bool:
    text = words.get(name, "false").lower()
    if text not in ("true", "false"):
        raise SourceError(f"option {_OPTIONS[name]}={text}: must be true or false")
    return text == "true"


def number(name: str, text: str, least: int) -> int:
    """The number of an option. Raises SourceError."""
    if not (text.isascii() and text.isdigit() and least <= int(text) < 1 << 62):
        raise SourceError(f"option {name}={text}: must be a whole number of at least {least}")
    return int(text)
