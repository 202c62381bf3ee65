"""Reads a view of the metadata from a snapshot file or from a directory with snapshots and a log.

Files are opened for reading only and no lock is taken, so a node may be running in the directory. A
snapshot that the node deletes meanwhile is an error; a last batch that it is writing is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quorate.base.errors import QuorateError
from quorate.base.garbage import without_collections
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import BatchView, control_records, read_batches
from quorate.formats.control import SnapshotHeader
from quorate.formats.errors import (
    FormatError,
    IncompleteBatchError,
    NewerBatchError,
    NewerRecordError,
)
from quorate.formats.files import (
    BOOTSTRAP_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_DIRECTORY,
    parse_segment_name,
    parse_snapshot_name,
    snapshot_name,
)
from quorate.formats.snapshot import SnapshotReader
from quorate.formats.supported_levels import NEWER_RECORD, OTHER_LEVEL
from quorate.metadata.errors import ReplayError, UnknownLevelError
from quorate.metadata.loader import Loader, SnapshotBuilder, log_batch
from quorate.raft.values import ControlState, KRaftVersion, LeaderChange, Voters
from quorate.shell.image_tree import ControlView, MetadataView


class LoadError(QuorateError):
    """The metadata cannot be read: what, where, and what to do."""


@dataclass(frozen=True, slots=True)
class Until:
    """Where to stop; the record at `offset` is included, as are those of `timestamp_ms`."""

    offset: int | None = None
    timestamp_ms: int | None = None

    def excludes(self, view: BatchView) -> bool:
        """Whether the batch, and so every later one, is beyond the end."""
        if self.offset is not None and view.base_offset > self.offset:
            return True
        return self.timestamp_ms is not None and view.max_timestamp > self.timestamp_ms

    def splits(self, view: BatchView) -> bool:
        return self.offset is not None and view.base_offset <= self.offset < view.last_offset


NO_END = Until()
EMPTY = MetadataView(Loader().published, ControlView(ControlState(0, None)))
"""The view of a log without a record."""


def load_snapshot(path: str) -> MetadataView:
    """The view of a snapshot file or of `bootstrap.checkpoint`.

    Raises LoadError when it is damaged or not whole, OSError when it cannot be read.
    """
    name = os.path.basename(path)
    snapshot_id = parse_snapshot_name(name)
    if snapshot_id is None:
        if not os.path.lexists(path):
            raise LoadError(f"{path} does not exist")
        if name != BOOTSTRAP_CHECKPOINT:
            raise LoadError(
                f"{path} does not have the name of a snapshot: it ends with its end offset (20 "
                "digits), a dash, its epoch (10 digits) and .checkpoint; give a log with "
                "--directory"
            )
        snapshot_id = OffsetAndEpoch(0, 0)
    with open(path, "rb") as file:
        return snapshot_view(snapshot_id, file.fileno(), path)


def snapshot_view(snapshot_id: OffsetAndEpoch, descriptor: int, name: str) -> MetadataView:
    """The view of a snapshot in an open file. Raises LoadError, which begins with `name`."""
    reader = SnapshotReader()
    builder: SnapshotBuilder | None = None
    with errors_of(name), without_collections():
        for view in _batches(descriptor):
            records = reader.add(view)
            if builder is None:
                builder = SnapshotBuilder(snapshot_id, _header_time(view))
            builder.feed(records)
        reader.finish()
        assert builder is not None, "a finished snapshot has a batch"
        return MetadataView(builder.finish(), ControlView(reader.control))


@without_collections()
def load_directory(
    path: str, until: Until = NO_END, note: Callable[[str], None] = lambda text: None
) -> MetadataView:
    """The view at the end of a directory's log, or at `until`.

    path: a metadata log directory, or its `__cluster_metadata-0`
    note: is called where the log begins after the time of `until`, or ends before it

    1. Install the newest snapshot that does not end beyond `until`.
    2. Apply each batch of the log from there, as far as `until`.
    3. Where there is neither, show what `storage format` wrote.

    The newest records of a log may not be committed yet: no file says which are. Raises LoadError, OSError.
    """
    folder = _partition_directory(Path(path))
    segments = sorted(
        (base, name)
        for name in os.listdir(folder)
        if (base := parse_segment_name(name, LOG_SUFFIX)) is not None
    )
    view = _newest_snapshot(folder, until)
    loader, control = Loader(), view.control
    if view.published.provenance.offset >= 0:
        loader.install(view.published)
    for number, (_, name) in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1][0] <= loader.next_offset:
            continue
        last = number + 1 == len(segments)
        where = str(folder / name)
        with errors_of(where, lambda: loader.next_offset), open(folder / name, "rb") as file:
            for batch in _batches(file.fileno(), cut_tail=last):
                if batch.last_offset < loader.next_offset:
                    continue
                if until.excludes(batch):
                    if loader.next_offset == 0:
                        note(_nothing_before(batch, folder))
                    return MetadataView(loader.published, control)
                _check_place(loader, batch, until, folder / name)
                control = with_controls(control, batch)
                loader.feed(log_batch(batch))
    if until.offset is not None and until.offset >= loader.next_offset:
        raise LoadError(
            f"{folder} ends at offset {loader.next_offset - 1} (inclusive): it does not have the "
            f"record at offset {until.offset}"
        )
    if loader.next_offset == 0:
        return _formatted(Path(path), folder)
    end = loader.published.provenance
    if until.timestamp_ms is not None and until.timestamp_ms > end.timestamp_ms:
        note(
            f"The last record, at offset {end.offset}, is of {_utc(end.timestamp_ms)}: the state "
            "after it is shown."
        )
    return MetadataView(loader.published, control)


def _nothing_before(first: BatchView, folder: Path) -> str:
    """What to say of a time before the first record. Raises LoadError where older ones are gone."""
    where = f"at offset {first.base_offset}, is of {_utc(first.max_timestamp)}"
    if first.base_offset > 0:
        raise LoadError(f"{folder}: the first record that is left, {where}: ask for a later time")
    return f"The first record, {where}: before it there is nothing."


def _utc(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms since 1970"


def _formatted(path: Path, folder: Path) -> MetadataView:
    """What `storage format` writes: voters in the snapshot 0-0, features in `bootstrap.checkpoint`."""
    files = (folder / snapshot_name(OffsetAndEpoch(0, 0)), path / BOOTSTRAP_CHECKPOINT)
    found = [load_snapshot(str(file)) for file in files if file.is_file()] or [EMPTY]
    return MetadataView(found[-1].published, found[0].control)


def _check_place(loader: Loader, batch: BatchView, until: Until, path: Path) -> None:
    """Raise LoadError unless the batch is the next one, and `until` does not fall inside it."""
    if batch.base_offset != loader.next_offset:
        raise LoadError(
            f"{path} goes on at offset {batch.base_offset}, but the records from "
            f"{loader.next_offset} are in no snapshot and no segment that is left; ask for a later "
            "offset, or give --snapshot"
        )
    if until.splits(batch):
        raise LoadError(
            f"offset {until.offset} is inside the batch of the offsets {batch.base_offset} to "
            f"{batch.last_offset} (inclusive), which is applied as a whole; ask for "
            f"{batch.base_offset - 1} or {batch.last_offset}"
        )


def _partition_directory(path: Path) -> Path:
    if (path / PARTITION_DIRECTORY).is_dir():
        return path / PARTITION_DIRECTORY
    if not path.exists():
        raise LoadError(f"{path} does not exist")
    if not path.is_dir():
        raise LoadError(f"{path} is not a directory; give one snapshot file with --snapshot")
    if not any(
        parse_segment_name(name, LOG_SUFFIX) is not None
        or parse_snapshot_name(name) is not None
        or name == BOOTSTRAP_CHECKPOINT
        for name in os.listdir(path)
    ):
        raise LoadError(
            f"{path} has neither {PARTITION_DIRECTORY} nor a file of a metadata log: is it the "
            "metadata.log.dir (or the first of log.dirs) of a controller?"
        )
    return path


def _newest_snapshot(folder: Path, until: Until) -> MetadataView:
    """The view of the newest snapshot not beyond `until`; the empty view without one."""
    found = sorted(
        (snapshot_id, name)
        for name in os.listdir(folder)
        if (snapshot_id := parse_snapshot_name(name)) is not None and snapshot_id.offset > 0
    )
    for snapshot_id, name in reversed(found):
        if until.offset is not None and snapshot_id.offset - 1 > until.offset:
            continue
        if until.timestamp_ms is not None and _time_of(folder / name) > until.timestamp_ms:
            continue
        return load_snapshot(str(folder / name))
    return EMPTY


def _time_of(path: Path) -> int:
    """lastContainedLogTimestamp of a snapshot, ms."""
    with errors_of(str(path)), open(path, "rb") as file:
        return _header_time(next(iter(_batches(file.fileno()))))


def _header_time(view: BatchView) -> int:
    for record in control_records(view) if view.is_control else ():
        if isinstance(record, SnapshotHeader):
            return record.last_contained_log_timestamp
    return -1


def with_controls(control: ControlView, batch: BatchView) -> ControlView:
    """The control state after a batch."""
    for record in control_records(batch) if batch.is_control else ():
        state = control.state
        if isinstance(record, LeaderChange):
            control = ControlView(state, record, batch.epoch)
        elif isinstance(record, KRaftVersion):
            state = ControlState(record.version, state.voters)
            control = ControlView(state, control.leader, control.leader_epoch)
        elif isinstance(record, Voters):
            state = ControlState(state.kraft_version, record.voters)
            control = ControlView(state, control.leader, control.leader_epoch)
    return control


def _batches(descriptor: int, *, cut_tail: bool = False) -> Iterator[BatchView]:
    """The verified batches of a file; with `cut_tail` a torn last one ends them."""
    size = os.fstat(descriptor).st_size
    try:
        yield from read_batches(lambda position, count: os.pread(descriptor, count, position), size)
    except IncompleteBatchError:
        if not cut_tail:
            raise


@contextmanager
def errors_of(path: str, read_to: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Name the file, or another source, in errors of its content.

    read_to: the end (exclusive) of what `--at-offset` can show when the error comes
    """
    try:
        yield
    except (FormatError, ReplayError) as error:
        raise LoadError(f"{path}: {error}{_advice(error, read_to())}") from error


def _advice(error: Exception, read_to: int) -> str:
    """What to do about what another release wrote; nothing for damage."""
    if isinstance(error, NewerBatchError) or isinstance(error.__cause__, NewerRecordError):
        advice = f". {NEWER_RECORD}; read it with a newer release"
    elif isinstance(error.__cause__, UnknownLevelError):
        advice = f". {OTHER_LEVEL}; read it with a release that has the level"
    else:
        return ""
    return advice + (f". --at-offset {read_to - 1} shows the state before it" if read_to else "")
