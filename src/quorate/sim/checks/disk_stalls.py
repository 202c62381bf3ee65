"""A leader resigns when its disk stalls, and only then (decision 7)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.raft.ready import Truncate
from quorate.raft.roles import Leader
from quorate.replica.disk_jobs import AppendBatches, Write, Written
from quorate.replica.replica import Effects, Input
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.times import check_quorum_ms
from quorate.sim.checks.voters import is_voter
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState

DISK_STALLED: Final = "(its disk has not moved"
"""In the note of a leader that resigns for this reason."""
_CHECK: Final = "disk stall ends leadership"


@dataclass
class _DiskWrites:
    """Writes of one incarnation that its disk has not confirmed."""

    confirmed_ms: int = 0
    """Time of the last confirmed write, ms."""
    writes: deque[tuple[int, int | None]] = field(default_factory=deque)
    """(seq, submission time in ms; None where the write does not change the log)."""


class DiskStallCheck:
    """Measures, by node, for how long the disk has not confirmed a write."""

    def __init__(self) -> None:
        self._disks: dict[int, _DiskWrites] = {}

    def process_started(self, model: ReplicaModel) -> None:
        self._disks[model.id] = _DiskWrites()

    def after_step(
        self, model: ReplicaModel, happened: Sequence[Input], effects: Effects, state: RaftState
    ) -> None:
        """Check a whole step: a leader resigns for its disk once the stall lasts a check-quorum
        timeout, and not before.

        A leader that is the only voter stays: no other replica could take over.
        """
        disk = self._disks[model.id]
        writes, now_ms = disk.writes, state.now
        for item in happened:
            if isinstance(item, Written):
                disk.confirmed_ms = now_ms
                while writes and writes[0][0] <= item.seq:
                    writes.popleft()
        if model.was_leader or isinstance(state.role, Leader):
            self._check_leader(model, disk, effects, state)
        for job in effects.jobs:
            if isinstance(job, Write):
                is_log = any(isinstance(write, AppendBatches | Truncate) for write in job.writes)
                writes.append((job.seq, now_ms if is_log else None))

    def _check_leader(
        self, model: ReplicaModel, disk: _DiskWrites, effects: Effects, state: RaftState
    ) -> None:
        since = next((since for _, since in disk.writes if since is not None), state.now)
        stalled_ms = state.now - max(disk.confirmed_ms, since)
        patience = check_quorum_ms(state.config.fetch_timeout_ms)
        is_stalled = stalled_ms >= patience
        if not is_stalled and any(DISK_STALLED in note for note in effects.notes):
            raise ViolationError(
                _CHECK, f"{model} resigns for its disk, which has stalled for {stalled_ms} ms"
            )
        is_alone = len(model.voters) == 1 and is_voter(model.voters, model.key)
        if is_stalled and isinstance(state.role, Leader) and not is_alone and not effects.is_over:
            raise ViolationError(
                _CHECK,
                f"{model} still leads; its disk has stalled for {stalled_ms} of {patience} ms",
            )
