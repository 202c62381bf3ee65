"""The operations of a storage that take more than one step, and power cuts within them.

A step is a change or a sync of the disk, as a MemoryDisk reports it to its watch. Crash consistency
depends on the order of the steps within one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import LOG_SUFFIX, PART_SUFFIX, parse_segment_name
from quorate.sim.plan.plan import OPERATIONS
from quorate.sim.world.crash_points import PowerCutError, untroubled
from quorate.storage.api import AppendedBatch, Recovered
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryDisk, MemoryStorage, Watch

BETWEEN_SEGMENTS: Final = "truncate, between two segments"
INTERRUPTED: Final = (*OPERATIONS, BETWEEN_SEGMENTS)
"""The operations that `Operations` may report as interrupted."""
_TEMPORARY: Final = ".tmp"


class Operations:
    """The watch of one disk.

    It calls `trouble` before each step. If `trouble` raises, `interrupted` receives every operation
    that has begun and has not ended. `power_cut_after` is the number of steps from the begin of an operation
    to a power cut, once.
    """

    def __init__(self, interrupted: Callable[[str], None]) -> None:
        self.trouble: Watch = untroubled
        self._interrupted = interrupted
        self._asked, self._done = "", 0
        """The requested operation, and the number of its completed steps."""
        self._within, self._done_within = "", 0
        """An operation within it, or concurrent with it."""
        self._segments = self._removed = 0
        """The number of segments that a truncation must remove, and how many it has removed."""
        self.power_cut_after: tuple[str, int] | None = None
        self._left: int | None = None
        """The number of steps until the power cut."""

    def __call__(self, action: str, name: str) -> None:
        if not self._within:
            self._enter(action, name)
        try:
            if self.power_cut_after is not None or self._left is not None:
                self._count_down()
            self.trouble(action, name)
        except BaseException:
            self._interrupt()
            raise
        self._done += 1
        self._done_within += 1
        if action == "remove" and name.endswith(LOG_SUFFIX):
            self._removed += 1
        elif action == "sync directory":
            self._within = ""

    def repair(self) -> None:
        """Cancel faults and power cuts."""
        self.trouble, self.power_cut_after, self._left = untroubled, None, None

    def _count_down(self) -> None:
        if self.power_cut_after is not None:
            operation, steps = self.power_cut_after
            if (self._within, self._done_within) == (operation, 0) or (
                (self._asked, self._done) == (operation, 0)
            ):
                self.power_cut_after, self._left = None, steps
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self._left = None
                raise PowerCutError

    def begin(self, operation: str, segments: int = 0) -> None:
        """The storage begins this operation, which lasts until `end` and removes `segments`."""
        self._asked, self._done, self._within = operation, 0, ""
        self._segments, self._removed = segments, 0

    def end(self) -> None:
        self._asked = self._within = ""

    def _enter(self, action: str, name: str) -> None:
        """Detect an operation by its first step. It ends with a sync of the directory."""
        if action in ("create", "remove") and name.endswith(_TEMPORARY):
            self._within = "replace"
        elif action == "set read-only" and name.endswith(PART_SUFFIX):
            self._within = "publish"
        elif self._asked == "append" and action != "write":
            self._within = "roll"
        elif self._asked == "install" and action == "remove" and name.endswith(LOG_SUFFIX):
            self._asked, self._done = "reset", 0
            return
        else:
            return
        self._done_within = 0

    def _interrupt(self) -> None:
        if self._within and self._done_within:
            self._interrupted(self._within)
        if self._asked in OPERATIONS and self._done:
            self._interrupted(self._asked)
        if 0 < self._removed < self._segments:
            self._interrupted(BETWEEN_SEGMENTS)


class WatchedStorage(MemoryStorage):
    """Reports each requested operation to `operations`."""

    def __init__(self, disk: MemoryDisk, options: LogOptions, operations: Operations) -> None:
        super().__init__(disk, options)
        self._operations = disk.watch = operations

    def open(self) -> Recovered:
        self._operations.begin("repair")
        try:
            return super().open()
        finally:
            self._operations.end()

    def append(self, batches: Iterable[AppendedBatch]) -> None:
        self._operations.begin("append")
        try:
            super().append(batches)
        finally:
            self._operations.end()

    def truncate(self, end_offset: int) -> None:
        bases = [base for base in map(parse_segment_name, self.disk.names()) if base is not None]
        behind = sum(base > max(end_offset, self.start_offset) for base in bases)
        self._operations.begin("truncate", behind)
        try:
            super().truncate(end_offset)
        finally:
            self._operations.end()

    def install_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        self._operations.begin("install")
        try:
            super().install_snapshot(snapshot_id)
        finally:
            self._operations.end()

    def clean(self, snapshot_id: OffsetAndEpoch) -> None:
        self._operations.begin("clean")
        try:
            super().clean(snapshot_id)
        finally:
            self._operations.end()
