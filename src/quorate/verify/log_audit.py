"""Compares what a core and its storage believe of the log and its snapshots with the medium.

Two comparisons, each against an ExpectedLog of its own:

1. After a step: the core's start, end, last epoch and snapshot ids with the jobs that it gave to
   its disk.
2. After disk jobs: start, end, sizes, timestamps and ids of the storage with the bytes of the files,
   and both with the jobs.

A wrong belief is found where it begins, and not where a later decision depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from quorate.base.errors import InvariantError
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.core import RaftCore
from quorate.raft.ready import Clean
from quorate.replica.disk_jobs import (
    DiskFailed,
    Installed,
    Job,
    Result,
    SnapshotWritten,
    Surveyed,
    Write,
    WriteSnapshot,
)
from quorate.storage.api import SegmentInfo, SnapshotInfo
from quorate.verify.expected_log import ExpectedLog, LogFacts
from quorate.verify.medium import Medium, SegmentOnMedium, SnapshotOnMedium

_Id = tuple[int, int]
_SEGMENTS: Final = "the storage's segments"


class LogBeliefError(InvariantError):
    """A belief contradicts the medium: which one, what it is, and what it must be."""


class CoreBeliefs(Protocol):
    """What a RaftCore knows of its log."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end(self) -> OffsetAndEpoch: ...

    @property
    def snapshots(self) -> Sequence[OffsetAndEpoch]: ...


