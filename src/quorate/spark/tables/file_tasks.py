"""Tasks that each work on whole files of the warehouse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quorate.spark.session import parallelism
from quorate.spark.tables.files import TableWriter, WriteTarget
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.store import StoredFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class FileTask:
    """Files of one table that a task works on together; of one slice where the table has slices."""

    table: str
    paths: tuple[str, ...]
    slice: int = 0


def run_file_tasks(
    spark: SparkSession, tasks: Sequence[FileTask], function: Callable[[FileTask], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Run the function for each file task on the executors; gives its results (JSON values)."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                fields = json.loads(text)
                task = FileTask(fields["table"], tuple(fields["paths"]), fields["slice"])
                result = json.dumps(function(task))
                yield pa.record_batch([pa.array([result], pa.string())], ["result"])

    if not tasks:
        return iter(())
    rows = [(json.dumps({"table": t.table, "paths": t.paths, "slice": t.slice}),) for t in tasks]
    parts = min(len(rows), 4 * parallelism(spark))
    frame = spark.createDataFrame(rows, "task string").repartition(parts)
    # the driver collects names of files, not their rows
    results = frame.mapInArrow(work, "result string").collect()
    return (json.loads(row.result) for row in results)


def slice_number(file: StoredFile) -> int:
    """The slice of a gold file, from its name."""
    return int(file.path.rpartition("/")[2].partition("-")[0])


def write_rows(place: WriteTarget, table: str, path: str, rows: pa.Table) -> list[dict[str, Any]]:
    """Write rows to a new file. Returns it as JSON of DataFile; nothing when there is no row."""
    writer = TableWriter(place.root, table, path, place.hidden)
    writer.add_table(rows.cast(TABLES[table]))
    file = writer.close()
    return [] if file is None else [file.to_json()]
