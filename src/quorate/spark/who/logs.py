"""Logs of nodes as data frames: every line that may be evidence, and what each file was like."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from quorate.spark.files.paths import SourceError, expand, list_files, split
from quorate.spark.who.bodies import (
    is_interesting,
    is_request,
    parse_request,
    request_offers,
    shown,
)
from quorate.spark.who.keys import BODY
from quorate.spark.who.layout import KAFKA, Layout, Line, layout
from quorate.spark.who.lines import Piece, Record, is_text, pieces, records
from quorate.spark.who.messages import (
    Offer,
    authorizer_offers,
    controller_offers,
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
"""The kinds of logs, and the names that their files and rotated files begin with."""
FIRST_BAD: Final = 3
"""Lines that could not be read are told with their positions: so many of each piece."""

EVIDENCE: Final = (
    "key string, strength int, lo bigint, hi bigint, begun bigint, at bigint, principal string, "
    "host string, client_id string, request string, forwarded boolean, came_twice boolean, "
    "file string, position bigint, text string, told string"
)
"""
lo, hi     a change at such a time (ms since 1970, inclusive) may belong to the line, at `at`
begun      of a request with its body: when it began, by the line's own clock and without skew
told       JSON of FileTold; such rows have no key
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
        *((name, pa.string()) for name in ("text", "told")),
    ]
)
_BATCH_ROWS: Final = 4096
_EACH_LINE: Final = ("authorizer", "request")
"""Logs without stack traces: what does not begin a record there is damage."""


@dataclass(frozen=True)
class Reading:
    """How logs are read, and how far in time a line may be from what it caused."""

    pattern: str = KAFKA
    zone: str = "UTC"
    window_ms: int = 5000
    """From an authorizer's line to the record, at most."""
    skew_ms: int = 1000
    """Between the clocks of the node that logged and of the active controller."""


@dataclass
class FileTold:
    """What a log file, or a piece of it, held."""

    kind: str
    path: str
    records: int = 0
    """Those that could be read."""
    allowed: int = 0
    denied: int = 0
    requests: int = 0
    controller: int = 0
    unread: int = 0
    """Lines that are not of the layout, or not of the kind that the log should have."""
    not_utf8: int = 0
    """Those of them that are no UTF-8: nobody knows what names they have."""
    first_unread: list[tuple[int, str]] = field(default_factory=list)
    """Byte positions and texts."""
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

    def add(self, other: FileTold) -> None:
        """Count another piece of the same file in."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first_unread = sorted([*self.first_unread, *other.first_unread])[:FIRST_BAD]
        self.binary |= other.binary
        self.seen(ms for ms in (other.first_ms, other.last_ms) if ms is not None)


_COUNTS: Final = (
    *("records", "allowed", "denied", "requests", "controller", "unread", "not_utf8"),
)


class Source(NamedTuple):
    """A piece of a log of a kind."""

    kind: str
    piece: Piece


def find_logs(paths: Mapping[str, Sequence[str]]) -> list[Source]:
    """The pieces of the files that paths (files, patterns, directories) stand for, by kind.

    Of a directory the files that have the name of the kind. Raises SourceError where there is none.
    """
    found: dict[str, list[Source]] = {}
    for kind, given in paths.items():
        for path in given:
            for name, size in _files(kind, path).items():
                found.setdefault(name, [Source(kind, piece) for piece in pieces(name, size)])
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
            f"{given}: no {NAMES[kind]}* is below it; name the files if they are called otherwise"
        )
    return wanted


def read_logs(spark: SparkSession, sources: Sequence[Source], reading: Reading) -> DataFrame:
    """The columns of EVIDENCE: what may be evidence in the logs, and a row about each piece."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        how = layout(reading.pattern, reading.zone)
        for batch in batches:
            for text in batch.column(0).to_pylist():
                told = json.loads(text)
                source = Source(told["kind"], Piece(told["path"], told["start"], told["end"]))
                yield from _batches(evidence(source, how, reading))

    rows = [(json.dumps({"kind": kind, **asdict(piece)}),) for kind, piece in sources]
    parts = min(len(rows), 4 * spark.sparkContext.defaultParallelism)
    tasks = spark.createDataFrame(rows, "source string").repartition(parts)
    return tasks.mapInArrow(work, EVIDENCE)


def collect_told(evidence_rows: DataFrame) -> list[FileTold]:
    """What each file held; the driver gets a row for each piece."""
    found: dict[str, FileTold] = {}
    for row in evidence_rows.where("told IS NOT NULL").select("told").collect():
        told = FileTold(**json.loads(row.told))
        told.first_unread = [(position, text) for position, text in told.first_unread]
        found.setdefault(told.path, FileTold(told.kind, told.path)).add(told)
    return sorted(found.values(), key=lambda one: one.path)


def evidence(source: Source, how: Layout, reading: Reading) -> Iterator[dict[str, Any]]:
    """The rows of a piece: one for each thing a line is evidence for, and one about the piece."""
    told = FileTold(source.kind, source.piece.path)
    if not is_text(source.piece):
        told.binary = True
    else:
        for record in records(source.piece, how):
            yield from _of_record(record, source, how, reading, told)
    yield {"told": json.dumps(asdict(told))}


def _of_record(
    record: Record, source: Source, how: Layout, reading: Reading, told: FileTold
) -> Iterator[dict[str, Any]]:
    if not record.is_utf8:
        told.not_utf8 += record.text.count("\n") + 1
        told.unreadable(record.position, record.text)
        return
    if source.kind == "request" and record.begins and not is_interesting(record.text):
        told.records += 1
        told.requests += 1
        return
    line = how.parse(record.text) if record.begins else None
    if line is None:
        told.unreadable(record.position, record.text)
        return
    told.seen(line.times)
    if line.rest and source.kind in _EACH_LINE:
        end = len(record.text[: -len(line.rest)].encode()) + 1
        told.unreadable(record.position + end, line.rest[1:])
    try:
        rows = list(_rows(line, source.kind, reading, told))
    except ValueError:
        told.unreadable(record.position, record.text)
        return
    told.records += 1
    place = {"file": source.piece.path, "position": record.position, "text": shown(record.text)}
    for row in rows:
        yield {**row, **place, "came_twice": len(line.times) > 1}


def _rows(line: Line, kind: str, reading: Reading, told: FileTold) -> Iterator[dict[str, Any]]:
    """What a line is evidence for. Raises ValueError for one that such a log should not have."""
    words: dict[str, Any]
    if (allowed := parse_authorizer(line.message)) is not None:
        told.allowed += allowed.allowed
        told.denied += not allowed.allowed
        words = {"principal": allowed.principal, "host": allowed.host, "request": allowed.request}
        yield from _at(line, authorizer_offers(allowed), words, 0, reading.window_ms, reading)
    elif kind == "authorizer":
        raise ValueError("not a line of the authorizer")
    elif is_request(line.message):
        told.requests += 1
        asked = parse_request(line.message)
        if asked is not None:
            words = {
                "principal": asked.principal,
                "host": asked.host,
                "client_id": asked.client_id,
                "request": asked.request,
                "forwarded": asked.forwarded,
            }
            yield from _at(line, request_offers(asked), words, asked.total_ms, 0, reading)
    elif "org.apache.kafka.controller" in (line.logger or "") or line.message.startswith("[Quorum"):
        told.controller += 1
        yield from _at(line, controller_offers(line.message), {}, 0, 0, reading)


def _at(
    line: Line,
    offers: Iterable[Offer],
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
