"""What is committed: where the logs of replicas part, and what a majority of the voters holds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Final

from quorate.base.ids import ZERO_UUID, OffsetAndEpoch, ReplicaKey
from quorate.spark.audit.model import Control, Replica, Span

Voters = tuple[ReplicaKey, ...]
_START: Final = attrgetter("start")
_OFFSET: Final = attrgetter("offset")


@dataclass(slots=True)
class Chain:
    """The log of one replica, as far as it is sound.

    Years of elections are in it, so what is asked about an offset is looked up, not searched for.
    """

    replica: Replica
    start: int
    end: int
    """Exclusive: of the last sound batch."""
    spans: tuple[Span, ...] = ()
    """Ascending."""
    controls: tuple[Control, ...] = ()
    """By offset, ascending."""
    snapshots: tuple[OffsetAndEpoch, ...] = ()
    """Those that are sound."""
    voter_sets: tuple[tuple[int, Voters], ...] = ()
    """(offset from which on it is in force, voters), ascending; from snapshots and the log."""

    @property
    def last_epoch(self) -> int | None:
        return self.spans[-1].epoch if self.spans else None

    def epoch_at(self, offset: int) -> int | None:
        """Of the record at this offset; None when the log has not got it."""
        place = bisect_right(self.spans, offset, key=_START)
        if not place or offset >= self.spans[place - 1].end:
            return None
        return self.spans[place - 1].epoch

    def voters_written(self, end: int) -> Voters | None:
        """The last voter set before `end`; None: none was written."""
        place = bisect_left(self.voter_sets, end, key=itemgetter(0))
        return self.voter_sets[place - 1][1] if place else None

    def voters_at(self, end: int) -> Voters | None:
        """The voters in force when everything before `end` was in the log; None: not known.

        Where no voter set was ever written (a static quorum), those whom the last election names.
        """
        written = self.voters_written(max(end, 1))
        if written is not None:
            return written
        for place in range(bisect_left(self.controls, end, key=_OFFSET) - 1, -1, -1):
            if self.controls[place].leader is not None:
                return tuple(ReplicaKey(voter_id) for voter_id in self.controls[place].voter_ids)
        return None


def parting(one: Chain, other: Chain) -> int | None:
    """The first offset at which the logs have different epochs; None while they agree.

    Raft: logs with the same epoch at an offset are equal up to there. So the epochs tell where
    they part. Only offsets that both hold are looked at.
    """
    low, high = max(one.start, other.start), min(one.end, other.end)
    cuts = {low, *(span.start for chain in (one, other) for span in chain.spans)}
    for offset in sorted(cuts):
        if low <= offset < high and one.epoch_at(offset) != other.epoch_at(offset):
            return offset
    return None


def is_voter(replica: Replica, voter: ReplicaKey) -> bool:
    """True when the replica is this voter; a directory id that is not known fits any."""
    known = ZERO_UUID not in (voter.directory_id, replica.directory_id or ZERO_UUID)
    return replica.node_id == voter.id and (not known or replica.directory_id == voter.directory_id)


def held(main: Chain, other: Chain) -> int:
    """Up to which offset (exclusive) of `main` the other replica is known to hold the same."""
    part = parting(main, other)
    return min(main.end, other.end) if part is None else part


@dataclass(frozen=True, slots=True)
class Committed:
    """The log that holds what is committed, and how far that is known."""

    main: Chain
    end: int | None
    """Exclusive; None when it is not known of anything."""
    voters: Voters | None
    contested_by: tuple[str, ...] = field(default=())
    """Replicas that hold another log with another majority."""

    @property
    def epoch(self) -> int | None:
        return None if not self.end else self.main.epoch_at(self.end - 1)


def majority_end(main: Chain, chains: Sequence[Chain]) -> int | None:
    """Up to where a majority of the voters in force there holds `main`; None when not known."""
    ends = [(chain, held(main, chain)) for chain in chains]
    for end in sorted({end for _, end in ends}, reverse=True):
        voters = main.voters_at(end)
        if voters is None:
            continue
        having = sum(
            any(reach >= end and is_voter(chain.replica, voter) for chain, reach in ends)
            for voter in voters
        )
        if 2 * having > len(voters):
            return end
    return None


def snapshot_end(main: Chain, chains: Iterable[Chain]) -> int | None:
    """The end of the newest snapshot that lies on `main`: snapshots hold what is committed."""
    ends = [
        found.offset
        for chain in chains
        for found in chain.snapshots
        if found.offset == main.start or main.epoch_at(found.offset - 1) == found.epoch
    ]
    return max(ends, default=None)


def committed(chains: Sequence[Chain]) -> Committed | None:
    """What is known to be committed; None when there is no log at all.

    An entry of an old epoch on a majority may still be replaced by a leader of a later one (Raft,
    5.4.2), so where another log parts with a later epoch nothing behind is taken as committed, but
    for what a snapshot holds.
    """
    found = []
    for chain in chains:
        ends = [majority_end(chain, chains), snapshot_end(chain, chains)]
        known = [end for end in ends if end is not None]
        end = max(known) if known else None
        epoch = -1 if not end else chain.epoch_at(end - 1) or -1
        found.append(((epoch, -1 if end is None else end, chain.end), chain, end))
    if not found:
        return None
    _, main, end = max(found, key=lambda one: one[0])
    contested = []
    for _, chain, theirs in found:
        part = parting(main, chain)
        if part is None or end is None:
            continue
        if theirs is not None and theirs > part and end > part:
            contested.append(chain.replica.path)
        if (chain.epoch_at(part) or 0) > (main.epoch_at(end - 1) or 0):
            end = min(end, max(part, snapshot_end(main, chains) or 0))
    return Committed(main, end, main.voters_at(end or 0), tuple(contested))
