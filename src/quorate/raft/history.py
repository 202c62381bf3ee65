"""Values by log offset: what was in force where, taken back when the log is truncated."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Generic, TypeVar

from quorate.base.check import check
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.values import ControlRecord, ControlState, KRaftVersion, RecoveredLog, Voters
from quorate.raft.voters import VoterSet

T = TypeVar("T")


class LogHistory(Generic[T]):
    """Values with the offset of the record that set each (`LogHistory`).

    -1 is the offset of what the bootstrap snapshot holds.
    """

    __slots__ = ("_offsets", "_values")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._values: list[T] = []

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, offset: int, value: T) -> None:
        """Record that `value` rules from `offset` on; offsets only grow."""
        last = self._offsets[-1] if self._offsets else -2
        check(offset > last, "history offsets must grow", last, offset)
        self._offsets.append(offset)
        self._values.append(value)

    def last(self) -> tuple[int, T] | None:
        """(offset, value) of the newest entry."""
        return (self._offsets[-1], self._values[-1]) if self._offsets else None

    def replaced(self, same: Callable[[T, T], bool]) -> tuple[int, T] | None:
        """The newest value that was not the `same` as the last, and the offset that ended it."""
        for index in range(len(self._values) - 1, 0, -1):
            if not same(self._values[index - 1], self._values[-1]):
                return self._offsets[index], self._values[index - 1]
        return None

    def at(self, offset: int) -> T | None:
        """The value set at or before `offset`."""
        index = bisect_right(self._offsets, offset)
        return self._values[index - 1] if index else None

    def truncate(self, end_offset: int) -> bool:
        """Forget entries at `end_offset` and after; True when there were any."""
        index = bisect_left(self._offsets, end_offset)
        if index == len(self._offsets):
            return False
        del self._offsets[index:], self._values[index:]
        return True

    def compact(self, start_offset: int) -> None:
        """Forget entries before `start_offset`, but the one that still rules there."""
        index = bisect_right(self._offsets, start_offset) - 1
        if index > 0:
            del self._offsets[:index], self._values[:index]

    def clear(self) -> None:
        self._offsets.clear()
        self._values.clear()


class ControlHistory:
    """kraft.version and voter set by offset: static, then snapshot, then log.

    A record rules from the moment it is in the log, committed or not
    (`KRaftControlRecordStateMachine`).
    """

    __slots__ = ("_current", "_static", "_versions", "_voters", "state", "version")

    version: int
    """kraft.version in force."""
    state: ControlState
    """Version and voter set in force, static voters included."""

    def __init__(self, static_voters: VoterSet, log: RecoveredLog) -> None:
        self._static = static_voters
        self._voters: LogHistory[VoterSet] = LogHistory()
        self._versions: LogHistory[int] = LogHistory()
        self._refresh()
        newest = log.snapshots[-1] if log.snapshots else None
        if newest is not None and log.snapshot_control is not None:
            self.reset(newest, log.snapshot_control)
        for offset, record in log.control_records:
            if newest is None or offset >= newest.offset:
                self.apply(offset, record)

    @property
    def voters(self) -> VoterSet:
        """The voter set in force: the newest of the log or snapshot, else the static one."""
        return self._current

    @property
    def has_voters(self) -> bool:
        """Does the log or a snapshot hold a voter set, so that static voters count for nothing?"""
        return len(self._voters) > 0

    @property
    def static_voters(self) -> VoterSet:
        return self._static

    @property
    def voters_offset(self) -> int | None:
        """Offset of the newest Voters record; -1 in the bootstrap snapshot; None without one."""
        last = self._voters.last()
        return None if last is None else last[0]

    @property
    def replaced_voters(self) -> tuple[int, VoterSet] | None:
        """The voters before those of now, where they are still known, and the offset of the record
        that replaced them: later ones may have brought other addresses, but no other voters."""
        return self._voters.replaced(_same_replicas)

    @property
    def version_offset(self) -> int | None:
        """Offset of the newest KRaftVersion record; None without one."""
        last = self._versions.last()
        return None if last is None else last[0]

    def reset(self, snapshot_id: OffsetAndEpoch, control: ControlState) -> None:
        """Forget all and start from what a snapshot holds."""
        self._voters.clear()
        self._versions.clear()
        if control.kraft_version > 0:
            self._versions.add(snapshot_id.offset - 1, control.kraft_version)
        if control.voters is not None:
            self._voters.add(snapshot_id.offset - 1, VoterSet(control.voters))
        self._refresh()

    def apply(self, offset: int, record: ControlRecord) -> bool:
        """Take a record of the log into force; True when it was one that rules."""
        if isinstance(record, KRaftVersion):
            self._versions.add(offset, record.version)
        elif isinstance(record, Voters):
            self._voters.add(offset, VoterSet(record.voters))
        else:
            return False
        self._refresh()
        return True

    def truncate(self, end_offset: int) -> bool:
        """The log was truncated: what ruled before rules again. True when something changed."""
        voters = self._voters.truncate(end_offset)
        versions = self._versions.truncate(end_offset)
        if voters or versions:
            self._refresh()
        return voters or versions

    def compact(self, start_offset: int) -> None:
        """No caller asks any more for the values in force before the record at `start_offset`."""
        self._voters.compact(start_offset)
        self._versions.compact(start_offset)

    def at(self, end_offset: int) -> ControlState:
        """What rules in the log that ends at `end_offset` (exclusive)."""
        voters = self._voters.at(end_offset - 1)
        return ControlState(
            kraft_version=self._versions.at(end_offset - 1) or 0,
            voters=None if voters is None else voters.voters,
        )

    def _refresh(self) -> None:
        voters, version = self._voters.last(), self._versions.last()
        self._current = self._static if voters is None else voters[1]
        self.version = 0 if version is None else version[1]
        self.state = ControlState(self.version, self._current.voters)


def _same_replicas(one: VoterSet, other: VoterSet) -> bool:
    return one.keys == other.keys
