"""A request of a foreign cluster is refused (`KafkaRaftClient.hasValidClusterId`).

The request has no effect, and the response is INCONSISTENT_CLUSTER_ID, whatever else the request
contains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    VoteRequest,
)
from quorate.sim.checks.messages import message_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Effects

CHECK = "foreign cluster is refused"
OF_PEERS: Final = frozenset(
    (
        FetchRequest,
        FetchSnapshotRequest,
        VoteRequest,
        BeginQuorumEpochRequest,
        EndQuorumEpochRequest,
    )
)
"""Requests between replicas. `voter_changes` checks the requests of operators."""
_ALLOWED_ERRORS: Final = (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.BROKER_NOT_AVAILABLE)
"""The allowed errors; a replica that shuts down answers BROKER_NOT_AVAILABLE."""


def is_foreign(request: object, cluster_id: str) -> bool:
    """Whether this is a replica's request with the id of another cluster."""
    if type(request) not in OF_PEERS:
        return False
    named: str | None = request.cluster_id  # type: ignore[attr-defined]
    return named is not None and named != cluster_id


class ForeignClusterCheck:
    """Tracks requests of foreign clusters until they are answered."""

    def __init__(self) -> None:
        self._asked: dict[tuple[int, int], Request] = {}
        """By node and reply_to."""

    def process_started(self, model: ReplicaModel) -> None:
        self._asked = {name: asked for name, asked in self._asked.items() if name[0] != model.id}

    def request_received(self, model: ReplicaModel, reply_to: int, request: Request) -> None:
        self._asked[model.id, reply_to] = request

    def after_step(self, model: ReplicaModel, effects: Effects, state: RaftState) -> None:
        """Check a whole step: the response may wait only until a new epoch is durable."""
        if not self._asked:
            return
        for answer in effects.answers:
            asked = self._asked.pop((model.id, answer.reply_to), None)
            if asked is not None and answer.response.error not in _ALLOWED_ERRORS:
                raise ViolationError(
                    CHECK,
                    f"{model} received {message_words(asked)} of another cluster and answers "
                    f"{message_words(answer.response)}",
                )
        left = [asked for (node_id, _), asked in self._asked.items() if node_id == model.id]
        if left and state.durable.election_is_durable:
            raise ViolationError(
                CHECK, f"{model} received {message_words(left[0])} and does not refuse it at once"
            )
