"""Which records of many replicas are the committed log: decided by epochs, as Raft does.

A replica's log is told by its spans: which epoch wrote which offsets. The log that a leader of the
latest epoch wrote holds every committed record, so the replica with the latest epoch (and of those
the longest) rules; where another has an offset from another epoch, it has a tail that was never
committed. Two logs with the same epoch at an offset are the same up to there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

CHUNK: Final = 1 << 17
"""Offsets that one task of the bronze stage works on together."""


def chunk_of(offset: str) -> str:
    """The expression in SQL for the number of the chunk that an expression's offset is in."""
    return f"{offset} div {CHUNK}"


class Group(NamedTuple):
    """The sound records of one replica with one epoch in one chunk."""

    replica: str
    epoch: int
    chunk: int
    first: int
    last: int
    """Inclusive."""
    latest: int
    """Greatest timestamp, in microseconds."""
    node: int = -1


class Span(NamedTuple):
    """Offsets of one epoch without a hole; `end` is exclusive, times are microseconds."""

    epoch: int
    start: int
    end: int
    first_time: int = 0
    last_time: int = 0


@dataclass(frozen=True)
class Lineage:
    """The committed log of a cluster as far as the replicas at hand tell."""

    spans: tuple[Span, ...]
    """Ascending, by offsets and epochs alike; of each epoch the outer bounds."""

    def has(self, epoch: int, offset: int) -> bool:
        """Whether the record of this epoch at this offset is in the log."""
        return any(s.epoch == epoch and s.start <= offset < s.end for s in self.spans)

    def part(self, epoch: int, start: int, end: int) -> tuple[int, int]:
        """What of the offsets from `start` to `end` (exclusive) of an epoch is in the log."""
        for span in self.spans:
            if span.epoch == epoch:
                return max(start, span.start), min(end, span.end)
        return start, start

    def epoch_at(self, offset: int) -> int | None:
        """The epoch that wrote an offset; None where that is not known."""
        return next((s.epoch for s in self.spans if s.start <= offset < s.end), None)


def lineage(known: Sequence[Span], groups: Iterable[Group]) -> Lineage:
    """The committed log of what is known already and what the replicas have.

    What is known on either side of a hole may be of different replicas: it is ranked apart.
    """
    logs = replica_logs(groups)
    for number, piece in enumerate(_pieces(known)):
        logs[f"{_KNOWN}{number}"] = _outer(piece)
    ranked = sorted(logs.items(), key=lambda item: (*_rank(item[1]), item[0]))
    ruling = _Ruling()
    for name, spans in ranked:
        ruling.add(sorted(spans.values()), not name.startswith(_KNOWN))
    return Lineage(tuple(ruling.spans[epoch] for epoch in ruling.epochs))


_KNOWN: Final = " "
"""Begins the names of the parts that are known; those of replicas begin with a slash."""


class _Ruling:
    """The log as the logs that were added so far tell it: its spans ascend and do not overlap."""

    def __init__(self) -> None:
        self.spans: dict[int, Span] = {}
        self.epochs: list[int] = []
        """Those of the spans, ascending."""

    def add(self, log: Sequence[Span], is_one_log: bool) -> None:
        """Take of a log that ranks lower what does not contradict those that rank higher.

        What stands in a replica's log before a record of the ruling log is in that log too (Raft's
        log matching). What is known is put together of replicas: only within an epoch does that
        hold.
        """
        meets = [n for n, span in enumerate(log) if is_one_log and self._overlaps(span)]
        met = meets[-1] if meets else -1
        for number, span in enumerate(log):
            if number > met and span.epoch not in self.spans and self._is_refuted(span):
                if is_one_log:
                    break  # here it has left the log, for good
                continue
            if number < met:
                self._begin_later_at(span.end, span.epoch)
            else:
                later = self._later(span.epoch)
                span = span if later is None else span._replace(end=min(span.end, later.start))
            if span.start < span.end:
                if span.epoch not in self.spans:
                    insort(self.epochs, span.epoch)
                _widen(self.spans, span)
                self._end_older_at(self.spans[span.epoch].start, span.epoch)

    def _older(self, epoch: int) -> Span | None:
        """The span next before those of this epoch."""
        place = bisect_left(self.epochs, epoch)
        return self.spans[self.epochs[place - 1]] if place else None

    def _later(self, epoch: int) -> Span | None:
        place = bisect_right(self.epochs, epoch)
        return self.spans[self.epochs[place]] if place < len(self.epochs) else None

    def _overlaps(self, span: Span) -> bool:
        other = self.spans.get(span.epoch)
        return other is not None and other.start < span.end and span.start < other.end

    def _is_refuted(self, span: Span) -> bool:
        """Whether the ruling log has the first of these offsets of an older epoch."""
        older = self._older(span.epoch)
        return older is not None and older.end > span.start

    def _begin_later_at(self, offset: int, epoch: int) -> None:
        while (one := self._later(epoch)) is not None and one.start < offset:
            self._keep(one._replace(start=offset))

    def _end_older_at(self, offset: int, epoch: int) -> None:
        while (one := self._older(epoch)) is not None and one.end > offset:
            self._keep(one._replace(end=offset))

    def _keep(self, span: Span) -> None:
        if span.start < span.end:
            self.spans[span.epoch] = span
        else:
            del self.spans[span.epoch]
            self.epochs.remove(span.epoch)


def _pieces(spans: Iterable[Span]) -> list[list[Span]]:
    """The spans of each part of the log that has no hole."""
    pieces: list[list[Span]] = []
    for span in sorted(spans, key=lambda s: s.start):
        if pieces and pieces[-1][-1].end == span.start:
            pieces[-1].append(span)
        else:
            pieces.append([span])
    return pieces


