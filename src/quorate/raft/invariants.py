"""Invariants that hold after every step, also in production; a broken one stops the replica.

They are cheap facts within one replica. The simulator checks what needs several replicas.
"""

from __future__ import annotations

from quorate.base.check import check
from quorate.base.errors import InvariantError
from quorate.raft.roles import Candidate, Follower, Leader
from quorate.raft.state import RaftState
from quorate.raft.values import MAX_KRAFT_VERSION


class InvariantChecker:
    """Remembers the epoch and high watermark, which never fall."""

    __slots__ = ("_epoch", "_high_watermark")

    def __init__(self, s: RaftState) -> None:
        self._epoch = s.election.epoch
        self._high_watermark = s.high_watermark

    def verify(self, s: RaftState) -> None:
        """Raise InvariantError, with the facts, where an invariant is broken."""
        log, election, durable = s.log, s.election, s.durable
        hw = s.high_watermark
        end = log.end_offset
        if (
            election.epoch < self._epoch
            or hw < self._high_watermark
            or not log.start_offset <= end >= durable.end_offset
            or hw > end
            or log.last_epoch > election.epoch
        ):
            self._broken(s)
        if s.controls.version > MAX_KRAFT_VERSION:
            raise InvariantError(
                f"kraft.version {s.controls.version} in the log, of which this software knows up "
                f"to {MAX_KRAFT_VERSION}: it needs a newer one"
            )
        self._epoch = election.epoch
        self._high_watermark = hw
        role = s.role
        if isinstance(role, Leader):
            own = role.progress.own.end_offset
            check(election.leader_id == s.me.id, "leader in memory only", election)
            check(own <= durable.end_offset, "counts what is not durable", own)
            check(role.high_watermark <= hw, "leader's high watermark", role.high_watermark)
            check(s.installing is None, "leads while a snapshot is installed", s.installing)
        elif isinstance(role, Follower):
            check(election.leader_id not in (-1, s.me.id), "follower without a leader", election)
        elif isinstance(role, Candidate):
            voted = election.voted
            check(voted is not None and voted.id == s.me.id, "candidate voted otherwise", election)

    def _broken(self, s: RaftState) -> None:
        """Name all the facts of log, epoch and high watermark, whichever is wrong."""
        log, election = s.log, s.election
        raise InvariantError(
            f"log [{log.start_offset}, {log.end_offset}) in epoch {log.last_epoch}, durable to "
            f"{s.durable.end_offset}, {election}, before in epoch {self._epoch}, high watermark "
            f"{s.high_watermark}, before {self._high_watermark}"
        )
