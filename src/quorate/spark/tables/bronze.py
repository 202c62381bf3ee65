"""Bronze: the logs of replicas become one log for each cluster; the rest goes to the quarantine.

1. The driver decides by batch headers which record of which epoch is in the committed log
   (`lineage`). It finds the chunks of offsets with new or contradicting records (`plan_intakes`).
2. Spark brings the rows of a chunk of all replicas together, in order, in one task.
3. The task chooses one row for each offset and writes files (`bronze_chunks`).
4. The driver collects the names of the files and what is in them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quorate.spark.session import parallelism
from quorate.spark.tables.bronze_chunks import ChunkWriter
from quorate.spark.tables.files import WriteTarget
from quorate.spark.tables.lineage import EpochSpan, Intake, chunk_of, plan_intake
from quorate.spark.tables.survey import HEADER_COLUMNS, InputSurvey, SnapshotFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


BODY_COLUMNS: Final = (
    *HEADER_COLUMNS,
    *("base_offset", "crc", "type", "type_id", "version", "topic_name"),
    *("topic_id", "partition", "broker_id", "leader", "resource", "record", "raw", "problem"),
)
_TOGETHER: Final = ("cluster_id", "kind", "chunk", "snapshot_offset")
"""Rows with equal values in these columns go to one ChunkWriter."""
CREATING_RECORDS: Final = frozenset(
    ("TopicRecord", "PartitionRecord", "ConfigRecord", "AccessControlEntryRecord")
)
TRANSACTION_MARKERS: Final = (
    "BeginTransactionRecord",
    "EndTransactionRecord",
    "AbortTransactionRecord",
)


@dataclass
class BronzeResult:
    """The result of the bronze stage for one cluster."""

    spans: list[EpochSpan] = field(default_factory=list)
    types: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    """By reason, the rows that were in quarantine before."""
    examples: dict[str, str] = field(default_factory=dict)
    """By reason, a row: file, position and problem; also of rows that were known before."""


def write_bronze(
    rows: DataFrame,
    known_bad: DataFrame | None,
    intakes: Mapping[str, Intake],
    snapshots: Sequence[SnapshotFile],
    target: WriteTarget,
) -> tuple[list[dict[str, Any]], dict[str, BronzeResult]]:
    """Write new records. Returns the files (as JSON of DataFile), and a result for each cluster.

    rows: of the source with the columns BODY; known_bad: the rows that are in quarantine already
    """
    from pyspark.sql import functions as F

    spark = rows.sparkSession
    bad = F.col("offset").isNull() | ~F.coalesce("crc_ok", F.lit(False))
    part = F.when(bad, -1 - F.pmod(F.crc32("file"), F.lit(16)))
    rows = rows.withColumn("chunk", part.otherwise(F.expr(chunk_of("offset"))))
    rows = rows.withColumn("kind", F.when(bad, F.lit("log")).otherwise(F.col("kind")))
    rows = rows.withColumn("snapshot_offset", F.when(~bad, F.col("snapshot_offset")))
    wanted = [("log", id, chunk, "") for id, one in intakes.items() for chunk in one.chunks]
    files = spark.createDataFrame(
        [("snapshot", one.cluster_id, -1, one.file) for one in snapshots] + wanted,
        "want string, of string, at bigint, path string",
    )
    here = (rows.kind == files.want) & (rows.cluster_id == files.of)
    log = (rows.kind == "log") & (rows.chunk == files.at)
    rows = rows.join(F.broadcast(files), here & (log | (rows.file == files.path)), "left").where(
        "of IS NOT NULL OR chunk < 0"
    )
    rows = rows.drop("want", "of", "at", "path").withColumn("seq", F.lit(1))
    rows = rows.withColumn("content", F.xxhash64("type", "version", "record", "raw", "timestamp"))
    if known_bad is not None:
        rows = rows.unionByName(_as_rows(known_bad), allowMissingColumns=True)
    parts = max(1, min(len(wanted) + 16 * bool(known_bad), 2 * parallelism(spark)))
    chosen = (
        rows.repartition(parts, "cluster_id", "kind", "chunk")
        .sortWithinPartitions(*_TOGETHER, *("seq", "offset", "node_id", "file", "position"))
        .mapInArrow(_picker(intakes, target), "result string")
    )
    return _gather(row.result for row in chosen.collect())


def _as_rows(known_bad: DataFrame) -> DataFrame:
    """Rows of the quarantine in the form of the input, so that tasks do not report them again.

    `seq` 0 sorts them before the rows of their chunk.
    """
    from pyspark.sql import functions as F

    apart = F.col("reason").isin("damaged")
    chunk = F.when(apart, -1 - F.pmod(F.crc32("file"), F.lit(16)))
    return known_bad.select(
        *("cluster_id", "offset", "epoch", "file", "position", "reason"),
        F.lit("log").alias("kind"),
        chunk.otherwise(F.expr(chunk_of("offset"))).alias("chunk"),
        F.lit(0).alias("seq"),
    )


def _gather(results: Iterable[str]) -> tuple[list[dict[str, Any]], dict[str, BronzeResult]]:
    files: list[dict[str, Any]] = []
    taken: dict[str, BronzeResult] = {}
    for text in results:
        one = json.loads(text)
        if one["file"] is not None:
            files.append(one["file"])
        cluster = taken.setdefault(one["cluster_id"], BronzeResult())
        cluster.spans += [EpochSpan(*span) for span in one["spans"]]
        cluster.types.update(one["types"])
        cluster.reasons.update(one["reasons"])
        cluster.known.update(one["known"])
        cluster.examples = {**one["examples"], **cluster.examples}
    return files, taken


def _picker(
    intakes: Mapping[str, Intake], target: WriteTarget
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that the tasks run."""

    def pick(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        results = [json.dumps(one) for one in _pick(batches, intakes, target)]
        if results:
            yield pa.record_batch([pa.array(results, pa.string())], ["result"])

    return pick


def _pick(
    batches: Iterable[pa.RecordBatch], intakes: Mapping[str, Intake], target: WriteTarget
) -> Iterator[dict[str, Any]]:
    chunk_writer: ChunkWriter | None = None
    for part in _parts(batches):
        key = tuple(part.column(name)[0].as_py() for name in _TOGETHER)
        if chunk_writer is None or chunk_writer.key != key:
            if chunk_writer is not None:
                yield from chunk_writer.finish()
            chunk_writer = ChunkWriter(key, intakes.get(key[0]), target)
        chunk_writer.add(part)
    if chunk_writer is not None:
        yield from chunk_writer.finish()


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in parts of one cluster, kind and chunk; the rows of an offset stay together."""
    carried: pa.Table | None = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if carried is not None:
            table = pa.concat_tables([carried, table])
        starts = _starts(table, _TOGETHER)
        for start, end in pairwise(starts):
            yield table.slice(start, end - start)
        last = table.slice(starts[-1])
        hold = _starts(last, ("seq", "offset"))[-1]
        if hold:
            yield last.slice(0, hold)
        carried = last.slice(hold).combine_chunks()
    if carried is not None and carried.num_rows:
        yield carried


def _starts(table: pa.Table, names: Sequence[str]) -> list[int]:
    """The indices of rows at which one of the columns differs from the row before."""
    if table.num_rows < 2:
        return [0]
    differs = None
    for name in names:
        column = table.column(name).combine_chunks()
        one, two = column.slice(1), column.slice(0, len(column) - 1)
        equal = pc.or_kleene(pc.equal(one, two), pc.and_(pc.is_null(one), pc.is_null(two)))
        other = pc.invert(pc.fill_null(equal, False))
        differs = other if differs is None else pc.or_(differs, other)
    return [0, *(index + 1 for index in pc.indices_nonzero(differs).to_pylist())]


def plan_intakes(
    survey: InputSurvey,
    known: Mapping[str, Sequence[EpochSpan]],
    skip: Mapping[str, tuple[tuple[int, int], ...]] | None = None,
) -> dict[str, Intake]:
    """The intake of each cluster of the input; `skip`: offsets to leave out."""
    left = skip or {}
    return {
        id: plan_intake(id, known.get(id, ()), groups, left.get(id, ()))
        for id, groups in survey.groups.items()
    }
