"""A write on its way through the queue, and the response to its call."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from quorate.base.errors import ErrorCode
from quorate.controller.liveness import LivenessChange
from quorate.controller.result import ApiError, WriteOperation
from quorate.node.audit import WriteFacts
from quorate.node.requests import Call
from quorate.wire.schema import Message

NO_CONTROLLER: Final = "No controller appears to be active."
"""Kafka's text (`ControllerExceptions`)."""
SHUTTING_DOWN: Final = "The controller is shutting down."
"""Kafka's text (`EventHandlerExceptionInfo`)."""


def wrong_controller(leader_id: int) -> str:
    """Return Kafka's text (`ControllerExceptions.newWrongControllerException`); -1: no leader is known."""
    return (
        NO_CONTROLLER if leader_id < 0 else f"The active controller appears to be node {leader_id}."
    )


@dataclass(slots=True)
class QueuedWrite:
    """A write on its way. `call` is None for a write of the controller's own."""

    operation: WriteOperation[Any, Any]
    request: Any
    call: Call | None
    deadline_ms: int | None
    added_ms: int
    asked: Any = None
    """What the decision takes: the request, or what its authorization leaves of it."""
    authorization: Generator[Any, None, Any] | None = None
    """Its further steps, once it has begun."""
    refused: Exception | None = None
    """Why the authorization refuses the whole request, or fails."""
    response: Any = None
    token: int = 0
    """Of the last part that was submitted, or that it waits for; 0: there are no records."""
    changes: tuple[LivenessChange, ...] = ()
    """What it changes of the brokers' liveness."""
    last_offset: int = -1
    """Of its last record (inclusive), once that is committed; before, and without records: of the newest
    record that it was decided on."""
    began_ns: int | None = None
    """When its decision began; None: it has not."""
    work_ns: int = 0
    """How long its decision has taken."""
    facts: WriteFacts | None = None
    """For its next entry of the audit trail; None: there is no trail, or it has submitted nothing."""


@dataclass(slots=True)
class WriteInWork:
    """A write whose decision has begun and not ended."""

    write: QueuedWrite
    steps: Generator[Any, None, None]

    def advance(self, refused: ApiError | None, clock: Callable[[], int]) -> Any:
        """Run the steps up to the next pause, and add the time to the write's.

        refused: raised in the decision; clock: in ns.
        """
        began_ns = clock()
        try:
            return self.steps.send(None) if refused is None else self.steps.throw(refused)
        finally:
            self.write.work_ns += clock() - began_ns


@dataclass(slots=True)
class WriteResponse:
    """The response to a call, to be sent now.

    `offset` is the end (exclusive) of the newest record that the response may depend on; it is
    committed. -1: the write failed, or depends on no record of this leadership.
    """

    call: Call
    message: Message
    error: ErrorCode
    offset: int
    work_ns: int = 0
    """How long the decision took."""
