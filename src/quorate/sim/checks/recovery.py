"""What a restart recovers: everything that was durable, and nothing that no leader appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.base.ids import ZERO_UUID
from quorate.raft.values import ElectionState
from quorate.sim.checks.history import LoggedBatch
from quorate.sim.checks.messages import election_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.world.observer import ViolationError
from quorate.storage.api import AppendedBatch
from quorate.verify.batches import batches

if TYPE_CHECKING:
    from quorate.sim.world.observable import SimulatedNode
    from quorate.storage.api import Recovered

_ALL: Final = 1 << 62


def recover(model: ReplicaModel, process: SimulatedNode, recovered: Recovered) -> None:
    """Give the model the state of its disk, and check that it has everything that was durable.

    KIP-595: a voter must persist its vote and its log before it responds. A restart must
    therefore return both.
    """
    model.incarnation = process.incarnation
    model.received.forget()
    tip = _recovered_tip(model, process, recovered)
    vote = recovered.election or ElectionState()
    if not model.restored and _has_lost_state(model, tip, vote):
        raise ViolationError(
            "durable state survives a restart",
            f"{model} recovered the log up to {tip} and {election_words(vote)}; durable "
            f"was {model.durable_tip} and {election_words(model.vote)}",
        )
    model.start(tip, vote, recovered.log)


def _has_lost_state(model: ReplicaModel, tip: LoggedBatch, vote: ElectionState) -> bool:
    """Whether this state lacks something that was durable."""
    votes = ((model.vote, model.vote_version), *model.pending_elections)
    minimum = model.durable_tip if model.installing is None else model.installing
    return not any(_same_vote(vote, *known) for known in votes) or not tip.holds(minimum)


def _same_vote(read: ElectionState, written: ElectionState, kraft_version: int) -> bool:
    """Whether the disk returned `written` as `read`. At kraft.version 0 quorum-state has no
    directory id (`QuorumStateData` version 0)."""
    if read == written:
        return True
    if kraft_version > 0 or read.voted is None or written.voted is None:
        return False
    if read.voted.directory_id != ZERO_UUID:
        return False
    there, here = (read.epoch, read.leader_id), (written.epoch, written.leader_id)
    return there == here and read.voted.id == written.voted.id


def _recovered_tip(
    model: ReplicaModel, process: SimulatedNode, recovered: Recovered
) -> LoggedBatch:
    log = recovered.log
    tip = model.history.committed_at.get(log.start_offset)
    if tip is None:
        raise ViolationError(
            "durable state survives a restart",
            f"{model}: its log starts at {log.start_offset}, where nothing is committed",
        )
    data = process.storage.read(log.start_offset, log.end_offset, _ALL)
    for found in batches(data):
        batch = AppendedBatch(found.base_offset, found.end_offset - 1, found.epoch, found.data)
        tip = _recovered_entry(model, tip, batch)
    if tip.end != log.end_offset:
        raise ViolationError(
            "durable state survives a restart",
            f"{model}: {tip} is the last of a log to {log.end_offset}",
        )
    newest = log.snapshots[-1] if log.snapshots else None
    if newest is not None and newest.offset > 0:
        snapshot = model.committed_snapshot(newest)
        if not tip.holds(snapshot):
            raise ViolationError(
                "snapshot of what is committed",
                f"{model}: recovered snapshot {tuple(newest)}, but the log up to {tip}",
            )
    return tip


def _recovered_entry(model: ReplicaModel, tip: LoggedBatch, batch: AppendedBatch) -> LoggedBatch:
    known = model.history.find(tip, batch, model)
    if known is not None:
        return known
    for entry in model.unpublished:
        same = entry.parent is tip and entry.epoch == batch.epoch
        if same and entry.data == batch.data:
            model.history.add(entry, model)
            return entry
    raise ViolationError(
        "log matching",
        f"{model}: recovered a batch at {batch.base_offset} that no leader appended",
    )
