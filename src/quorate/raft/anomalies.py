"""Rate-limited warnings, and signs that two nodes run as one voter.

Nothing here changes what the replica does. Kafka accepts every request that is counted here, and so
does this leader: each sign also occurs once or twice with a correct voter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.base.ids import ReplicaKey
from quorate.raft.values import Voter
from quorate.raft.voters import same_voter

REPORT_INTERVAL_MS: Final = 60_000
"""A warning is reported once in this time; regressions further apart have separate causes."""
REGRESSIONS: Final = 3
"""This many within REPORT_INTERVAL_MS: more than one restored copy and one reordered Fetch cause."""
RETURNS: Final = 2
"""A node reads its listeners when it starts. One return to the previous listeners can be two
restarts; two returns in a row are two nodes."""
RETURN_FETCH_TIMEOUTS: Final = 5
"""A return counts within this many fetch timeouts; a voter reports itself once in each
(`KafkaRaftClient.pollFollowerAsVoter`)."""
_MAX_REPORTS: Final = 1_000

LOST_RECORDS: Final = (
    "unless this Fetch was overtaken on its way, an older copy of its directory was restored. It "
    "has forgotten records that count as held by it, and perhaps votes: replace its directory "
    "(docs/recovery.md)"
)


def duplicate_replica(key: ReplicaKey, sign: str) -> str:
    """The warning for a voter that seems to be two nodes; `sign` is what the leader observed."""
    return (
        f"two nodes seem to run on copies of the directory of {key}: {sign}. What one of them "
        "acknowledges counts, and the other does not hold it: what is committed may be on fewer "
        "disks than a majority. Stop one of them, remove the voter and add it again with a new "
        "directory (docs/recovery.md)"
    )


@dataclass(slots=True)
class _ListenerChange:
    """The last change of a voter's listeners."""

    left: Voter
    at_ms: int
    returns: int
    """How many changes in a row, this one included, restored the listeners before the last one."""


class Anomalies:
    """What was reported lately, and the signs of each voter, by node id."""

    __slots__ = ("_listener_changes", "_regressions", "_reported_ms", "duplicate_signs")

    def __init__(self) -> None:
        self.duplicate_signs = 0
        """Since the process started; a metric."""
        self._reported_ms: dict[str, int] = {}
        """When each text was last reported, the oldest first. A peer may choose the texts, so their
        number is bounded."""
        self._regressions: dict[int, list[int]] = {}
        """Times of the newest REGRESSIONS, ascending."""
        self._listener_changes: dict[int, _ListenerChange] = {}

    def should_report(self, what: str, now_ms: int) -> bool:
        """Was `what` not reported within the last REPORT_INTERVAL_MS? Marks it as reported now."""
        last = self._reported_ms.get(what)
        if last is not None and now_ms - last < REPORT_INTERVAL_MS:
            return False
        if last is not None:
            del self._reported_ms[what]
        elif len(self._reported_ms) >= _MAX_REPORTS:
            del self._reported_ms[next(iter(self._reported_ms))]
        self._reported_ms[what] = now_ms
        return True

    def record_regression(self, node_id: int, now_ms: int) -> bool:
        """A voter fetches below what it acknowledged in this epoch. True: probably two nodes."""
        self.duplicate_signs += 1
        times = [*self._regressions.get(node_id, ()), now_ms][-REGRESSIONS:]
        self._regressions[node_id] = times
        return len(times) == REGRESSIONS and now_ms - times[0] < REPORT_INTERVAL_MS

    def record_listener_change(
        self, before: Voter, after: Voter, fetch_timeout_ms: int, now_ms: int
    ) -> bool:
        """A voter reports other listeners. True: probably two nodes.

        It is true when the listeners alternate: each change soon restores those before the last.
        """
        if frozenset(before.listeners) == frozenset(after.listeners):
            return False
        last = self._listener_changes.get(after.key.id)
        returns = 0
        if last is not None and same_voter(last.left, after):
            soon = now_ms - last.at_ms <= RETURN_FETCH_TIMEOUTS * fetch_timeout_ms
            returns = last.returns + 1 if soon else 0
        self._listener_changes[after.key.id] = _ListenerChange(before, now_ms, returns)
        if returns < RETURNS:
            return False
        self.duplicate_signs += 1
        return True
