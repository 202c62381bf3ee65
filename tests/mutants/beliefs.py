"""Mutants of what core and storage believe of the log: no later decision needs to rest on them."""

from __future__ import annotations

from mutants.edit import begin_with, drop, replace
from mutants.mutant import Mutant
from quorate.raft import log_index
from quorate.storage import log, segment, snapshots

BELIEFS = (
    Mutant(
        "log-start-stays",
        "after a removal before a snapshot the core still has the log's old start",
        log_index.LogIndex.clean,
        drop("self.start_offset = snapshot_id.offset"),
    ),
    Mutant(
        "replaced-snapshot-stays-known",
        "a core that installs a snapshot still lists the older ones, which are removed",
        log_index.LogIndex.install,
        replace("[s for s in self.snapshots if s > snapshot_id]", "list(self.snapshots)"),
    ),
    Mutant(
        "storage-start-stays",
        "after a removal before a snapshot the storage still has the log's old start",
        log.SegmentedLog.clean,
        drop("self.start_offset = start_offset"),
    ),
    Mutant(
        "log-size-of-removed-segments",
        "the log's size counts segments that were removed",
        log.SegmentedLog._sum_up,
        begin_with("return"),
    ),
    Mutant(
        "timestamp-survives-truncation",
        "a truncated segment keeps the newest timestamp of the removed batches",
        segment.Segment.truncate,
        replace("self.max_timestamp, self.max_timestamp_offset = newest", "_ = newest"),
    ),
    Mutant(
        "snapshot-file-stays",
        "the file of a snapshot that retention drops is not removed",
        snapshots.SnapshotStore.drop_before,
        drop("self._disk.remove(snapshot_name(known))"),
    ),
)
