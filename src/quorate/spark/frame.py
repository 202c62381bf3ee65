"""Data frames of the batch source, for the jobs."""

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
    """The rows of these paths, with the options of the source.

    Raises SourceError at once for wrong paths and options; `load` alone would raise an error of
    Spark later that wraps the message.
    """
    check_paths(paths, options)
    return frame_of(spark, paths, options)


def check_paths(paths: Sequence[str], options: Mapping[str, str]) -> None:
    """Raise SourceError for paths that cannot be read and for wrong options."""
    partitions(parse_options({**options, "paths": json.dumps(paths)}))


def frame_of(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read as `read_metadata`, without the check: Spark lists the paths again anyway."""
    register(spark)
    return spark.read.format(FORMAT).options(**options).load(list(paths))
