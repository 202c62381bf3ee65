"""The batch source `quorate-metadata`: metadata logs and snapshots of many replicas as rows.

    register(spark)
    spark.read.format("quorate-metadata").load("/data/fleet/*")

Paths are log directories, trees of them, single segments or snapshots, and tar or zip archives;
local, or URIs that PyArrow knows. Columns and options: docs/spark-source.md.
"""

from __future__ import annotations

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

from quorate.spark.decode.typed import VIEWS, source_type, view_type
from quorate.spark.files.paths import SourceError
from quorate.spark.source.filters import in_microseconds
from quorate.spark.source.options import Options, column_names
from quorate.spark.source.plan import Pieces, partitions
from quorate.spark.source.read import read_partition
from quorate.spark.stream.options import is_stream_option, parse_stream_options
from quorate.spark.stream.reader import MetadataStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

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
        rows = replace(self._told, columns=_columns(schema, self._told))
        return PushingReader(rows) if rows.pushdown else MetadataLogReader(rows)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if len(self._told.kinds) == 1:
            raise SourceError(
                "option kinds: a stream gives the log, and a snapshot where that has a gap; "
                "filter by the column kind"
            )
        if self._told.where or self._told.pushdown:
            raise SourceError("options where and pushdown: filter the stream by its where()")
        rows = replace(self._told, columns=_columns(schema, self._told))
        return MetadataStreamReader(replace(self._stream, rows=rows))


class MetadataLogReader(DataSourceReader):
    """Cuts what is to be read into partitions, and reads them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._filters: tuple[Filter, ...] = ()

    def partitions(self) -> Sequence[InputPartition]:
        where = in_microseconds(self._options.where)
        return partitions(self._options, (*where, *self._filters))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Pieces):  # else nothing passed the filters
            yield from read_partition(partition, self._options, self._filters)


class PushingReader(MetadataLogReader):
    """With Spark's pushdown, as the option `pushdown` asks for it.

    Not without being asked: Spark 4.3 keeps one reader for a data frame and for all that is made of
    it, so that the filters of one query, or of one side of a join, cut the rows of the others.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes note of all filters to skip what they cannot want; Spark applies them too."""
        self._filters = tuple(in_microseconds(filters))
        return filters


def row_type(options: Options) -> StructType:
    """Spark's type of the rows that the options ask for."""
    every = source_type() if options.view is None else view_type(VIEWS[options.view])
    return StructType([every[name] for name in options.columns])


def _columns(schema: StructType, options: Options) -> tuple[str, ...]:
    """The names of a schema; raises SourceError where it is not one of this source."""
    every = source_type() if options.view is None else view_type(VIEWS[options.view])
    names = column_names(schema.names, every.names)
    for field, name in zip(schema.fields, names, strict=True):
        if field.name != name:
            raise SourceError(f"there is no column '{field.name}': write {name}")
        wanted = every[name].dataType
        if field.dataType != wanted:
            raise SourceError(
                f"column {name} is of type {wanted.simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )
        if not field.nullable:
            raise SourceError(f"column {name} is null in some rows: it cannot be NOT NULL")
    return names
