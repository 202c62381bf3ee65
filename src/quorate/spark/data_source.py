"""The data source `quorate-metadata`: metadata logs and snapshots of many replicas as rows.

    register(spark)
    spark.read.format("quorate-metadata").load("/data/fleet/*")

Paths name log directories, trees of them, single segments or snapshots, and tar or zip archives;
local, or URIs that PyArrow knows. Columns and options: docs/spark-source.md.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from quorate.spark.decode.typed import VIEWS, source_type, view_type
from quorate.spark.files.paths import SourceError
from quorate.spark.source.catalog import is_table, options_in, table_options, with_options
from quorate.spark.source.filters import in_microseconds
from quorate.spark.source.options import SourceOptions, column_names, parse_options
from quorate.spark.source.plan import ReadPartition, partitions
from quorate.spark.source.read import read_partition
from quorate.spark.source.zones import session_zone_named
from quorate.spark.stream.options import is_stream_option, parse_stream_options
from quorate.spark.stream.reader import MetadataStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = "quorate-metadata"


class MetadataLogSource(DataSource):
    """Spark creates one for each `spark.read` and `spark.readStream` of this format."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = table_options(options) if is_table(options) else dict(options)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        rows = row_type(parse_stream_options(self._given).rows)
        return with_options(rows, self._given) if is_table(self.options) else rows

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader; the option `pushdown` changes nothing (docs/decisions/0011)."""
        given = self._given or options_in(schema)
        for name in given:
            if is_stream_option(name):
                raise SourceError(f"option {name} is for spark.readStream, not for spark.read")
        rows = parse_options(given)
        rows = replace(rows, columns=_columns(schema, rows))
        return MetadataLogReader(rows, tuple(schema.names))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        stream = parse_stream_options(self._given or options_in(schema))
        if len(stream.rows.kinds) == 1:
            raise SourceError(
                "option kinds: a stream reads the log, and a snapshot where the log has a gap; filter "
                "by the column kind"
            )
        if stream.rows.where:
            raise SourceError("option where: filter the stream with where()")
        rows = replace(stream.rows, columns=_columns(schema, stream.rows))
        return MetadataStreamReader(replace(stream, rows=rows), tuple(schema.names))


class MetadataLogReader(DataSourceReader):
    """Plans partitions on the driver, and reads them in tasks.

    names: of the columns in the user's schema, which may differ in case
    """

    def __init__(self, options: SourceOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._names = names

    def partitions(self) -> Sequence[InputPartition]:
        return partitions(self._options, in_microseconds(self._options.where))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark calls read once even when no range passed the filters, and there is no partition.
        if isinstance(partition, ReadPartition):
            for batch in read_partition(partition, self._options, zone=session_zone()):
                yield batch.rename_columns(self._names)


def session_zone() -> tzinfo | None:
    """The time zone of the session that runs this task; None for that of the machine.

    Spark hands the settings of a session to its tasks. A session without this setting takes the
    zone of its machine.
    """
    context = TaskContext.get()
    name = None if context is None else context.getLocalProperty("spark.sql.session.timeZone")
    return None if name is None else session_zone_named(name)


def row_type(options: SourceOptions) -> StructType:
    """The Spark type of the rows for these options."""
    every = source_type() if options.view is None else view_type(VIEWS[options.view])
    return StructType([every[name] for name in options.columns])


def _columns(schema: StructType, options: SourceOptions) -> tuple[str, ...]:
    """The source's names of the columns in a user's schema, which may differ in case.

    Raises SourceError when the schema does not fit the source.
    """
    every = source_type() if options.view is None else view_type(VIEWS[options.view])
    names = column_names(schema.names, every.names)
    for field, name in zip(schema.fields, names, strict=True):
        wanted = every[name].dataType
        if field.dataType != wanted:
            raise SourceError(
                f"column {name} is of type {wanted.simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )
        if not field.nullable:
            raise SourceError(f"column {name} is null in some rows: it cannot be NOT NULL")
    return names
