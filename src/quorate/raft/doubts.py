"""What an operator should hear of once and not without end, and signs that a voter is not one node
with one disk.

Nothing here decides anything. Kafka takes what these signs show, and so does this leader: each of
them can be seen of a sound voter, too, if only once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.base.ids import ReplicaKey
from quorate.raft.values import Voter
from quorate.raft.voters import same_voter

PERIOD_MS: Final = 60_000
"""A thing is said once in so long; falls that are further apart have one reason each."""
FALLS: Final = 3
"""So many within a period are more than a restored copy and a Fetch that was overtaken."""
RETURNS: Final = 2
"""A node reads its addresses when it starts: one that goes back once was perhaps restarted twice,
one that does it twice in a row was not."""
SOON: Final = 5
"""Fetch timeouts; a node reports itself once in each."""
_MOST_SAID: Final = 1_000

FORGOT: Final = (
    "unless this Fetch was overtaken on its way, an older copy of its directory was restored. It "
    "has forgotten records that count as held by it, and perhaps votes: replace its directory "
    "(docs/recovery.md)"
)


def copies(key: ReplicaKey, sign: str) -> str:
    """What to tell of a voter that seems to be two."""
    return (
        f"two nodes seem to run on copies of the directory of {key}: {sign}. What one of them "
        "acknowledges counts, and the other does not hold it: what is committed may be on fewer "
        "disks than a majority. Stop one of them, remove the voter and add it again with a new "
        "directory (docs/recovery.md)"
    )


@dataclass(slots=True)
class _Move:
    """The last change of a voter's listeners."""

    left: Voter
    at_ms: int
    returns: int
    """How many moves in a row, this one included, went back to where the one before came from."""


class Doubts:
    """What was said lately, and each voter's signs, by node id."""

    __slots__ = ("_falls", "_moves", "_said", "signs")

    def __init__(self) -> None:
        self.signs = 0
        """Since the start."""
        self._said: dict[str, int] = {}
        """What was said when, the longest ago first. A peer may choose the words: they are few."""
        self._falls: dict[int, list[int]] = {}
        """When the newest of them were."""
        self._moves: dict[int, _Move] = {}

    def may_say(self, what: str, now_ms: int) -> bool:
        """Was this not said within the last period? It is now."""
        last = self._said.get(what)
        if last is not None and now_ms - last < PERIOD_MS:
            return False
        if last is not None:
            del self._said[what]
        elif len(self._said) >= _MOST_SAID:
            del self._said[next(iter(self._said))]
        self._said[what] = now_ms
        return True

    def fell(self, node_id: int, now_ms: int) -> bool:
        """A voter fetches below what it acknowledged in this epoch. Is that more than one node?"""
        self.signs += 1
        falls = [*self._falls.get(node_id, ()), now_ms][-FALLS:]
        self._falls[node_id] = falls
        return len(falls) == FALLS and now_ms - falls[0] < PERIOD_MS

    def moved(self, before: Voter, after: Voter, fetch_timeout_ms: int, now_ms: int) -> bool:
        """A voter reports other listeners. Is that more than one node?

        It is when they soon go back to what they were before the last move, again and again.
        """
        if frozenset(before.listeners) == frozenset(after.listeners):
            return False
        last = self._moves.get(after.key.id)
        returns = 0
        if last is not None and same_voter(last.left, after):
            soon = now_ms - last.at_ms <= SOON * fetch_timeout_ms
            returns = last.returns + 1 if soon else 0
        self._moves[after.key.id] = _Move(before, now_ms, returns)
        if returns < RETURNS:
            return False
        self.signs += 1
        return True
