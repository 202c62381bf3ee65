"""The sample clusters in warehouses that the tests of one session share."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from metadata.samples import DATA
from quorate.spark.tables import state
from quorate.spark.tables.files import read_file
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.warehouse import open_store

DYNAMIC = "GE6zr551RxiE7UFxeHzOVQ"
"""The cluster of a-first to e-truncated."""
STATIC = "67FiBQLOSWS_zxSyw0opGQ"
"""The cluster of f-static-v0 and g-upgraded-v1."""
LOG = "__cluster_metadata-0/00000000000000000000.log"
EVERYTHING = [
    *("a-first", "b-failover", "d-divergent", "e-truncated"),
    *("f-static-v0", "g-upgraded-v1"),
]


def places(*parts: str) -> list[str]:
    return [str(DATA / part) for part in parts]


def rows_of(store, table):
    """All rows of a table, without Spark."""
    return [
        row
        for file in store.files(table)
        for row in read_file(store.root, table, file.path).to_pylist()
    ]


WAYS = {
    "delta": [
        *(["a-first/node2"], ["d-divergent"], ["e-truncated"]),
        ["f-static-v0", "g-upgraded-v1"],
    ],
    "parquet": [EVERYTHING],
}
"""One part after another into a Delta warehouse, all at once into a Parquet one."""
_FOUND: dict[Any, Any] = {}


def warehouses(spark, folders):
    """Both, and what the last job reported; states are cut into slices, more and more of them."""
    if not _FOUND:
        home = folders.mktemp("warehouses")
        with patch.object(state, "SLICE_ROWS", 32):
            for form, ways in WAYS.items():
                for parts in ways:
                    summary = ingest(spark, places(*parts), str(home / form), table_format=form)
                _FOUND[form] = open_store(str(home / form), form), summary
    return _FOUND
