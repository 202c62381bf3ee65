"""Which records of many replicas are the committed log: decided by epochs, as in Raft.

The spans of a replica say which epoch wrote which offsets. The rules:

- A leader of the latest epoch has every committed record (Raft, leader completeness). So the
  replica with the latest epoch takes precedence, and among those the longest log.
- Where another replica has an offset from another epoch, it has a tail that was never committed.
- Two logs with the same epoch at an offset are equal up to there (Raft, log matching).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

CHUNK: Final = 1 << 17
"""Offsets that one task of the bronze stage works on together."""


def chunk_of(offset: str) -> str:
    """The SQL expression for the chunk of an offset; `offset` is an SQL expression."""
    return f"{offset} div {CHUNK}"


class EpochGroup(NamedTuple):
    """The valid records of one replica, of one epoch, in one chunk."""

    replica: str
    epoch: int
    chunk: int
    first: int
    last: int
    """Inclusive."""
    latest: int
    """The greatest timestamp, microseconds."""
    node: int = -1


class EpochSpan(NamedTuple):
    """Offsets [start, end) of one epoch without a gap; times are microseconds."""

    epoch: int
    start: int
    end: int
    first_time: int = 0
    last_time: int = 0
    first_crc: int | None = None
    """Of the batch with the first record; None where it is not known, also for the last one."""
    last_crc: int | None = None


@dataclass(frozen=True)
class Lineage:
    """The committed log of a cluster, as far as the replicas show it."""

    spans: tuple[EpochSpan, ...]
    """Ascending by offset and by epoch; one span per epoch, with its outer bounds."""

    def has(self, epoch: int, offset: int) -> bool:
        """Whether the record of this epoch at this offset is in the log."""
        return any(s.epoch == epoch and s.start <= offset < s.end for s in self.spans)

    def part(self, epoch: int, start: int, end: int) -> tuple[int, int]:
        """The part of [start, end) of an epoch that is in the log; empty when start >= end."""
        for span in self.spans:
            if span.epoch == epoch:
                return max(start, span.start), min(end, span.end)
        return start, start

    def epoch_at(self, offset: int) -> int | None:
        """The epoch that wrote an offset; None: not known."""
        return next((s.epoch for s in self.spans if s.start <= offset < s.end), None)


def committed_lineage(known: Sequence[EpochSpan], groups: Iterable[EpochGroup]) -> Lineage:
    """The committed log, from the spans known before and the logs of replicas.

    The logs are added in the order of precedence. Parts of the known log before and after a gap
    may come from different replicas, so each part ranks by itself.
    """
    logs = replica_logs(groups)
    for number, piece in enumerate(_pieces(known)):
        logs[f"{_KNOWN}{number}"] = _outer(piece)
    ranked = sorted(logs.items(), key=lambda item: (*_rank(item[1]), item[0]))
    lineage = _LineageBuilder()
    for name, spans in ranked:
        lineage.add(sorted(spans.values()), not name.startswith(_KNOWN))
    return Lineage(tuple(lineage.spans[epoch] for epoch in lineage.epochs))


_KNOWN: Final = " "
"""Prefix of the names of known parts; names of replicas begin with a slash. It sorts first, so what
is known takes precedence over an equal replica."""


class _LineageBuilder:
    """Builds a lineage from logs in the order of precedence; its spans ascend without overlap."""

    def __init__(self) -> None:
        self.spans: dict[int, EpochSpan] = {}
        self.epochs: list[int] = []
        """The epochs of the spans, ascending."""

    def add(self, log: Sequence[EpochSpan], is_one_log: bool) -> None:
        """Add a log of lower precedence, without what contradicts those before it.

        1. Find the last span that the log shares with the lineage (`met`). What a replica has
           before a shared record is in the lineage too (log matching): it is added, and later
           epochs of the lineage begin only behind it. A known part is put together from several
           replicas (`is_one_log` false), so there this holds only within an epoch.
        2. Behind the last shared span, an epoch that the lineage lacks is refuted where the lineage
           has its first offset from an older epoch. From there on a replica's log has diverged.
        3. Other spans are added up to where a later epoch of the lineage begins.
        """
        meets = [n for n, span in enumerate(log) if is_one_log and self._overlaps(span)]
        met = meets[-1] if meets else -1
        for number, span in enumerate(log):
            if number > met and span.epoch not in self.spans and self._is_refuted(span):
                if is_one_log:
                    break  # the log has diverged here
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

    def _older(self, epoch: int) -> EpochSpan | None:
        """The last span of an earlier epoch."""
        place = bisect_left(self.epochs, epoch)
        return self.spans[self.epochs[place - 1]] if place else None

    def _later(self, epoch: int) -> EpochSpan | None:
        place = bisect_right(self.epochs, epoch)
        return self.spans[self.epochs[place]] if place < len(self.epochs) else None

    def _overlaps(self, span: EpochSpan) -> bool:
        other = self.spans.get(span.epoch)
        return other is not None and other.start < span.end and span.start < other.end

    def _is_refuted(self, span: EpochSpan) -> bool:
        """Whether the lineage has the first of these offsets from an older epoch."""
        older = self._older(span.epoch)
        return older is not None and older.end > span.start

    def _begin_later_at(self, offset: int, epoch: int) -> None:
        while (one := self._later(epoch)) is not None and one.start < offset:
            self._keep(one._replace(start=offset))

    def _end_older_at(self, offset: int, epoch: int) -> None:
        while (one := self._older(epoch)) is not None and one.end > offset:
            self._keep(one._replace(end=offset))

    def _keep(self, span: EpochSpan) -> None:
        if span.start < span.end:
            self.spans[span.epoch] = span
        else:
            del self.spans[span.epoch]
            self.epochs.remove(span.epoch)


def _pieces(spans: Iterable[EpochSpan]) -> list[list[EpochSpan]]:
    """The spans of each part of the log without a gap."""
    pieces: list[list[EpochSpan]] = []
    for span in sorted(spans, key=lambda s: s.start):
        if pieces and pieces[-1][-1].end == span.start:
            pieces[-1].append(span)
        else:
            pieces.append([span])
    return pieces


def replica_logs(groups: Iterable[EpochGroup]) -> dict[str, dict[int, EpochSpan]]:
    """Return, by replica, a span with the outer bounds of each epoch."""
    logs: dict[str, dict[int, EpochSpan]] = {}
    for group in groups:
        spans = logs.setdefault("/" + group.replica, {})
        _widen(spans, EpochSpan(group.epoch, group.first, group.last + 1))
    return logs


def _rank(spans: Mapping[int, EpochSpan]) -> tuple[int, int]:
    last = spans[max(spans)]
    return -last.epoch, -last.end


def _outer(spans: Iterable[EpochSpan]) -> dict[int, EpochSpan]:
    found: dict[int, EpochSpan] = {}
    for span in spans:
        _widen(found, EpochSpan(span.epoch, span.start, span.end))
    return found


def _widen(spans: dict[int, EpochSpan], span: EpochSpan) -> None:
    known = spans.get(span.epoch, span)
    spans[span.epoch] = EpochSpan(
        span.epoch, min(known.start, span.start), max(known.end, span.end)
    )


def superseded_range(known: Iterable[EpochSpan], lineage: Lineage) -> tuple[int, int] | None:
    """The range [start, end) of known offsets that are not in the lineage; None: all are."""
    wrong = [piece for span in known for piece in missing_from(span, lineage)]
    return (min(wrong)[0], max(end for _, end in wrong)) if wrong else None


def missing_from(span: EpochSpan, lineage: Lineage) -> list[tuple[int, int]]:
    """The parts of a span that are not in the lineage."""
    start, end = lineage.part(span.epoch, span.start, span.end)
    return uncovered([(start, end)] if start < end else [], span.start, span.end)


def uncovered(ranges: Iterable[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """The parts of [start, end) that lie in none of the ranges."""
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
    """The parts of [start, end) that lie in one of the ranges."""
    parts = ((max(low, start), min(high, end)) for low, high in sorted(ranges))
    return [(low, high) for low, high in parts if low < high]


def join_spans(spans: Iterable[EpochSpan]) -> list[EpochSpan]:
    """The spans in ascending order, with neighbours of one epoch joined.

    Neighbours between which time goes back stay apart (they were ingested out of order), because
    `least_times` must see that.
    """
    joined: list[EpochSpan] = []
    for span in sorted(spans, key=lambda s: s.start):
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.epoch, last.end) == (span.epoch, span.start)
            and last.last_time <= span.first_time
        ):
            joined[-1] = last._replace(
                end=span.end, last_time=span.last_time, last_crc=span.last_crc
            )
        else:
            joined.append(span)
    return joined


def covered(spans: Iterable[EpochSpan]) -> list[tuple[int, int]]:
    """The offsets of the spans as ranges [start, end) that do not touch."""
    ranges: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda s: s.start):
        if ranges and ranges[-1][1] == span.start:
            ranges[-1] = (ranges[-1][0], span.end)
        else:
            ranges.append((span.start, span.end))
    return ranges


def least_times(spans: Iterable[EpochSpan]) -> list[tuple[int, int, int]]:
    """(start, end, time) of ranges whose time is behind that of the log before them.

    That happens when the clock of a leader is behind that of its predecessor, and the part of the
    predecessor was ingested later.
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


