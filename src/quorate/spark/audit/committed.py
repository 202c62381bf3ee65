"""The committed log: where the logs of replicas diverge, and what a majority of voters holds.

No file records the high watermark. Two rules show that an offset is committed:

1. A majority of the voters in force there holds it, and no log of a later epoch replaces it
   (Raft 5.4.2: a leader commits entries of older epochs only together with one of its own).
2. A snapshot covers it: Kafka and Quorate take snapshots of committed records only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Final

from quorate.base.ids import ZERO_UUID, OffsetAndEpoch, ReplicaKey
from quorate.spark.audit.model import ControlRecord, EpochRange, ReplicaFiles

Voters = tuple[ReplicaKey, ...]
_START: Final = attrgetter("start")
_OFFSET: Final = attrgetter("offset")


@dataclass(slots=True)
class ReplicaLog:
    """The log of one replica, as far as it is sound.

    Look-ups are binary searches: a log may hold years of elections.
    """

    replica: ReplicaFiles
    start: int
    end: int
    """Exclusive: the end of the last sound batch."""
    spans: tuple[EpochRange, ...] = ()
    """Ascending."""
    controls: tuple[ControlRecord, ...] = ()
    """By offset, ascending."""
    snapshots: tuple[OffsetAndEpoch, ...] = ()
    """The sound ones."""
    voter_sets: tuple[tuple[int, Voters | None], ...] = ()
    """(offset of the record, voters), ascending; from snapshots and the log. A voter set is in force
    as soon as its record is in the log (KIP-853). None: a later release wrote the record."""

    @property
    def last_epoch(self) -> int | None:
        return self.spans[-1].epoch if self.spans else None

    def epoch_at(self, offset: int) -> int | None:
        """The epoch of the record at this offset; None when the log does not hold it."""
        place = bisect_right(self.spans, offset, key=_START)
        if not place or offset >= self.spans[place - 1].end:
            return None
        return self.spans[place - 1].epoch

    def voters_written(self, end: int) -> Voters | None:
        """The last voter set before `end` (exclusive); None when none was written, or it is unknown."""
        place = bisect_left(self.voter_sets, end, key=itemgetter(0))
        return self.voter_sets[place - 1][1] if place else None

    def hides_voters_at(self, end: int) -> bool:
        """Is the last voter set before `end` (exclusive) one that cannot be read?"""
        place = bisect_left(self.voter_sets, end, key=itemgetter(0))
        return place > 0 and self.voter_sets[place - 1][1] is None

    def voters_at(self, end: int) -> Voters | None:
        """The voters in force when the log ended at `end` (exclusive); None when unknown.

        A static quorum writes no voter set: there the last LeaderChange names the voters. So it does
        behind a voter set that cannot be read.
        """
        place = bisect_left(self.voter_sets, max(end, 1), key=itemgetter(0))
        since, written = self.voter_sets[place - 1] if place else (-1, None)
        if written is not None:
            return written
        for place in range(bisect_left(self.controls, end, key=_OFFSET) - 1, -1, -1):
            if self.controls[place].offset <= since:
                break
            if self.controls[place].leader is not None:
                return tuple(ReplicaKey(voter_id) for voter_id in self.controls[place].voter_ids)
        return None


def divergence_offset(one: ReplicaLog, other: ReplicaLog) -> int | None:
    """The first offset at which the logs have different epochs; None where they have none.

    Raft's log matching property: logs with the same epoch at an offset are equal up to there. So
    comparing epochs is enough. Only offsets that both logs hold are compared.
    """
    low, high = max(one.start, other.start), min(one.end, other.end)
    # epochs change only where a span begins, so only these offsets need a look
    cuts = {low, *(span.start for log in (one, other) for span in log.spans)}
    for offset in sorted(cuts):
        if low <= offset < high and one.epoch_at(offset) != other.epoch_at(offset):
            return offset
    return None


def is_voter(replica: ReplicaFiles, voter: ReplicaKey) -> bool:
    """True when the replica is this voter; an unknown directory id matches any."""
    known = ZERO_UUID not in (voter.directory_id, replica.directory_id or ZERO_UUID)
    return replica.node_id == voter.id and (not known or replica.directory_id == voter.directory_id)


def agreed_end(main: ReplicaLog, other: ReplicaLog) -> int:
    """The offset (exclusive) up to which the other replica holds the same log as `main`."""
    part = divergence_offset(main, other)
    return min(main.end, other.end) if part is None else part


@dataclass(frozen=True, slots=True)
class CommittedLog:
    """The log that holds the committed records, and the offset up to which they are known to be."""

    main: ReplicaLog
    end: int | None
    """Exclusive; None when nothing is known to be committed."""
    voters: Voters | None
    contested_by: tuple[str, ...] = field(default=())
    """Paths of replicas that hold another log with another majority."""

    @property
    def epoch(self) -> int | None:
        return None if not self.end else self.main.epoch_at(self.end - 1)


def majority_end(main: ReplicaLog, logs: Sequence[ReplicaLog]) -> int | None:
    """The largest end (exclusive) up to which a majority of the voters in force there holds `main`.

    None when no majority is among the given logs, or the voters are unknown.
    """
    ends = [(log, agreed_end(main, log)) for log in logs]
    for end in sorted({end for _, end in ends}, reverse=True):
        voters = main.voters_at(end)
        if voters is None:
            continue
        having = sum(
            any(reach >= end and is_voter(log.replica, voter) for log, reach in ends)
            for voter in voters
        )
        if 2 * having > len(voters):
            return end
    return None


def snapshot_end(main: ReplicaLog, logs: Iterable[ReplicaLog]) -> int | None:
    """The end of the newest snapshot of any replica whose id fits `main`; None without one."""
    ends = [
        found.offset
        for log in logs
        for found in log.snapshots
        if found.offset == main.start or main.epoch_at(found.offset - 1) == found.epoch
    ]
    return max(ends, default=None)


def find_committed(logs: Sequence[ReplicaLog]) -> CommittedLog | None:
    """The committed log among these; None when there is none at all.

    1. Of each log, find the end that a majority or a snapshot shows to be committed.
    2. The log whose committed end has the newest epoch is the committed one (`main`); of several
       the one that is known to be committed furthest, then the longest.
    3. Another log that diverges below its own committed end contests it: both have a majority.
    4. A leader of a later epoch may still replace an entry of an old epoch on a majority (Raft,
       figure 8). So where another log diverges with a later epoch, the committed end goes back to
       that offset, but never below a snapshot.
    """
    found = []
    for log in logs:
        ends = [majority_end(log, logs), snapshot_end(log, logs)]
        known = [end for end in ends if end is not None]  # 1
        end = max(known) if known else None
        epoch = -1 if not end else log.epoch_at(end - 1) or -1
        found.append(((epoch, -1 if end is None else end, log.end), log, end))
    if not found:
        return None
    # 2
    _, main, end = max(found, key=lambda one: one[0])
    contested = []
    for _, log, theirs in found:
        part = divergence_offset(main, log)
        if part is None or end is None:
            continue
        if theirs is not None and theirs > part and end > part:  # 3
            contested.append(log.replica.path)
        if (log.epoch_at(part) or 0) > (main.epoch_at(end - 1) or 0):  # 4
            end = min(end, max(part, snapshot_end(main, logs) or 0))
    return CommittedLog(main, end, main.voters_at(end or 0), tuple(contested))
