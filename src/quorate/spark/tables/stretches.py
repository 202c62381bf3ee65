"""Which stretches of the log are to be applied to the state next, and from which snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.spark.tables.lineage import Span


class Stretch(NamedTuple):
    """Part of the log to apply to the state; with a baseline, onto a snapshot's state."""

    start: int
    end: int
    """Exclusive."""
    baseline: tuple[int, int] | None = None
    """End offset and epoch of the snapshot that the state starts from."""


def stretches(
    applied_end: int | None,
    ranges: Sequence[tuple[int, int]],
    snapshots: Sequence[tuple[int, int]],
) -> tuple[list[Stretch], str | None]:
    """What can be applied next, and why not more.

    applied_end: up to where the state has come; None before the first
    ranges: the offsets at hand; snapshots: (end offset, epoch) of those at hand
    """
    found: list[Stretch] = []
    at = 0 if applied_end is None else applied_end
    for start, end in ranges:
        if end <= at:
            continue
        if start <= at:
            found.append(Stretch(at, end))
        else:
            usable = [(o, e) for o, e in sorted(snapshots) if start <= o <= end and o > at]
            if not usable:
                return found, (
                    f"offsets {at} to {start - 1} are missing: bring the part of the log that has "
                    f"them, or a snapshot that ends between {start} and {end}"
                )
            offset, epoch = usable[0]
            found.append(Stretch(offset, end, (offset, epoch)))
        at = end
    beyond = max((one for one in snapshots if one[0] > at), default=None)
    if beyond is not None:
        found.append(Stretch(beyond[0], beyond[0], beyond))
    return [s for s in found if s.start < s.end or s.baseline], None


def ahead(
    applied_end: int | None,
    ranges: Sequence[tuple[int, int]],
    snapshots: Sequence[tuple[int, int]],
) -> tuple[int, int] | None:
    """The snapshot that will stand for a hole of the log once more of the log has come.

    Arguments as of `stretches`. None where it finds a way, and where no snapshot ends late enough.
    A stream offers a snapshot once, with the beginning of what it stands before.
    """
    found, problem = stretches(applied_end, ranges, snapshots)
    if problem is None:
        return None
    at = found[-1].end if found else applied_end or 0
    end = next(end for start, end in ranges if start > at)
    return min((one for one in snapshots if one[0] > end), default=None)


def up_to_open(found: Iterable[Stretch], begun: Iterable[int]) -> tuple[list[Stretch], int | None]:
    """The stretches without what a transaction that has not ended holds back, and where that is.

    begun: where transactions begin of which no end is at hand. No snapshot is of a moment inside
    a transaction: one that began before a snapshot is over by then (KIP-868), and so
    is one that began before the state of now.
    """
    kept: list[Stretch] = []
    since, bound = min((stretch.start for stretch in found), default=0), None
    for stretch in found:
        if stretch.baseline is not None:
            since = stretch.start
        later = [start for start in begun if start >= since]
        bound = min(later, default=None)
        end = stretch.end if bound is None else min(stretch.end, bound)
        if stretch.start < end or (stretch.baseline is not None and stretch.start <= end):
            kept.append(stretch._replace(end=end))
    return kept, bound


def bounds_of(start: int, spans: Sequence[Span]) -> tuple[int, int]:
    """Between which times of the log (microseconds) a snapshot that ends at `start` is.

    The clock that its last record was written by may have been another one's.
    """
    earliest = max((span.last_time for span in spans if span.end <= start), default=0)
    latest = min((span.first_time for span in spans if span.start >= start), default=1 << 62)
    return earliest, max(earliest, latest)