class StorageBeliefs(Protocol):
    """What a storage knows of its files."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def segments(self) -> tuple[SegmentInfo, ...]: ...

    def snapshots(self) -> tuple[SnapshotInfo, ...]: ...


class _Snapshots:
    """What `_compare_snapshots` compares: on the medium, being written, known, and expected."""

    def __init__(
        self,
        there: list[SnapshotOnMedium],
        writing: frozenset[_Id],
        known: tuple[SnapshotInfo, ...],
        expected: list[_Id],
    ) -> None:
        self.there = there
        self.writing = writing
        self.known = known
        self.expected = expected


class LogAudit:
    """Of one incarnation. `stepped` and `performed` may run on two threads.

    Every method raises LogBeliefError at the first belief that is wrong.
    """

    def __init__(self, storage: StorageBeliefs, medium: Medium, log: LogFacts) -> None:
        """The storage is open, and has recovered `log`."""
        self._storage = storage
        self._medium = medium
        self._submitted = ExpectedLog(log)
        self._performed = ExpectedLog(log)
        self._writing: frozenset[_Id] = frozenset()
        """Own snapshots that were begun: the medium may have each one, or not yet."""
        self._published: set[_Id] = set()
        """Own snapshots that the medium has had."""
        self._failed = False
        self._sizes: list[int] = []
        """Bytes of the log up to the end of each segment, as compared last."""
        self._compared: _Snapshots | None = None
        """The snapshots that were found to be right last."""

    def recovered(self) -> None:
        """After the start: recovery has read what the medium has."""
        self._compare_disk()

    def stepped(self, happened: Iterable[object], jobs: Sequence[Job], core: CoreBeliefs) -> None:
        """After a step that took `happened` and gave `jobs` to the disk."""
        expected = self._submitted
        for item in happened:
            if isinstance(item, Installed):
                expected.installed(_plain(item.snapshot_id))
            elif isinstance(item, SnapshotWritten):
                expected.wrote(_plain(item.snapshot_id))
        if jobs:
            self.begun(jobs)
            expected.submitted(jobs)
        if isinstance(core, RaftCore) and _is_right(core, expected):
            return
        _same("the core's log start", core.log_start_offset, expected.start)
        end, epoch = core.log_end
        _same("the core's log end", end, expected.end)
        _same("the core's last epoch", epoch, expected.last_epoch)
        snapshots = core.snapshots
        if snapshots or expected.snapshots:
            known = [*map(_plain, snapshots)]
            _same("the core's snapshots", known, expected.snapshots)

    def begun(self, jobs: Iterable[Job]) -> None:
        """The snapshots among the jobs appear on the medium from now on."""
        for job in jobs:
            if isinstance(job, WriteSnapshot):
                self._writing |= {_plain(job.snapshot_id)}

    def performing(self, jobs: Iterable[Job]) -> None:
        """Before the disk performs `jobs`: nobody else has changed what they append to.

        A write puts its bytes where the storage knows the end. It would hide a cut, and what was
        appended.
        """
        if self._failed or not any(isinstance(job, Write) for job in jobs):
            return
        if problem := self._medium.newest_problem():
            raise LogBeliefError(f"the log was changed by another program: {problem}")

    def performed(self, jobs: Sequence[Job], results: Sequence[Result]) -> None:
        """After the disk performed `jobs`, with `results`. Nothing is compared after a failure."""
        expected = self._performed
        wrote = any(isinstance(job, Write) for job in jobs)
        removed = expected.submitted(jobs)
        for result in results:
            if isinstance(result, DiskFailed):
                self._failed = True
            elif isinstance(result, Installed):
                expected.installed(_plain(result.snapshot_id))
                removed = True
            elif isinstance(result, SnapshotWritten):
                wrote = True
        if removed:
            self._medium.forget()
        if self._failed:
            return
        if wrote:
            self._compare_disk(cleaned=_ends_with_clean(jobs))
        elif any(isinstance(result, Surveyed) for result in results):
            self._compare_survey(next(r for r in results if isinstance(r, Surveyed)))

    # -- the files ----------------------------------------------------------------------------
    def _compare_disk(self, *, cleaned: bool = False) -> None:
        expected, storage, medium = self._performed, self._storage, self._medium
        writing = self._writing
        medium.update()
        segments = medium.segments
        if not segments:
            raise LogBeliefError("the log has no segment on the medium")
        # 1. The files. What has not changed since the last comparison was right.
        size = _checked_size(segments, medium.changed_from, self._sizes)
        medium.changed_from = len(segments)
        end = segments[-1].end_offset
        if not end == expected.end == storage.end_offset:
            _same("the end of the log on the medium", end, expected.end)
            _same("the storage's log end", storage.end_offset, end)
        # 2. What the storage knows, of all of them.
        _same("the storage's log size", storage.size, size)
        known = storage.segments()
        if not _are_equal(known, segments):
            raise LogBeliefError(
                _wrong(_SEGMENTS, [*map(_believed, known)], [*map(_read, segments)])
            )
        self._compare_start(segments, cleaned=cleaned)
        self._compare_epoch(segments)
        medium.update_snapshots()
        now_writing = self._writing
        self._compare_snapshots(writing if writing is now_writing else writing | now_writing)

    def _compare_start(self, segments: list[SegmentOnMedium], *, cleaned: bool) -> None:
        """A snapshot sets the start, and segments that end before it are removed (KIP-630).

        A segment that was the last one then stays until the next snapshot is the oldest.
        """
        start, storage = self._performed.start, self._storage
        first = segments[0].base_offset
        if first > start:
            raise LogBeliefError(f"the log starts at {start}, its first segment at {first}")
        if not self._performed.start_was_set:
            return
        _same("the storage's log start", storage.start_offset, start)
        if cleaned and len(segments) > 1 and segments[1].base_offset <= start:
            raise LogBeliefError(
                f"the log starts at {start}, and the segment from {first} on is not removed"
            )

    def _compare_epoch(self, segments: list[SegmentOnMedium]) -> None:
        expected = self._performed
        if expected.start >= expected.end:
            return
        for segment in reversed(segments):
            if segment.epochs:
                _same("the last epoch on the medium", segment.epochs[-1][0], expected.last_epoch)
                return

    def _compare_snapshots(self, writing: frozenset[_Id]) -> None:
        """Own snapshots are published by a thread of their own: they are left out while they come."""
        there = self._medium.snapshots
        known = self._storage.snapshots()
        last = self._compared
        if (
            last is not None
            and last.there is there
            and last.writing is writing
            and last.known == known
            and last.expected == self._performed.snapshots
        ):
            return  # most writes change no snapshot
        found = {one.id for one in there}
        begun = writing & found - self._published
        self._published |= begun
        for snapshot_id in begun:
            self._performed.wrote(snapshot_id)
        _same("the snapshots on the medium", sorted(found), self._performed.snapshots)
        _same(
            "the storage's snapshots",
            [_info(one) for one in known if one.id in found or _plain(one.id) not in writing],
            [_file(one) for one in there if one.id not in writing or _knows(known, one.id)],
        )
        self._compared = _Snapshots(there, writing, known, [*self._performed.snapshots])

    def _compare_survey(self, survey: Surveyed) -> None:
        """What retention is given: the sizes on the medium."""
        self._medium.update()
        size = sum(one.size for one in self._medium.segments)
        _same("the surveyed log size", survey.log_size, size)


def _is_right(core: RaftCore, expected: ExpectedLog) -> bool:
    """Whether a core knows what is expected: compiled, its properties take no look-up by name."""
    end, epoch = core.log_end
    if core.log_start_offset != expected.start or end != expected.end:
        return False
    return epoch == expected.last_epoch and [*core.snapshots] == expected.snapshots


def _checked_size(segments: list[SegmentOnMedium], first: int, sizes: list[int]) -> int:
    """The bytes of the log. Segments follow each other, from the `first` on; `sizes` has the bytes
    up to the end of each one before it."""
    del sizes[first:]
    size = sizes[-1] if sizes else 0
    end = segments[first - 1].end_offset if first else segments[0].base_offset
    for at in range(first, len(segments)):
        one = segments[at]
        if one.is_altered:
            raise LogBeliefError(
                f"the segment from {one.base_offset} on was changed by another program"
            )
        if one.rest:
            _same(f"the bytes after the segment from {one.base_offset} on", one.rest, 0)
        if end != one.base_offset:
            _same("the end of a segment that is followed", end, one.base_offset)
        size, end = size + one.size, one.end_offset
        sizes.append(size)
    return size


def _ends_with_clean(jobs: Iterable[Job]) -> bool:
    """Whether the last change of the log removed what is before a snapshot."""
    writes = [write for job in jobs if isinstance(job, Write) for write in job.writes]
    return bool(writes) and isinstance(writes[-1], Clean)


def _same(what: str, believed: object, true: object) -> None:
    if believed != true:
        raise LogBeliefError(_wrong(what, believed, true))


def _wrong(what: str, believed: object, true: object) -> str:
    return f"{what}: {believed}, and it must be {true}"


def _are_equal(known: tuple[SegmentInfo, ...], read: list[SegmentOnMedium]) -> bool:
    """Whether `_believed` and `_read` are: of hundreds of segments after every write."""
    if len(known) != len(read):
        return False
    for at in range(len(read)):
        info, found = known[at], read[at]
        if (
            info.base_offset != found.base_offset
            or info.end_offset != found.end_offset
            or info.size != found.size
            or info.first_timestamp != found.first_timestamp
            or info.max_timestamp != found.max_timestamp
        ):
            return False
    return True


def _plain(snapshot_id: tuple[int, int]) -> _Id:
    offset, epoch = snapshot_id
    return offset, epoch


def _knows(known: Iterable[SnapshotInfo], snapshot_id: _Id) -> bool:
    return any(one.id == snapshot_id for one in known)


def _info(info: SnapshotInfo) -> tuple[_Id, int, int | None]:
    return _plain(info.id), info.size, info.last_contained_log_timestamp


def _file(found: SnapshotOnMedium) -> tuple[_Id, int, int | None]:
    return found.id, found.size, found.last_contained_log_timestamp


def _believed(info: SegmentInfo) -> tuple[int, int, int, int | None, int]:
    return info.base_offset, info.end_offset, info.size, info.first_timestamp, info.max_timestamp


def _read(found: SegmentOnMedium) -> tuple[int, int, int, int | None, int]:
    return (
        found.base_offset,
        found.end_offset,
        found.size,
        found.first_timestamp,
        found.max_timestamp,
    )
