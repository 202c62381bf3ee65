"""What must hold after every step, in production too; a broken one stops the replica."""

from __future__ import annotations

from quorate.base.check import check
from quorate.raft.roles import Candidate, Follower, Leader
from quorate.raft.state import State


class Watch:
    """Remembers what must not fall."""

    __slots__ = ("_epoch", "_high_watermark")

    def __init__(self, s: State) -> None:
        self._epoch = s.election.epoch
        self._high_watermark = s.high_watermark

    def verify(self, s: State) -> None:
        """Raise BrokenInvariant, with the facts, where something is not as it must be."""
        log, election, durable = s.log, s.election, s.durable
        check(election.epoch >= self._epoch, "epoch fell", self._epoch, election)
        hw = s.high_watermark
        check(hw >= self._high_watermark, "high watermark fell", self._high_watermark, hw)
        check(hw <= log.end_offset, "high watermark above the log", hw, log.end_offset)
        check(log.start_offset <= log.end_offset, "log ends before it starts", log.start_offset)
        check(durable.end_offset <= log.end_offset, "durable beyond the log", durable.end_offset)
        check(log.last_epoch <= election.epoch, "log epoch above the own", log.last_epoch, election)
        role = s.role
        if isinstance(role, Leader):
            own = role.progress.own.end_offset
            check(election.leader_id == s.me.id, "leader in memory only", election)
            check(own <= durable.end_offset, "counts what is not durable", own, durable.end_offset)
            check(role.high_watermark <= hw, "leader's high watermark", role.high_watermark, hw)
            check(s.installing is None, "leads while a snapshot is installed", s.installing)
        elif isinstance(role, Follower):
            check(election.leader_id not in (-1, s.me.id), "follower of nobody", election)
        elif isinstance(role, Candidate):
            voted = election.voted
            check(voted is not None and voted.id == s.me.id, "candidate voted otherwise", election)
        self._epoch = election.epoch
        self._high_watermark = hw
