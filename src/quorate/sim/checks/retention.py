"""What keeps a disk from filling up: snapshots say how old they are, and somebody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.formats.batch import read_batch
from quorate.node.jobs import Survey, WriteSnapshot
from quorate.sim.checks.history import Entry
from quorate.sim.checks.twin import Twin
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects, Replica

_NEVER = 1 << 62


def check_age(twin: Twin, entry: Entry, job: WriteSnapshot) -> None:
    """A snapshot is as old as the newest batch in it: retention by age goes by that."""
    newest = read_batch(entry.data, 0).max_timestamp
    if job.last_contained_log_timestamp != newest:
        raise Violation(
            "age of a snapshot",
            f"{twin} writes a snapshot up to {entry} of {job.last_contained_log_timestamp} ms, the "
            f"newest batch in it is of {newest} ms",
        )


class Retention:
    """A replica looks what its disk has too much of, once in every interval."""

    def __init__(self) -> None:
        self._due: dict[int, int] = {}
        """By node: when it has to look at the latest, by its own clock in ms."""

    def began(self, twin: Twin) -> None:
        self._due[twin.id] = _NEVER

    def look(self, twin: Twin, effects: Effects, replica: Replica, now_ms: int) -> None:
        due = self._due[twin.id]
        if now_ms < due < _NEVER and not effects.jobs:
            return
        interval = replica._policy.clean_interval_ms
        if due == _NEVER or any(isinstance(job, Survey) for job in effects.jobs):
            self._due[twin.id] = now_ms + interval
        elif now_ms >= due and not effects.stopped and effects.faulted is None:
            raise Violation("retention", f"{twin} has not looked at its disk within {interval} ms")
