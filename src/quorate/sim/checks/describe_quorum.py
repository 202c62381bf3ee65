"""The DescribeQuorum response of a leader, sampled by the check itself: no client of a world
requests it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from quorate.sim.checks.leader_duties import fetch_offsets_of
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voters import is_voter, keys, names
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.describe import QuorumDescription
    from quorate.raft.roles import Leader
    from quorate.raft.state import RaftState

TRUE: Final = "DescribeQuorum matches the quorum"
_EVERY: Final = 64
_UNKNOWN: Final = -1


class DescribeQuorumCheck:
    """Describes the quorum at each leader once in 64 of its steps and compares it with the
    reference model.

    KIP-595 and KIP-836: the response has the leader, its epoch, the high watermark, and the log end
    offset of each voter and observer.
    """

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        """By node: its steps as leader."""

    def after_step(
        self,
        model: ReplicaModel,
        role: Leader,
        state: RaftState,
        describe: Callable[[int], QuorumDescription | None],
    ) -> None:
        """Check a description. `describe`: the core's own, of the quorum at a time in ms."""
        steps = self._steps[model.id] = self._steps.get(model.id, 0) + 1
        if steps % _EVERY or not state.durable.election_is_durable or _drops_observers(role, state):
            return
        found = describe(state.now)
        settled = model.committed_tip.epoch == state.election.epoch
        committed = model.high_watermark if settled else _UNKNOWN
        known = None if found is None else (found.leader_id, found.epoch, found.high_watermark)
        if found is None or known != (model.id, state.election.epoch, committed):
            raise ViolationError(
                TRUE,
                f"{model} leads epoch {state.election.epoch}, high watermark {committed}, and describes "
                f"{known}",
            )
        _check_replicas(model, found)


def _drops_observers(role: Leader, state: RaftState) -> bool:
    """Whether the description would remove expired observers: the check must not change the world."""
    least = state.now - state.config.limits.observer_session_ms
    rows = role.progress.observers.values()
    return any(row.last_fetch_ms <= least for row in rows)


def _check_replicas(model: ReplicaModel, found: QuorumDescription) -> None:
    described = [row.key for row in found.voters]
    if set(described) != keys(model.voters) or set(found.nodes) != set(model.voters):
        listed = ", ".join(map(str, described))
        raise ViolationError(
            TRUE, f"{model} describes the voters {{{listed}}}; they are {names(model.voters)}"
        )
    for row in (*found.voters, *found.observers):
        if row.key.id == model.id:
            offsets = [model.tip.end]
        elif model.received.epoch == found.epoch:
            offsets = [_UNKNOWN, *fetch_offsets_of(model, row.key)]
        else:
            offsets = [_UNKNOWN]
        if row.log_end_offset not in offsets:
            raise ViolationError(
                TRUE,
                f"{model} describes {row.key} with log end offset {row.log_end_offset}, not {offsets}",
            )
    for row in found.observers:
        if is_voter(model.voters, row.key):
            raise ViolationError(TRUE, f"{model} describes {row.key}, a voter, as an observer")
