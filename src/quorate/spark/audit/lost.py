"""A log that is gone, or whose end is: told by what stands beside it, and by the other replicas.

A snapshot, quorum-state, leader-epoch-checkpoint and the index of a segment are written because the
log had come so far. Where it has not, they are the only witnesses that something was lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import LEADER_EPOCH_CHECKPOINT, QUORUM_STATE, QuorumState, segment_name
from quorate.spark.audit.chain import JOIN_ANEW
from quorate.spark.audit.commit import Chain, Committed
from quorate.spark.audit.model import DAMAGE, WARNING, Finding, Replica, Spot

_LOST: Final = (
    "Do not start the node: what it acknowledged may be forgotten. Copy the directory again with "
    "the node stopped; if it still says so, restore the log as it was, or " + JOIN_ANEW
)
_PERHAPS: Final = (
    "Copy the directories of all voters again with the nodes stopped; if it still says so, restore "
    "the log as it was, or " + JOIN_ANEW
)
_ALONE: Final = "Copy the whole directory, with the node stopped"
_NOTHING: Final = "Nothing is to be done: the next start writes the file anew from the log"


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What stands beside the log of a replica."""

    replica: Replica
    state: QuorumState | None
    """None: there is no quorum-state that can be read."""
    epochs: Sequence[tuple[int, int]]
    """(epoch, first offset) of leader-epoch-checkpoint."""

    @property
    def led(self) -> int | None:
        """The epoch that this node led by its own quorum-state."""
        if self.state is None or self.state.election.leader_id != self.replica.node_id:
            return None
        return self.state.election.epoch

    @property
    def newest(self) -> OffsetAndEpoch:
        """The id of the newest snapshot."""
        return max((found for found, _ in self.replica.snapshots), default=OffsetAndEpoch(0, 0))


def judge_missing_log(beside: Witnesses) -> list[Finding]:
    """Of a replica without any segment; only snapshots that were copied alone miss none."""
    replica, newest = beside.replica, beside.newest
    path = f"{replica.path}/{segment_name(newest.offset)}"
    used = replica.quorum_state is not None or replica.epochs is not None
    if not used and newest.offset == 0 and replica.snapshots:
        return []  # formatted, and never started
    told = list(_beyond_snapshot(beside))
    if not told and newest.offset > 0:
        told = ["only a node that dies while it installs a snapshot leaves no segment beside it"]
    what = "; ".join(["there is no segment of the log", *told])
    how = (DAMAGE, _LOST) if used else (WARNING, _ALONE)
    return [Finding("log-missing", how[0], what, how[1], Spot(path, newest.offset))]


def _beyond_snapshot(beside: Witnesses) -> Iterator[str]:
    newest = beside.newest
    later = [epoch for epoch, _ in beside.epochs if epoch > newest.epoch]
    if later:
        yield f"{LEADER_EPOCH_CHECKPOINT} knows epoch {later[-1]}"
    if beside.led is not None and beside.led > newest.epoch:
        yield f"{QUORUM_STATE} says that this node led epoch {beside.led}"
    elif newest.offset == 0 and beside.state is not None and beside.state.election.epoch > 0:
        yield f"{QUORUM_STATE} is of epoch {beside.state.election.epoch}"


def judge_log_end(
    beside: Witnesses,
    chain: Chain,
    end: int,
    others: Sequence[Chain],
    main: Committed | None,
    *,
    whole: bool,
) -> list[Finding]:
    """Of a log that ends at `end` (exclusive); `whole`: it was sound to there."""
    sure: list[str] = []
    perhaps: list[str] = []
    if beside.newest.offset > end:
        sure.append(f"it has a snapshot of {beside.newest.offset}")
    stale: list[Finding] = []
    if whole:
        sure += _lost_epochs(beside, chain, main, stale)
        _own_epoch(beside, chain, others, sure, perhaps)
        perhaps += [
            f"{base:020d}.index is there without its segment"
            for base in beside.replica.indexes
            if base >= max(end, 1)
        ]
    if not sure and not perhaps:
        return stale
    what = f"the log ends at offset {end}, but {'; '.join([*sure, *perhaps])}: its end is lost"
    if not sure:
        what += ", or it was copied while the node ran"
    base, file = beside.replica.segments[-1]
    spot = Spot(file.name, base, file.size, end)
    how = (DAMAGE, _LOST) if sure else (WARNING, _PERHAPS)
    return [*stale, Finding("log-end", how[0], what, how[1], spot)]


def _lost_epochs(
    beside: Witnesses, chain: Chain, main: Committed | None, stale: list[Finding]
) -> Iterator[str]:
    """Epochs that leader-epoch-checkpoint knows behind the log; `stale` hears of others."""
    known = {span.epoch for span in chain.spans}
    for epoch, start in beside.epochs:
        if epoch in known or start < chain.end:
            continue
        ruling = None if main is None else main.main.epoch_at(start)
        if ruling in (None, epoch):
            yield f"{LEADER_EPOCH_CHECKPOINT} says that epoch {epoch} begins at offset {start}"
            return
        file = beside.replica.epochs
        what = (
            f"it says that epoch {epoch} begins at offset {start}, where the log ends and the "
            f"quorum holds epoch {ruling}: what is left of a tail that was cut off"
        )
        spot = Spot(None if file is None else file.name)
        stale.append(Finding("epochs", WARNING, what, _NOTHING, spot))


def _own_epoch(
    beside: Witnesses,
    chain: Chain,
    others: Sequence[Chain],
    sure: list[str],
    perhaps: list[str],
) -> None:
    """Of an epoch that this node led its log lacks everything; what others have came from here.

    That it has less of it than others, or than a snapshot, may be because they were copied later.
    """
    led = beside.led
    if led is None:
        return
    says = f"{QUORUM_STATE} says that this node led epoch {led}"
    if led <= (chain.last_epoch or 0):
        if any(one.replica.node_id == beside.replica.node_id for one in others):
            return  # one of several copies, of different days
        known = {one: other for other in others for one in other.snapshots if one.epoch == led}
        newest = max(known, default=None)
        if led == chain.last_epoch and newest is not None and newest.offset > chain.end:
            where = known[newest].replica.path
            perhaps.append(f"{says}, of which {where} has a snapshot of {newest.offset}")
        return
    theirs = [one.replica.path for one in others if any(span.epoch == led for span in one.spans)]
    if theirs:
        sure.append(f"{says}, of which {theirs[0]} has records")
    else:
        perhaps.append(f"{says}, of which no log here has a record")
