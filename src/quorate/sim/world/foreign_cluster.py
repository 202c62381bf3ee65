"""A replica of a foreign cluster with the ids of a node and a wrong address sends raft requests.

The foreign cluster may be ahead or behind. A node that accepted such a request would vote for a
foreign candidate, follow a foreign leader, or count an acknowledgement of a foreign disk.
"""

from __future__ import annotations

from typing import Final

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
from quorate.sim.prng import Prng
from quorate.sim.world.network import Network
from quorate.sim.world.process import Process

ANOTHER: Final = "another"
"""The id of the foreign cluster."""
_PATIENCE_MS: Final = 1000
_FAR: Final = 1 << 40
"""The length of the foreign log: longer than any log of this cluster."""


def visit(
    network: Network, rng: Prng, like: Process, to: Process, period_ms: int, times: int
) -> None:
    """Send one request after another to `to`, with the ids of `like`, until the faults end."""
    world = network.world
    if not times or world.in_liveness_phase:
        return
    if to.replica is not None:
        ask = rng.pick(_QUESTIONS)
        request = ask(like, to, to.core.epoch + rng.pick((0, 0, 1)))
        network.ask(to.id, request, _PATIENCE_MS, _ignore)
    later = world.now_us + 1000 * rng.between(period_ms // 2, period_ms)
    world.push(later, visit, network, rng, like, to, period_ms, times - 1)


def _ignore(response: Response | None) -> None:
    """Ignore the response. `cluster_id` of the checks verifies it."""


def _fetch(like: Process, to: Process, epoch: int) -> Request:
    """A Fetch as of a replica that has the whole log of the leader."""
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
    """EndQuorumEpoch of the present leader, with the receiver as its successor."""
    leader = to.core.leader
    named = LeaderAndEpoch(leader.leader_id if leader.leader_id >= 0 else like.id, epoch)
    return EndQuorumEpochRequest(ANOTHER, named, (to.key,), like.listeners)


_QUESTIONS: Final = (_fetch, _fetch, _fetch_snapshot, _vote, _pre_vote, _begin, _end)
