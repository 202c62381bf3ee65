"""Pieces of files as Arrow record batches: what a task of the batch source does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import EqualTo, Filter

from quorate.formats.batch import control_records
from quorate.formats.control import SnapshotFooter
from quorate.formats.errors import BatchError
from quorate.spark.decode.arrays import microseconds
from quorate.spark.decode.batches import AnyDecoder, Decoder, ViewDecoder, chunks
from quorate.spark.decode.rows import Item
from quorate.spark.decode.typed import VIEWS
from quorate.spark.files.archives import Shelf
from quorate.spark.files.paths import SourceError
from quorate.spark.files.scan import CONTROL, Damage, Ints, Run, runs
from quorate.spark.source.filters import (
    TOLD_BY_HEADERS,
    Span,
    in_microseconds,
    may_hold,
    mentions,
)
from quorate.spark.source.options import Options
from quorate.spark.source.plan import Piece, Pieces, archive_pieces
from quorate.spark.source.where import columns_of, passing


def read_partition(
    partition: Pieces, options: Options, filters: Sequence[Filter] = ()
) -> Iterator[pa.RecordBatch]:
    """The record batches of a partition.

    filters: what Spark will not want; rows that it would not want may be given.

    Raises SourceError when a file cannot be read; with fail_fast also at the first piece of it
    that cannot.
    """
    filters = (*in_microseconds(options.where), *filters)
    looked_at = columns_of(options.where).difference(options.columns)
    every = replace(options, columns=(*options.columns, *sorted(looked_at)))
    decoder = decoder_of(every, filters)
    told = mentions(filters, TOLD_BY_HEADERS)
    with Shelf() as shelf:
        pieces: Sequence[Piece] = partition.pieces
        if partition.archive is not None:
            found = archive_pieces(partition.archive, options, shelf)
            pieces = [piece for piece in found if may_hold(filters, piece.spans)]
        for piece in pieces:
            items = _items(piece, shelf)
            if options.fail_fast:
                items = _failing(piece, items)
            chosen = _chosen(items, told) if told else items
            for batch in chunks(decoder, piece.origin, chosen):
                if options.where:
                    batch = passing(batch, options.where).select(list(options.columns))
                yield batch


def decoder_of(options: Options, filters: Sequence[Filter] = ()) -> AnyDecoder:
    """What makes the rows that the options ask for; not those of types that no filter passes."""
    if options.view is not None:
        return ViewDecoder(VIEWS[options.view], options.columns, fail_fast=options.fail_fast)
    on_type = mentions(filters, frozenset(("type",)))
    return Decoder(
        options.columns,
        keep_raw=options.raw,
        fail_fast=options.fail_fast,
        passes=(lambda name: may_hold(on_type, {"type": (name, name)})) if on_type else None,
    )


def _items(piece: Piece, shelf: Shelf) -> Iterator[Item]:
    """The batches of a piece, and everything that is wrong with it."""
    if piece.note is not None:
        yield Damage(0, 0, piece.note)
    if not piece.unreadable:
        read = shelf.reader(piece.file)
        yield from followed(piece, runs(read, piece.file.size, piece.start, piece.end))


def followed(piece: Piece, items: Iterable[Item]) -> Iterator[Item]:
    """The same, and damage where offsets are missing or a snapshot has no end."""
    expected = (piece.origin.segment or 0) if piece.start == 0 else None
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
    told = 0 if last is None else last.position + last.size
    if told < piece.file.size:
        return  # another range has the end
    if piece.origin.snapshot_id is not None:
        if not _is_footer(last):
            yield Damage(piece.file.size, 0, "the snapshot ends without its footer: not whole")
    elif piece.next_base is not None and expected not in (None, piece.next_base):
        yield Damage(piece.file.size, 0, _gap(expected or 0, piece.next_base))


def _with_gaps(run: Run, cuts: Sequence[int], before: Ints) -> Iterator[Item]:
    """The run in parts, and at each of the cuts what is missing before that batch."""
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
    if not isinstance(item, Run):
        return False
    last = item.view(len(item.starts) - 1)
    try:
        return last.is_control and isinstance(control_records(last)[-1], SnapshotFooter)
    except BatchError:
        return False


def _failing(piece: Piece, items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Damage):
            raise SourceError(f"{piece.origin.file}: at byte {item.position}: {item.what}")
        yield item


def _chosen(items: Iterable[Item], filters: Sequence[Filter]) -> Iterator[Item]:
    """Without the batches of which no row can pass."""
    only_control = EqualTo(("is_control",), True) in filters
    for item in items:
        if isinstance(item, Damage):
            yield item
            continue
        if only_control:  # few of many: told without a look at each of the others
            control = item.heads["attributes"] & CONTROL != 0
            if not control.any():
                continue
            item = item.part(control)
        passing = np.array([may_hold(filters, spans) for spans in _spans(item)], np.bool_)
        if passing.all():
            yield item
        elif passing.any():
            yield item.part(passing)


def _spans(run: Run) -> Iterator[dict[str, Span]]:
    """What the header of each batch says of its rows."""
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
