"""The leader's view of each replica: log end and time of the last Fetch (`LeaderState`).

It decides the high watermark, check quorum, whether an observer has caught up, and what
DescribeQuorum reports.

Check quorum (KIP-595): a leader resigns when no majority of the voters follows it. A leader behind a
partition would otherwise accept writes that cannot commit, and serve old reads without end.

Q1. Three requests count: a valid Fetch (`leading.on_fetch`), FetchSnapshot, because a download may
    outlast the timer, and UpdateRaftVoter, because it takes the place of a Fetch.
Q2. `ProgressTracker.update_check_quorum` collects the voters that sent one. Observers do not count.
    The leader counts itself while it is a voter.
Q3. When a majority is collected, the set is emptied and the timer restarts
    (`transitions.update_check_quorum`).
Q4. The timer takes 1.5 fetch timeouts (`transitions.check_quorum_ms`). The only voter has none.
Q5. A new voter set drops the voters that it does not have from the set (`set_voters`).
Q6. A leader whose own disk makes nothing durable for that time resigns too
    (`leading._disk_deadline`): its followers commit records that it cannot apply.
Q7. At the deadline `leading.poll_leader` resigns. EndQuorumEpoch names the most advanced voters as
    successors, which start pre-votes in that order: E1 of `election`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.base.ids import ReplicaKey
from quorate.raft.values import RaftLimits
from quorate.raft.voters import VoterSet, matches

SWEEP_MS: Final = 1_000
_USUAL: Final = RaftLimits()


@dataclass(slots=True)
class ReplicaProgress:
    """One replica (`LeaderState.ReplicaState`); times are -1 before its first Fetch."""

    key: ReplicaKey
    end_offset: int = -1
    """The replica acknowledged all records before this offset (exclusive); -1 unknown."""
    last_fetch_ms: int = -1
    last_fetch_leader_end: int = -1
    last_caught_up_ms: int = -1
    acknowledged: bool = False
    """It knows that this node leads the epoch."""
    has_voted: bool = False
    """It granted this node its vote in the epoch."""

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        """A valid Fetch at `offset` while the leader's log ended at `leader_end` (both exclusive).

        The replica has caught up at `now_ms` if it fetches the leader's end. If it fetches what was
        the end at its last Fetch, it had caught up then (`ReplicaState.updateFollowerState`):
        under constant load no replica ever fetches the present end.
        """
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.last_fetch_leader_end <= offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.last_fetch_leader_end = leader_end
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = offset
        self.acknowledged = True


class ProgressTracker:
    """The progress of voters by id and of observers by key, the leader's own included.

    A client may fetch under any id and directory id, so the number of observers is bounded; Kafka
    keeps one entry for each for five minutes.
    """

    __slots__ = ("_check_quorum", "_limits", "_swept_ms", "me", "observers", "own", "voters")

    def __init__(self, me: ReplicaKey, voters: VoterSet, limits: RaftLimits = _USUAL) -> None:
        self._limits = limits
        self.me = me
        self.own = ReplicaProgress(me, acknowledged=True)
        self.voters: dict[int, ReplicaProgress] = {}
        self.observers: dict[ReplicaKey, ReplicaProgress] = {me: self.own}
        self._check_quorum: set[int] = set()
        self._swept_ms = -SWEEP_MS
        self.set_voters(voters)

    def find(self, key: ReplicaKey) -> ReplicaProgress | None:
        row = self.voters.get(key.id)
        if row is not None and matches(row.key, key):
            return row
        return self.observers.get(key)

    def row(self, key: ReplicaKey, now_ms: int) -> ReplicaProgress:
        """The entry of this replica. A new observer is added, or gets a temporary entry when full.

        A known observer is never dropped for a new one: it may be about to become a voter.
        """
        row = self.find(key)
        if row is None:
            row = ReplicaProgress(key)
            if self._has_room(now_ms):
                self.observers[key] = row
        return row

    def is_voter(self, row: ReplicaProgress) -> bool:
        return self.voters.get(row.key.id) is row

    def has_voter(self, key: ReplicaKey) -> bool:
        row = self.voters.get(key.id)
        return row is not None and matches(row.key, key)

    def set_voters(self, voters: VoterSet) -> None:
        """A new voter set is in force: entries move between voters and observers.

        None is lost: a new voter keeps the log end that it acknowledged as an observer, and a
        removed voter stays visible in DescribeQuorum.
        """
        old = dict(self.voters)
        rows: dict[int, ReplicaProgress] = {}
        for key in voters.keys:
            row = self.find(key) or self._observer_for(key) or ReplicaProgress(key)
            old.pop(key.id, None) if old.get(key.id) is row else None
            self.observers.pop(key, None)
            if row.key != key:
                self.observers.pop(row.key, None)
                row.key = key
            rows[key.id] = row
        self.voters = rows
        for row in old.values():
            self.observers.setdefault(row.key, row)
        self._check_quorum &= rows.keys()  # Q5

    def _observer_for(self, entry: ReplicaKey) -> ReplicaProgress | None:
        """The row that a voter entry names without its directory id: this node's, if it may be."""
        return self.own if matches(entry, self.me) and self.me in self.observers else None

    def majority_end(self) -> int:
        """The greatest end offset (exclusive) that a majority of the voters holds; -1 unknown.

        Of n log ends sorted descending, element n // 2 is held by n // 2 + 1 voters. A leader that
        removed itself is not among them (KIP-853).
        """
        ends = sorted([row.end_offset for row in self.voters.values()], reverse=True)
        return ends[len(ends) // 2]

    def update_check_quorum(self, key: ReplicaKey) -> bool:
        """A voter fetched. True when a majority has since the last True: restart the timer.

        `LeaderState.updateCheckQuorumForFollowingVoter`. The leader counts itself if it is a voter.
        Observers do not count: they cannot elect another leader.
        """
        # Q2.
        row = self.voters.get(key.id)
        if row is not None and row is not self.own and matches(row.key, key):
            self._check_quorum.add(key.id)
        needed = len(self.voters) // 2 + 1
        if self.is_voter(self.own):
            needed -= 1
        if len(self._check_quorum) < needed:
            return False
        # Q3. Emptied, so that one majority restarts the timer once: each voter must fetch anew.
        self._check_quorum.clear()
        return True

    def silent(self, since_ms: int, now_ms: int) -> list[ReplicaKey]:
        """Remote voters whose last Fetch is `since_ms` or longer ago, or that never fetched; by id."""
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
        """May this observer become a voter: has it caught up once, and fetched within the last hour?

        KIP-853: the leader waits for the new voter's fetch offset to catch up with its log end
        (`LeaderState.isReplicaCaughtUp`).
        """
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
