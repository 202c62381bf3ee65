"""Every batch that a leader of the world ever made: one tree, in which each log is a path.

Two logs that hold the same batch share its entry and with it everything before: log matching
(Raft, figure 3) is checked once for each batch that arrives, and holds by induction.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.base.ids import ReplicaKey
from quorate.formats.batch import read_batch, to_raft_batch
from quorate.raft.values import ControlRecord, KRaftVersion, Voter, Voters
from quorate.sim.observe import Violation
from quorate.storage.api import AppendedBatch

UNCOMMITTED = 1 << 31
"""Later than any epoch."""
_ATTRIBUTES_LOW = 22
_CONTROL = 0x20


class Entry:
    """A batch in its place: with the log before it, and what rules at its end."""

    __slots__ = (
        "base",
        "change_entry",
        "committed_in",
        "control",
        "data",
        "durable_on",
        "end",
        "epoch",
        "kraft_version",
        "parent",
        "voters",
        "voters_entry",
    )

    def __init__(self, parent: Entry | None, base: int, end: int, epoch: int, data: bytes) -> None:
        self.parent = parent
        self.base = base
        self.end = end
        self.epoch = epoch
        self.data = data
        self.committed_in = UNCOMMITTED
        """The epoch whose leader committed it."""
        self.durable_on = 0
        """Bits of the disks that hold the log up to here for sure (`Twin.bit`)."""
        self.control: tuple[ControlRecord, ...] = ()
        if parent is not None:
            self.kraft_version: int = parent.kraft_version
            self.voters: tuple[Voter, ...] | None = parent.voters
            """In force for a log that ends here; None before the first Voters record."""
            self.voters_entry: Entry | None = parent.voters_entry
            """The entry with the newest Voters record, this one included."""
            self.change_entry: Entry | None = parent.change_entry
            """The one since which these replicas vote; later ones say only where they are."""
        else:
            self.kraft_version, self.voters = 0, None
            self.voters_entry = self.change_entry = None
        if len(data) > _ATTRIBUTES_LOW and data[_ATTRIBUTES_LOW] & _CONTROL:
            self._rule()

    def _rule(self) -> None:
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

    def holds(self, entry: Entry) -> bool:
        """Is `entry` in the log that ends here? Walks over what lies between."""
        at: Entry | None = self
        while at is not None and at.end > entry.end:
            at = at.parent
        return at is entry

    def __str__(self) -> str:
        return f"[{self.base}, {self.end}) of epoch {self.epoch}"


@dataclass(slots=True)
class Reign:
    """Who leads an epoch: a node, in one of its lives; and its log when the world could hear."""

    node_id: int
    life: int
    log: Entry


class History:
    """The tree of batches, what of it is committed, and who led when."""

    def __init__(self) -> None:
        self.root = Entry(None, 0, 0, 0, b"")
        self.root.committed_in = 0
        self.root.durable_on = -1
        self.entries: dict[tuple[int, int], Entry] = {}
        """By (base offset, epoch)."""
        self.committed = self.root
        """The newest committed entry."""
        self.committed_at: dict[int, Entry] = {0: self.root}
        """By end offset."""
        self.reigns: dict[int, Reign] = {}
        """By epoch; once the leader's election is durable, so that it may speak."""
        self.newest_reign = 0
        """The highest epoch that has one."""
        self.votes: dict[int, dict[ReplicaKey, ReplicaKey]] = {}
        """By epoch: durable votes, voter -> candidate."""
        self.given: dict[int, set[tuple[int, int]]] = {}
        """By epoch: voter and candidate, by node id, of every vote that was ever durable, also of
        those that an old copy of a disk knows no more."""

    def find(self, parent: Entry, batch: AppendedBatch, who: object) -> Entry | None:
        """The entry of a batch that follows `parent`; None when nobody has made it yet."""
        known = self.entries.get((batch.base_offset, batch.epoch))
        if known is None:
            return None
        if known.parent is not parent:
            raise Violation(
                "log matching",
                f"{who}: {known} follows {parent}, elsewhere it follows {known.parent}",
            )
        if known.data != batch.data:
            raise Violation("log matching", f"{who}: {known} has two contents")
        return known

    def add(self, entry: Entry, who: object) -> None:
        """A leader whose election is durable has made it: the world may see it."""
        if self.entries.setdefault((entry.base, entry.epoch), entry) is not entry:
            raise Violation("log matching", f"{who}: {entry} was made twice")

    def commit(self, entry: Entry, who: object) -> None:
        """Everything up to `entry` is committed; nothing committed may be missing in it."""
        at: Entry | None = entry
        path: list[Entry] = []
        while at is not None and at.committed_in == UNCOMMITTED:
            path.append(at)
            at = at.parent
        if at is not self.committed:
            raise Violation(
                "committed prefix",
                f"{who} commits {entry}, whose log leaves the committed one after {at}; "
                f"{self.committed} is committed",
            )
        for step in path:
            step.committed_in = entry.epoch
            self.committed_at[step.end] = step
        self.committed = entry
