"""The batch source `spark.read.format("quorate-metadata")`: logs and snapshots as rows.

options   the options of the source, parsed and checked
plan      ranges of files from paths and options, and partitions from ranges
read      the rows of a partition, as a task reads them
where     the option `where`: conditions on rows
filters   what a filter allows to skip before it is read
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.spark.source.options import SourceOptions, parse_options
    from quorate.spark.source.plan import FileRange, ReadPartition, partitions
    from quorate.spark.source.read import read_partition
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "options": "SourceOptions parse_options",
            "plan": "FileRange ReadPartition partitions",
            "read": "read_partition",
        },
    )

__all__ = [
    "FileRange",
    "ReadPartition",
    "SourceOptions",
    "parse_options",
    "partitions",
    "read_partition",
]
