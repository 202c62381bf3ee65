"""Which requests count for check quorum (KIP-595; Raft dissertation, section 6.2).

A leader stays while a majority of the voters in force sends requests. Neither a removed voter
counts, nor another directory of a voter. `leader_duties` checks when a leader without a majority
resigns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voters import is_voter, matches, names
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.roles import Leader
    from quorate.raft.values import Voter

COUNTS: Final = "check quorum counts current voters"


@dataclass(slots=True)
class _LeaderContact:
    role: Leader
    voters: tuple[Voter, ...]
    """In force at the end of the last step."""
    deadline: int
    asked: int
    """Length of `recent_requesters` at the end of the last step."""
    is_first: bool = True
    """The first deadline counts all requests that arrived before the epoch was durable; the second
    counts a part of them again."""


class CheckQuorumMajorityCheck:
    """Each new check-quorum deadline needs a majority since the last one."""

    def __init__(self) -> None:
        self._leaders: dict[int, _LeaderContact] = {}

    def after_step(self, model: ReplicaModel, role: Leader) -> None:
        """Check a whole step of a leader. A voter may count and be removed in the same step."""
        leader = self._leaders.get(model.id)
        if leader is None or leader.role is not role:
            self._leaders[model.id] = _LeaderContact(
                role, model.voters, role.check_deadline, len(model.received.recent_requesters)
            )
            return
        if role.check_deadline != leader.deadline:
            if leader.voters is model.voters:
                _check_majority(model)
            leader.deadline = role.check_deadline
            if not leader.is_first:
                del model.received.recent_requesters[: leader.asked]
            leader.is_first = False
        leader.voters, leader.asked = model.voters, len(model.received.recent_requesters)


def _check_majority(model: ReplicaModel) -> None:
    voters = model.voters
    needed = len(voters) // 2 + 1 - is_voter(voters, model.key)
    requesters = [
        voter
        for voter in voters
        if any(matches(voter.key, key) for key in model.received.recent_requesters)
    ]
    if sum(not matches(voter.key, model.key) for voter in requesters) < needed:
        raise ViolationError(
            COUNTS,
            f"{model} leads epoch {model.election.epoch} and extends its deadline for a "
            f"majority of {names(voters)}; since its last deadline only "
            f"{names(tuple(requesters))} have sent a request",
        )
