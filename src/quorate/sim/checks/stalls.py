"""A leader stays while its disk moves, and goes when it hangs (decision 7)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from quorate.node.jobs import AppendBatches, Write, Written
from quorate.node.replica import Effects, Input
from quorate.raft.moves import CHECK_QUORUM_FACTOR
from quorate.raft.ready import Truncate
from quorate.raft.roles import Leader
from quorate.raft.state import State
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter
from quorate.sim.observe import Violation

DISK_HANGS: Final = "(its disk has not moved"
"""In the note of a leader that resigns for it."""
_CHECK: Final = "a leader needs its disk"


@dataclass
class _Disk:
    """What a replica has given to its disk in this life and has not heard of yet."""

    moved_ms: int = 0
    """When it heard of something."""
    writes: deque[tuple[int, int | None]] = field(default_factory=deque)
    """(seq, since when it waits, ms, if it changes the log)."""


class Stalls:
    """Knows, by node, for how long the disk has not moved."""

    def __init__(self) -> None:
        self._disks: dict[int, _Disk] = {}

    def began(self, twin: Twin) -> None:
        self._disks[twin.id] = _Disk()

    def look(self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
        """At the end of a step: a leader resigns for its disk when that is due, and only then."""
        disk = self._disks[twin.id]
        writes, now_ms = disk.writes, state.now
        for item in happened:
            if isinstance(item, Written):
                disk.moved_ms = now_ms
                while writes and writes[0][0] <= item.seq:
                    writes.popleft()
        if twin.led or isinstance(state.role, Leader):
            self._judge(twin, disk, effects, state)
        for job in effects.jobs:
            if isinstance(job, Write):
                is_log = any(isinstance(write, AppendBatches | Truncate) for write in job.writes)
                writes.append((job.seq, now_ms if is_log else None))

    def _judge(self, twin: Twin, disk: _Disk, effects: Effects, state: State) -> None:
        since = next((since for _, since in disk.writes if since is not None), state.now)
        stood = state.now - max(disk.moved_ms, since)
        patience = int(CHECK_QUORUM_FACTOR * state.config.fetch_timeout_ms)
        hangs = stood >= patience
        if not hangs and any(DISK_HANGS in note for note in effects.notes):
            raise Violation(
                _CHECK, f"{twin} resigns for its disk; its log has waited {stood} ms for it"
            )
        is_alone = len(twin.voters) == 1 and is_voter(twin.voters, twin.key)
        if hangs and isinstance(state.role, Leader) and not is_alone and not effects.is_over:
            raise Violation(
                _CHECK, f"{twin} leads on, and its disk has not moved for {stood} of {patience} ms"
            )
