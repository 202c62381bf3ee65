"""A leader says when it comes, and when it goes: BeginQuorumEpoch and EndQuorumEpoch (KIP-595)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.raft.messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from quorate.raft.roles import Leader, Resigned
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import matches, names
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects
    from quorate.raft.messages import Response
    from quorate.raft.state import State

_NOTHING = 0, 0


def check_taught(
    twin: Twin, request: BeginQuorumEpochRequest, response: Response, state: State
) -> None:
    """Who says yes to BeginQuorumEpoch knows the leader from then on, or of a later epoch."""
    known = state.election
    told = request.leader
    knows = known.epoch > told.epoch or (known.epoch, known.leader_id) == (
        told.epoch,
        told.leader_id,
    )
    if response.error == ErrorCode.NONE and not knows:
        raise Violation(
            "a leader says when it comes and goes",
            f"{twin} was told that node {told.leader_id} begins epoch {told.epoch}, said yes, and "
            f"knows node {known.leader_id} of epoch {known.epoch}",
        )


class Goodbyes:
    """In the first step in which its new role may be spoken of, the others hear of it."""

    def __init__(self) -> None:
        self._said: dict[int, tuple[int, int]] = {}
        """By node: the epoch, and whether it leads (1) or has resigned (2): done with."""

    def began(self, twin: Twin) -> None:
        self._said[twin.id] = _NOTHING

    def look(self, twin: Twin, effects: Effects, state: State) -> None:
        role = state.role
        leads = isinstance(role, Leader)
        if effects.is_over or not (leads or isinstance(role, Resigned)):
            return
        now = state.election.epoch, 1 if leads else 2
        if self._said[twin.id] == now or not state.durable.election:
            return
        self._said[twin.id] = now
        kind = BeginQuorumEpochRequest if leads else EndQuorumEpochRequest
        if any(isinstance(send.request, kind) for send in effects.sends):
            return
        waiting = [
            voter
            for voter in twin.voters
            if not matches(voter.key, twin.key)
            and voter.listeners
            and not (leads and any(matches(voter.key, key) for key in twin.heard))
        ]
        if waiting:
            what = "begins" if leads else "ends"
            raise Violation(
                "a leader says when it comes and goes",
                f"{twin} {what} epoch {now[0]} and tells none of {names(tuple(waiting))}",
            )
