"""Which ranges of the log to apply to the state next, and from which snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.spark.tables.lineage import EpochSpan


class OffsetRange(NamedTuple):
    """A range [start, end) of the log to apply; with a baseline, to the state of a snapshot."""

    start: int
    end: int
    """Exclusive."""
    baseline: tuple[int, int] | None = None
    """The end offset and epoch of the snapshot from which the state starts again."""


def ranges_to_apply(
    applied_end: int | None,
    ranges: Sequence[tuple[int, int]],
    snapshots: Sequence[tuple[int, int]],
) -> tuple[list[OffsetRange], str | None]:
    """The ranges to apply next, and why the state cannot follow further (None: it can).

    applied_end: the end of what was applied (exclusive); None before the first run
    ranges: the offsets that bronze has, as ranges [start, end)
    snapshots: (end offset, epoch) of the available snapshots

    1. A range that begins at or before the end of the state continues it.
    2. A range behind a gap needs a snapshot that ends in it: the earliest one, so that as much of
       the log as possible is applied.
    3. At the end, a snapshot behind all ranges is applied alone.
    """
    found: list[OffsetRange] = []
    at = 0 if applied_end is None else applied_end
    for start, end in ranges:
        if end <= at:
            continue
        if start <= at:
            found.append(OffsetRange(at, end))
        else:
            usable = [(o, e) for o, e in sorted(snapshots) if start <= o <= end and o > at]
            if not usable:
                return found, (
                    f"offsets {at} to {start - 1} are missing: ingest the part of the log that has "
                    f"them, or a snapshot that ends between {start} and {end}"
                )
            offset, epoch = usable[0]
            found.append(OffsetRange(offset, end, (offset, epoch)))
        at = end
    beyond = max((one for one in snapshots if one[0] > at), default=None)
    if beyond is not None:
        found.append(OffsetRange(beyond[0], beyond[0], beyond))
    return [s for s in found if s.start < s.end or s.baseline], None


def snapshot_to_keep(
    applied_end: int | None,
    ranges: Sequence[tuple[int, int]],
    snapshots: Sequence[tuple[int, int]],
) -> tuple[int, int] | None:
    """The snapshot that will replace a gap in the log, once more of the log is there.

    Arguments as of `ranges_to_apply`. None when there is no such gap, and when no snapshot ends
    late enough. A stream gives a snapshot only once, before the records that follow it: so bronze
    must keep it although it is of no use yet.
    """
    found, problem = ranges_to_apply(applied_end, ranges, snapshots)
    if problem is None:
        return None
    at = found[-1].end if found else applied_end or 0
    end = next(end for start, end in ranges if start > at)
    return min((one for one in snapshots if one[0] > end), default=None)


def before_open_transaction(
    found: Iterable[OffsetRange], begun: Iterable[int]
) -> tuple[list[OffsetRange], int | None]:
    """The ranges up to a transaction that has not ended, and where it begins (None: there is none).

    begun: the offsets at which transactions begin that have no end yet

    Kafka writes no snapshot inside a transaction (KIP-868). So a transaction that began before a
    snapshot, or before the present state, has ended in a part of the log that is missing.
    """
    kept: list[OffsetRange] = []
    since, bound = min((part.start for part in found), default=0), None
    for part in found:
        if part.baseline is not None:
            since = part.start
        later = [start for start in begun if start >= since]
        bound = min(later, default=None)
        end = part.end if bound is None else min(part.end, bound)
        if part.start < end or (part.baseline is not None and part.start <= end):
            kept.append(part._replace(end=end))
    return kept, bound


def time_bounds(start: int, spans: Sequence[EpochSpan]) -> tuple[int, int]:
    """The earliest and latest time (microseconds) of a snapshot that ends at `start`.

    They are the times of the log before and after. The timestamp in the snapshot comes from the
    clock of the leader that wrote its last record, which may have been ahead or behind.
    """
    earliest = max((span.last_time for span in spans if span.end <= start), default=0)
    latest = min((span.first_time for span in spans if span.start >= start), default=1 << 62)
    return earliest, max(earliest, latest)
