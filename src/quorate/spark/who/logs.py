"""Logs of nodes as data frames: every line that may be evidence, and statistics of each file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from quorate.spark.files.paths import SourceError, expand, list_files, split
from quorate.spark.session import parallelism
from quorate.spark.who.bodies import (
    is_interesting,
    is_request,
    parse_request,
    request_evidence,
    shown,
)
from quorate.spark.who.keys import BODY
from quorate.spark.who.layout import KAFKA, Layout, LogRecord, layout
from quorate.spark.who.lines import LogPiece, RawRecord, is_text, pieces, records
from quorate.spark.who.messages import (
    EvidenceKey,
    authorizer_evidence,
    controller_evidence,
    parse_authorizer,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES: Final = {
    "authorizer": "kafka-authorizer.log",
    "request": "kafka-request.log",
    "controller": "controller.log",
    "server": "server.log",
}
"""The kinds of logs, and the names with which their files (rotated ones, too) begin."""
FIRST_BAD: Final = 3
"""The number of unreadable lines of each piece that are reported with position and text."""

EVIDENCE: Final = (
    "key string, strength int, lo bigint, hi bigint, begun bigint, at bigint, principal string, "
    "host string, client_id string, request string, forwarded boolean, came_twice boolean, "
    "file string, position bigint, text string, file_stats string"
)
"""
lo, hi      a change at such a time (ms since 1970, inclusive) may belong to the line
at          time of the line
begun       of a request with its body: when it began, by the line's own clock and without skew
file_stats  JSON of LogFileStats; such rows have no key
"""
_COLUMNS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("key",)),
        ("strength", pa.int32()),
        *((name, pa.int64()) for name in ("lo", "hi", "begun", "at")),
        *((name, pa.string()) for name in ("principal", "host", "client_id", "request")),
        *((name, pa.bool_()) for name in ("forwarded", "came_twice")),
        ("file", pa.string()),
        ("position", pa.int64()),
        *((name, pa.string()) for name in ("text", "file_stats")),
    ]
)
_BATCH_ROWS: Final = 4096
_EACH_LINE: Final = ("authorizer", "request")
"""Logs without stack traces: a line that begins no record there is damage."""


@dataclass(frozen=True)
class Reading:
    """How logs are read, and how far a line may be in time from the change that it caused."""

    pattern: str = KAFKA
    zone: str = "UTC"
    window_ms: int = 5000
    """From an authorizer's line to the record, at most, in ms."""
    skew_ms: int = 1000
    """Between the clocks of the node that logged and of the active controller, in ms."""


@dataclass
class LogFileStats:
    """Statistics of a log file, or of a piece of it."""

    kind: str
    path: str
    records: int = 0
    """Readable ones."""
    allowed: int = 0
    denied: int = 0
    requests: int = 0
    controller: int = 0
    unread: int = 0
    """Lines of another layout, or of a kind that such a log does not have."""
    not_utf8: int = 0
    """Those of the unread ones that are no UTF-8: the names in them are unknown."""
    first_unread: list[tuple[int, str]] = field(default_factory=list)
    """(byte position, text) of some."""
    binary: bool = False
    first_ms: int | None = None
    last_ms: int | None = None

    def unreadable(self, position: int, text: str) -> None:
        self.unread += text.count("\n") + 1
        if len(self.first_unread) < FIRST_BAD:
            self.first_unread.append((position, text[:120]))

    def seen(self, times: Iterable[int]) -> None:
        for ms in times:
            self.first_ms = ms if self.first_ms is None else min(self.first_ms, ms)
            self.last_ms = ms if self.last_ms is None else max(self.last_ms, ms)

    def add(self, other: LogFileStats) -> None:
        """Add the counts of another piece of the same file."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first_unread = sorted([*self.first_unread, *other.first_unread])[:FIRST_BAD]
        self.binary |= other.binary
        self.seen(ms for ms in (other.first_ms, other.last_ms) if ms is not None)


_COUNTS: Final = (
    *("records", "allowed", "denied", "requests", "controller", "unread", "not_utf8"),
)


class LogSource(NamedTuple):
    """A piece of a log of one kind (a key of NAMES)."""

    kind: str
    piece: LogPiece


def find_logs(paths: Mapping[str, Sequence[str]]) -> list[LogSource]:
    """The pieces of the log files at these paths (files, patterns, directories), by kind.

    In a directory, the files named after the kind. Raises SourceError where there is none.
    """
    found: dict[str, list[LogSource]] = {}
    for kind, given in paths.items():
        for path in given:
            for name, size in _files(kind, path).items():
                found.setdefault(name, [LogSource(kind, piece) for piece in pieces(name, size)])
    sources = [source for some in found.values() for source in some]
    if not sources:
        names = ", ".join(sorted(found)) or "no file was named"
        raise SourceError(f"the logs are empty: {names}")
    return sources


def _files(kind: str, given: str) -> dict[str, int]:
    """The files of a path or pattern, with their sizes."""
    wanted: dict[str, int] = {}
    for path in expand(given):
        is_directory, files = list_files(path)
        for name, file in files.items():
            if not is_directory or split(name)[1].startswith(NAMES[kind]):
                wanted[name] = file.size
    if not wanted:
        raise SourceError(
            f"{given}: there is no {NAMES[kind]}* below it; give the files if they have other names"
        )
    return wanted


def read_logs(spark: SparkSession, sources: Sequence[LogSource], reading: Reading) -> DataFrame:
    """A data frame with the columns of EVIDENCE: a row for each key of each line that may be
    evidence, and a row of statistics for each piece."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        how = layout(reading.pattern, reading.zone)
        for batch in batches:
            for text in batch.column(0).to_pylist():
                task = json.loads(text)
                source = LogSource(task["kind"], LogPiece(task["path"], task["start"], task["end"]))
                yield from _batches(evidence(source, how, reading))

    rows = [(json.dumps({"kind": kind, **asdict(piece)}),) for kind, piece in sources]
    parts = min(len(rows), 4 * parallelism(spark))
    tasks = spark.createDataFrame(rows, "source string").repartition(parts)
    return tasks.mapInArrow(work, EVIDENCE)


