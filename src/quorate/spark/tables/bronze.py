"""Bronze: what was read becomes one log for each cluster; what contradicts it is put aside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quorate.spark.files.scan import bad_piece
from quorate.spark.tables.files import TableWriter, file_name, safe_name
from quorate.spark.tables.layout import LOG, SNAPSHOTS
from quorate.spark.tables.lineage import Intake, Span, chunk_of, intake
from quorate.spark.tables.secrets import without_secrets
from quorate.spark.tables.survey import HEADER, SnapshotFile, Survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


BODY: Final = (
    *HEADER,
    *("base_offset", "type", "type_id", "version", "topic_name"),
    *("topic_id", "partition", "broker_id", "leader", "resource", "record", "raw", "problem"),
)
_TOGETHER: Final = ("cluster_id", "kind", "chunk", "snapshot_offset")
"""Rows that are alike in these are worked on together."""
CREATIONS: Final = frozenset(
    ("TopicRecord", "PartitionRecord", "ConfigRecord", "AccessControlEntryRecord")
)
MARKS: Final = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")


@dataclass(frozen=True)
class Place:
    """Where tasks write."""

    root: str
    run: int
    hidden: bool


@dataclass
class Taken:
    """What the bronze stage wrote for one cluster."""

    spans: list[Span] = field(default_factory=list)
    types: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    """By reason the rows that were in quarantine before."""
    examples: dict[str, str] = field(default_factory=dict)
    """Of each reason a row: file, position and what is wrong; also one that was known before."""


def take(
    rows: DataFrame,
    known_bad: DataFrame | None,
    intakes: Mapping[str, Intake],
    snapshots: Sequence[SnapshotFile],
    place: Place,
) -> tuple[list[dict[str, Any]], dict[str, Taken]]:
    """Write what is new: the files (as JSON of DataFile), and what each cluster got.

    rows: of the source with the columns BODY; known_bad: what is in quarantine already
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
    parts = max(
        1, min(len(wanted) + 16 * bool(known_bad), 2 * spark.sparkContext.defaultParallelism)
    )
    chosen = (
        rows.repartition(parts, "cluster_id", "kind", "chunk")
        .sortWithinPartitions(*_TOGETHER, *("seq", "offset", "node_id", "file", "position"))
        .mapInArrow(_picker(intakes, place), "told string")
    )
    return _gather(row.told for row in chosen.collect())


def _as_rows(known_bad: DataFrame) -> DataFrame:
    """Quarantined rows as rows that tell the tasks what need not be told again."""
    from pyspark.sql import functions as F

    apart = F.col("reason").isin("damaged")
    chunk = F.when(apart, -1 - F.pmod(F.crc32("file"), F.lit(16)))
    return known_bad.select(
        *("cluster_id", "offset", "epoch", "file", "position", "reason"),
        F.lit("log").alias("kind"),
        chunk.otherwise(F.expr(chunk_of("offset"))).alias("chunk"),
        F.lit(0).alias("seq"),
    )


def _gather(told: Iterable[str]) -> tuple[list[dict[str, Any]], dict[str, Taken]]:
    files: list[dict[str, Any]] = []
    taken: dict[str, Taken] = {}
    for text in told:
        one = json.loads(text)
        if one["file"] is not None:
            files.append(one["file"])
        cluster = taken.setdefault(one["cluster_id"], Taken())
        cluster.spans += [Span(*span) for span in one["spans"]]
        cluster.types.update(one["types"])
        cluster.reasons.update(one["reasons"])
        cluster.known.update(one["known"])
        cluster.examples = {**one["examples"], **cluster.examples}
    return files, taken


