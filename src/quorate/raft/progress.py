"""The leader's book: how far each replica is, and when it was last heard (`LeaderState`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.base.ids import ReplicaKey
from quorate.raft.values import Limits
from quorate.raft.voters import VoterSet, matches

SWEEP_MS: Final = 1_000
_USUAL: Final = Limits()


@dataclass(slots=True)
class Row:
    """One replica; times are -1 while it was never heard."""

    key: ReplicaKey
    end_offset: int = -1
    """Held for sure up to here (exclusive); -1 unknown."""
    last_fetch_ms: int = -1
    last_fetch_leader_end: int = -1
    last_caught_up_ms: int = -1
    acknowledged: bool = False
    """It knows that this node leads the epoch."""

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        """A valid Fetch at `offset` while the leader's log ended at `leader_end`."""
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.last_fetch_leader_end <= offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.last_fetch_leader_end = leader_end
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = offset
        self.acknowledged = True


class Progress:
    """Rows of voters by id and of observers by key; the leader's own row is among them.

    Anybody may fetch under any directory id: Kafka keeps a row of each for five minutes.
    """

    __slots__ = ("_check_quorum", "_limits", "_swept_ms", "me", "observers", "own", "voters")

    def __init__(self, me: ReplicaKey, voters: VoterSet, limits: Limits = _USUAL) -> None:
        self._limits = limits
        self.me = me
        self.own = Row(me, acknowledged=True)
        self.voters: dict[int, Row] = {}
        self.observers: dict[ReplicaKey, Row] = {me: self.own}
        self._check_quorum: set[int] = set()
        self._swept_ms = -SWEEP_MS
        self.set_voters(voters)

    def find(self, key: ReplicaKey) -> Row | None:
        row = self.voters.get(key.id)
        if row is not None and matches(row.key, key):
            return row
        return self.observers.get(key)

    def row(self, key: ReplicaKey, now_ms: int) -> Row:
        """The row of this replica; a new observer gets one, a passing one when there are too many.

        Those that are kept are never thrown out for new ones.
        """
        row = self.find(key)
        if row is None:
            row = Row(key)
            if self._has_room(now_ms):
                self.observers[key] = row
        return row

    def is_voter(self, row: Row) -> bool:
        return self.voters.get(row.key.id) is row

    def has_voter(self, key: ReplicaKey) -> bool:
        row = self.voters.get(key.id)
        return row is not None and matches(row.key, key)

    def set_voters(self, voters: VoterSet) -> None:
        """A new voter set rules: rows move between voters and observers, none is lost."""
        old = dict(self.voters)
        rows: dict[int, Row] = {}
        for key in voters.keys:
            row = self.find(key) or self._observer_for(key) or Row(key)
            old.pop(key.id, None) if old.get(key.id) is row else None
            self.observers.pop(key, None)
            if row.key != key:
                self.observers.pop(row.key, None)
                row.key = key
            rows[key.id] = row
        self.voters = rows
        for row in old.values():
            self.observers.setdefault(row.key, row)
        self._check_quorum &= rows.keys()

    def _observer_for(self, entry: ReplicaKey) -> Row | None:
        """The row that a voter entry names without its directory id: this node's, if it may be."""
        return self.own if matches(entry, self.me) and self.me in self.observers else None

    def majority_end(self) -> int:
        """The greatest offset that a majority of the voters holds; -1 while unknown.

        Ends sorted descending, element n // 2: the leader counts only where it is a voter.
        """
        ends = sorted([row.end_offset for row in self.voters.values()], reverse=True)
        return ends[len(ends) // 2]

    def heard_majority(self, key: ReplicaKey) -> bool:
        """A voter fetched. True when, since the last True, enough have (KIP-595 check quorum)."""
        row = self.voters.get(key.id)
        if row is not None and row is not self.own and matches(row.key, key):
            self._check_quorum.add(key.id)
        needed = len(self.voters) // 2 + 1
        if self.is_voter(self.own):
            needed -= 1
        if len(self._check_quorum) < needed:
            return False
        self._check_quorum.clear()
        return True

    def silent(self, since_ms: int, now_ms: int) -> list[ReplicaKey]:
        """Remote voters that have not fetched within the last `since_ms`, by id."""
        return [
            row.key
            for _, row in sorted(self.voters.items())
            if row is not self.own
            and (row.last_fetch_ms < 0 or now_ms - row.last_fetch_ms >= since_ms)
        ]

    def by_descending_end(self) -> tuple[ReplicaKey, ...]:
        """Remote voters, the most advanced first."""
        rows = [row for row in self.voters.values() if row is not self.own]
        rows.sort(key=lambda row: (-row.end_offset, row.key))
        return tuple(row.key for row in rows)

    def is_caught_up(self, key: ReplicaKey, now_ms: int) -> bool:
        """Has this observer caught up at least once, and fetched lately?"""
        row = self.observers.get(key)
        return (
            row is not None
            and row.last_caught_up_ms >= 0
            and row.last_fetch_ms >= 0
            and row.last_fetch_ms > now_ms - self._limits.caught_up_within_ms
        )

    def drop_silent_observers(self, now_ms: int) -> None:
        """Forget observers whose session is over."""
        session = self._limits.observer_session_ms
        gone = [
            key
            for key, row in self.observers.items()
            if row is not self.own and now_ms - row.last_fetch_ms >= session
        ]
        for key in gone:
            del self.observers[key]

    def _has_room(self, now_ms: int) -> bool:
        most = self._limits.max_observers
        if len(self.observers) >= most and now_ms - self._swept_ms >= SWEEP_MS:
            self._swept_ms = now_ms
            self.drop_silent_observers(now_ms)
        return len(self.observers) < most
