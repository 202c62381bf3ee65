"""Every batch that a leader of the world has appended, in one tree; each log is a path in it.

Two logs that hold the same batch share its node and therefore everything before it. The Log
Matching property (Raft, figure 3) is checked once for each batch that arrives and follows by
induction for the rest of the log.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.base.ids import ReplicaKey
from quorate.formats.batch import read_batch, to_raft_batch
from quorate.raft.values import ControlRecord, KRaftVersion, Voter, Voters
from quorate.sim.world.observer import ViolationError
from quorate.storage.api import AppendedBatch

UNCOMMITTED = 1 << 31
"""The epoch of a batch that is not committed: later than any real epoch."""
_ATTRIBUTES_LOW = 22
_CONTROL = 0x20


class LoggedBatch:
    """One batch of the tree, with the log before it and the control state at its end."""

    __slots__ = (
        "base",
        "change_entry",
        "committed_epoch",
        "control",
        "data",
        "durable_disks",
        "end",
        "epoch",
        "kraft_version",
        "parent",
        "voters",
        "voters_entry",
    )

    def __init__(
        self, parent: LoggedBatch | None, base: int, end: int, epoch: int, data: bytes
    ) -> None:
        self.parent = parent
        self.base = base
        self.end = end
        self.epoch = epoch
        self.data = data
        self.committed_epoch = UNCOMMITTED
        """Epoch of the leader that committed the batch."""
        self.durable_disks = 0
        """Bit set of the disks that durably hold the log up to here (`ReplicaModel.disk_bit`)."""
        self.control: tuple[ControlRecord, ...] = ()
        if parent is not None:
            self.kraft_version: int = parent.kraft_version
            self.voters: tuple[Voter, ...] | None = parent.voters
            """The voter set of a log that ends here; None before the first Voters record."""
            self.voters_entry: LoggedBatch | None = parent.voters_entry
            """The newest batch with a Voters record, this one included."""
            self.change_entry: LoggedBatch | None = parent.change_entry
            """The batch since which these replicas are voters. Later Voters records changed only
            endpoints or version ranges."""
        else:
            self.kraft_version, self.voters = 0, None
            self.voters_entry = self.change_entry = None
        if len(data) > _ATTRIBUTES_LOW and data[_ATTRIBUTES_LOW] & _CONTROL:
            self._read_control_records()

    def _read_control_records(self) -> None:
        self.control = to_raft_batch(read_batch(self.data, 0)).control
        for record in self.control:
            if isinstance(record, KRaftVersion):
                self.kraft_version = record.version
            elif isinstance(record, Voters):
                self.voters, self.voters_entry = record.voters, self
        if self.voters_entry is self and (
            self.parent is None
            or self.parent.voters is None
            or {voter.key for voter in self.parent.voters}
            != {voter.key for voter in self.voters or ()}
        ):
            self.change_entry = self

    def holds(self, entry: LoggedBatch) -> bool:
        """Whether `entry` is in the log that ends here. Walks over the batches between the two."""
        at: LoggedBatch | None = self
        while at is not None and at.end > entry.end:
            at = at.parent
        return at is entry

    def __str__(self) -> str:
        return f"[{self.base}, {self.end}) of epoch {self.epoch}"


@dataclass(slots=True)
class Leadership:
    """The leader of an epoch: a node, its incarnation, and its log when its election became
    durable."""

    node_id: int
    incarnation: int
    log: LoggedBatch


class ClusterHistory:
    """The tree of batches, its committed part, and the leaders and votes of every epoch."""

    def __init__(self) -> None:
        self.root = LoggedBatch(None, 0, 0, 0, b"")
        self.root.committed_epoch = 0
        self.root.durable_disks = -1
        self.entries: dict[tuple[int, int], LoggedBatch] = {}
        """By (base offset, epoch)."""
        self.committed = self.root
        """The newest committed batch."""
        self.committed_at: dict[int, LoggedBatch] = {0: self.root}
        """Committed batches by end offset (exclusive)."""
        self.leaderships: dict[int, Leadership] = {}
        """By epoch. An epoch is entered when its leader's election is durable, so that the leader
        may send."""
        self.newest_led_epoch = 0
        """The highest epoch in `leaderships`."""
        self.votes: dict[int, dict[ReplicaKey, ReplicaKey]] = {}
        """Durable votes by epoch: voter -> candidate."""
        self.granted_votes: dict[int, set[tuple[int, int]]] = {}
        """By epoch: (voter id, candidate id) of every vote that ever was durable, including votes
        that a restored disk has lost."""

    def find(self, parent: LoggedBatch, batch: AppendedBatch, who: object) -> LoggedBatch | None:
        """The known batch that follows `parent`; None when no replica has appended it yet.

        Log Matching (Raft, figure 3): "if two logs contain an entry with the same index and term,
        then the logs are identical in all entries up through the given index". Raises
        ViolationError otherwise.
        """
        known = self.entries.get((batch.base_offset, batch.epoch))
        if known is None:
            return None
        if known.parent is not parent:
            raise ViolationError(
                "log matching",
                f"{who}: {known} follows {parent}, elsewhere it follows {known.parent}",
            )
        if known.data != batch.data:
            raise ViolationError("log matching", f"{who}: {known} has two contents")
        return known

    def add(self, entry: LoggedBatch, who: object) -> None:
        """Add a batch of a leader whose election is durable: other replicas may receive it."""
        if self.entries.setdefault((entry.base, entry.epoch), entry) is not entry:
            raise ViolationError("log matching", f"{who}: {entry} was made twice")

    def commit(self, entry: LoggedBatch, who: object) -> None:
        """Mark everything up to `entry` as committed.

        State Machine Safety (Raft, figure 3): a committed batch stays committed. Raises
        ViolationError where the log of `entry` lacks the newest committed batch.
        """
        at: LoggedBatch | None = entry
        path: list[LoggedBatch] = []
        while at is not None and at.committed_epoch == UNCOMMITTED:
            path.append(at)
            at = at.parent
        if at is not self.committed:
            raise ViolationError(
                "committed prefix",
                f"{who} commits {entry}, whose log leaves the committed one after {at}; "
                f"{self.committed} is committed",
            )
        for step in path:
            step.committed_epoch = entry.epoch
            self.committed_at[step.end] = step
        self.committed = entry
