"""Where a simulated process differs from a real one: power cuts, and snapshots at a whim."""

from __future__ import annotations

from collections.abc import Callable

from quorate.node.snapshots import SnapshotPolicy
from quorate.sim.plan import DiskPlan


class PowerCut(BaseException):
    """The machine went dark in the middle of a disk operation."""


class WhimPolicy(SnapshotPolicy):
    """The production policy, and a snapshot whenever an operator asks for one."""

    __slots__ = ("wanted",)
    wanted: list[bool]

    def is_due(self, bytes_applied: int, age_ms: int, last_size: int = 0) -> bool:
        if self.wanted and bytes_applied > 0:
            self.wanted.clear()
            return True
        return super().is_due(bytes_applied, age_ms, last_size)


def whims(disk: DiskPlan) -> WhimPolicy:
    """The policy of a process that begins: nobody has asked for anything."""
    policy = WhimPolicy(
        disk.snapshot_bytes,
        disk.snapshot_ms,
        disk.retention_bytes,
        disk.retention_ms,
        disk.clean_ms,
    )
    object.__setattr__(policy, "wanted", [])
    return policy


def untroubled(deed: str, name: str) -> None:
    """Nothing is wrong with the disk."""


def dark_after(steps: int) -> Callable[[str, str], None]:
    left = [steps]

    def watch(deed: str, name: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise PowerCut

    return watch
