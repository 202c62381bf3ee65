"""What a disk holds of snapshots that nobody makes any more is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import PART_SUFFIX
from quorate.node.jobs import Write
from quorate.raft.ready import AbandonSnapshot, InstallSnapshot, SnapshotChunk
from quorate.raft.roles import Follower
from quorate.sim.checks.twin import Twin
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects
    from quorate.raft.state import State
    from quorate.storage.memory import MemoryDisk

CHECK = "what is left over is removed"


class Leftovers:
    """Of each replica, in this life: the download that its disk was told to begin, and to end."""

    def __init__(self) -> None:
        self._download: dict[int, OffsetAndEpoch | None] = {}

    def began(self, twin: Twin, disk: MemoryDisk) -> None:
        """What a crash has left of such files, recovery removes."""
        self._download[twin.id] = None
        self._check(twin, disk, 0)

    def look(self, twin: Twin, effects: Effects, state: State) -> None:
        """At the end of a step that has work for the disk, or in which a role was left."""
        for job in effects.jobs:
            if isinstance(job, Write):
                for write in job.writes:
                    if isinstance(write, SnapshotChunk):
                        self._download[twin.id] = write.snapshot_id
                    elif isinstance(write, AbandonSnapshot | InstallSnapshot):
                        self._download[twin.id] = None
        begun = self._download[twin.id]
        if begun is None or effects.is_over:
            return
        role = state.role
        download = role.download if isinstance(role, Follower) else None
        if download is None or download.snapshot_id != begun:
            raise Violation(
                CHECK,
                f"{twin} fetches snapshot {tuple(begun)} no more, and lets its disk keep what it "
                "has of it",
            )

    def count(self, twin: Twin, disk: MemoryDisk) -> None:
        """Of snapshots in the making there is one at most, the download: our own begin and end
        within one event of a world. One that was given up may wait for its removal."""
        begun = self._download[twin.id] is not None or len(twin.writes) > 0
        self._check(twin, disk, int(begun))

    def _check(self, twin: Twin, disk: MemoryDisk, most: int) -> None:
        parts = [name for name in disk.names() if name.endswith(PART_SUFFIX)]
        if len(parts) > most:
            raise Violation(
                CHECK,
                f"{twin} has {', '.join(parts)} on its disk, and of these {most} in the making",
            )
