"""What comes out of the write queue: responses, results of the controller's own writes, lines for the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from quorate.base.errors import ErrorCode
from quorate.base.notes import Fault
from quorate.controller.building import Building
from quorate.controller.event_durations import EventDurations
from quorate.controller.result import ApiError, WriteOperation
from quorate.node.audit import WriteFacts, is_worth_an_entry
from quorate.node.queued_write import QueuedWrite, WriteResponse
from quorate.wire.schema import Message

NOTHING_COMMITTED: Final = -1
"""The end offset of a write that failed, or depends on no record."""


class WriteResults:
    """Gathers what the node takes and clears after each call of the queue."""

    def __init__(self, durations: EventDurations, clock: Callable[[], int]) -> None:
        """clock: measures decisions, in ns."""
        self._durations = durations
        self._clock = clock
        self.responses: list[WriteResponse] = []
        self.own_results: list[tuple[WriteOperation[Any, Any], Any]] = []
        """The controller's own writes that are done or have failed, with their responses."""
        self.notes: list[str] = []
        self.faults = 0
        """How many decisions ended in an unexpected exception."""
        self.audited: list[tuple[QueuedWrite, WriteFacts, ErrorCode]] | None = None
        """Each write that is answered, and each part of one that is committed before; None: nobody
        asks."""
        self._failing: deque[tuple[QueuedWrite, ErrorCode, Building[Any]]] = deque()
        """Writes that have failed, whose responses take several steps."""

    @property
    def failing(self) -> int:
        """How many writes have failed and wait for their responses to be built: call `go_on`."""
        return len(self._failing)

    @property
    def has_any(self) -> bool:
        """There is something in `responses`, `own_results`, `notes` or `audited`."""
        return bool(self.responses or self.own_results or self.notes or self.audited)

    def failed(self, write: QueuedWrite, error: ErrorCode, message: str | None) -> None:
        """The whole write failed. message: the text of the exception; None for none."""
        response = write.operation.failed(write.request, error, message)
        if isinstance(response, Generator):
            self._build(write, error, response)
        else:
            write.response = response
            self.answered(write, error, NOTHING_COMMITTED)

    def refused(self, write: QueuedWrite, error: Exception) -> None:
        """The authorization of the write ended in an exception: no other request is affected."""
        if isinstance(error, ApiError):
            self.failed(write, error.error, str(error))
        else:
            self.fault(write, error, "the request is refused")
            self.failed(write, ErrorCode.UNKNOWN_SERVER_ERROR, None)

    def go_on(self) -> None:
        """One more step of a response that takes several."""
        if self._failing:
            write, error, steps = self._failing.popleft()
            self._build(write, error, steps)

    def _build(self, write: QueuedWrite, error: ErrorCode, steps: Building[Any]) -> None:
        try:
            next(steps)
        except StopIteration as end:
            write.response = end.value
            self.answered(write, error, NOTHING_COMMITTED)
        else:
            self._failing.append((write, error, steps))

    def fault(self, write: QueuedWrite, error: Exception, then: str) -> None:
        """A decision, or an authorization, ended in an unexpected exception. then: what follows."""
        self.faults += 1
        text = f"{write.operation.name} failed: {type(error).__name__}: {error}; {then}"
        self.notes.append(Fault(text))

    def submitted(self, write: QueuedWrite, records: Sequence[Message]) -> None:
        """A part of the write is on its way to the log. Call it where there is an audit trail."""
        if write.facts is None:
            write.facts = WriteFacts()
        write.facts.submitted(records)

    def part_committed(self, write: QueuedWrite) -> None:
        """A part is committed, and the responses are released that waited for it. The audit trail gets it
        now where the write goes on: the node may die before the write is answered."""
        facts = write.facts
        if facts is None or self.audited is None:
            return
        if is_worth_an_entry(write.operation.name, facts):
            write.facts = facts.next_part()
            self.audited.append((write, facts, ErrorCode.NONE))

    def answered(self, write: QueuedWrite, error: ErrorCode, offset: int) -> None:
        """The write has its response. offset: as in WriteResponse."""
        if self.audited is not None:
            facts, write.facts = write.facts or WriteFacts(), None
            facts.failed()
            self.audited.append((write, facts, error))
        if write.began_ns is not None:
            took_ns = self._clock() - write.began_ns
            if slow := self._durations.observe(write.operation.name, took_ns):
                self.notes.append(Fault(slow))
        if write.call is None:
            self.own_results.append((write.operation, write.response))
        else:
            self.responses.append(
                WriteResponse(write.call, write.response, error, offset, write.work_ns)
            )
