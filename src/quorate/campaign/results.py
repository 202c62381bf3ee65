"""The directory of a campaign: one Parquet table with a row for each seed, written by the tasks.

A task writes one part, named after its seeds, under a hidden name, and renames it: a part exists
whole or not at all. The rows of a seed are always the same (except for processor time). So a task
that runs twice replaces a part with the same part: after its worker died, or beside another
attempt. Finished parts remain whatever happens to the job. Other files are in folders that begin with
`_`, which readers of Parquet skip.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs, parquet

from quorate.sim.run.campaign import EARLIER_COLUMNS, MADE_BY, CampaignError, Code, schema
from quorate.spark.tables.files import open_root

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAILURES: Final = "_failures"
"""The folder with a folder for each failing seed that was analysed."""
_PARTS: Final = "part-*.parquet"
_UNREADABLE: Final = re.compile(r"reading file (\S+\.parquet)")


class ResultsDirectory:
    """A folder on any file system that PyArrow supports: a local path, or a URI."""

    def __init__(self, root: str) -> None:
        """Open the file system. Raises SourceError where PyArrow does not support that of the URI."""
        self.root = root.rstrip("/") or "/"
        self._fs, self._base = open_root(self.root)

    def make(self) -> None:
        """Create the folder. Raises CampaignError where that fails."""
        try:
            self._fs.create_dir(self._base, recursive=True)
        except OSError as error:
            raise CampaignError(f"{self.root}: cannot be made: {error}") from None

    def write(self, name: str, data: bytes) -> None:
        """Write a file, which exists whole or not at all; `name` may have folders, with '/'."""
        path = posixpath.join(self._base, name)
        folder, last = posixpath.split(path)
        hidden = posixpath.join(folder, f".{last}.{uuid4().hex}")
        self._fs.create_dir(folder, recursive=True)
        with self._fs.open_output_stream(hidden) as out:
            out.write(data)
        self._fs.move(hidden, path)

    def has(self, name: str) -> bool:
        found = self._fs.get_file_info(posixpath.join(self._base, name))
        return bool(found.type != fs.FileType.NotFound)

    def has_parts(self) -> bool:
        """Whether it has any result. Raises CampaignError where it is a file."""
        info = self._fs.get_file_info(self._base)
        if info.type == fs.FileType.File:
            raise CampaignError(f"{self.root} is a file: name a directory")
        listing = self._fs.get_file_info(fs.FileSelector(self._base, allow_not_found=True))
        return any(
            one.base_name.startswith("part-") and one.base_name.endswith(".parquet")
            for one in listing
        )


def part_name(seeds: Sequence[int]) -> str:
    """The name of a part, always the same for the same seeds: first, last, and a digest of all."""
    digest = blake2b(repr(list(seeds)).encode(), digest_size=4).hexdigest()
    return f"part-{seeds[0]:020}-{seeds[-1]:020}-{digest}.parquet"


def write_part(out: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows of some seeds, ascending, as one part."""
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(list(rows), schema()), sink, compression="zstd")
    name = part_name([row["seed"] for row in rows])
    ResultsDirectory(out).write(name, sink.getvalue().to_pybytes())


def read_results(spark: SparkSession, out: str) -> DataFrame:
    """All rows of a directory that has parts, with the columns of a campaign.

    Raises CampaignError where a part cannot be read or has other columns.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    wanted = from_arrow_schema(schema())
    try:
        found = spark.read.option("mergeSchema", "true").parquet(f"{out}/{_PARTS}")
    except (PySparkException, Py4JJavaError) as error:
        named = _UNREADABLE.search(str(error))
        raise CampaignError(
            f"{named[1] if named else out}: a part cannot be read: it is damaged, or no part of a "
            "campaign; delete it, and --resume runs its seeds again"
        ) from None
    for earlier, name in EARLIER_COLUMNS.items():
        if name not in found.columns:
            found = found.withColumnRenamed(earlier, name)
    types = {field.name: field.dataType.simpleString() for field in found.schema}
    if types != {field.name: field.dataType.simpleString() for field in wanted}:
        raise CampaignError(f"{out} is no campaign: a part of it has other columns")
    return found.select(*wanted.names)


def made_by(rows: DataFrame) -> list[Code]:
    """The versions of the code that made the rows: one, unless directories were mixed by hand."""
    return [Code(*row) for row in rows.select(*MADE_BY).distinct().limit(_FEW).collect()]


_FEW: Final = 10
