"""The tables of a warehouse as Spark data frames."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quorate.spark.session import is_remote
from quorate.spark.tables.files import read_batches
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.store import StoredFile, TableFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WILD: Final = re.compile(r"[][{}*?\\]")
"""Characters that Hadoop takes for a pattern unless they are escaped."""


def read_table(
    spark: SparkSession,
    tables: TableFiles,
    table: str,
    wanted: Callable[[StoredFile], bool] | None = None,
) -> DataFrame:
    """The rows of a table; `wanted` leaves out files by their statistics.

    Of a TableStore, they are those at this moment: call it again to see later runs. Of a
    WarehouseVersion, they are those that its run left.
    """
    files = [file for file in tables.files(table) if wanted is None or wanted(file)]
    return read_files(spark, tables, table, files)


def read_files(
    spark: SparkSession, tables: TableFiles, table: str, files: Sequence[StoredFile]
) -> DataFrame:
    """The rows of some files of a table."""
    schema = spark_schema(TABLES[table])
    if not files:
        return spark.createDataFrame([], schema)
    place = tables.place(table)
    if not hadoop_reads(spark, place):
        return _by_tasks(spark, tables, table, files, schema)
    paths = [_WILD.sub(r"\\\g<0>", f"{place}/{file.path}") for file in files]
    return spark.read.schema(schema).parquet(*paths)


def hadoop_reads(spark: SparkSession, place: str) -> bool:
    """Whether Spark itself can read this path or URI: whether Hadoop has its file system.

    For `s3a`, `gs` and `abfss` that needs a library that Spark does not include. A server of Spark
    Connect does not tell.
    """
    scheme, found, _ = place.partition("://")
    if not found or scheme in ("file", "hdfs"):  # also file:/path, which has no ://
        return True
    if is_remote(spark):
        return False
    context: Any = spark.sparkContext
    try:
        context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
            scheme, context._jsc.hadoopConfiguration()
        )
    except Exception:  # an error of the JVM: it has no such class
        return False
    return True


def _by_tasks(
    spark: SparkSession, tables: TableFiles, table: str, files: Sequence[StoredFile], schema: str
) -> DataFrame:
    """The rows through PyArrow's file systems: a task for each file."""
    root = tables.root

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from read_batches(root, table, path)

    rows = [(file.path,) for file in files]
    paths = spark.createDataFrame(rows, "path string").repartition(len(rows))
    return paths.mapInArrow(read, schema)


def may_reach(file: StoredFile, column: str, bound: Any) -> bool:
    """False only if the statistics say that all rows of the file have less than the bound."""
    high = file.high.get(column)
    return high is None or high >= bound


def spark_schema(schema: pa.Schema) -> str:
    """An Arrow schema as a Spark DDL string."""
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = (kind.field(index) for index in range(kind.num_fields))
        return (
            f"struct<{', '.join(f'{field.name}: {_spark_type(field.type)}' for field in fields)}>"
        )
    return _PLAIN[kind]


_PLAIN = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.timestamp("us", "UTC"): "timestamp_ltz",  # `timestamp` depends on a setting of the session
}
