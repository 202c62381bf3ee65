"""A leader reports a voter whose disk is an older copy: the voter fetches below an offset that it
has acknowledged (docs/recovery.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from quorate.raft.inputs import Received
from quorate.raft.messages import FetchRequest
from quorate.raft.roles import Leader
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.base.ids import ReplicaKey
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Effects, Input

REPORTED: Final = "restored disk is reported"
_REPORT_PERIOD_MS: Final = 60_000
"""The same voter is reported once in this time (decision 7)."""
_NOTES: Final = ("an older copy of its directory", "run on copies of the directory of ")


class RestoredDiskCheck:
    """The end offsets that the voters of each leader have acknowledged, as the leader stores them."""

    def __init__(self) -> None:
        self._held: dict[int, dict[ReplicaKey, int]] = {}
        """By leader: at the end of its last step."""
        self._reported_ms: dict[tuple[int, ReplicaKey], int] = {}
        """Time of the last report, ms of the leader's clock."""

    def process_started(self, model: ReplicaModel) -> None:
        self._held.pop(model.id, None)
        for name in [name for name in self._reported_ms if name[0] == model.id]:
            del self._reported_ms[name]

    def after_step(
        self, model: ReplicaModel, happened: Sequence[Input], effects: Effects, state: RaftState
    ) -> None:
        """Check a whole step of a leader."""
        role = state.role
        assert isinstance(role, Leader)
        voters = role.progress.voters.values()
        self._read_notes(model, [row.key for row in voters], effects, state)
        held = self._held.get(model.id)
        if held is not None and len(happened) == 1:
            item = happened[0]
            if isinstance(item, Received) and isinstance(item.request, FetchRequest):
                self._check_fetch(model, item.request.replica, held, role, state)
        self._held[model.id] = {row.key: row.end_offset for row in voters}

    def _check_fetch(
        self,
        model: ReplicaModel,
        who: ReplicaKey,
        held: dict[ReplicaKey, int],
        role: Leader,
        state: RaftState,
    ) -> None:
        found = role.progress.find(who)
        before = None if found is None else held.get(found.key)
        if found is None or before is None or found.end_offset >= before:
            return
        if (
            state.now - self._reported_ms.get((model.id, found.key), -_REPORT_PERIOD_MS)
            >= _REPORT_PERIOD_MS
        ):
            raise ViolationError(
                REPORTED,
                f"{model} leads; voter {found.key} has acknowledged {before} and fetches below "
                "that, and the leader does not report it",
            )

    def _read_notes(
        self, model: ReplicaModel, voters: Iterable[ReplicaKey], effects: Effects, state: RaftState
    ) -> None:
        for note in effects.notes:
            if any(map(note.__contains__, _NOTES)):
                for key in voters:
                    if str(key) in note:
                        self._reported_ms[model.id, key] = state.now

    def leadership_ended(self, model: ReplicaModel, effects: Effects, state: RaftState) -> None:
        """The leadership ended; this very step may have reported a voter."""
        self._read_notes(model, self._held.pop(model.id, ()), effects, state)
