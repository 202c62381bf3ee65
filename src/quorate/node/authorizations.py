"""Writes whose authorization is under way, before they wait for their decision.

A request may name tens of thousands of topics, and each name is authorized. While that holds the write
queue, a requester who may do nothing holds up everybody else. So it happens before and in steps, and a
request of which nothing is left never takes the queue.

1. A short request is authorized when it arrives: nothing waits here.
2. A longer one waits. Each step of the node runs steps of authorizations up to the first pause: the
   requesters take turns, and each has one authorization under way.
3. What a requester sends after a write that waits here waits behind it: its order counts.

Source: `ControllerApis`, whose request threads authorize before an event enters the controller's queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.controller.context import Context
from quorate.controller.result import Result
from quorate.node.queued_write import QueuedWrite
from quorate.node.requests import LONG_REQUEST_BYTES, Call
from quorate.node.waiting_writes import WritesByRequester, principal_of

AUTHORIZED_AT_ONCE: Final = 16
"""At most so many writes pass in one step of the node."""


class Authorizations(WritesByRequester):
    """The writes of each requester, of which the oldest one is authorized."""

    def __init__(self, context: Callable[[Call | None], Context], clock: Callable[[], int]) -> None:
        """clock: measures the work, in ns."""
        super().__init__()
        self._context = context
        self._clock = clock

    def admit(self, write: QueuedWrite) -> bool:
        """Whether a write that has just come passes at once; else it waits here."""
        if not self._turns.has(principal_of(write)):
            is_long = write.call is not None and write.call.size > LONG_REQUEST_BYTES
            if write.operation.authorize is None or (not is_long and self._is_done(write)):
                return True
        self.add(write)
        return False

    def go_on(self) -> list[QueuedWrite]:
        """Run steps up to the first pause, and take the writes that pass."""
        passed: list[QueuedWrite] = []
        while self and len(passed) < AUTHORIZED_AT_ONCE:
            principal = self._turns.next_name()
            if not self._is_done(self._turns.oldest(principal)):
                self._turns.pass_on(principal)
                break
            passed.append(self._turns.take(principal))
        return passed

    def _is_done(self, write: QueuedWrite) -> bool:
        """Run one step of its authorization. The write then has what is left to decide, a response where
        that is nothing, or an exception."""
        authorize = write.operation.authorize
        if authorize is None:
            return True
        began_ns = self._clock()
        try:
            if write.authorization is None:
                write.authorization = authorize(write.request, self._context(write.call))
            next(write.authorization)
        except StopIteration as end:
            if isinstance(end.value, Result):
                write.response = end.value.response
            write.asked = end.value
        except Exception as error:
            write.refused = error
        else:
            return False
        finally:
            write.work_ns += self._clock() - began_ns
        write.authorization = None
        return True
