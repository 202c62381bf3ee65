"""Somebody of another cluster has the ids of a node and a wrong address, and asks as it would.

Its cluster may be ahead or behind, and knows nothing of this one: whoever listened to it would give
away a vote, follow nobody's leader, or count what is on another disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    Response,
    VoteRequest,
)
from quorate.sim.chance import Chance
from quorate.sim.process import Process

if TYPE_CHECKING:
    from quorate.sim.world import World

ANOTHER: Final = "another"
"""The id of its cluster."""
_PATIENCE_MS: Final = 1000
_FAR: Final = 1 << 40
"""Its log is longer than any of this cluster."""


def visit(
    world: World, luck: Chance, like: Process, to: Process, period_ms: int, times: int
) -> None:
    """Ask `to` for one thing after another, under the name of `like`, until the faults end."""
    if not times or world.is_healing:
        return
    if to.replica is not None:
        ask = luck.pick(_QUESTIONS)
        request = ask(like, to, to.core.epoch + luck.pick((0, 0, 1)))
        world.network.ask(to.id, request, _PATIENCE_MS, _shrug)
    later = world.now_us + 1000 * luck.between(period_ms // 2, period_ms)
    world.push(later, visit, world, luck, like, to, period_ms, times - 1)


def _shrug(response: Response | None) -> None:
    """What it is told is of no interest here."""


def _fetch(like: Process, to: Process, epoch: int) -> Request:
    """As if it had all that the leader has."""
    end = to.core.log_end
    return FetchRequest(
        ANOTHER, like.key, epoch, end.offset, end.epoch, _PATIENCE_MS // 2, 1 << 20, end.offset
    )


def _fetch_snapshot(like: Process, to: Process, epoch: int) -> Request:
    known = to.core.snapshots
    snapshot_id = known[-1] if known else OffsetAndEpoch(0, 0)
    return FetchSnapshotRequest(ANOTHER, like.key, epoch, snapshot_id, 0, 1 << 20)


def _vote(like: Process, to: Process, epoch: int) -> Request:
    return VoteRequest(ANOTHER, to.key, epoch + 1, like.key, epoch, _FAR, False)


def _pre_vote(like: Process, to: Process, epoch: int) -> Request:
    return VoteRequest(ANOTHER, to.key, epoch, like.key, epoch, _FAR, True)


def _begin(like: Process, to: Process, epoch: int) -> Request:
    leader = LeaderAndEpoch(like.id, epoch)
    return BeginQuorumEpochRequest(ANOTHER, to.key, leader, like.listeners)


def _end(like: Process, to: Process, epoch: int) -> Request:
    """Of whoever leads: the receiver is to follow it at once."""
    leader = to.core.leader
    told = LeaderAndEpoch(leader.leader_id if leader.leader_id >= 0 else like.id, epoch)
    return EndQuorumEpochRequest(ANOTHER, told, (to.key,), like.listeners)


_QUESTIONS: Final = (_fetch, _fetch, _fetch_snapshot, _vote, _pre_vote, _begin, _end)
