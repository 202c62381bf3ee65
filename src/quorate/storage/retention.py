"""Which snapshot to clean to, by size and age (`KafkaRaftLog.maybeClean`)."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.base.ids import OffsetAndEpoch
from quorate.storage.api import SnapshotInfo


def choose(
    snapshots: Sequence[SnapshotInfo], log_size: int, now_ms: int, max_bytes: int, max_ms: int
) -> OffsetAndEpoch | None:
    """The snapshot that shall become the oldest; None when nothing is to be dropped.

    `snapshots` ascending, `log_size` the bytes of all segments. The oldest is dropped when log
    and snapshots together exceed `max_bytes`, or when the last batch it covers is older than
    `max_ms`; a negative limit is none. The newest is never dropped. One at a time: ask again
    after cleaning, for the log has shrunk too.
    """
    if len(snapshots) < 2:
        return None
    oldest, following = snapshots[0], snapshots[1]
    too_large = 0 <= max_bytes < log_size + sum(snapshot.size for snapshot in snapshots)
    too_old = 0 <= max_ms < now_ms - oldest.last_contained_log_timestamp
    return following.id if too_large or too_old else None
