"""A node refuses feature levels that it does not support before they matter.

1. At the start, in the newest snapshot and in the whole log, committed or not (`check_log`).
2. In every batch that it is about to append (`FeatureGuard.check_batch`): the record is neither
   written nor acknowledged here, and this node never stands for election with it.
3. When records are applied (`FeatureGuard.check_values`): the last resort, as Kafka has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quorate.formats.batch import iter_batches, values
from quorate.formats.files import snapshot_name
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID
from quorate.formats.supported_levels import (
    FEATURE_LEVEL_FRAME,
    UnsupportedLevelError,
    check_level,
    check_values,
    level_problems,
)
from quorate.formats.versions import KRAFT_VERSION
from quorate.raft.values import Batch, KRaftVersion, RecoveredLog
from quorate.storage.batches import ReadableStorage, log_parts, snapshot_batches


class FeatureGuard:
    """Raises UnsupportedLevelError for levels outside the range that this node advertises."""

    def __init__(self, unstable: bool = False) -> None:
        """unstable: `unstable.feature.versions.enable`."""
        self.unstable = unstable

    def check_batch(self, batch: Batch) -> None:
        """Check a batch before it is appended."""
        where = f"offsets {batch.base_offset} to {batch.last_offset}"
        for record in batch.control:
            if isinstance(record, KRaftVersion):
                check_level(KRAFT_VERSION, record.version, self.unstable, where)
        payload = batch.payload
        if isinstance(payload, bytes) and FEATURE_LEVEL_FRAME in payload:
            for view in iter_batches(payload, verify=False):
                if not view.is_control:  # unreached: a control batch has no such bytes
                    check_values(values(view), self.unstable, where)

    def check_values(self, found: Iterable[bytes], where: str) -> None:
        """Check record values before they are applied; `where` is what holds them."""
        check_values(found, self.unstable, where)


def _kraft_problems(log: RecoveredLog, unstable: bool) -> Iterator[UnsupportedLevelError]:
    levels = [
        (record.version, f"offset {offset}")
        for offset, record in log.control_records
        if isinstance(record, KRaftVersion)
    ]
    if log.snapshot_control is not None:
        levels.insert(0, (log.snapshot_control.kraft_version, snapshot_name(log.snapshots[-1])))
    for level, where in levels:
        try:
            check_level(KRAFT_VERSION, level, unstable, where)
        except UnsupportedLevelError as problem:
            yield problem


def _raise(problem: UnsupportedLevelError) -> None:
    raise problem


def check_log(
    storage: ReadableStorage,
    log: RecoveredLog,
    unstable: bool,
    refuse: Callable[[UnsupportedLevelError], object] = _raise,
) -> bool:
    """Check what a node has on its disk, before it starts.

    Returns whether there is any level: without one, the log may begin with the bootstrap records.
    `refuse` gets each level that is not supported, and raises the error or notes it. Raises
    StorageError, and RecordError for a damaged record.
    """
    # 1. kraft.version.
    for problem in _kraft_problems(log, unstable):
        refuse(problem)
    # 2. The newest snapshot. Its features come first (`FeaturesImage.write`): stop behind them. The
    #    records of 0-0 are not committed state.
    found = False
    newest = log.snapshots[-1] if log.snapshots else BOOTSTRAP_SNAPSHOT_ID
    if newest != BOOTSTRAP_SNAPSHOT_ID:
        for view in snapshot_batches(storage, newest, verify=False):
            some = [] if view.is_control else values(view)
            if not some:
                continue
            for problem in level_problems(some, unstable, f"snapshot {snapshot_name(newest)}"):
                refuse(problem)
            found = found or any(value.startswith(FEATURE_LEVEL_FRAME) for value in some)
            if not some[-1].startswith(FEATURE_LEVEL_FRAME):
                break
    # 3. The log.
    start = max(newest.offset, log.start_offset)
    for data, views in log_parts(storage, start, log.end_offset, verify=False):
        if FEATURE_LEVEL_FRAME not in data:
            continue
        for view in views:
            if not view.is_control:
                some = values(view)
                where = f"offsets {view.base_offset} to {view.last_offset}"
                for problem in level_problems(some, unstable, where):
                    refuse(problem)
                found = found or any(value.startswith(FEATURE_LEVEL_FRAME) for value in some)
    return found
