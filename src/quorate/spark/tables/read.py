"""Tables of a warehouse as Spark data frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.store import Store, Stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_table(
    spark: SparkSession,
    store: Store,
    table: str,
    wanted: Callable[[Stored], bool] | None = None,
) -> DataFrame:
    """The rows of a table as of now; `wanted` leaves out files by their bounds.

    The files are those of this moment: call again to see later runs.
    """
    files = [file for file in store.files(table) if wanted is None or wanted(file)]
    schema = spark_schema(TABLES[table])
    if not files:
        return spark.createDataFrame([], schema)
    place = store.place(table)
    paths = [f"{place}/{file.path}" for file in files]
    return spark.read.schema(schema).parquet(*paths)


def at_least(file: Stored, column: str, bound: Any) -> bool:
    """False only where no row of the file can have `column` at least as great as the bound."""
    high = file.high.get(column)
    return high is None or high >= bound


def spark_schema(schema: pa.Schema) -> str:
    """Spark's words for Arrow's columns."""
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
    pa.timestamp("us", "UTC"): "timestamp",
}
