"""Mutants of the replica, which feeds the state machine, that no unit test finds."""

from __future__ import annotations

from mutants.edit import drop, replace
from mutants.mutant import Mutant
from quorate.replica import applier, proposals, replica, tail

REPLICA = (
    Mutant(
        "applies-uncommitted-records",
        "the state machine applies records up to the end of the log",
        replica.Replica._apply,
        replace("self._high_watermark", "self._tail.end_offset"),
    ),
    Mutant(
        "resignation-not-passed-on",
        "the state machine does not learn that its replica no longer leads",
        replica.Replica._leader_changed,
        drop("self.machine.follow(...)"),
    ),
    Mutant(
        "tail-trim-off-by-one",
        "after a trim the tail in memory returns another batch than the requested one",
        tail.Tail._trim,
        replace(
            "del self._batches[:count], self._bases[:count]",
            "del self._batches[:count], self._bases[: count - 1]",
        ),
    ),
    # -- snapshots ---------------------------------------------------------------------------
    Mutant(
        "snapshot-inside-a-batch",
        "a snapshot has a part of the batch that is being applied",
        replica.Replica._snapshot,
        drop("if applier.is_inside_a_batch: ..."),
    ),
    Mutant(
        "rest-of-a-batch-after-a-snapshot",
        "the rest of a batch is applied after a snapshot was loaded",
        applier.Applier.load,
        drop("self._left = None"),
    ),
    Mutant(
        "snapshot-of-the-newest-epoch",
        "a snapshot is named by the present epoch, not by the epoch of its last record",
        replica.Replica._snapshot,
        replace("applier.applied", "OffsetAndEpoch(applier.applied.offset, self.core.epoch)"),
    ),
    Mutant(
        "no-snapshot-after-a-failed-one",
        "a replica that could not write a snapshot never writes one again",
        replica.Replica._take_snapshot,
        drop("self._writing_snapshot = False", followed_by="text = _"),
    ),
    # -- times -------------------------------------------------------------------------------
    Mutant(
        "snapshot-timestamp-zero",
        "a snapshot's last contained log timestamp is 0",
        replica.Replica._snapshot,
        replace("applier.timestamp_ms", "0"),
    ),
    Mutant(
        "batch-timestamp-zero",
        "the timestamp of the state machine's batches is 0",
        proposals.Proposals._event,
        replace("wall_ms", "0"),
    ),
    Mutant(
        "control-batch-timestamp-zero",
        "the timestamp of the core's control batches is 0",
        replica.Replica._encode,
        replace("self._wall_ms", "0"),
    ),
    Mutant(
        "applied-timestamp-zero",
        "the state machine gets the timestamp 0 with each batch",
        applier._entry,
        replace("view.max_timestamp", "0"),
    ),
)
