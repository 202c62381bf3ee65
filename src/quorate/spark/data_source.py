"""The data source `quorate-metadata`: metadata logs and snapshots of many replicas as rows.

    register(spark)
    spark.read.format("quorate-metadata").load("/data/fleet/*")

Paths name log directories, trees of them, single segments or snapshots, and tar or zip archives;
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
from quorate.spark.source.options import SourceOptions, column_names
from quorate.spark.source.plan import ReadPartition, partitions
from quorate.spark.source.read import read_partition
from quorate.spark.stream.options import is_stream_option, parse_stream_options
from quorate.spark.stream.reader import MetadataStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = "quorate-metadata"


class MetadataLogSource(DataSource):
    """Spark creates one for each `spark.read` and `spark.readStream` of this format."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._stream = parse_stream_options(options)
        self._rows = self._stream.rows

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return row_type(self._rows)

    def reader(self, schema: StructType) -> DataSourceReader:
        for name in self.options:
            if is_stream_option(name):
                raise SourceError(f"option {name} is for spark.readStream, not for spark.read")
        rows = replace(self._rows, columns=_columns(schema, self._rows))
        return PushdownReader(rows) if rows.pushdown else MetadataLogReader(rows)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if len(self._rows.kinds) == 1:
            raise SourceError(
                "option kinds: a stream reads the log, and a snapshot where the log has a gap; filter "
                "by the column kind"
            )
        if self._rows.where or self._rows.pushdown:
            raise SourceError("options where and pushdown: filter the stream with where()")
        rows = replace(self._rows, columns=_columns(schema, self._rows))
        return MetadataStreamReader(replace(self._stream, rows=rows))


class MetadataLogReader(DataSourceReader):
    """Plans partitions on the driver, and reads them in tasks."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._filters: tuple[Filter, ...] = ()

    def partitions(self) -> Sequence[InputPartition]:
        where = in_microseconds(self._options.where)
        return partitions(self._options, (*where, *self._filters))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark calls read once even when no range passed the filters, and there is no partition.
        if isinstance(partition, ReadPartition):
            yield from read_partition(partition, self._options, self._filters)


class PushdownReader(MetadataLogReader):
    """A reader with Spark's filter pushdown, for the option `pushdown`.

    It is not the default. Spark 4.3 keeps one reader for a data frame and for all frames derived
    from it: the filters of one query, or of one side of a join, would cut the rows of the others.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keep all filters, to skip what cannot pass them. Spark applies all of them again."""
        self._filters = tuple(in_microseconds(filters))
        return filters


def row_type(options: SourceOptions) -> StructType:
    """The Spark type of the rows for these options."""
    every = source_type() if options.view is None else view_type(VIEWS[options.view])
    return StructType([every[name] for name in options.columns])


def _columns(schema: StructType, options: SourceOptions) -> tuple[str, ...]:
    """The column names of a user's schema. Raises SourceError when it does not fit the source."""
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
