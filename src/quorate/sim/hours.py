"""Marks of what takes an hour: only patient worlds meet it (`sim.patient`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from quorate.node.jobs import Surveyed, Write, WriteSnapshot
from quorate.raft.ready import Clean
from quorate.raft.roles import Leader
from quorate.sim.process import Process

if TYPE_CHECKING:
    from quorate.node.replica import Effects, Input
    from quorate.raft.roles import Role
    from quorate.sim.world import World

HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
SNAPSHOT: Final = "a snapshot was written because the last one was an hour old"
DROPPED: Final = "a snapshot was dropped because it was hours old"
LED: Final = "a replica led for an hour"
CAME_BACK: Final = "a replica was down for an hour and came back"
APART: Final = "two clocks went a minute apart"
MARKS: Final = (SNAPSHOT, DROPPED, LED, CAME_BACK, APART)


class Hours:
    """Looks at one world; nothing of it costs a world that is over in seconds."""

    def __init__(self) -> None:
        self._ended: dict[int, int] = {}
        """By node: when it ended last, ms of the world."""
        self._snapshot: dict[int, int] = {}
        """By node: when it began its last snapshot, or its life; ms of its own clock."""
        self._reign: dict[int, tuple[Role, int]] = {}
        """By node: the leader's role that it has, and since when."""

    def started(self, process: Process) -> Iterator[str]:
        ended = self._ended.pop(process.id, None)
        if ended is not None and process.world.now_us // 1000 - ended >= HOUR_MS:
            yield CAME_BACK
        self._snapshot[process.id] = process.now.monotonic_ms
        self._reign.pop(process.id, None)

    def crashed(self, process: Process) -> None:
        self._ended[process.id] = process.world.now_us // 1000

    def stepped(
        self, process: Process, role: Role, happened: Sequence[Input], effects: Effects
    ) -> Iterator[str]:
        now, node_id = process.now.monotonic_ms, process.id
        if isinstance(role, Leader):
            led, since = self._reign.get(node_id, (None, now))
            if led is not role:
                self._reign[node_id] = role, now
            elif now - since >= HOUR_MS:
                self._reign[node_id] = role, now
                yield LED
        for job in effects.jobs:
            if isinstance(job, WriteSnapshot):
                if now - self._snapshot[node_id] >= HOUR_MS and _only_by_time(process):
                    yield SNAPSHOT
                self._snapshot[node_id] = now
            elif isinstance(job, Write) and _is_for_age(process, happened, job):
                yield DROPPED

    def finished(self, world: World) -> Iterator[str]:
        times = [process.now.monotonic_ms for process in world.processes.values()]
        if max(times) - min(times) >= _MINUTE_MS:
            yield APART


def _only_by_time(process: Process) -> bool:
    """Is a snapshot written after an hour, and hardly ever before?"""
    disk = process.world.plan.disk
    return disk.snapshot_ms >= HOUR_MS and disk.snapshot_bytes >= 1 << 20


def _is_for_age(process: Process, happened: Sequence[Input], job: Write) -> bool:
    """Is a snapshot dropped for its age, of hours? (That of the formatting has none.)"""
    disk = process.world.plan.disk
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
