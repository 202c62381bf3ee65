"""One operation of a client of a simulated world, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OpKind = Literal["put", "get", "cas"]
OpOutcome = Literal["pending", "ok", "unknown", "refused"]


@dataclass(slots=True, eq=False)
class ClientOp:
    """One operation of one client on one key, however often it was sent.

    The state machine performs it at most once, by (client, sequence). A client has one operation
    at a time. Every put and cas of a run writes a distinct value.
    """

    client: int
    sequence: int
    """Increases by one with each operation of the client."""
    kind: OpKind
    key: int
    value: int | None
    """The value that a put or cas writes; None for a get."""
    expected: int | None
    """The value that a cas expects; None: no value yet."""
    invoked_us: int
    answered_us: int = -1
    outcome: OpOutcome = "pending"
    """ok: performed, see `result`; unknown: may be performed later, or never; refused: never."""
    result: int | bool | None = None
    """With `ok`: the value that a get found (None: none), or whether a cas wrote."""
    attempts: int = 0
