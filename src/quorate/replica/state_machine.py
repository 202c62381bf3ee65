"""The interface of a replicated state machine, as a replica drives it.

The metadata image is one (`node.metadata_machine`); the opaque entries of a program that embeds a
replica are another (`embed.machine`). A state machine touches no disk. It is given each record once,
in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from quorate.base.frozen import frozen
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.values import ControlState


@frozen
class Now:
    """The driver's two clocks, ms: monotonic for timers, since 1970 for what is written."""

    monotonic_ms: int
    wall_ms: int


@frozen
class CommittedBatch:
    """One committed batch, or the rest of it after the state machine took a part.

    Offsets are inclusive.
    """

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    values: Sequence[bytes]
    """One for each offset. A control batch has none: its records are for the replica itself."""


class ReplicatedStateMachine(Protocol):
    """Driven by one replica from one thread. A QuorateError that it raises stops the replica."""

    notes: list[str]
    """Lines for the log of the node; the replica removes them after each step."""

    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        """Forget everything: a snapshot follows.

        `snapshot_id` is its end offset (exclusive) and epoch; `timestamp_ms` is the time, since
        1970, of the newest batch that it covers.
        """

    def load(self, values: Sequence[bytes]) -> None:
        """The next records of the snapshot."""

    def end_load(self) -> None:
        """The snapshot is complete; the next batch begins at its end offset."""

    def apply(self, batch: CommittedBatch) -> int:
        """Apply the next committed batch; returns how many of its values were applied.

        Fewer than all, even none, lets the replica answer its peers in between: the rest follows in
        the next step, when the state machine applies one value at least.
        """

    def freeze(self) -> Iterable[bytes] | None:
        """The record values of a snapshot of all that was applied. Called between batches only.

        The values may be consumed later, on another thread, while `apply` goes on. None: there can
        be no snapshot now (inside a metadata transaction).
        """

    def lead(self, epoch: int, now: Now) -> None:
        """This replica leads, and everything before `epoch` is applied."""

    def follow(self, leader_id: int, epoch: int) -> None:
        """Another replica leads (-1: none is known). What was proposed may or may not commit."""

    def poll(self, now: Now, control: ControlState) -> Sequence[Sequence[bytes]]:
        """Batches of its own that a state machine wants to be proposed now, without a token.

        Called in every step while this replica leads; a controller's writes do not come this way.
        `control` is the kraft.version and voter set in force.
        """

    def wake_at_ms(self) -> int | None:
        """When `poll` has a batch at the latest, monotonic ms; None: no time decides."""
