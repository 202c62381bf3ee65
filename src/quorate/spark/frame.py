"""The rows of the batch source as a data frame, for the jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quorate.spark.data_source import FORMAT
from quorate.spark.session import register
from quorate.spark.source.options import parse_options
from quorate.spark.source.plan import partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_metadata(spark: SparkSession, *paths: str, **options: str) -> DataFrame:
    """The rows of these paths; the options are those of the source.

    Raises SourceError at once for paths and options that cannot be read, where `load` leaves it to
    Spark to wrap the message.
    """
    check_paths(paths, options)
    return frame_of(spark, paths, options)


def check_paths(paths: Sequence[str], options: Mapping[str, str]) -> None:
    """Raise SourceError for paths and options that cannot be read."""
    partitions(parse_options({**options, "paths": json.dumps(paths)}))


def frame_of(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """As read_metadata, of what was checked before: Spark lists it once more for itself."""
    register(spark)
    return spark.read.format(FORMAT).options(**options).load(list(paths))
