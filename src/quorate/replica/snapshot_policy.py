"""When a node writes a snapshot, and which old ones it deletes (KIP-630).

Sources: `SnapshotGenerator`, `KafkaRaftLog.maybeClean`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.base.ids import OffsetAndEpoch
from quorate.storage.api import SnapshotInfo


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """Bytes and ms; the defaults are Kafka's."""

    max_bytes: int = 20_971_520
    """metadata.log.max.record.bytes.between.snapshots"""
    max_interval_ms: int = 3_600_000
    """metadata.log.max.snapshot.interval.ms; 0: never by time"""
    retention_bytes: int = 104_857_600
    """metadata.max.retention.bytes; negative: no limit"""
    retention_ms: int = 604_800_000
    """metadata.max.retention.ms; negative: no limit"""
    clean_interval_ms: int = 60_000
    """How often retention is checked; Kafka has no key for it."""
    in_proportion: bool = False
    """A snapshot is due only after as many bytes of log as the last snapshot had. So snapshots never
    write more than the log does. Not Kafka's rule."""

    def is_due(self, bytes_applied: int, age_ms: int, last_size: int = 0) -> bool:
        """A snapshot is to be written now.

        1. Never when nothing was applied since the last one was begun or loaded.
        2. When `bytes_applied` since then reach the limit (`last_size`: its bytes).
        3. When `age_ms` since then reaches the interval.
        """
        if bytes_applied == 0:
            return False
        enough = max(self.max_bytes, last_size) if self.in_proportion else self.max_bytes
        return bytes_applied >= enough or 0 < self.max_interval_ms <= age_ms

    def clean_to(
        self, log_size: int, snapshots: Sequence[SnapshotInfo], wall_ms: int
    ) -> OffsetAndEpoch | None:
        """The oldest snapshot to keep; None when nothing is to be deleted.

        1. Every snapshot that is too old goes, but the newest one, which is always kept.
        2. If none is, and log and snapshots are too large together, the oldest one goes. The next
           check measures again, because the log shrinks with it.
        """
        keep = 0
        if self.retention_ms >= 0:
            while (
                keep < len(snapshots) - 1
                and wall_ms - snapshots[keep].last_contained_log_timestamp > self.retention_ms
            ):
                keep += 1
        if (
            keep == 0
            and len(snapshots) > 1
            and 0 <= self.retention_bytes < log_size + sum(snapshot.size for snapshot in snapshots)
        ):
            keep = 1
        return snapshots[keep].id if keep else None
