"""One table for each record type, with the fields that Kafka declares for it.

    views(spark, frame)             # from rows of the source, or of a table made of them
    spark.sql("SELECT topicId, partitionId, leader FROM PartitionChangeRecord")

    spark.read.format("quorate-metadata").option("view", "PartitionChangeRecord").load(path)

The second way decodes the fields directly from the bytes and is faster. Names are those of Kafka's
JSON. A field that the version of the record lacks is null. A tagged field that was left out has its
default. Only the rows of the source show records that could not be decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import types as t

from quorate.base.ids import uuid_to_text
from quorate.formats.records import RECORD_TYPES
from quorate.spark.decode.columns import COLUMNS, COMMENTS
from quorate.wire.schema import NEW, Field, Message, Struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

HEAD: Final = (
    *("cluster_id", "node_id", "file", "kind", "snapshot_offset", "snapshot_epoch"),
    *("offset", "epoch", "timestamp", "version"),
)
"""The columns of the source before the fields of the record."""

VIEWS: Final[Mapping[str, type[Message]]] = {cls.__name__: cls for cls in RECORD_TYPES.values()}
"""The names of the tables."""

_RENAMED: Final = {"epoch": "brokerEpoch"}
"""Fields with the name of a HEAD column, in FenceBrokerRecord and UnfenceBrokerRecord."""
_SPARK: Final[dict[pa.DataType, t.DataType]] = {
    pa.string(): t.StringType(),
    pa.int32(): t.IntegerType(),
    pa.int64(): t.LongType(),
    pa.bool_(): t.BooleanType(),
    pa.binary(): t.BinaryType(),
    pa.timestamp("us", "UTC"): t.TimestampType(),
}
_TYPES: Final[dict[str, t.DataType]] = {
    "bool": t.BooleanType(),
    "int8": t.IntegerType(),
    "int16": t.IntegerType(),
    "uint16": t.IntegerType(),
    "int32": t.IntegerType(),
    "int64": t.LongType(),
    "float64": t.DoubleType(),
    "uuid": t.StringType(),
    "string": t.StringType(),
    "bytes": t.BinaryType(),
}


@cache
def source_type() -> t.StructType:
    """The Spark schema of the rows of the source."""
    return t.StructType(
        [
            t.StructField(name, _SPARK[kind], metadata={"comment": COMMENTS[name]})
            for name, kind in COLUMNS.items()
        ]
    )


@cache
def fields_type(cls: type[Struct]) -> t.StructType:
    """The Spark type of the fields of a record, or of a struct in it."""
    return t.StructType(
        [t.StructField(field.json_name, _type(field)) for field in cls.schema.fields]
    )


@cache
def view_type(cls: type[Message]) -> t.StructType:
    """The Spark schema of the view of a record type."""
    head = [source_type()[name] for name in HEAD]
    body = [t.StructField(column_name(field), _type(field)) for field in cls.schema.fields]
    return t.StructType(head + body)


def column_name(field: Field) -> str:
    """The column of a field of a record."""
    return _RENAMED.get(field.json_name, field.json_name)


def _type(field: Field) -> t.DataType:
    if field.type_name == "struct":
        return fields_type(field.struct)
    if field.type_name != "array":
        return _TYPES[field.type_name]
    return t.ArrayType(
        fields_type(field.struct) if field.holds_structs else _TYPES[str(field.element)]
    )


def views(spark: SparkSession, frame: DataFrame) -> dict[str, DataFrame]:
    """Create a temporary view of each record type from rows of the source. Returns them by name.

    `frame` has the columns of HEAD, type, record and problem.
    """
    found = {name: view(frame, cls) for name, cls in VIEWS.items()}
    for name, one in found.items():
        one.createOrReplaceTempView(name)
    return found


def view(frame: DataFrame, cls: type[Message]) -> DataFrame:
    """The view of one record type, from rows of the source."""
    from pyspark.sql import functions as f

    rows = frame.where((f.col("type") == cls.__name__) & f.col("problem").isNull())
    parsed = rows.select(*HEAD, f.from_json("record", fields_type(cls)).alias("_record"))
    return parsed.select(*HEAD, *(_column(field) for field in cls.schema.fields))


def _column(field: Field) -> Column:
    """A field of `_record`. Kafka's JSON leaves out tagged fields with their default value."""
    from pyspark.sql import functions as f

    column = f.col(f"_record.{field.json_name}")
    if field.tag is not None and field.default is not None:
        default = f.array() if field.default is NEW else f.lit(field.default)
        filled = f.coalesce(column, default.cast(_type(field)))
        column = f.when(f.col("version") >= field.since, filled)
    return column.alias(column_name(field))


def plain(value: Any) -> Any:
    """A value of a record in the form that Arrow takes: structs as mappings, uuids as text."""
    if isinstance(value, Struct):
        return {field.json_name: plain_field(value, field) for field in type(value).schema.fields}
    return value


def plain_field(record: Struct, field: Field) -> Any:
    """A field of a record in the form that Arrow takes."""
    value = getattr(record, field.name)
    if field.type_name == "uuid":
        return uuid_to_text(value)
    if field.type_name != "array" or value is None:
        return plain(value)
    if field.element == "uuid":
        return [uuid_to_text(one) for one in value]
    return [plain(one) for one in value]
