"""Coverage points of what takes an hour: only long-running worlds meet it (`sim.long_running`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from quorate.raft.ready import Clean
from quorate.raft.roles import Leader
from quorate.replica.disk_jobs import Surveyed, Write, WriteSnapshot
from quorate.sim.world.observable import ObservableWorld, SimulatedNode

if TYPE_CHECKING:
    from quorate.raft.roles import Role
    from quorate.replica.replica import Effects, Input

HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
SNAPSHOT: Final = "a snapshot was written because the last one was an hour old"
DROPPED: Final = "a snapshot was dropped because it was hours old"
LED: Final = "a replica led for an hour"
CAME_BACK: Final = "a replica was down for an hour and came back"
APART: Final = "two clocks went a minute apart"
COVERAGE_POINTS: Final = (SNAPSHOT, DROPPED, LED, CAME_BACK, APART)


class LongRunCoverage:
    """Looks at one world; nothing of it costs a world that is over in seconds."""

    def __init__(self, world: ObservableWorld) -> None:
        self._world = world
        self._ended: dict[int, int] = {}
        """By node: when it ended last, ms of the world."""
        self._snapshot: dict[int, int] = {}
        """By node: when it began its last snapshot, or its incarnation; ms of its own clock."""
        self._leadership: dict[int, tuple[Role, int]] = {}
        """By node: the leader's role that it has, and since when."""

    def started(self, process: SimulatedNode) -> Iterator[str]:
        ended = self._ended.pop(process.id, None)
        if ended is not None and self._world.now_us // 1000 - ended >= HOUR_MS:
            yield CAME_BACK
        self._snapshot[process.id] = process.now.monotonic_ms
        self._leadership.pop(process.id, None)

    def crashed(self, process: SimulatedNode) -> None:
        self._ended[process.id] = self._world.now_us // 1000

    def stepped(
        self, process: SimulatedNode, role: Role, happened: Sequence[Input], effects: Effects
    ) -> Iterator[str]:
        now, node_id = process.now.monotonic_ms, process.id
        if isinstance(role, Leader):
            led, since = self._leadership.get(node_id, (None, now))
            if led is not role:
                self._leadership[node_id] = role, now
            elif now - since >= HOUR_MS:
                self._leadership[node_id] = role, now
                yield LED
        for job in effects.jobs:
            if isinstance(job, WriteSnapshot):
                if now - self._snapshot[node_id] >= HOUR_MS and _only_by_time(self._world):
                    yield SNAPSHOT
                self._snapshot[node_id] = now
            elif isinstance(job, Write) and _is_for_age(self._world, happened, job):
                yield DROPPED

    def finished(self) -> Iterator[str]:
        times = [process.now.monotonic_ms for process in self._world.nodes.values()]
        if max(times) - min(times) >= _MINUTE_MS:
            yield APART


def _only_by_time(world: ObservableWorld) -> bool:
    """Is a snapshot written after an hour, and hardly ever before?"""
    disk = world.plan.disk
    return disk.snapshot_ms >= HOUR_MS and disk.snapshot_bytes >= 1 << 20


def _is_for_age(world: ObservableWorld, happened: Sequence[Input], job: Write) -> bool:
    """Is a snapshot dropped for its age, of hours? (That of the formatting has none.)"""
    disk = world.plan.disk
    kept = [write.snapshot_id for write in job.writes if isinstance(write, Clean)]
    if not kept or disk.retention_ms < HOUR_MS:
        return False
    surveys = (item for item in happened if isinstance(item, Surveyed))
    return any(
        survey.log_size + sum(snapshot.size for snapshot in survey.snapshots)
        <= disk.retention_bytes
        and any(0 < snapshot.id.offset < kept[0].offset for snapshot in survey.snapshots)
        for survey in surveys
    )
