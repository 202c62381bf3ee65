"""The content of a DescribeQuorum response (leader only; facts of the reference, 2.12)."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.base.ids import ReplicaKey
from quorate.raft.progress import ReplicaProgress
from quorate.raft.roles import Follower, Leader
from quorate.raft.state import RaftState
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


def describe(s: RaftState, now_ms: int) -> QuorumDescription | None:
    """The quorum as its leader sees it; None where this node does not lead.

    The leader's own row: its log end, fetched and caught up now. Observers are listed for
    300 s after their last Fetch.
    """
    role = s.role
    if not isinstance(role, Leader):
        return None
    progress = role.progress
    progress.drop_silent_observers(now_ms)

    def row(replica: ReplicaProgress) -> ReplicaDescription:
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


def disconnected_reason(s: RaftState, now_ms: int) -> str | None:
    """Why this replica is not in touch with a quorum that works; None: it is.

    A follower or observer has fetched from its leader within the fetch timeout. A leader has
    committed a record of its epoch and was fetched from by a majority within check quorum's time.
    """
    role = s.role
    if isinstance(role, Leader):
        if role.high_watermark < 0:
            return f"leads epoch {s.epoch}, but nothing of it is committed yet"
        if now_ms >= role.check_deadline and not s.voters.is_only_voter(s.me):
            return "leads, but a majority of the voters does not fetch"
        return None
    if isinstance(role, Follower):
        if not role.has_fetched:
            return f"has not fetched from leader {s.leader_id} yet"
        if now_ms >= role.fetch_deadline:
            return f"leader {s.leader_id} does not answer fetches"
        return None
    if s.visible_leader.leader_id < 0:
        return f"no leader is known in epoch {s.epoch}"
    return f"lost touch with leader {s.leader_id}"


def known_committed(s: RaftState) -> int:
    """The greatest high watermark that this replica has heard of (exclusive); -1 unknown.

    A follower's own one ends at its log; the leader's may be far ahead of it.
    """
    role = s.role
    if isinstance(role, Follower):
        return max(role.leader_high_watermark, s.high_watermark)
    return s.high_watermark


def leader_high_watermark(s: RaftState) -> int:
    """The high watermark of the leader that this replica is or follows (exclusive); -1 unknown.

    Unlike this replica's own it is never that of a snapshot, which may be old.
    """
    role = s.role
    if isinstance(role, Follower):
        return role.leader_high_watermark
    return role.high_watermark if isinstance(role, Leader) else -1
