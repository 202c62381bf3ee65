"""Tables of Spark's catalog over the source: CREATE TABLE, OPTIONS, LOCATION."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StringType, StructField, StructType

from quorate.spark import reason
from quorate.spark.source.catalog import is_table, options_in, table_options, with_options
from spark.logs import batches, log_directory

ROWS = StructType([StructField("a", StringType()), StructField("b", StringType())])


def test_the_properties_of_the_catalog_are_no_options():
    given = {
        "path": "file:/logs",
        "location": "file:/logs",
        "provider": "quorate-metadata",
        "owner": "ann",
        "option.where": "offset = 1",
        "where": "offset = 1",
    }
    assert is_table(given)
    assert table_options(given) == {"path": "file:/logs", "where": "offset = 1"}


@pytest.mark.parametrize("place", ["paths", "bootstrap.controllers", "bootstrap.controllers.a"])
def test_the_folder_that_the_catalog_gives_is_no_path(place):
    given = {"location": "file:/spark-warehouse/t", "provider": "q", f"option.{place}": "x"}
    assert table_options(given) == {place: "x"}


def test_the_options_travel_in_the_schema():
    options = {"path": "/logs", "where": "type = 'TopicRecord'"}
    travelled = StructType.fromJson(json.loads(with_options(ROWS, options).json()))
    assert travelled.names == ROWS.names
    assert options_in(travelled) == options
    assert options_in(ROWS) == {}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two clusters, in a path with a space."""
    home = tmp_path / "two logs"
    log_directory(home / "a", {0: b"".join(batches())})
    log_directory(home / "b", {0: b"".join(batches(epoch=2))}, cluster="cluster-b", node=2)
    return home


@pytest.fixture
def database(spark, tmp_path: Path) -> Iterator[str]:
    spark.sql(f"CREATE DATABASE fleet LOCATION '{tmp_path / 'fleet.db'}'")
    yield "fleet"
    spark.sql("DROP DATABASE fleet CASCADE")


@pytest.mark.slow
def test_tables_by_options_and_by_location(spark, logs: Path, database: str):
    using = f"CREATE TABLE {database}.{{}} USING `quorate-metadata` {{}}"
    counts = {}
    for name, clauses in {
        "by_path": f"OPTIONS (path '{logs}')",
        "by_location": f"LOCATION '{logs}'",
        "by_pattern": f"LOCATION '{logs}/*'",
        "by_paths": f"OPTIONS (paths '{json.dumps([str(logs / 'a'), str(logs / 'b')])}')",
        "chosen": f"OPTIONS (path '{logs}', WHERE \"cluster_id = 'cluster-b'\", columns 'offset')",
    }.items():
        spark.sql(using.format(name, clauses))
        counts[name] = spark.table(f"{database}.{name}").count()
    assert counts == {
        "by_path": 42,
        "by_location": 42,
        "by_pattern": 42,
        "by_paths": 42,
        "chosen": 21,
    }
    rows = spark.sql(
        f"SELECT cluster_id, max(c.offset) AS last FROM {database}.by_path p "
        f"JOIN {database}.chosen c USING (offset) WHERE p.node_id = 2 GROUP BY cluster_id"
    ).collect()
    assert [tuple(row) for row in rows] == [("cluster-b", 20)]
    assert spark.table(f"{database}.chosen").columns == ["offset"]
    # Files that come later are read by later queries.
    log_directory(logs / "c", {0: b"".join(batches(epoch=3))}, cluster="cluster-c", node=3)
    assert spark.table(f"{database}.by_location").count() == 63


@pytest.mark.slow
@pytest.mark.parametrize(
    ("create", "text"),
    [
        ("USING `quorate-metadata` OPTIONS (path '{}', wher 'x')", "there is no option 'wher'"),
        ("(offset BIGINT) USING `quorate-metadata` LOCATION '{}'", "a list of columns"),
        ("USING `quorate-metadata` OPTIONS (path '{}', upTo 'end')", "for spark.readStream"),
    ],
)
def test_a_wrong_table_is_refused(spark, logs: Path, database: str, create: str, text: str):
    with pytest.raises(PySparkException) as refused:
        spark.sql(f"CREATE TABLE {database}.wrong " + create.format(logs))
        spark.table(f"{database}.wrong").count()
    assert text in reason(refused.value)
