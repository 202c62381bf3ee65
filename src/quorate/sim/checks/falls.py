"""A disk that is an older copy of itself is told of where it can be seen: its voter fetches below
what it has acknowledged (docs/recovery.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from quorate.raft.inputs import Received
from quorate.raft.messages import FetchRequest
from quorate.raft.roles import Leader
from quorate.sim.checks.twin import Twin
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.base.ids import ReplicaKey
    from quorate.node.replica import Effects, Input
    from quorate.raft.state import State

TOLD: Final = "a leader tells who has forgotten what it acknowledged"
_ONCE_MS: Final = 60_000
"""So long it need not be told again (decision 7)."""
_SAYS: Final = ("an older copy of its directory", "run on copies of the directory of ")


class Falls:
    """Of each leader, in this reign: what its voters have acknowledged, as it counts it."""

    def __init__(self) -> None:
        self._held: dict[int, dict[ReplicaKey, int]] = {}
        """By leader: at the end of its last step."""
        self._told: dict[tuple[int, ReplicaKey], int] = {}
        """When it was told of last, ms of the leader's clock."""

    def began(self, twin: Twin) -> None:
        self._held.pop(twin.id, None)
        for name in [name for name in self._told if name[0] == twin.id]:
            del self._told[name]

    def look(self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
        """At the end of a leader's step."""
        role = state.role
        assert isinstance(role, Leader)
        voters = role.progress.voters.values()
        self._listen(twin, [row.key for row in voters], effects, state)
        held = self._held.get(twin.id)
        if held is not None and len(happened) == 1:
            item = happened[0]
            if isinstance(item, Received) and isinstance(item.request, FetchRequest):
                self._look_at(twin, item.request.replica, held, role, state)
        self._held[twin.id] = {row.key: row.end_offset for row in voters}

    def _look_at(
        self,
        twin: Twin,
        who: ReplicaKey,
        held: dict[ReplicaKey, int],
        role: Leader,
        state: State,
    ) -> None:
        found = role.progress.find(who)
        before = None if found is None else held.get(found.key)
        if found is None or before is None or found.end_offset >= before:
            return
        if state.now - self._told.get((twin.id, found.key), -_ONCE_MS) >= _ONCE_MS:
            raise Violation(
                TOLD,
                f"{twin} leads; voter {found.key} has acknowledged up to {before}, fetches below "
                "that, and nobody hears of it",
            )

    def _listen(
        self, twin: Twin, voters: Iterable[ReplicaKey], effects: Effects, state: State
    ) -> None:
        for note in effects.notes:
            if any(map(note.__contains__, _SAYS)):
                for key in voters:
                    if str(key) in note:
                        self._told[twin.id, key] = state.now

    def ended(self, twin: Twin, effects: Effects, state: State) -> None:
        """It leads no more, and may have told in this very step."""
        self._listen(twin, self._held.pop(twin.id, ()), effects, state)
