"""What clients were told: linearizable, and nothing of it lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.node.replica import Committed
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
)
from quorate.sim import linear
from quorate.sim.checks.history import History
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter, names
from quorate.sim.checks.words import message_words
from quorate.sim.observe import ClientOp, Violation

if TYPE_CHECKING:
    from quorate.node.proposals import Outcome

NOBODY = 0
"""The client that reads the final state."""


class Clients:
    """Collects the operations of all clients, and checks what they and operators are told."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.ops: list[ClientOp] = []

    def told(self, twin: Twin, outcomes: Sequence[Outcome]) -> None:
        """Acknowledged means committed; and committed means durable on a majority (`commits`)."""
        for outcome in outcomes:
            if outcome.__class__ is Committed and outcome.end_offset > twin.high.end:
                raise Violation(
                    "acknowledged means committed",
                    f"{twin} acknowledges all up to {outcome.end_offset}, its high watermark is "
                    f"{twin.high.end}",
                )

    def told_operator(
        self,
        twin: Twin,
        request: AddVoterRequest | RemoveVoterRequest,
        response: AddVoterResponse | RemoveVoterResponse,
    ) -> None:
        """A voter change is answered when it is committed, unless told otherwise (KIP-1186)."""
        if response.error != ErrorCode.NONE:
            return
        adds = False
        if isinstance(request, AddVoterRequest):
            if not request.ack_when_committed:
                return
            adds = True
        voters = twin.high.voters or twin.own_voters
        if is_voter(voters, request.voter) is not adds:
            raise Violation(
                "acknowledged means committed",
                f"{twin} acknowledges {message_words(request)}, the committed voters are "
                f"{names(voters)}",
            )

    def finish(self, values: dict[int, int], now_us: int) -> None:
        """The final state is what all operations add up to; so none that was told is lost."""
        keys = {op.key for op in self.ops}
        final = [
            ClientOp(NOBODY, 0, "get", key, None, None, now_us, now_us, "ok", values.get(key))
            for key in sorted(keys)
        ]
        anomaly = linear.check([*self.ops, *final])
        if anomaly is not None:
            raise Violation("linearizable", str(anomaly))
