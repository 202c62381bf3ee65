"""The batch source `quorate-metadata`: metadata logs and snapshots of many replicas as rows.

    register(spark)
    spark.read.format("quorate-metadata").load("/data/fleet/*")

Paths are log directories, trees of them, single segments or snapshots, and tar or zip archives;
local, or URIs that PyArrow knows. The columns are those of `columns.COLUMNS`; Spark does not tell
a Python source which of them a query needs, so name them where it matters: by the option `columns`
or by `schema("offset bigint, type string")`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from quorate.spark.files import SourceError
from quorate.spark.filters import in_microseconds
from quorate.spark.plan import Options, Pieces, parse_options, partitions
from quorate.spark.read import read_partition
from quorate.spark.session import register
from quorate.spark.stream import MetadataStreamReader
from quorate.spark.stream_options import is_stream_option, parse_stream_options
from quorate.spark.typed import VIEWS, source_type, view_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FORMAT: Final = "quorate-metadata"


class MetadataLogSource(DataSource):
    """Made by Spark for each `spark.read` and `spark.readStream` of this format."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._stream = parse_stream_options(options)
        self._told = self._stream.rows

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return row_type(self._told)

    def reader(self, schema: StructType) -> DataSourceReader:
        for name in self.options:
            if is_stream_option(name):
                raise SourceError(f"option {name} is for spark.readStream, not for spark.read")
        return MetadataLogReader(replace(self._told, columns=_columns(schema, self._told)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if len(self._told.kinds) == 1:
            raise SourceError(
                "option kinds: a stream gives the log, and a snapshot where that has a gap; "
                "filter by the column kind"
            )
        rows = replace(self._told, columns=_columns(schema, self._told))
        return MetadataStreamReader(replace(self._stream, rows=rows))


class MetadataLogReader(DataSourceReader):
    """Cuts what is to be read into partitions, and reads them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._filters: tuple[Filter, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes note of all filters to skip what they cannot want; Spark applies them too."""
        self._filters = tuple(in_microseconds(filters))
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        return partitions(self._options, self._filters)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Pieces):  # else nothing passed the filters
            yield from read_partition(partition, self._options, self._filters)


def read_metadata(spark: SparkSession, *paths: str, **options: str) -> DataFrame:
    """The rows of these paths; the options are those of the source.

    Raises SourceError at once for paths and options that cannot be read, where `load` leaves it to
    Spark to wrap the message.
    """
    partitions(parse_options({**options, "paths": json.dumps(paths)}))
    register(spark)
    return spark.read.format(FORMAT).options(**options).load(list(paths))


def row_type(options: Options) -> StructType:
    """Spark's type of the rows that the options ask for."""
    every = source_type() if options.view is None else view_type(VIEWS[options.view])
    return StructType([every[name] for name in options.columns])


def _columns(schema: StructType, options: Options) -> tuple[str, ...]:
    """The names of a schema; raises SourceError where it is not one of this source."""
    every = source_type() if options.view is None else view_type(VIEWS[options.view])
    for field in schema.fields:
        if field.name not in every.names:
            raise SourceError(
                f"there is no column '{field.name}'; there are {', '.join(every.names)}"
            )
        wanted = every[field.name].dataType
        if field.dataType != wanted:
            raise SourceError(
                f"column {field.name} is of type {wanted.simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )
    return tuple(schema.names)
