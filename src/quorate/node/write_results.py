"""What comes out of the write queue: responses, results of the controller's own writes, lines for the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quorate.base.errors import ErrorCode
from quorate.base.notes import Fault
from quorate.controller.event_durations import EventDurations
from quorate.controller.result import WriteOperation
from quorate.node.queued_write import QueuedWrite, WriteResponse

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
        self.audited: list[tuple[QueuedWrite, ErrorCode, int]] | None = None
        """Each write that is answered, with its error and the end offset of its records; None: nobody
        asks."""

    @property
    def has_any(self) -> bool:
        """There is something in `responses`, `own_results` or `notes`."""
        return bool(self.responses or self.own_results or self.notes)

    def failed(self, write: QueuedWrite, error: ErrorCode, message: str | None) -> None:
        """The whole write failed. message: the text of the exception; None for none."""
        write.response = write.operation.failed(write.request, error, message)
        self.answered(write, error, NOTHING_COMMITTED)

    def fault(self, write: QueuedWrite, error: Exception, then: str) -> None:
        """An unexpected exception of a decision. then: what follows from it, for the log."""
        self.faults += 1
        text = f"{write.operation.name} failed: {type(error).__name__}: {error}; {then}"
        self.notes.append(Fault(text))

    def answered(self, write: QueuedWrite, error: ErrorCode, offset: int) -> None:
        """The write has its response. offset: as in WriteResponse."""
        if self.audited is not None:
            self.audited.append((write, error, offset))
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
