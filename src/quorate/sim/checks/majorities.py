"""Who counts when a leader takes itself to be connected: of the voters in force a majority, each by
what it asked since the last one was found (KIP-595, check quorum). Neither a voter that was removed
nor another disk of one counts; how long the leader stays is in `duties`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter, matches, names
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.raft.roles import Leader
    from quorate.raft.values import Voter

COUNTS: Final = "only voters in force make a majority that is heard"


@dataclass(slots=True)
class _Reign:
    role: Leader
    voters: tuple[Voter, ...]
    """In force at the end of the last step."""
    deadline: int
    asked: int
    """How many of `askers` there were at the end of the last step."""
    is_first: bool = True
    """What had come before its epoch was durable counts all at once, and part of it the second
    time."""


class Majorities:
    def __init__(self) -> None:
        self._reigns: dict[int, _Reign] = {}

    def look(self, twin: Twin, role: Leader) -> None:
        """At the end of a step. In one and the same step a voter may count, and then go."""
        reign = self._reigns.get(twin.id)
        if reign is None or reign.role is not role:
            self._reigns[twin.id] = _Reign(role, twin.voters, role.check_deadline, len(twin.askers))
            return
        if role.check_deadline != reign.deadline:
            if reign.voters is twin.voters:
                _check_heard(twin)
            reign.deadline = role.check_deadline
            if not reign.is_first:
                del twin.askers[: reign.asked]
            reign.is_first = False
        reign.voters, reign.asked = twin.voters, len(twin.askers)


def _check_heard(twin: Twin) -> None:
    voters = twin.voters
    needed = len(voters) // 2 + 1 - is_voter(voters, twin.key)
    heard = [voter for voter in voters if any(matches(voter.key, key) for key in twin.askers)]
    if sum(not matches(voter.key, twin.key) for voter in heard) < needed:
        raise Violation(
            COUNTS,
            f"{twin} leads epoch {twin.election.epoch} and takes a majority of {names(voters)} for "
            f"heard; since it did so last only {names(tuple(heard))} have asked it",
        )