def offsets_after_gaps(spans: Iterable[EpochSpan]) -> tuple[int, ...]:
    """The offsets at which the log continues after a gap."""
    return tuple(start for start, _ in covered(spans)[1:])


@dataclass(frozen=True)
class Intake:
    """What the bronze stage should take of one cluster."""

    cluster_id: str
    lineage: Lineage
    known: tuple[tuple[int, int], ...]
    """The ranges of offsets that bronze has."""
    chunks: Mapping[int, int] = field(default_factory=dict)
    """The chunks to work on, and the latest time before each (microseconds)."""
    skip: tuple[tuple[int, int], ...] = ()
    """The ranges of offsets to leave out for now."""


def plan_intake(
    cluster_id: str,
    known: Sequence[EpochSpan],
    groups: Sequence[EpochGroup],
    skip: tuple[tuple[int, int], ...] = (),
) -> Intake:
    """The intake: chunks with new offsets, or with records that contradict the lineage."""
    lineage = committed_lineage(known, groups)
    ranges = covered(known)
    done = union([*ranges, *skip])
    work: dict[int, int] = {}
    latest: dict[int, int] = {}
    for group in groups:
        start, end = lineage.part(group.epoch, group.first, group.last + 1)
        if start < end:
            latest[group.chunk] = max(latest.get(group.chunk, 0), group.latest)
        fresh = uncovered(done, start, end) if start < end else []
        foreign = (start, end) != (group.first, group.last + 1)
        if fresh or foreign:
            first = fresh[0][0] if fresh else group.first
            work[group.chunk] = min(work.get(group.chunk, first), first)
    return Intake(cluster_id, lineage, tuple(ranges), _prefix_times(work, latest, known), skip)


def _prefix_times(
    work: Mapping[int, int], latest: Mapping[int, int], known: Sequence[EpochSpan]
) -> dict[int, int]:
    """Return, for each chunk to work on, the latest time of all records before its first new offset."""
    times, so_far, seen = {}, 0, sorted(latest)
    for chunk in sorted(work):
        while seen and seen[0] < chunk:
            so_far = max(so_far, latest[seen.pop(0)])
        before = [span.last_time for span in known if span.end <= work[chunk]]
        times[chunk] = max([so_far, *before])
    return times


def union(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets as ascending ranges that neither overlap nor touch."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
