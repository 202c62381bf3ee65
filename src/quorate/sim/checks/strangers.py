"""Nobody listens to another cluster (`KafkaRaftClient.hasValidClusterId`).

What it asks counts for nothing, and it is told so, whatever else may be said of its question.
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
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.words import message_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects
    from quorate.raft.state import State

CHECK = "another cluster is not heard"
OF_PEERS: Final = frozenset(
    (
        FetchRequest,
        FetchSnapshotRequest,
        VoteRequest,
        BeginQuorumEpochRequest,
        EndQuorumEpochRequest,
    )
)
"""What replicas ask each other. An operator's mistakes are looked at in `changes`."""
_SAID: Final = (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.BROKER_NOT_AVAILABLE)
"""The latter by who stops."""


def is_stranger(request: object, cluster_id: str) -> bool:
    """Is this of another cluster, and what a replica asks?"""
    if type(request) not in OF_PEERS:
        return False
    named: str | None = request.cluster_id  # type: ignore[attr-defined]
    return named is not None and named != cluster_id


class Strangers:
    """Their questions, until they are answered."""

    def __init__(self) -> None:
        self._asked: dict[tuple[int, int], Request] = {}
        """By node and reply_to."""

    def began(self, twin: Twin) -> None:
        self._asked = {name: asked for name, asked in self._asked.items() if name[0] != twin.id}

    def asked(self, twin: Twin, reply_to: int, request: Request) -> None:
        self._asked[twin.id, reply_to] = request

    def look(self, twin: Twin, effects: Effects, state: State) -> None:
        """At the end of the step: there is nothing to wait for but an epoch to be durable."""
        if not self._asked:
            return
        for answer in effects.answers:
            asked = self._asked.pop((twin.id, answer.reply_to), None)
            if asked is not None and answer.response.error not in _SAID:
                raise Violation(
                    CHECK,
                    f"{twin} was asked {message_words(asked)} by another cluster, and answers "
                    f"{message_words(answer.response)}",
                )
        left = [asked for (node_id, _), asked in self._asked.items() if node_id == twin.id]
        if left and state.durable.election:
            raise Violation(
                CHECK, f"{twin} was asked {message_words(left[0])}, and does not refuse it at once"
            )
