"""Python objects as rows of data frames: tasks and their results, on any session of Spark.

A session of Spark Connect has no RDDs. The rows hold pickles that only this package writes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quorate.spark.session import parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA: Final = "key string, object binary"
_ARROW: Final = pa.schema([("key", pa.string()), ("object", pa.binary())])
_BATCH: Final = 256
"""Objects of a record batch."""

Keyed = tuple[str, Any]
"""A key and an object."""
Group = tuple[str, Iterator[Any]]
"""A key and all objects with it."""


def spread(spark: SparkSession, objects: Sequence[Keyed], parts: int | None = None) -> DataFrame:
    """The objects in so many partitions; by default as many as tasks can run at once."""
    most = parallelism(spark) if parts is None else parts
    rows = [(key, pickle.dumps(found)) for key, found in objects]
    return spark.createDataFrame(rows, _SCHEMA).repartition(max(1, min(len(rows), most)))


def map_objects(
    frame: DataFrame, function: Callable[[Iterator[Any]], Iterator[Keyed]]
) -> DataFrame:
    """The results of the function, which a task calls with the objects of a partition."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _batches(function(found for _, found in _objects(batches)))

    return frame.mapInArrow(work, _SCHEMA)


def map_groups(
    frame: DataFrame, parts: int, function: Callable[[Iterator[Group]], Iterator[Keyed]]
) -> DataFrame:
    """The results of the function, which a task calls with the objects of some keys.

    The objects of a key come in any order.
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups = groupby(_objects(batches), key=itemgetter(0))
        yield from _batches(function((key, (one for _, one in some)) for key, some in groups))

    return frame.repartition(parts, "key").sortWithinPartitions("key").mapInArrow(work, _SCHEMA)


def collect(frame: DataFrame) -> list[Any]:
    """The objects of a data frame."""
    return [pickle.loads(row.object) for row in frame.select("object").collect()]  # noqa: S301


def _objects(batches: Iterable[pa.RecordBatch]) -> Iterator[Keyed]:
    for batch in batches:
        for key, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield key, pickle.loads(data)  # noqa: S301


def _batches(found: Iterable[Keyed]) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[str, bytes]] = []
    for key, one in found:
        rows.append((key, pickle.dumps(one)))
        if len(rows) == _BATCH:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: Sequence[tuple[str, bytes]]) -> pa.RecordBatch:
    keys, objects = zip(*rows, strict=True)
    return pa.record_batch([pa.array(keys, pa.string()), pa.array(objects, pa.binary())], _ARROW)
