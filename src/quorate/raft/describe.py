"""What DescribeQuorum tells (leader only; facts of the reference, 2.12)."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.base.ids import ReplicaKey
from quorate.raft.progress import Row
from quorate.raft.roles import Leader
from quorate.raft.state import State
from quorate.raft.values import Voter


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """Times are ms on the clock of `step`; -1 unknown."""

    key: ReplicaKey
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    leader_id: int
    epoch: int
    high_watermark: int
    """Exclusive; -1 unknown."""
    voters: tuple[ReplicaDescription, ...]
    """By node id."""
    observers: tuple[ReplicaDescription, ...]
    nodes: tuple[Voter, ...]
    """The voters with their listeners."""


def describe(s: State, now_ms: int) -> QuorumDescription | None:
    """The quorum as its leader sees it; None where this node does not lead.

    The leader's own row: its log end, fetched and caught up now. Observers are listed for
    300 s after their last Fetch.
    """
    role = s.role
    if not isinstance(role, Leader):
        return None
    progress = role.progress
    progress.drop_silent_observers(now_ms)

    def row(replica: Row) -> ReplicaDescription:
        if replica is progress.own:
            return ReplicaDescription(replica.key, s.log.end_offset, now_ms, now_ms)
        return ReplicaDescription(
            replica.key, replica.end_offset, replica.last_fetch_ms, replica.last_caught_up_ms
        )

    return QuorumDescription(
        leader_id=s.me.id,
        epoch=s.epoch,
        high_watermark=role.high_watermark,
        voters=tuple(row(r) for _, r in sorted(progress.voters.items())),
        observers=tuple(row(r) for _, r in sorted(progress.observers.items())),
        nodes=s.voters.voters,
    )
