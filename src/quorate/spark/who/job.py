"""The job: joins the changes of a cluster with the logs of its nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quorate.base.errors import QuorateError
from quorate.spark.files.paths import SourceError
from quorate.spark.tables.control import load_progress
from quorate.spark.tables.files import DataFile, TableWriter, file_name, safe_name
from quorate.spark.tables.layout import WHO
from quorate.spark.tables.read import read_table
from quorate.spark.tables.read_version import commit_run, read_version
from quorate.spark.tables.store import NoWarehouseError, TableStore
from quorate.spark.tables.summary import retry_while_overtaken
from quorate.spark.tables.warehouse import open_store
from quorate.spark.who.join import clock_shift, who_did
from quorate.spark.who.layout import layout
from quorate.spark.who.logs import (
    LogFileStats,
    LogSource,
    Reading,
    collect_file_stats,
    find_logs,
    read_logs,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOB: Final = "who"
TABLE: Final = "who"
MOST_NAMES: Final = 20
"""Principals in a summary: those with the most changes."""


class UnknownClusterError(QuorateError):
    """The warehouse does not have this cluster, or has several and none was named."""

    exit_code = 2


@dataclass(frozen=True)
class LogPaths:
    """Paths of logs (files, patterns, directories, URIs), by the kind of log."""

    authorizer: Sequence[str] = ()
    request: Sequence[str] = ()
    controller: Sequence[str] = ()
    server: Sequence[str] = ()

    def by_kind(self) -> dict[str, Sequence[str]]:
        return dict(vars(self))


@dataclass
class WhoAnswer:
    """Who made each change. `rows` has the columns of `tables.layout.WHO`; call `close` at the end."""

    cluster_id: str
    rows: DataFrame
    files: list[LogFileStats]
    shift_ms: int | None
    """How many ms controllers' logs are ahead of the records' time; None when unknown."""
    notes: list[str] = field(default_factory=list)
    """Warnings about the logs that were given."""
    kept: list[DataFrame] = field(default_factory=list)

    @property
    def unread(self) -> int:
        """Lines that could not be read, of all files."""
        return sum(one.unread for one in self.files)

    def summary(self) -> dict[str, Any]:
        """Counts by cause, confidence and principal, and the statistics of the files."""
        from pyspark.sql import functions as f

        found = self.rows.groupBy("caused_by", "confidence").count().collect()
        counts = [row.asDict() for row in found]
        names = self.rows.where("who IS NOT NULL").groupBy("who").count()
        most = names.orderBy(f.desc("count"), "who").limit(MOST_NAMES).collect()
        return {
            "cluster_id": self.cluster_id,
            "changes": sum(row["count"] for row in counts),
            "caused_by": _sums(counts, "caused_by"),
            "confidence": _sums(counts, "confidence"),
            "who": {row["who"]: row["count"] for row in most},
            "files": [vars(one) for one in self.files],
            "unread_lines": self.unread,
            "controller_clock_ahead_ms": self.shift_ms,
            "notes": self.notes,
        }

    def close(self) -> None:
        """Release the data that Spark has cached."""
        for one in self.kept:
            one.unpersist()


def who(
    spark: SparkSession,
    store: TableStore,
    logs: LogPaths,
    *,
    cluster_id: str | None = None,
    reading: Reading | None = None,
    notify: Callable[[str], None] = lambda text: None,
) -> WhoAnswer:
    """Join the changes of a cluster with the logs of its nodes.

    cluster_id: required where the warehouse has several clusters
    reading: the layout and time zone of the logs, and how far lines may be from changes
    notify: receives progress messages

    Raises SourceError for logs that are missing, binary or of another layout, LayoutError,
    UnknownClusterError, and NoWarehouseError where nothing was ingested yet.
    """
    from pyspark import StorageLevel

    how = reading or Reading()
    layout(how.pattern, how.zone)
    cluster = _cluster(store, cluster_id)
    sources = find_logs(logs.by_kind())
    notify("reading the logs")
    lines = read_logs(spark, sources, how).persist(StorageLevel.DISK_ONLY)
    files = collect_file_stats(lines)
    _check(files, how)
    notify("joining them with the changes")
    changes = _changes(spark, store, cluster)
    rows = who_did(changes, lines, how).persist(StorageLevel.DISK_ONLY)
    answer = WhoAnswer(cluster, rows, files, clock_shift(changes, lines), kept=[lines, rows])
    answer.notes += _notes(answer, changes, how, sources)
    return answer


def keep(spark: SparkSession, store: TableStore, answer: WhoAnswer) -> int:
    """Write the answer into the table `who` of the warehouse, and return the number of rows.

    It replaces an older answer for the cluster. Raises ConcurrentRunError when other jobs replace
    that again and again.
    """
    return retry_while_overtaken(lambda: _keep(store, answer), lambda text: None)


def _keep(store: TableStore, answer: WhoAnswer) -> int:
    read = read_version(store, ())  # it changes no rows of the cluster's history
    plan = read.plan(JOB)
    folder = safe_name(answer.cluster_id)
    old = (file.path for file in read.tables.files(TABLE))
    plan.remove(TABLE, [path for path in old if path.startswith(f"{folder}/")])
    root, hidden, run = store.root, store.hidden, plan.run

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = TableWriter(root, TABLE, f"{folder}/{file_name(TABLE, run)}", hidden)
        for batch in batches:
            writer.add_table(pa.Table.from_batches([batch]).select(WHO.names).cast(WHO))
        file = writer.close()
        written = [] if file is None else [json.dumps(file.to_json())]
        yield pa.record_batch([pa.array(written, pa.string())], ["file"])

    for row in answer.rows.mapInArrow(write, "file string").collect():
        plan.add(DataFile(**json.loads(row.file)))
    rows = sum(file.rows for file in plan.adds.get(TABLE, []))
    plan.summary = {"cluster_id": answer.cluster_id, "rows": rows}
    commit_run(read, plan)
    return rows


def open_warehouse(root: str, table_format: str) -> TableStore:
    """Open a warehouse, and finish what an interrupted job left. Raises WarehouseError."""
    store = open_store(root, table_format)
    store.recover()
    return store


def _cluster(store: TableStore, wanted: str | None) -> str:
    known = sorted(load_progress(store.version()))
    if not known:
        raise NoWarehouseError(store.root)
    if wanted is not None and wanted not in known:
        raise UnknownClusterError(
            f"cluster {wanted} is not in the warehouse: it has {', '.join(known)}"
        )
    if wanted is None and len(known) > 1:
        raise UnknownClusterError(
            f"the warehouse has several clusters: name one with --cluster: {', '.join(known)}"
        )
    return wanted or known[0]


def _changes(spark: SparkSession, store: TableStore, cluster: str) -> DataFrame:
    def may_have(file: Any) -> bool:
        low, high = file.low.get("cluster_id"), file.high.get("cluster_id")
        return low is None or high is None or low <= cluster <= high

    found = read_table(spark, store, "changes", may_have)
    return found.where(found.cluster_id == cluster)


def _check(files: Sequence[LogFileStats], how: Reading) -> None:
    """Refuse files without any readable line. Raises SourceError."""
    for one in files:
        if one.binary:
            raise SourceError(f"{one.path}: this is a binary file; give the log files of the nodes")
        if one.unread and not one.records:
            position, text = one.first_unread[0]
            known = layout(how.pattern, how.zone).begin.match(text) is not None
            wanted = f"a line of the {one.kind}" if known else f"of the layout {how.pattern}"
            wanted = "UTF-8" if one.not_utf8 == one.unread else wanted
            raise SourceError(
                f"{one.path}: none of its {one.unread} lines is {wanted}; the first, at byte "
                f"{position}: {text!r}. Is it another log, or does it need --pattern?"
            )


def _notes(
    answer: WhoAnswer, changes: DataFrame, how: Reading, sources: Sequence[LogSource]
) -> list[str]:
    found = []
    shift = answer.shift_ms
    if shift is not None and abs(shift) > how.skew_ms:
        found.append(
            f"the controllers' logs are {abs(shift) / 1000:.1f} s "
            f"{'ahead of' if shift > 0 else 'behind'} the records (time zone {how.zone}, skew "
            f"{how.skew_ms / 1000:g} s): no line can match; correct --tz or --skew"
        )
    first, last = _span(answer.files)
    row = changes.selectExpr("unix_millis(min(time)) AS a", "unix_millis(max(time)) AS b").first()
    if first is not None and last is not None and row is not None and row.a is not None:
        reach = how.window_ms + how.skew_ms
        if last + reach < row.a or first - reach > row.b:
            found.append(
                f"the logs do not cover the time of the changes: logs {_at(first)} to {_at(last)}, changes "
                f"{_at(row.a)} to {_at(row.b)}; are --tz and --cluster right?"
            )
    kinds = {source.kind for source in sources}
    if "request" in kinds and not any(one.requests for one in answer.files):
        found.append(
            "the request logs have no completed request: Kafka logs them only at DEBUG of "
            "kafka.request.logger"
        )
    if "authorizer" in kinds and not any(one.allowed for one in answer.files):
        found.append(
            "the authorizer's logs have no allowed request: Kafka logs them only at DEBUG of "
            "kafka.authorizer.logger (denied ones at INFO)"
        )
    return found


def _span(files: Sequence[LogFileStats]) -> tuple[int | None, int | None]:
    firsts = [one.first_ms for one in files if one.first_ms is not None]
    lasts = [one.last_ms for one in files if one.last_ms is not None]
    return min(firsts, default=None), max(lasts, default=None)


def _at(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sums(rows: Sequence[Mapping[str, Any]], column: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row[column]] = found.get(row[column], 0) + row["count"]
    return dict(sorted(found.items()))
