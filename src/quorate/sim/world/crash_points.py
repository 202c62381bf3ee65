"""Power cuts within disk operations, and snapshots on request of a fault event."""

from __future__ import annotations

from collections.abc import Callable

from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.sim.plan.plan import DiskPlan


class PowerCutError(BaseException):
    """The power failed within a disk operation."""


class OnDemandSnapshotPolicy(SnapshotPolicy):
    """The production policy. An operator's request makes a snapshot due at once."""

    __slots__ = ("wanted",)
    wanted: list[bool]

    def is_due(self, bytes_applied: int, age_ms: int, last_size: int = 0) -> bool:
        if self.wanted and bytes_applied > 0:
            self.wanted.clear()
            return True
        return super().is_due(bytes_applied, age_ms, last_size)


def on_demand_policy(disk: DiskPlan) -> OnDemandSnapshotPolicy:
    """The policy of a new incarnation, without a pending request."""
    policy = OnDemandSnapshotPolicy(
        disk.snapshot_bytes,
        disk.snapshot_ms,
        disk.retention_bytes,
        disk.retention_ms,
        disk.clean_ms,
    )
    object.__setattr__(policy, "wanted", [])
    return policy


def untroubled(action: str, name: str) -> None:
    """The watch of a disk without faults."""


def dark_after(steps: int) -> Callable[[str, str], None]:
    left = [steps]

    def watch(action: str, name: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise PowerCutError

    return watch
