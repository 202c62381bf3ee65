"""Reads a partition of the batch source, in a task: ranges of files to Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import EqualTo, Filter

from quorate.formats.batch import control_records
from quorate.formats.control import SnapshotFooter
from quorate.formats.errors import BatchError
from quorate.spark.decode.arrays import microseconds
from quorate.spark.decode.batches import Decoder, RowDecoder, ViewDecoder, decoded_batches
from quorate.spark.decode.rows import Item
from quorate.spark.decode.typed import VIEWS
from quorate.spark.files.archives import FileReaders
from quorate.spark.files.paths import SourceError
from quorate.spark.files.scan import CONTROL, BatchRun, Damage, Ints, runs
from quorate.spark.source.filters import (
    HEADER_COLUMNS,
    ValueRange,
    in_microseconds,
    may_match,
    mentions,
)
from quorate.spark.source.options import SourceOptions
from quorate.spark.source.plan import FileRange, ReadPartition, archive_ranges
from quorate.spark.source.where import columns_of, passing
from quorate.spark.source.zones import in_zone


def read_partition(
    partition: ReadPartition,
    options: SourceOptions,
    filters: Sequence[Filter] = (),
    *,
    zone: tzinfo | None = UTC,
) -> Iterator[pa.RecordBatch]:
    """The Arrow record batches of a partition.

    filters: more conditions, to skip by; the result may hold rows that do not pass them
    zone: of times without a zone in the option `where`; None: that of this machine

    Raises SourceError when a file cannot be read; with fail_fast also at the first damage.
    """
    options = replace(options, where=in_zone(options.where, zone))
    filters = (*in_microseconds(options.where), *filters)
    looked_at = columns_of(options.where).difference(options.columns)
    every = replace(options, columns=(*options.columns, *sorted(looked_at)))
    decoder = decoder_of(every, filters)
    on_headers = mentions(filters, HEADER_COLUMNS)
    with FileReaders() as readers:
        ranges: Sequence[FileRange] = partition.ranges
        if partition.archive is not None:
            found = archive_ranges(partition.archive, options, readers, partition.clusters)
            ranges = [file_range for file_range in found if may_match(filters, file_range.spans)]
        for file_range in ranges:
            items = _items(file_range, readers)
            if options.fail_fast:
                items = _raise_on_damage(file_range, items)
            chosen = _chosen(items, on_headers) if on_headers else items
            for batch in decoded_batches(decoder, file_range.origin, chosen):
                if options.where:
                    batch = passing(batch, options.where).select(list(options.columns))
                yield batch


def decoder_of(options: SourceOptions, filters: Sequence[Filter] = ()) -> RowDecoder:
    """The decoder for the options; it may leave out record types that pass no filter."""
    if options.view is not None:
        return ViewDecoder(VIEWS[options.view], options.columns, fail_fast=options.fail_fast)
    on_type = mentions(filters, frozenset(("type",)))
    return Decoder(
        options.columns,
        keep_raw=options.raw,
        fail_fast=options.fail_fast,
        passes=(lambda name: may_match(on_type, {"type": (name, name)})) if on_type else None,
    )


def _items(file_range: FileRange, readers: FileReaders) -> Iterator[Item]:
    """The batches of a range, and every problem with it."""
    if file_range.note is not None:
        yield Damage(0, 0, file_range.note)
    if not file_range.unreadable:
        read = readers.reader(file_range.file)
        yield from with_missing_offsets(
            file_range, runs(read, file_range.file.size, file_range.start, file_range.end)
        )


def with_missing_offsets(file_range: FileRange, items: Iterable[Item]) -> Iterator[Item]:
    """The items, with a Damage added where offsets are missing or a snapshot has no footer."""
    expected = (file_range.origin.segment or 0) if file_range.start == 0 else None
    last: Item | None = None
    for last in items:
        if isinstance(last, Damage):
            expected = None
            yield last
            continue
        bases = last.heads["base_offset"].astype(np.int64)
        ends = bases + last.heads["count"]
        before = np.concatenate([[bases[0] if expected is None else expected], ends[:-1]])
        cuts = np.flatnonzero(before != bases).tolist()
        if cuts:
            yield from _with_gaps(last, cuts, before)
        else:
            yield last
        expected = int(ends[-1])
    reported = 0 if last is None else last.position + last.size
    if reported < file_range.file.size:
        return  # the end of the file is in another range
    if file_range.origin.snapshot_id is not None:
        if not _is_footer(last):
            yield Damage(
                file_range.file.size, 0, "the snapshot ends without its footer: it is not whole"
            )
    elif file_range.next_base is not None and expected not in (None, file_range.next_base):
        yield Damage(file_range.file.size, 0, _gap(expected or 0, file_range.next_base))


def _with_gaps(run: BatchRun, cuts: Sequence[int], before: Ints) -> Iterator[Item]:
    """The run in parts, with a Damage for the missing offsets at each cut."""
    for start, stop in pairwise([0, *cuts, len(run.starts)]):
        if start < stop:
            yield run.part(slice(start, stop))
        if stop < len(run.starts):
            position = run.origin + int(run.starts[stop])
            found = int(run.heads["base_offset"][stop])
            yield Damage(position, 0, _gap(int(before[stop]), found))


def _gap(expected: int, found: int) -> str:
    if found > expected:
        return f"the offsets {expected} to {found - 1} are missing: offset {found} comes next"
    return f"offset {found} comes next where {expected} should: offsets go back"


def _is_footer(item: Item | None) -> bool:
    if not isinstance(item, BatchRun):
        return False
    last = item.view(len(item.starts) - 1)
    try:
        return last.is_control and isinstance(control_records(last)[-1], SnapshotFooter)
    except BatchError:
        return False


def _raise_on_damage(file_range: FileRange, items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Damage):
            raise SourceError(f"{file_range.origin.file}: at byte {item.position}: {item.what}")
        yield item


def _chosen(items: Iterable[Item], filters: Sequence[Filter]) -> Iterator[Item]:
    """The items without the batches of which no row can pass."""
    only_control = EqualTo(("is_control",), True) in filters
    for item in items:
        if isinstance(item, Damage):
            yield item
            continue
        if only_control:  # few of many: one comparison of all headers instead of a loop
            control = item.heads["attributes"] & CONTROL != 0
            if not control.any():
                continue
            item = item.part(control)
        passing = np.array([may_match(filters, spans) for spans in _spans(item)], np.bool_)
        if passing.all():
            yield item
        elif passing.any():
            yield item.part(passing)


def _spans(run: BatchRun) -> Iterator[dict[str, ValueRange]]:
    """The range of values of the header columns, for each batch."""
    heads = run.heads
    bases = heads["base_offset"].astype(np.int64)
    columns = (
        bases.tolist(),
        (bases + heads["last_delta"]).tolist(),
        microseconds(heads["max_timestamp"]).tolist(),
        heads["epoch"].tolist(),
        (heads["attributes"] & CONTROL != 0).tolist(),
    )
    for base, last, time, epoch, control in zip(*columns, strict=True):
        yield {
            "offset": (base, last),
            "timestamp": (time, time),
            "epoch": (epoch, epoch),
            "is_control": (control, control),
        }