def replica_logs(groups: Iterable[Group]) -> dict[str, dict[int, Span]]:
    """By replica the outer bounds of each epoch."""
    logs: dict[str, dict[int, Span]] = {}
    for group in groups:
        spans = logs.setdefault("/" + group.replica, {})
        _widen(spans, Span(group.epoch, group.first, group.last + 1))
    return logs


def _rank(spans: Mapping[int, Span]) -> tuple[int, int]:
    last = spans[max(spans)]
    return -last.epoch, -last.end


def _outer(spans: Iterable[Span]) -> dict[int, Span]:
    found: dict[int, Span] = {}
    for span in spans:
        _widen(found, Span(span.epoch, span.start, span.end))
    return found


def _widen(spans: dict[int, Span], span: Span) -> None:
    known = spans.get(span.epoch, span)
    spans[span.epoch] = Span(span.epoch, min(known.start, span.start), max(known.end, span.end))


def superseded(known: Iterable[Span], ruling: Lineage) -> tuple[int, int] | None:
    """From where to where (exclusive) known offsets are not in the log after all; None: nowhere."""
    wrong = [piece for span in known for piece in lacking(span, ruling)]
    return (min(wrong)[0], max(end for _, end in wrong)) if wrong else None


def lacking(span: Span, ruling: Lineage) -> list[tuple[int, int]]:
    """What of a span is not in the log."""
    start, end = ruling.part(span.epoch, span.start, span.end)
    return without([(start, end)] if start < end else [], span.start, span.end)


def without(ranges: Iterable[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """What of the offsets from `start` to `end` (exclusive) lies in none of the ranges."""
    left = []
    for low, high in sorted(ranges):
        if low >= end:
            break
        if high <= start:
            continue
        if low > start:
            left.append((start, low))
        start = max(start, high)
    if start < end:
        left.append((start, end))
    return left


def overlap(ranges: Iterable[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """What of the offsets from `start` to `end` (exclusive) lies in one of the ranges."""
    parts = ((max(low, start), min(high, end)) for low, high in sorted(ranges))
    return [(low, high) for low, high in parts if low < high]


def join_spans(spans: Iterable[Span]) -> list[Span]:
    """The same spans with neighbours of one epoch made one; ascending.

    Not where time goes back from one to the other, as when they came in disorder: `floors` must
    still see that.
    """
    joined: list[Span] = []
    for span in sorted(spans, key=lambda s: s.start):
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.epoch, last.end) == (span.epoch, span.start)
            and last.last_time <= span.first_time
        ):
            joined[-1] = last._replace(end=span.end, last_time=span.last_time)
        else:
            joined.append(span)
    return joined


def covered(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """The offsets that the spans hold, as ranges (end exclusive) without neighbours."""
    ranges: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda s: s.start):
        if ranges and ranges[-1][1] == span.start:
            ranges[-1] = (ranges[-1][0], span.end)
        else:
            ranges.append((span.start, span.end))
    return ranges


def floors(spans: Iterable[Span]) -> list[tuple[int, int, int]]:
    """Where the log's time is behind what it was before: start, end (exclusive), and that time.

    So it is where a leader's clock is behind its predecessor's, and the part of the predecessor
    came later than this one.
    """
    found: list[tuple[int, int, int]] = []
    latest = 0
    for span in sorted(spans, key=lambda s: s.start):
        if span.first_time < latest:
            if found and found[-1][1:] == (span.start, latest):
                found[-1] = (found[-1][0], span.end, latest)
            else:
                found.append((span.start, span.end, latest))
        latest = max(latest, span.last_time)
    return found


def after_holes(spans: Iterable[Span]) -> tuple[int, ...]:
    """The offsets at which the log goes on after a hole."""
    return tuple(start for start, _ in covered(spans)[1:])


@dataclass(frozen=True)
class Intake:
    """What the bronze stage takes of one cluster."""

    cluster_id: str
    ruling: Lineage
    known: tuple[tuple[int, int], ...]
    """Ranges of offsets that bronze has."""
    chunks: Mapping[int, int] = field(default_factory=dict)
    """Chunks with something to do, and the latest time before each (microseconds)."""
    skip: tuple[tuple[int, int], ...] = ()
    """Ranges of offsets that are not to be taken yet."""


def intake(
    cluster_id: str,
    known: Sequence[Span],
    groups: Sequence[Group],
    skip: tuple[tuple[int, int], ...] = (),
) -> Intake:
    """Which chunks hold something new, or something that contradicts the log."""
    ruling = lineage(known, groups)
    ranges = covered(known)
    done = union([*ranges, *skip])
    work: dict[int, int] = {}
    latest: dict[int, int] = {}
    for group in groups:
        start, end = ruling.part(group.epoch, group.first, group.last + 1)
        if start < end:
            latest[group.chunk] = max(latest.get(group.chunk, 0), group.latest)
        fresh = without(done, start, end) if start < end else []
        foreign = (start, end) != (group.first, group.last + 1)
        if fresh or foreign:
            first = fresh[0][0] if fresh else group.first
            work[group.chunk] = min(work.get(group.chunk, first), first)
    return Intake(cluster_id, ruling, tuple(ranges), _prefix_times(work, latest, known), skip)


def _prefix_times(
    work: Mapping[int, int], latest: Mapping[int, int], known: Sequence[Span]
) -> dict[int, int]:
    """For each chunk to work on: the latest time of everything before its first new offset."""
    times, so_far, seen = {}, 0, sorted(latest)
    for chunk in sorted(work):
        while seen and seen[0] < chunk:
            so_far = max(so_far, latest[seen.pop(0)])
        before = [span.last_time for span in known if span.end <= work[chunk]]
        times[chunk] = max([so_far, *before])
    return times


def union(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets as ranges that neither overlap nor touch; ascending."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
