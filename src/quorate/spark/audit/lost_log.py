"""A log that is missing, or has lost its end: what the side files and the other replicas show.

A node writes a snapshot, quorum-state, leader-epoch-checkpoint and the index of a segment because
its log reached that far. Where the log is shorter, they are the only evidence of the loss, so no
advice here says to delete them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import LEADER_EPOCH_CHECKPOINT, QUORUM_STATE, QuorumState, segment_name
from quorate.spark.audit.committed import CommittedLog, ReplicaLog
from quorate.spark.audit.model import DAMAGE, REPLACE_REPLICA, WARNING, Finding, ReplicaFiles, Spot

_LOST: Final = (
    "Do not start the node: records that it acknowledged may be lost. Copy the directory again with "
    "the node stopped. If the finding remains, restore the log as it was, or " + REPLACE_REPLICA
)
_PERHAPS: Final = (
    "Copy the directories of all voters again with the nodes stopped. If the finding remains, "
    "restore the log as it was, or " + REPLACE_REPLICA
)
_ALONE: Final = "Copy the whole directory with the node stopped"
_NOTHING: Final = "No action is needed: the next start rebuilds the file from the log"


@dataclass(frozen=True, slots=True)
class SideFiles:
    """What the files beside a replica's log say."""

    replica: ReplicaFiles
    state: QuorumState | None
    """None: there is no readable quorum-state."""
    epochs: Sequence[tuple[int, int]]
    """(epoch, first offset) of leader-epoch-checkpoint."""

    @property
    def led(self) -> int | None:
        """The epoch that this node led according to its own quorum-state."""
        if self.state is None or self.state.election.leader_id != self.replica.node_id:
            return None
        return self.state.election.epoch

    @property
    def newest(self) -> OffsetAndEpoch:
        """The id of the newest snapshot."""
        return max((found for found, _ in self.replica.snapshots), default=OffsetAndEpoch(0, 0))


def check_missing_log(beside: SideFiles) -> list[Finding]:
    """Findings for a replica without any segment.

    A formatted directory that no node has used needs none.
    """
    replica, newest = beside.replica, beside.newest
    path = f"{replica.path}/{segment_name(newest.offset)}"
    used = replica.quorum_state is not None or replica.epochs is not None
    if not used and newest.offset == 0 and replica.snapshots:
        return []  # formatted, and never started
    evidence = list(_beyond_snapshot(beside))
    if not evidence and newest.offset > 0:
        evidence = ["only a crash while a node installs a snapshot leaves no segment beside it"]
    what = "; ".join(["there is no segment of the log", *evidence])
    how = (DAMAGE, _LOST) if used else (WARNING, _ALONE)
    return [Finding("log-missing", how[0], what, how[1], Spot(path, newest.offset))]


def _beyond_snapshot(beside: SideFiles) -> Iterator[str]:
    """What shows that the log reached beyond the newest snapshot."""
    newest = beside.newest
    later = [epoch for epoch, _ in beside.epochs if epoch > newest.epoch]
    if later:
        yield f"{LEADER_EPOCH_CHECKPOINT} has epoch {later[-1]}"
    if beside.led is not None and beside.led > newest.epoch:
        yield f"{QUORUM_STATE} says that this node led epoch {beside.led}"
    elif newest.offset == 0 and beside.state is not None and beside.state.election.epoch > 0:
        yield f"{QUORUM_STATE} is of epoch {beside.state.election.epoch}"


def check_log_end(
    beside: SideFiles,
    log: ReplicaLog,
    end: int,
    others: Sequence[ReplicaLog],
    main: CommittedLog | None,
    *,
    whole: bool,
) -> list[Finding]:
    """Findings for a log that ends at `end` (exclusive), which side files say was longer.

    log: its sound part; whole: that is all of it; others: the logs of the other replicas; main:
    the committed log. Evidence that a copy of a running node may leave, too, is a warning only.
    """
    sure: list[str] = []
    perhaps: list[str] = []
    if beside.newest.offset > end:
        sure.append(f"it has a snapshot of {beside.newest.offset}")
    stale: list[Finding] = []
    if whole:
        sure += _lost_epochs(beside, log, main, stale)
        _own_epoch(beside, log, others, sure, perhaps)
        perhaps += [
            f"{base:020d}.index exists without its segment"
            for base in beside.replica.indexes
            if base >= max(end, 1)
        ]
    if not sure and not perhaps:
        return stale
    what = f"the log ends before offset {end}, but {'; '.join([*sure, *perhaps])}: its end is lost"
    if not sure:
        what += ", or it was copied while the node ran"
    base, file = beside.replica.segments[-1]
    spot = Spot(file.name, base, file.size, end)
    how = (DAMAGE, _LOST) if sure else (WARNING, _PERHAPS)
    return [*stale, Finding("log-end", how[0], what, how[1], spot)]


def _lost_epochs(
    beside: SideFiles, log: ReplicaLog, main: CommittedLog | None, stale: list[Finding]
) -> Iterator[str]:
    """Epochs of leader-epoch-checkpoint that begin at or after the end of the log.

    Those that the committed log replaced go to `stale`, as warnings: a follower that truncated its
    log was stopped before it wrote the file again.
    """
    known = {span.epoch for span in log.spans}
    for epoch, start in beside.epochs:
        if epoch in known or start < log.end:
            continue
        ruling = None if main is None else main.main.epoch_at(start)
        if ruling in (None, epoch):
            yield f"{LEADER_EPOCH_CHECKPOINT} says that epoch {epoch} begins at offset {start}"
            return
        file = beside.replica.epochs
        what = (
            f"it says that epoch {epoch} begins at offset {start}, where the log ends and the "
            f"quorum holds epoch {ruling}: the rest of a truncated tail"
        )
        spot = Spot(None if file is None else file.name)
        stale.append(Finding("epochs", WARNING, what, _NOTHING, spot))


def _own_epoch(
    beside: SideFiles,
    log: ReplicaLog,
    others: Sequence[ReplicaLog],
    sure: list[str],
    perhaps: list[str],
) -> None:
    """Evidence from an epoch that this node led: what others have of it came from this log.

    Where its log lacks the whole epoch and another has records of it, the loss is certain. Less of
    the epoch than a snapshot covers is a warning: the snapshot may have been copied later.
    """
    led = beside.led
    if led is None:
        return
    says = f"{QUORUM_STATE} says that this node led epoch {led}"
    if led <= (log.last_epoch or 0):
        if any(one.replica.node_id == beside.replica.node_id for one in others):
            return  # one of several copies of the directory, from different days
        known = {one: other for other in others for one in other.snapshots if one.epoch == led}
        newest = max(known, default=None)
        if led == log.last_epoch and newest is not None and newest.offset > log.end:
            where = known[newest].replica.path
            perhaps.append(f"{says}, of which {where} has a snapshot of {newest.offset}")
        return
    theirs = [one.replica.path for one in others if any(span.epoch == led for span in one.spans)]
    if theirs:
        sure.append(f"{says}, of which {theirs[0]} has records")
    else:
        perhaps.append(f"{says}, of which no log here has a record")
