"""Orphan snapshots: partial files that no replica completes are removed (KIP-630)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.ready import AbandonSnapshot, InstallSnapshot, SnapshotChunk
from quorate.raft.roles import Follower
from quorate.replica.disk_jobs import Write
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Effects
    from quorate.storage.memory import MemoryDisk

CHECK = "orphan snapshots are removed"
_PARTIAL: Final = ".checkpoint.part"
"""The end of the name of a snapshot that is not whole (`Snapshots.PARTIAL_SUFFIX`)."""


class OrphanSnapshotCheck:
    """The snapshot download that each replica has begun and not ended."""

    def __init__(self) -> None:
        self._download: dict[int, OffsetAndEpoch | None] = {}

    def process_started(self, model: ReplicaModel, disk: MemoryDisk) -> None:
        """Recovery removes the partial files that a crash left behind."""
        self._download[model.id] = None
        self._check(model, disk, 0)

    def after_step(self, model: ReplicaModel, effects: Effects, state: RaftState) -> None:
        """Check a step with disk jobs or a role change: an abandoned download is removed."""
        for job in effects.jobs:
            if isinstance(job, Write):
                for write in job.writes:
                    if isinstance(write, SnapshotChunk):
                        self._download[model.id] = write.snapshot_id
                    elif isinstance(write, AbandonSnapshot | InstallSnapshot):
                        self._download[model.id] = None
        begun = self._download[model.id]
        if begun is None or effects.is_over:
            return
        role = state.role
        download = role.download if isinstance(role, Follower) else None
        if download is None or download.snapshot_id != begun:
            raise ViolationError(
                CHECK,
                f"{model} no longer fetches snapshot {tuple(begun)}, and leaves the partial "
                "file on its disk",
            )

    def check_parts(self, model: ReplicaModel, disk: MemoryDisk) -> None:
        """Check that at most one partial file exists: the replica's own snapshots begin and end
        within one event of a world. A removal may still be in progress."""
        begun = self._download[model.id] is not None or len(model.pending_writes) > 0
        self._check(model, disk, int(begun))

    def _check(self, model: ReplicaModel, disk: MemoryDisk, most: int) -> None:
        parts = [name for name in disk.names() if name.endswith(_PARTIAL)]
        if len(parts) > most:
            raise ViolationError(
                CHECK,
                f"{model} has {', '.join(parts)} on its disk; {most} of these are in progress",
            )
