"""What a replica replicates: the interface of a state machine.

The metadata image is one (`metadata_machine`); a store of opaque records that a program embeds is
another. A machine touches no disk, and everything it is told happens in the order of the log, once
for each record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from quorate.base.frozen import frozen
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.values import ControlState


@frozen
class Now:
    """The time as the driver tells it, ms: for timers, and since 1970 for what is written."""

    monotonic_ms: int
    wall_ms: int


@frozen
class Entry:
    """One committed batch, or what is left of it when the machine took a part."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    values: Sequence[bytes]
    """One for each offset; none at all in a control batch, which is the replica's own."""


class Machine(Protocol):
    """Driven by one replica from one thread. An exception of QuorateError stops the replica."""

    notes: list[str]
    """Facts for the log of the node; the replica takes them out after each step."""

    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        """Forget everything: a snapshot comes. `timestamp_ms`: of the newest batch it covers."""

    def load(self, values: Sequence[bytes]) -> None:
        """The next records of the snapshot."""

    def end_load(self) -> None:
        """The snapshot was whole: the log goes on at its end offset."""

    def apply(self, entry: Entry) -> int:
        """The next batch of the log, which is committed: how many of its values were taken.

        All; or fewer, even none, to let the replica answer its peers: what is left comes with the
        next step, of which it takes one at least.
        """

    def freeze(self) -> Iterable[bytes] | None:
        """The record values of a snapshot of all that was applied, asked for between batches only.

        May be consumed later and on another thread. None: not now (inside a transaction).
        """

    def lead(self, epoch: int, now: Now) -> None:
        """This replica is the active one; everything before `epoch` has been applied."""

    def follow(self, leader_id: int, epoch: int) -> None:
        """Another one is (-1: nobody known); what was proposed may or may not commit."""

    def poll(self, now: Now, control: ControlState) -> Sequence[Sequence[bytes]]:
        """Batches to propose now; asked after every step while this replica leads.

        `control` is the kraft.version and voter set in force.
        """

    def wake_at_ms(self) -> int | None:
        """When, on the monotonic clock, `poll` may have something to say by itself."""