def _picker(
    intakes: Mapping[str, Intake], place: Place
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function of the tasks."""

    def pick(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told = [json.dumps(one) for one in _pick(batches, intakes, place)]
        if told:
            yield pa.record_batch([pa.array(told, pa.string())], ["told"])

    return pick


def _pick(
    batches: Iterable[pa.RecordBatch], intakes: Mapping[str, Intake], place: Place
) -> Iterator[dict[str, Any]]:
    work: Work | None = None
    for part in _parts(batches):
        key = tuple(part.column(name)[0].as_py() for name in _TOGETHER)
        if work is None or work.key != key:
            if work is not None:
                yield from work.finish()
            work = Work(key, intakes.get(key[0]), place)
        work.add(part)
    if work is not None:
        yield from work.finish()


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows cut where cluster, kind or chunk change, and never inside one offset."""
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
    """The rows at which one of the columns has another value than in the row before."""
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


class Work:
    """One chunk of one cluster's log, or of one of its snapshots, or its damaged pieces."""

    def __init__(self, key: tuple[Any, ...], intake: Intake | None, place: Place) -> None:
        self.key = key
        self._cluster, self._kind, self._chunk, _ = key
        self._intake = intake
        self._place = place
        self._time = 0 if intake is None else intake.chunks.get(self._chunk, 0)
        self._writer: TableWriter | None = None
        self._quarantine: TableWriter | None = None
        self._known_bad: set[tuple[str, int, int | None]] = set()
        self._spans: list[Span] = []
        self._types: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, table: pa.Table) -> None:
        """The next rows; those of one offset come together."""
        if table.column("seq")[0].as_py() == 0:
            count = pc.sum(pc.equal(table.column("seq"), 0)).as_py()
            self._learn(table.slice(0, count))
            table = table.slice(count)
        if not table.num_rows:
            return
        table = without_secrets(table)
        if self._chunk < 0:
            self._put_aside(table, range(table.num_rows), "damaged")
        elif self._kind == "snapshot":
            self._write_snapshot(table)
        else:
            self._write_log(table)

    def finish(self) -> Iterator[dict[str, Any]]:
        """The files that were written, and what is in them."""
        told = {
            "cluster_id": self._cluster,
            "spans": self._spans,
            "types": self._types,
            "reasons": self._reasons,
            "known": self._known,
            "examples": self._examples,
        }
        nothing: dict[str, Any] = {"spans": [], "types": {}, "reasons": {}, "known": {}}
        nothing["examples"] = {}
        for writer in (self._writer, self._quarantine):
            file = None if writer is None else writer.close()
            if file is not None:
                yield {**told, "file": file.to_json()}
                told = {**told, **nothing}
        if told["examples"]:
            yield {**told, "file": None}

    def _learn(self, table: pa.Table) -> None:
        names = ("file", "position", "offset")
        columns = (table.column(name).to_pylist() for name in names)
        self._known_bad |= set(zip(*columns, strict=True))

    def _write_log(self, table: pa.Table) -> None:
        for start, end in self._intake.skip if self._intake is not None else ():
            offsets = table.column("offset")
            table = table.filter(pc.or_(pc.less(offsets, start), pc.greater_equal(offsets, end)))
        keep, foreign, differing = self._choose(table)
        self._put_aside(table, foreign, "divergent")
        self._put_aside(table, differing, "disagrees")
        if keep:
            table = table if len(keep) == table.num_rows else table.take(pa.array(keep))
            self._write(self._timed(table))

    def _choose(self, table: pa.Table) -> tuple[list[int], list[int], list[int]]:
        """The rows to take, those of another lineage, and those that differ from a taken one."""
        assert self._intake is not None
        ruling, known = self._intake.ruling, _Ranges(self._intake.known)
        names = ("offset", "epoch", "content")
        columns = [table.column(name).to_pylist() for name in names]
        keep: list[int] = []
        foreign: list[int] = []
        differing: list[int] = []
        same: dict[int, list[int]] = {}
        at, right = -1, None
        for row, (offset, epoch, content) in enumerate(zip(*columns, strict=True)):
            if offset != at:
                self._settle(same, keep, differing)
                at, right, same = offset, ruling.epoch_at(offset), {}
            if epoch != right:
                foreign.append(row)
            elif not known.has(offset):
                same.setdefault(content, []).append(row)
        self._settle(same, keep, differing)
        return keep, foreign, differing

    def _settle(self, same: dict[int, list[int]], keep: list[int], differing: list[int]) -> None:
        """Of the rows of one offset: take what most replicas have, the first of them."""
        if not same:
            return
        most = max(same.values(), key=len)
        keep.append(most[0])
        if len(same) > 1:
            differing += [row for rows in same.values() if rows is not most for row in rows]

    def _timed(self, table: pa.Table) -> pa.Table:
        """With the column `time`, which never goes back; notes spans and types."""
        stamps = table.column("timestamp").cast(pa.int64()).to_pylist()
        offsets, epochs = table.column("offset").to_pylist(), table.column("epoch").to_pylist()
        times = []
        span = self._spans[-1] if self._spans else None
        for offset, epoch, stamp in zip(offsets, epochs, stamps, strict=True):
            self._time = max(self._time, stamp or 0)
            times.append(self._time)
            if span is None or span.epoch != epoch or span.end != offset:
                if span is not None:
                    self._spans[-1] = span
                self._spans.append(Span(epoch, offset, offset + 1, self._time, self._time))
                span = self._spans[-1]
            else:
                span = Span(epoch, span.start, offset + 1, span.first_time, self._time)
        if span is not None:
            self._spans[-1] = span
        return table.append_column("time", pa.array(times, pa.timestamp("us", "UTC")))

    def _write(self, table: pa.Table) -> None:
        if self._writer is None:
            path = safe_name(self._cluster) + "/"
            self._writer = self._new("log", path + file_name(f"{self._chunk:08d}", self._place.run))
        types = pc.value_counts(table.column("type")).to_pylist()
        self._types.update({one["values"]: one["counts"] for one in types})
        problems = pc.indices_nonzero(pc.is_valid(table.column("problem"))).to_pylist()
        self._put_aside(table, problems, "unknown")
        self._writer.add_table(table.select(LOG.names).cast(LOG))

    def _write_snapshot(self, table: pa.Table) -> None:
        if self._writer is None:
            id = f"{table.column('snapshot_offset')[0]}-{table.column('snapshot_epoch')[0]}"
            path = f"{safe_name(self._cluster)}/{id}/"
            name = file_name(f"{self._chunk:08d}", self._place.run)
            self._writer = self._new("snapshots", path + name)
        timed = table.append_column("time", table.column("timestamp"))
        self._writer.add_table(timed.select(SNAPSHOTS.names).cast(SNAPSHOTS))

    def _put_aside(self, table: pa.Table, rows: Sequence[int], reason: str) -> None:
        for row in rows:
            cells = table.slice(row, 1).to_pylist()[0]
            key = (cells["file"], cells["position"], cells["offset"])
            problem = cells["problem"] or self._explain(reason, cells)
            self._examples.setdefault(reason, bad_piece(*key, problem))
            if key in self._known_bad:
                self._known[reason] += 1
                continue
            self._known_bad.add(key)
            if self._quarantine is None:
                path = f"{safe_name(self._cluster)}/{file_name(reason, self._place.run)}"
                self._quarantine = self._new("quarantine", path)
            self._reasons[reason] += 1
            self._quarantine.add(
                (
                    self._cluster,
                    reason,
                    cells["offset"],
                    cells["epoch"],
                    cells["type"],
                    cells["record"],
                    problem,
                    cells["node_id"],
                    cells["file"],
                    cells["position"],
                    cells["batch_length"],
                    cells["timestamp"],
                    self._place.run,
                )
            )

    def _explain(self, reason: str, cells: Mapping[str, Any]) -> str:
        offset, epoch = cells["offset"], cells["epoch"]
        if reason == "divergent" and self._intake is not None:
            ruling = self._intake.ruling.epoch_at(offset)
            if ruling is None:
                return f"epoch {epoch} ends before offset {offset} in the committed log"
            return f"the committed log has offset {offset} from epoch {ruling}, not {epoch}"
        return (
            f"another content at offset {offset}, epoch {epoch} than was taken, which is that of "
            "most replicas where most agree"
        )

    def _new(self, table: str, path: str) -> TableWriter:
        return TableWriter(self._place.root, table, path, self._place.hidden)


class _Ranges:
    """Whether ascending offsets lie in ranges."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._ranges = ranges
        self._at = 0

    def has(self, offset: int) -> bool:
        while self._at < len(self._ranges) and self._ranges[self._at][1] <= offset:
            self._at += 1
        return self._at < len(self._ranges) and self._ranges[self._at][0] <= offset


def plan_intakes(
    told: Survey,
    known: Mapping[str, Sequence[Span]],
    skip: Mapping[str, tuple[tuple[int, int], ...]] | None = None,
) -> dict[str, Intake]:
    """What to take of each cluster of the input; `skip`: offsets to leave out."""
    left = skip or {}
    return {
        id: intake(id, known.get(id, ()), groups, left.get(id, ()))
        for id, groups in told.groups.items()
    }
