"""A replica with auto-join asks its leader once in each fetch timeout (KIP-853,
controller.quorum.auto.join.enable)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.raft.inputs import Answered
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveVoterRequest,
    RemoveVoterResponse,
)
from quorate.raft.roles import Follower
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voters import is_voter, names
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Effects, Input


class AutoJoinCheck:
    """KIP-853: an observer with auto-join adds itself as a voter, and removes an older directory of
    its id first.
    """

    def __init__(self) -> None:
        self._since: dict[int, tuple[Follower, int]] = {}
        """By node: its follower role, and when that began or its last AddVoter or RemoveVoter was
        sent or answered, ms."""

    def after_step(
        self, model: ReplicaModel, happened: Sequence[Input], effects: Effects, state: RaftState
    ) -> None:
        """Check a whole step. A replica that sends a Fetch to its leader could have sent the
        request too."""
        role, now = state.role, state.now
        if not isinstance(role, Follower) or not _should_join(model, state):
            self._since.pop(model.id, None)
            return
        known, since = self._since.get(model.id, (role, now))
        requests = [send.request for send in effects.sends if send.to == state.leader_id]
        asks = any(isinstance(one, AddVoterRequest | RemoveVoterRequest) for one in requests)
        if known is not role or asks or any(map(_is_voter_change_response, happened)):
            since = now
        self._since[model.id] = role, since
        late = now - since > state.config.fetch_timeout_ms
        if late and any(isinstance(one, FetchRequest | FetchSnapshotRequest) for one in requests):
            raise ViolationError(
                "auto-join request in time",
                f"{model} should join {names(model.voters)}; it has fetched for "
                f"{now - since} ms from node {state.leader_id} without a request to join",
            )


def _should_join(model: ReplicaModel, state: RaftState) -> bool:
    config = state.config
    may = config.auto_join and config.can_be_voter and model.tip.kraft_version > 0
    return may and not is_voter(model.voters, model.key)


def _is_voter_change_response(item: Input) -> bool:
    """Whether the input is a response to AddVoter or RemoveVoter."""
    return isinstance(item, Answered) and isinstance(
        item.response, AddVoterResponse | RemoveVoterResponse
    )
