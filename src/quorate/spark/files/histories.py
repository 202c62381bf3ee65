"""Which logs under one cluster id have a common history: the id alone does not prove it.

Ids are copied from tutorials, compose files and images, and a cluster may be formatted anew under
its old id. What proves a common history, and what refutes it:

- Replicas hold equal batches at equal offsets (Raft, log matching), and no two clusters write the
  same first batch: its checksum covers the time. So the first batch that two logs can both have
  decides: equal batches mean one history, whatever follows; two batches of one epoch mean two.
- Where that batch has different epochs, one log may have a tail that was never committed. At offset
  0 nothing is common, so the logs have two histories, unless both are of voters of one quorum.
- A log that begins above offset 0 has everything before it committed (KIP-630), as has a snapshot.
  A log with a record of a later epoch before that offset has another history.
- Directory ids join logs that nothing else decides: two copies of one directory, a voter that a
  snapshot names.

Where none of the logs under an id refutes another, the id counts. Where it is proven to be shared, a
log that nothing decides has a history of its own, and is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from itertools import combinations
from typing import Final, NamedTuple

from quorate.base.ids import ZERO_UUID, OffsetAndEpoch, Uuid

_SUFFIX: Final = re.compile(
    r"@((\d{4}-\d{2}-\d{2}-[0-9a-f]{8})(-from-\d+)?|snapshot-\d+-\d+|undecided)$"
)


class BatchMark(NamedTuple):
    """What identifies a batch of a log."""

    offset: int
    epoch: int
    crc: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """What one log shows about its history; batches are read when they are needed."""

    path: str
    start: int | None
    """First offset, by the name of the first segment; None where there is no segment."""
    marks_from: Callable[[int], Sequence[BatchMark]]
    """Some batches from the one that holds this offset on; empty when the log ends before."""
    segments: Callable[[], Sequence[BatchMark]] = tuple
    """The first batch of each segment, ascending, where it can be read."""
    snapshots: tuple[OffsetAndEpoch, ...] = ()
    """Ascending."""
    directory_id: Uuid | None = None
    voters: Callable[[], frozenset[Uuid]] = frozenset
    """The directory ids that its snapshots name as voters."""

    @property
    def first(self) -> BatchMark | None:
        """The first batch that can be read."""
        found = () if self.start is None else self.marks_from(self.start)
        return found[0] if found else None


class Relation(Enum):
    """What two logs prove about their histories."""

    SAME = auto()
    DIFFERENT = auto()
    UNKNOWN = auto()


def relation(one: LogEvidence, other: LogEvidence) -> Relation:
    """Whether two logs have a common history; see the rules above."""
    if one.start is not None and other.start is not None:
        at = max(one.start, other.start)
        pair = _first_common(one.marks_from(at), other.marks_from(at))
        if pair is not None:
            ours, theirs = pair
            if (ours.offset, ours.crc) == (theirs.offset, theirs.crc):
                return Relation.SAME
            if ours.epoch == theirs.epoch:
                return Relation.DIFFERENT
            if at == 0:
                return Relation.SAME if _are_two_voters(one, other) else Relation.DIFFERENT
    if _are_linked(one, other):
        return Relation.SAME
    if _contradicts(one, other) or _contradicts(other, one):
        return Relation.DIFFERENT
    return Relation.UNKNOWN


def _first_common(
    one: Sequence[BatchMark], other: Sequence[BatchMark]
) -> tuple[BatchMark, BatchMark] | None:
    """The batches at the first offset that both have; without one, the first of each."""
    if not (one and other):
        return None
    theirs = {mark.offset: mark for mark in other}
    pairs = ((mark, theirs[mark.offset]) for mark in one if mark.offset in theirs)
    return next(pairs, (one[0], other[0]))


def _are_two_voters(one: LogEvidence, other: LogEvidence) -> bool:
    """Whether a snapshot of one names the other, and they are two directories.

    An image may hold a formatted directory: each cluster made of it has that directory id.
    """
    ours, theirs = _directory(one), _directory(other)
    named_ = bool(ours & other.voters() or theirs & one.voters())
    return named_ and bool(ours and theirs) and ours != theirs


def _are_linked(one: LogEvidence, other: LogEvidence) -> bool:
    """Whether directory ids show that two logs are of one quorum."""
    ours, theirs = _directory(one), _directory(other)
    return bool(ours & theirs) or bool((ours | one.voters()) & (theirs | other.voters()))


def _directory(log: LogEvidence) -> frozenset[Uuid]:
    known = log.directory_id
    return frozenset() if known is None or known == ZERO_UUID else frozenset((known,))


def _contradicts(log: LogEvidence, other: LogEvidence) -> bool:
    """Whether `log` has a record before an offset up to which `other` is committed, of a later
    epoch than the committed records there can have."""
    committed = list(other.snapshots)
    if other.start and other.first is not None:
        committed.append(OffsetAndEpoch(other.start, other.first.epoch))
    if not committed:
        return False
    before = (log.marks_from(max(end.offset - 1, 0))[:1] for end in committed)
    marks = [*log.segments(), *(mark for found in before for mark in found)]
    records = [(mark.offset, mark.epoch) for mark in marks]
    records += [(snapshot.offset - 1, snapshot.epoch) for snapshot in log.snapshots]
    return any(
        offset < end.offset and epoch > end.epoch for end in committed for offset, epoch in records
    )


@dataclass(slots=True)
class History:
    """Logs of one history."""

    logs: list[LogEvidence] = field(default_factory=list)
    undecided: bool = False
    """Whether it may be that of other logs under its id, of which nothing decides."""

    @property
    def origin(self) -> str:
        """What identifies the history, of its own facts: the suffix of its name."""
        firsts = [mark for log in self.logs if (mark := log.first) is not None]
        if firsts:
            return origin_of(min(firsts))
        ends = [end for log in self.logs for end in log.snapshots]
        return f"snapshot-{min(ends).offset}-{min(ends).epoch}" if ends else "undecided"


def origin_of(first: BatchMark) -> str:
    """The day and the checksum of the first known batch of a history, and where that is not 0 its
    offset."""
    day = datetime.fromtimestamp(_plausible(first.time_ms) / 1000, UTC).strftime("%Y-%m-%d")
    later = f"-from-{first.offset}" if first.offset else ""
    return f"{day}-{first.crc:08x}{later}"


def _plausible(time_ms: int) -> int:
    """The time, within the years that `datetime` has."""
    return min(max(time_ms, 0), 253_402_300_799_000)


def named(cluster_id: str, origin: str) -> str:
    """The name of one of several histories under a cluster id."""
    return f"{cluster_id}@{origin}"


def split_name(name: str) -> tuple[str, str | None]:
    """(cluster id, origin) of a name; the origin is None where the name is the id alone."""
    found = _SUFFIX.search(name)
    return (name, None) if found is None else (name[: found.start()], found[1])


def histories(logs: Iterable[LogEvidence]) -> list[History]:
    """The histories of logs under one cluster id, ordered by their beginning."""
    found: list[History] = []
    apart: set[tuple[str, str]] = set()
    """(path, path) of logs of different histories."""
    for log in sorted(logs, key=lambda log: (log.start is None, log.start or 0, log.path)):
        same = [history for history in found if _joins(log, history, apart)]
        found = [history for history in found if history not in same]
        found.append(History([*(one for history in same for one in history.logs), log]))
    if not any(_noted_apart(one, other, apart) for one, other in combinations(found, 2)):
        return [History([log for history in found for log in history.logs])] if found else []
    for history in found:
        others = (one for one in found if one is not history)
        begins_at_0 = any(log.start == 0 and log.first is not None for log in history.logs)
        history.undecided = not begins_at_0 and not all(
            _noted_apart(history, other, apart) for other in others
        )
    return sorted(found, key=lambda history: history.origin)


def _joins(log: LogEvidence, history: History, apart: set[tuple[str, str]]) -> bool:
    """Whether a log has this history; notes the logs whose history is another one."""
    for other in history.logs:
        found = relation(log, other)
        if found is Relation.SAME:
            return True
        if found is Relation.DIFFERENT:
            apart |= {(log.path, other.path), (other.path, log.path)}
    return False


def _noted_apart(one: History, other: History, apart: set[tuple[str, str]]) -> bool:
    return any((a.path, b.path) in apart for a in one.logs for b in other.logs)


def are_apart(one: History, other: History) -> bool:
    """Whether two histories are proven to be different."""
    return any(
        relation(ours, theirs) is Relation.DIFFERENT for ours in one.logs for theirs in other.logs
    )
