"""Retention of log and snapshots, and the age and schedule of snapshots (KIP-630)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.ready import Clean
from quorate.replica.disk_jobs import (
    Installed,
    SnapshotFailed,
    SnapshotWritten,
    Survey,
    Surveyed,
    Write,
    WriteSnapshot,
)
from quorate.sim.checks.history import ClusterHistory, LoggedBatch
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.world.observer import ViolationError
from quorate.verify.batches import batches

if TYPE_CHECKING:
    from quorate.replica.applier import Applier
    from quorate.replica.replica import Effects, Replica
    from quorate.sim.world.observable import SimulatedNode

_NEVER = 1 << 62
_NONE = OffsetAndEpoch(0, 0)


def check_age(model: ReplicaModel, entry: LoggedBatch, job: WriteSnapshot) -> None:
    """A snapshot has the timestamp of the newest batch in it: retention by age uses it (KIP-630,
    LastContainedLogTimestamp)."""
    newest = next(batches(entry.data)).max_timestamp
    if job.last_contained_log_timestamp != newest:
        raise ViolationError(
            "age of a snapshot",
            f"{model} writes a snapshot up to {entry} of {job.last_contained_log_timestamp} ms, the "
            f"newest batch in it is of {newest} ms",
        )


def _is_removable(snapshot_id: OffsetAndEpoch, process: SimulatedNode) -> bool:
    """Whether the log begins before this snapshot, and no install is in progress."""
    assert process.core is not None
    state = process.core.state
    is_known = snapshot_id in state.log.snapshots and state.installing is None
    return is_known and snapshot_id.offset > state.log.start_offset


class RetentionCheck:
    """A replica checks its disk for retention once in each interval.

    It checks again at once only after it has removed something, and what it removed is gone.
    """

    def __init__(self) -> None:
        self._due: dict[int, int] = {}
        """By node: the latest time of its next survey, ms of its own clock."""
        self._oldest: dict[int, OffsetAndEpoch] = {}
        """By node: the snapshot before which its disk was to remove everything."""
        self._surveys: dict[int, deque[tuple[OffsetAndEpoch, OffsetAndEpoch]]] = {}
        """By node, for each survey in progress: `_oldest` and `_late` at its submission."""
        self._making: dict[int, OffsetAndEpoch] = {}
        """By node: its own snapshot in progress, which may be older than `_oldest` when it is
        complete."""
        self._late: dict[int, OffsetAndEpoch] = {}
        """By node: the snapshot in progress at that removal."""
        self._applied: dict[int, int] = {}
        """By node: bytes of the batches that it has applied since its last snapshot."""
        self._since: dict[int, int] = {}
        """By node: when it began its last snapshot, or its first step; ms of its own clock."""
        self._loads: set[int] = set()
        """Nodes that loaded a snapshot at the end of their last step."""

    def process_started(self, model: ReplicaModel, replica: Replica | None) -> None:
        self._applied[model.id] = 0
        self._since.pop(model.id, None)
        self._loads.discard(model.id)
        if replica is not None and replica.applier.loading is not None:
            self._loads.add(model.id)
        self._due[model.id] = _NEVER
        self._surveys[model.id] = deque()
        for known in (self._oldest, self._making, self._late):
            known[model.id] = _NONE

    def disk_reported(
        self, model: ReplicaModel, item: Surveyed | Installed | SnapshotWritten | SnapshotFailed
    ) -> None:
        """A result of the disk: what was to be removed is gone."""
        if isinstance(item, SnapshotWritten | SnapshotFailed):
            self._making[model.id] = _NONE
        elif isinstance(item, Installed):
            self._removed(model, item.snapshot_id)
        else:
            surveys = self._surveys[model.id]
            oldest, late = surveys.popleft() if surveys else (_NONE, _NONE)
            for info in item.snapshots:
                if info.id < oldest and info.id != late:
                    raise ViolationError(
                        "retention",
                        f"{model} still has snapshot {tuple(info.id)}; all before "
                        f"{tuple(oldest)} were to be removed",
                    )

    def after_step(
        self, model: ReplicaModel, effects: Effects, replica: Replica, now_ms: int
    ) -> None:
        due = self._due[model.id]
        applier = replica.applier
        self._check_age(model, effects, replica, now_ms)
        if applier.bytes_applied >= replica.policy.max_bytes and due < _NEVER:
            begins = self._making[model.id] != _NONE or applier.loading is not None
            is_held_up = applier.is_inside_a_batch or effects.is_over
            if not begins and not is_held_up and _can_freeze(replica):
                raise ViolationError(
                    "a snapshot is written when it is due",
                    f"{model} has applied {applier.bytes_applied} bytes since the last one, "
                    f"the limit is {replica.policy.max_bytes}, and writes no snapshot",
                )
        if now_ms < due < _NEVER and not effects.jobs:
            return
        interval = replica.policy.clean_interval_ms
        removes = self._track_removals(model, effects)
        surveys = any(isinstance(job, Survey) for job in effects.jobs)
        if surveys:
            self._surveys[model.id].append((self._oldest[model.id], self._late[model.id]))
        if due == _NEVER:
            self._due[model.id] = now_ms + interval
        elif surveys:
            if now_ms < due and not removes:
                raise ViolationError(
                    "retention",
                    f"{model} surveys its disk {due - now_ms} ms too early, and has removed "
                    "nothing since",
                )
            self._due[model.id] = now_ms + interval
        elif now_ms >= due and not effects.is_over:
            raise ViolationError(
                "retention", f"{model} has not surveyed its disk within {interval} ms"
            )

    def _check_age(
        self, model: ReplicaModel, effects: Effects, replica: Replica, now_ms: int
    ) -> None:
        """What was applied is in a snapshot within metadata.log.max.snapshot.interval.ms, as soon
        as something happens after that."""
        applier, interval = replica.applier, replica.policy.max_interval_ms
        since = self._since.get(model.id)
        begins = any(job.__class__ is WriteSnapshot for job in effects.jobs)
        if since is None or begins or applier.loading is not None:
            self._since[model.id] = now_ms
            return
        is_held_up = applier.is_inside_a_batch or effects.is_over
        if self._making[model.id] != _NONE or is_held_up or applier.bytes_applied == 0:
            return
        if 0 < interval <= now_ms - since and _can_freeze(replica):
            raise ViolationError(
                "a snapshot is written when it is due",
                f"{model} has begun no snapshot for {now_ms - since} ms, the limit is {interval}, and has "
                f"applied {applier.bytes_applied} bytes since",
            )

    def check_survey(
        self, model: ReplicaModel, survey: Surveyed, effects: Effects, process: SimulatedNode
    ) -> None:
        """The removal after a survey, where nothing else happened in the step
        (`KafkaRaftLog.maybeClean`).

        1. By age: all snapshots but the newest that are older than metadata.max.retention.ms.
        2. Otherwise by size: one snapshot, where log and snapshots exceed
           metadata.max.retention.bytes.
        """
        assert process.replica is not None
        policy, found = process.replica.policy, survey.snapshots
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
        removed_before = [
            write.snapshot_id
            for job in effects.jobs
            if isinstance(job, Write)
            for write in job.writes
            if isinstance(write, Clean)
        ]
        nothing_to_clean = any("nothing to clean" in note for note in effects.notes)
        if nothing_to_clean and due is not None and _is_removable(due, process):
            nothing_to_clean = False
        if removed_before != ([] if due is None or nothing_to_clean else [due]):
            wanted = "nothing" if due is None else f"what is before {tuple(due)}"
            raise ViolationError(
                "retention",
                f"{model} should remove {wanted}; it removes what is before "
                f"{', '.join(str(tuple(one)) for one in removed_before) or 'nothing'}",
            )

    def check_bytes_applied(
        self,
        model: ReplicaModel,
        effects: Effects,
        applier: Applier,
        trail: Sequence[tuple[int, int, int]],
        history: ClusterHistory,
    ) -> None:
        """The byte counter of the snapshot policy: each applied batch counts once, since the last
        snapshot was begun or loaded.

        `trail` is that of this step; a loaded snapshot comes first in it.
        """
        node_id, loads = model.id, applier.loading is not None
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
            raise ViolationError(
                "applied bytes are counted",
                f"{model} has applied {self._applied[node_id]} bytes since the last snapshot, and "
                f"counts {applier.bytes_applied}",
            )

    def _track_removals(self, model: ReplicaModel, effects: Effects) -> bool:
        """Track the removals and snapshots of this step; whether it has a removal."""
        found = False
        for job in effects.jobs:
            if isinstance(job, WriteSnapshot):
                self._making[model.id] = job.snapshot_id
            elif isinstance(job, Write):
                for write in job.writes:
                    if isinstance(write, Clean):
                        found = True
                        self._removed(model, write.snapshot_id)
        return found

    def _removed(self, model: ReplicaModel, snapshot_id: OffsetAndEpoch) -> None:
        self._oldest[model.id] = max(snapshot_id, self._oldest[model.id])
        self._late[model.id] = self._making[model.id]


def _can_freeze(replica: Replica) -> bool:
    """A controller writes no snapshot inside a metadata transaction (KIP-868), nor before the log
    has a metadata.version. Then its state machine gives no values."""
    return replica.machine.freeze() is not None
