"""Errands: work on whole files of the warehouse, each done by a task of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quorate.spark.tables.bronze import Place
from quorate.spark.tables.files import TableWriter
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.store import Stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Errand:
    """Files of one table that belong together; all of one slice where there are slices."""

    table: str
    paths: tuple[str, ...]
    slice: int = 0


def run_errands(
    spark: SparkSession, errands: Sequence[Errand], function: Callable[[Errand], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Each errand in a task; what the function gives, as it is done."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                told = json.loads(text)
                errand = Errand(told["table"], tuple(told["paths"]), told["slice"])
                done = json.dumps(function(errand))
                yield pa.record_batch([pa.array([done], pa.string())], ["told"])

    if not errands:
        return iter(())
    rows = [(json.dumps({"table": e.table, "paths": e.paths, "slice": e.slice}),) for e in errands]
    parts = min(len(rows), 4 * spark.sparkContext.defaultParallelism)
    tasks = spark.createDataFrame(rows, "errand string").repartition(parts)
    done = tasks.mapInArrow(work, "told string").collect()  # names of files, not their rows
    return (json.loads(row.told) for row in done)


def slice_number(file: Stored) -> int:
    """The slice of a file of gold."""
    return int(file.path.rpartition("/")[2].partition("-")[0])


def write_rows(place: Place, table: str, path: str, rows: pa.Table) -> list[dict[str, Any]]:
    """Write rows to a new file; the file as JSON of DataFile, nothing where there is no row."""
    writer = TableWriter(place.root, table, path, place.hidden)
    writer.add_table(rows.cast(TABLES[table]))
    file = writer.close()
    return [] if file is None else [file.to_json()]