def collect_file_stats(evidence_rows: DataFrame) -> list[LogFileStats]:
    """The statistics of each file; the driver receives a row for each piece."""
    found: dict[str, LogFileStats] = {}
    for row in evidence_rows.where("file_stats IS NOT NULL").select("file_stats").collect():
        stats = LogFileStats(**json.loads(row.file_stats))
        stats.first_unread = [(position, text) for position, text in stats.first_unread]
        found.setdefault(stats.path, LogFileStats(stats.kind, stats.path)).add(stats)
    return sorted(found.values(), key=lambda one: one.path)


def evidence(source: LogSource, how: Layout, reading: Reading) -> Iterator[dict[str, Any]]:
    """The rows of a piece: one for each key of each line, and one with its statistics."""
    stats = LogFileStats(source.kind, source.piece.path)
    if not is_text(source.piece):
        stats.binary = True
    else:
        for record in records(source.piece, how):
            yield from _of_record(record, source, how, reading, stats)
    yield {"file_stats": json.dumps(asdict(stats))}


def _of_record(
    record: RawRecord, source: LogSource, how: Layout, reading: Reading, stats: LogFileStats
) -> Iterator[dict[str, Any]]:
    if not record.is_utf8:
        stats.not_utf8 += record.text.count("\n") + 1
        stats.unreadable(record.position, record.text)
        return
    if source.kind == "request" and record.begins and not is_interesting(record.text):
        stats.records += 1
        stats.requests += 1
        return
    line = how.parse(record.text) if record.begins else None
    if line is None:
        stats.unreadable(record.position, record.text)
        return
    stats.seen(line.times)
    if line.rest and source.kind in _EACH_LINE:
        end = len(record.text[: -len(line.rest)].encode()) + 1
        stats.unreadable(record.position + end, line.rest[1:])
    try:
        rows = list(_rows(line, source.kind, reading, stats))
    except ValueError:
        stats.unreadable(record.position, record.text)
        return
    stats.records += 1
    place = {"file": source.piece.path, "position": record.position, "text": shown(record.text)}
    for row in rows:
        yield {**row, **place, "came_twice": len(line.times) > 1}


def _rows(
    line: LogRecord, kind: str, reading: Reading, stats: LogFileStats
) -> Iterator[dict[str, Any]]:
    """The rows of a line. Raises ValueError for a line that such a log does not have."""
    words: dict[str, Any]
    if (allowed := parse_authorizer(line.message)) is not None:
        stats.allowed += allowed.allowed
        stats.denied += not allowed.allowed
        words = {"principal": allowed.principal, "host": allowed.host, "request": allowed.request}
        yield from _at(line, authorizer_evidence(allowed), words, 0, reading.window_ms, reading)
    elif kind == "authorizer":
        raise ValueError("not a line of the authorizer")
    elif is_request(line.message):
        stats.requests += 1
        asked = parse_request(line.message)
        if asked is not None:
            words = {
                "principal": asked.principal,
                "host": asked.host,
                "client_id": asked.client_id,
                "request": asked.request,
                "forwarded": asked.forwarded,
            }
            yield from _at(line, request_evidence(asked), words, asked.total_ms, 0, reading)
    elif "org.apache.kafka.controller" in (line.logger or "") or line.message.startswith("[Quorum"):
        stats.controller += 1
        yield from _at(line, controller_evidence(line.message), {}, 0, 0, reading)


def _at(
    line: LogRecord,
    offers: Iterable[EvidenceKey],
    words: dict[str, Any],
    before_ms: int,
    after_ms: int,
    reading: Reading,
) -> Iterator[dict[str, Any]]:
    for offer in offers:
        for ms in line.times:
            yield {
                "key": offer.key,
                "strength": offer.strength,
                "lo": ms - before_ms - reading.skew_ms,
                "hi": ms + after_ms + reading.skew_ms,
                "begun": ms - before_ms if offer.strength == BODY else None,
                "at": ms,
                **words,
            }


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    some: list[dict[str, Any]] = []
    for row in rows:
        some.append(row)
        if len(some) >= _BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(some, _COLUMNS)
            some = []
    if some:
        yield pa.RecordBatch.from_pylist(some, _COLUMNS)
