"""What keeps a disk from filling up: snapshots say how old they are, and somebody looks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import read_batch
from quorate.node.jobs import (
    Installed,
    SnapshotFailed,
    SnapshotWritten,
    Survey,
    Surveyed,
    Write,
    WriteSnapshot,
)
from quorate.raft.ready import Clean
from quorate.sim.checks.history import Entry, History
from quorate.sim.checks.twin import Twin
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.applier import Applier
    from quorate.node.replica import Effects, Replica
    from quorate.sim.process import Process

_NEVER = 1 << 62
_NONE = OffsetAndEpoch(0, 0)


def check_age(twin: Twin, entry: Entry, job: WriteSnapshot) -> None:
    """A snapshot is as old as the newest batch in it: retention by age goes by that."""
    newest = read_batch(entry.data, 0).max_timestamp
    if job.last_contained_log_timestamp != newest:
        raise Violation(
            "age of a snapshot",
            f"{twin} writes a snapshot up to {entry} of {job.last_contained_log_timestamp} ms, the "
            f"newest batch in it is of {newest} ms",
        )


def _is_there(snapshot_id: OffsetAndEpoch, process: Process) -> bool:
    """Does the log begin before this snapshot, with nothing on its way that takes its place?"""
    assert process.core is not None
    state = process.core._state
    is_known = snapshot_id in state.log.snapshots and state.installing is None
    return is_known and snapshot_id.offset > state.log.start_offset


class Retention:
    """A replica looks what its disk has too much of, once in every interval, and again at once only
    where it has just dropped something; and what it dropped is gone."""

    def __init__(self) -> None:
        self._due: dict[int, int] = {}
        """By node: when it has to look at the latest, by its own clock in ms."""
        self._oldest: dict[int, OffsetAndEpoch] = {}
        """By node: the snapshot before which its disk was told to drop all."""
        self._looks: dict[int, deque[tuple[OffsetAndEpoch, OffsetAndEpoch]]] = {}
        """By node, for each look under way: `_oldest` and `_late` when it was told to."""
        self._making: dict[int, OffsetAndEpoch] = {}
        """By node: its own snapshot in the making, which may be older when it is there."""
        self._late: dict[int, OffsetAndEpoch] = {}
        """By node: what was in the making when its disk was told so."""
        self._applied: dict[int, int] = {}
        """By node: bytes of the batches that it applied since its last snapshot."""
        self._since: dict[int, int] = {}
        """By node: when it began its last snapshot, or its first step; ms of its own clock."""
        self._loads: set[int] = set()
        """Nodes that read a snapshot at the end of their last step."""

    def began(self, twin: Twin, replica: Replica | None) -> None:
        self._applied[twin.id] = 0
        self._since.pop(twin.id, None)
        self._loads.discard(twin.id)
        if replica is not None and replica._applier.loading is not None:
            self._loads.add(twin.id)
        self._due[twin.id] = _NEVER
        self._looks[twin.id] = deque()
        for known in (self._oldest, self._making, self._late):
            known[twin.id] = _NONE

    def happened(
        self, twin: Twin, item: Surveyed | Installed | SnapshotWritten | SnapshotFailed
    ) -> None:
        """What a replica hears of its disk."""
        if isinstance(item, SnapshotWritten | SnapshotFailed):
            self._making[twin.id] = _NONE
        elif isinstance(item, Installed):
            self._dropped(twin, item.snapshot_id)
        else:
            looks = self._looks[twin.id]
            oldest, late = looks.popleft() if looks else (_NONE, _NONE)
            for info in item.snapshots:
                if info.id < oldest and info.id != late:
                    raise Violation(
                        "retention",
                        f"{twin} still has snapshot {tuple(info.id)}, and all before "
                        f"{tuple(oldest)} were to be dropped",
                    )

    def look(self, twin: Twin, effects: Effects, replica: Replica, now_ms: int) -> None:
        due = self._due[twin.id]
        applier = replica._applier
        self._check_age(twin, effects, replica, now_ms)
        if applier.bytes_applied >= replica._policy.max_bytes and due < _NEVER:
            begins = self._making[twin.id] != _NONE or applier.loading is not None
            if not begins and not applier.is_inside_a_batch and not effects.is_over:
                raise Violation(
                    "a snapshot is written when it is due",
                    f"{twin} has applied {applier.bytes_applied} bytes since the last one, "
                    f"{replica._policy.max_bytes} are enough, and writes none",
                )
        if now_ms < due < _NEVER and not effects.jobs:
            return
        interval = replica._policy.clean_interval_ms
        cleans = self._cleans(twin, effects)
        looks = any(isinstance(job, Survey) for job in effects.jobs)
        if looks:
            self._looks[twin.id].append((self._oldest[twin.id], self._late[twin.id]))
        if due == _NEVER:
            self._due[twin.id] = now_ms + interval
        elif looks:
            if now_ms < due and not cleans:
                raise Violation(
                    "retention",
                    f"{twin} looks at its disk again, {due - now_ms} ms too early, and has dropped "
                    "nothing meanwhile",
                )
            self._due[twin.id] = now_ms + interval
        elif now_ms >= due and not effects.is_over:
            raise Violation("retention", f"{twin} has not looked at its disk within {interval} ms")

    def _check_age(self, twin: Twin, effects: Effects, replica: Replica, now_ms: int) -> None:
        """What was applied is in a snapshot within the interval (metadata.log.max.snapshot.
        interval.ms), as soon as something happens then."""
        applier, interval = replica._applier, replica._policy.max_interval_ms
        since = self._since.get(twin.id)
        begins = any(job.__class__ is WriteSnapshot for job in effects.jobs)
        if since is None or begins or applier.loading is not None:
            self._since[twin.id] = now_ms
            return
        is_held_up = applier.is_inside_a_batch or effects.is_over
        if self._making[twin.id] != _NONE or is_held_up or applier.bytes_applied == 0:
            return
        if 0 < interval <= now_ms - since:
            raise Violation(
                "a snapshot is written when it is due",
                f"{twin} has begun none for {now_ms - since} ms, {interval} are enough, and has "
                f"applied {applier.bytes_applied} bytes meanwhile",
            )

    def judge(self, twin: Twin, survey: Surveyed, effects: Effects, process: Process) -> None:
        """What its disk is told to drop, after this look at it and nothing else: all but the newest
        snapshot that are too old, or else, where all is too much, one (`KafkaRaftLog.maybeClean`).
        """
        assert process.replica is not None
        policy, found = process.replica._policy, survey.snapshots
        wall_ms = process.now.wall_ms
        due = None
        old = [
            wall_ms - info.last_contained_log_timestamp > policy.retention_ms >= 0
            for info in found[:-1]
        ]
        young = old.index(False) if False in old else len(old)
        total = survey.log_size + sum(info.size for info in found)
        if young:
            due = found[young].id
        elif len(found) > 1 and total > policy.retention_bytes >= 0:
            due = found[1].id
        told = [
            write.snapshot_id
            for job in effects.jobs
            if isinstance(job, Write)
            for write in job.writes
            if isinstance(write, Clean)
        ]
        needless = any("nothing to clean" in note for note in effects.notes)
        if needless and due is not None and _is_there(due, process):
            needless = False
        if told != ([] if due is None or needless else [due]):
            wanted = "nothing" if due is None else f"what is before {tuple(due)}"
            raise Violation(
                "retention",
                f"{twin} is to drop {wanted}; its disk was told to drop what is before "
                f"{', '.join(str(tuple(one)) for one in told) or 'nothing'}",
            )

    def counts(
        self,
        twin: Twin,
        effects: Effects,
        applier: Applier,
        trail: Sequence[tuple[int, int, int]],
        history: History,
    ) -> None:
        """What it goes by when it asks for a snapshot: batches, none of them twice, since the last
        one was begun or loaded; `trail` of this step, in which a loaded one comes first."""
        node_id, loads = twin.id, applier.loading is not None
        if trail:
            if node_id in self._loads:
                self._applied[node_id], trail = 0, trail[1:]
            for end, _, _ in trail:
                self._applied[node_id] += len(history.committed_at[end].data)
        if loads:
            self._loads.add(node_id)
        elif self._loads:
            self._loads.discard(node_id)
        for job in effects.jobs:
            if job.__class__ is WriteSnapshot:
                self._applied[node_id] = 0
        if applier.bytes_applied != self._applied[node_id]:
            raise Violation(
                "what was applied is counted",
                f"{twin} has applied {self._applied[node_id]} bytes since the last snapshot, and "
                f"counts {applier.bytes_applied}",
            )

    def _cleans(self, twin: Twin, effects: Effects) -> bool:
        """Is its disk told to drop something?"""
        found = False
        for job in effects.jobs:
            if isinstance(job, WriteSnapshot):
                self._making[twin.id] = job.snapshot_id
            elif isinstance(job, Write):
                for write in job.writes:
                    if isinstance(write, Clean):
                        found = True
                        self._dropped(twin, write.snapshot_id)
        return found

    def _dropped(self, twin: Twin, snapshot_id: OffsetAndEpoch) -> None:
        self._oldest[twin.id] = max(snapshot_id, self._oldest[twin.id])
        self._late[twin.id] = self._making[twin.id]
