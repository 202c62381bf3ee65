"""Responses to clients: linearizable, and no acknowledged write is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
)
from quorate.replica.replica import Committed
from quorate.sim.checks import linearizability as linear
from quorate.sim.checks.history import ClusterHistory
from quorate.sim.checks.messages import message_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voters import is_voter, names
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.replica.proposals import Outcome

NOBODY = 0
"""Id of the client that reads the final state."""


class ClientCheck:
    """Collects the operations of all clients and checks the responses to them and to operators."""

    def __init__(self, history: ClusterHistory) -> None:
        self.history = history
        self.ops: list[ClientOp] = []

    def outcomes_reported(self, model: ReplicaModel, outcomes: Sequence[Outcome]) -> None:
        """An acknowledged write is below the high watermark, which `commits` checks against the
        disks."""
        for outcome in outcomes:
            if outcome.__class__ is Committed and outcome.end_offset > model.committed_tip.end:
                raise ViolationError(
                    "acknowledged means committed",
                    f"{model} acknowledges all up to {outcome.end_offset}, its high watermark is "
                    f"{model.committed_tip.end}",
                )

    def voter_change_answered(
        self,
        model: ReplicaModel,
        request: AddVoterRequest | RemoveVoterRequest,
        response: AddVoterResponse | RemoveVoterResponse,
    ) -> None:
        """A voter change is answered when it is committed, unless AckWhenCommitted is false
        (KIP-1186)."""
        if response.error != ErrorCode.NONE:
            return
        adds = False
        if isinstance(request, AddVoterRequest):
            if not request.ack_when_committed:
                return
            adds = True
        voters = model.committed_tip.voters or model.initial_voters
        if is_voter(voters, request.voter) is not adds:
            raise ViolationError(
                "acknowledged means committed",
                f"{model} acknowledges {message_words(request)}, the committed voters are "
                f"{names(voters)}",
            )

    def finish(self, values: dict[int, int], now_us: int) -> None:
        """The operations and a final read of every key are linearizable, so no acknowledged write
        is lost."""
        keys = {op.key for op in self.ops}
        final = [
            ClientOp(NOBODY, 0, "get", key, None, None, now_us, now_us, "ok", values.get(key))
            for key in sorted(keys)
        ]
        anomaly = linear.check([*self.ops, *final])
        if anomaly is not None:
            raise ViolationError("linearizable", str(anomaly))
