"""Applied state: equal on all replicas at equal offsets, whether applied from the log or loaded
from a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.raft.roles import Leader, Role
from quorate.replica.disk_jobs import AppendBatches, Write
from quorate.sim.checks.history import ClusterHistory
from quorate.sim.checks.messages import election_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.replica.replica import Effects


TIMES: Final = "batch timestamp"
_TIMES_AT: Final = (27, 35)
"""Positions in a batch of its base timestamp and its max timestamp."""


def check_machine_follows(model: ReplicaModel, led: int | None) -> None:
    """The state machine of a replica that does not lead was notified of that, unless this node is
    still the known leader.

    `led` is the epoch in which the machine leads.
    """
    if led is not None and model.election.leader_id != model.id:
        raise ViolationError(
            "only the leader acts",
            f"{model} knows of {election_words(model.election)}, and its machine still leads "
            f"epoch {led}",
        )


def check_batch_times(model: ReplicaModel, effects: Effects, wall_ms: int) -> None:
    """A leader appends batches with the time of its clock: snapshots and segments expire by it."""
    for job in effects.jobs:
        if not isinstance(job, Write):
            continue
        for write in job.writes:
            if not isinstance(write, AppendBatches):
                continue
            for batch in write.batches:
                times = _times(batch.data)
                if batch.epoch == model.election.epoch and times != [wall_ms, wall_ms]:
                    raise ViolationError(
                        TIMES,
                        f"{model} leads and appends {batch.base_offset} with the timestamps {times} at "
                        f"{wall_ms} ms of its clock",
                    )


def _times(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 8]) for at in _TIMES_AT]


class StateMachineCheck:
    """Compares the hashes of the state machines."""

    def __init__(self, history: ClusterHistory) -> None:
        self.history = history
        self.hashes: dict[int, tuple[int, int, int]] = {}
        """By end offset: (hash of the history, digest of the state, first node)."""

    def applied(self, model: ReplicaModel, trail: Sequence[tuple[int, int, int]]) -> None:
        """A machine has applied these batches, or loaded a snapshot that ends there.

        State Machine Safety (Raft, figure 3): no two servers apply different log entries at the same
        index.
        """
        hashes = self.hashes
        for end, history, digest in trail:
            known = hashes.get(end)
            if known is None:
                hashes[end] = (history, digest, model.id)
                if end not in self.history.committed_at:
                    raise ViolationError("applied is committed", f"{model} applied up to {end}")
            elif known[0] != history or known[1] != digest:
                what = "what was applied" if known[0] != history else "the state it makes"
                raise ViolationError(
                    "applied state",
                    f"{model} and node {known[2]} differ at offset {end} in {what}",
                )
            if end > model.high_watermark:
                raise ViolationError(
                    "applied is committed",
                    f"{model} applied up to {end}, high watermark {model.high_watermark}",
                )

    def check_time(self, model: ReplicaModel, newest: tuple[int, int] | None) -> None:
        """`newest` is (end offset, timestamp) of the newest batch that its machine has received."""
        if newest is None:
            return
        end, given = newest
        _, of_batch = _times(self.history.committed_at[end].data)
        if given != of_batch:
            raise ViolationError(
                TIMES,
                f"{model} gives its machine the batch up to {end} with timestamp {given}; its own is "
                f"{of_batch}",
            )

    def leadership_reported(
        self, model: ReplicaModel, epoch: int | None, applied: int, role: Role
    ) -> None:
        """The machine was notified that it leads (None: that it does not) after it has applied up
        to `applied`.

        1. It leads only while its replica leads (KAFKA-17333).
        2. It leads the epoch of its own replica, and one machine leads each epoch.
        3. It has applied everything before its epoch and a record of it.
        """
        model.machine_epoch = epoch
        if epoch is None:
            return
        if not isinstance(role, Leader):
            name = type(role).__name__.lower()
            raise ViolationError(
                "only the leader acts", f"{model}: {name}, its machine leads epoch {epoch}"
            )
        leadership = self.history.leaderships.get(epoch)
        if leadership is None or (leadership.node_id, leadership.incarnation) != (
            model.id,
            model.incarnation,
        ):
            whose = (
                "of no known leader"
                if leadership is None
                else f"of node {leadership.node_id} (incarnation {leadership.incarnation})"
            )
            text = f"{model}: its machine leads epoch {epoch}, which is {whose}"
            raise ViolationError("only the leader acts", text)
        if model.election.leader_id != model.id or model.election.epoch != epoch:
            raise ViolationError(
                "only the leader acts",
                f"{model}: its machine leads epoch {epoch} in {election_words(model.election)}",
            )
        known = self.history.committed_at.get(applied)
        if known is None or known.epoch != epoch:
            raise ViolationError(
                "only the leader acts",
                f"{model}: its machine leads epoch {epoch}, and has applied up to {applied} only, "
                f"the end of {'nothing committed' if known is None else known}",
            )
