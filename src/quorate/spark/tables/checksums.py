"""Reads missing checksums of epochs again from the logs that were ingested.

`epochs` has the checksum of the batch with the first and with the last record of a range: they show
whether a log is of the same history. An end that a job has cut, or that `repair` has found in
bronze, has none, and neither has one that an early release ingested. A row of bronze names the file
and the byte of its batch. The checksum is known where that file is still there, outside of an
archive, and has the same batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from quorate.formats.batch import BatchView
from quorate.spark.files.paths import SourceError, file_system
from quorate.spark.files.scan import scan
from quorate.spark.tables.files import safe_name
from quorate.spark.tables.layout import table_path
from quorate.spark.tables.lineage import EpochSpan
from quorate.spark.tables.store import TableFiles

_LOG: Final = "log"
_COLUMNS: Final = ("offset", "epoch", "base_offset", "file", "position")


class _BatchPlace(NamedTuple):
    """Where the batch of a record was read."""

    epoch: int
    base_offset: int
    file: str
    position: int


def with_checksums(
    tables: TableFiles, cluster_id: str, spans: Iterable[EpochSpan]
) -> tuple[EpochSpan, ...]:
    """The spans of a cluster with every checksum that can be read again."""
    known = tuple(spans)
    wanted = {span.start for span in known if span.first_crc is None}
    wanted |= {span.end - 1 for span in known if span.last_crc is None}
    found = dict(_checksums(_places(tables, cluster_id, wanted))) if wanted else {}

    def at(epoch: int, offset: int, crc: int | None) -> int | None:
        return found.get((epoch, offset)) if crc is None else crc

    return tuple(
        span._replace(
            first_crc=at(span.epoch, span.start, span.first_crc),
            last_crc=at(span.epoch, span.end - 1, span.last_crc),
        )
        for span in known
    )


def count_missing(spans: Iterable[EpochSpan]) -> int:
    """The number of checksums that are not known."""
    return sum((span.first_crc is None) + (span.last_crc is None) for span in spans)


def _places(
    tables: TableFiles, cluster_id: str, offsets: set[int]
) -> Iterator[tuple[int, _BatchPlace]]:
    """(offset, place) of the records at these offsets."""
    wanted = pa.array(sorted(offsets), pa.int64())
    base = tables.path(table_path(_LOG))
    for file in tables.files(_LOG):
        low, high = file.low.get("offset", 0), file.high.get("offset")
        near = any(low <= offset and (high is None or offset <= high) for offset in offsets)
        if not near or not file.path.startswith(f"{safe_name(cluster_id)}/"):
            continue
        path = f"{base}/{file.path}"
        rows = pq.read_table(path, filesystem=tables.fs, columns=list(_COLUMNS), partitioning=None)
        here = rows.filter(pc.is_in(rows.column("offset"), value_set=wanted))
        for row in here.to_pylist():
            offset = row.pop("offset")
            if None not in row.values():
                yield offset, _BatchPlace(**row)


def _checksums(
    places: Iterable[tuple[int, _BatchPlace]],
) -> Iterator[tuple[tuple[int, int], int]]:
    """((epoch, offset), checksum) of the batches that are still in their files."""
    known: dict[_BatchPlace, int | None] = {}
    for offset, place in places:
        if place not in known:
            known[place] = _checksum(place)
        crc = known[place]
        if crc is not None:
            yield (place.epoch, offset), crc


def _checksum(place: _BatchPlace) -> int | None:
    """The checksum of the batch at this place; None when another one or none is there."""
    try:
        system, path, _ = file_system(place.file)
        info = system.get_file_info(path)
        if info.type != fs.FileType.File:
            return None
        with system.open_input_file(path) as opened:
            found = next(
                scan(lambda at, size: bytes(opened.read_at(size, at)), info.size, place.position),
                None,
            )
    except (OSError, SourceError, pa.ArrowException):
        return None
    if not isinstance(found, BatchView):
        return None
    there = (found.position, found.base_offset, found.epoch)
    return found.crc if there == (place.position, place.base_offset, place.epoch) else None
