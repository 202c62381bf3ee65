"""Lookups in a log's index for fetch validation and truncation.

The check queries the index itself, at positions and epochs that few replicas of a world request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.log_index import Diverging
from quorate.sim.checks.history import LoggedBatch
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.log_index import LogIndex

CHECK = "fetch position validation"
BORDERS = "log batch borders"


def check_fetch_positions(model: ReplicaModel, log: LogIndex) -> None:
    """The end of an epoch is a valid fetch position for that epoch, and diverging for an older one
    (KIP-595, fetch validation; `RaftLog.validateOffsetAndEpoch`)."""
    ends = _epoch_ends(model, log.start_offset)
    epochs = {place.epoch for place in ends}
    older = sorted(epochs | {epoch - 1 for epoch in epochs if epoch > 0})
    for place in ends:
        if isinstance(log.validate(place.end, place.epoch), Diverging):
            raise ViolationError(
                CHECK, f"{model} has {place}, and reports a replica with the same end as diverging"
            )
        for epoch in older:
            if epoch < place.epoch and log.validate(place.end, epoch) is None:
                raise ViolationError(
                    CHECK,
                    f"{model} has {place}, and accepts a replica with a record of epoch {epoch} before "
                    f"{place.end}; its log starts at {log.start_offset}, its snapshots "
                    f"are {', '.join(str(tuple(known)) for known in log.snapshots)}",
                )


def check_batch_borders(model: ReplicaModel, log: LogIndex) -> None:
    """A batch has a border at its begin and none inside: a truncation ends at a border
    (`RaftLog.truncateToEndOffset`). The index may forget older borders."""
    appended, model.newly_appended = model.newly_appended, []
    for entry in appended:
        if entry is not model.tip and entry.base < log.known_from:
            continue
        last = entry.end - 1
        if log.border_at_or_before(entry.base) != entry.base:
            raise ViolationError(BORDERS, f"{model} has {entry}, and no border at its begin")
        if log.border_at_or_before(last) != entry.base:
            raise ViolationError(BORDERS, f"{model} has {entry}, and a border inside at {last}")


def _epoch_ends(model: ReplicaModel, start: int) -> list[LoggedBatch]:
    """The last batch of each epoch from the log start on, and the batch that ends there."""
    entry = model.tip
    ends = [entry] if entry.end > 0 else []
    while entry.parent is not None and entry.parent.end >= max(start, 1):
        before = entry.parent
        if before.epoch != entry.epoch or before.end == start:
            ends.append(before)
        entry = before
    return ends
