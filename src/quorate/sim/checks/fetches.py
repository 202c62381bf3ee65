"""What a leader owes to who fetches: an answer in time, and no more bytes than were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import FetchRequest, FetchResponse, FetchSnapshotRequest
from quorate.raft.roles import Leader
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.words import message_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Answer, Effects, Replica
    from quorate.raft.state import State

Asked = FetchRequest | FetchSnapshotRequest
IN_TIME = "a Fetch is answered in time"
NO_MORE = "a Fetch is answered with no more than was asked for"
_NOT_YET, _NEVER = -1, 1 << 62
_SIZE_AT, _SIZE_END = 8, 12
"""Where a batch says how long it is behind that."""


class Fetches:
    """Of each replica, in this life: what it was asked to send and has not answered."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[int, tuple[Asked, int]]] = {}
        """By node and reply_to: the request, and until when it may wait by the node's clock."""
        self._first: dict[int, int] = {}
        """By node: the first of these times, or an earlier one."""

    def began(self, twin: Twin) -> None:
        self._waiting[twin.id] = {}
        self._first[twin.id] = _NEVER

    def asked(self, twin: Twin, reply_to: int, request: Asked) -> None:
        self._waiting[twin.id][reply_to] = request, _NOT_YET
        self._first[twin.id] = _NOT_YET

    def answered(self, twin: Twin, answer: Answer) -> None:
        found = self._waiting[twin.id].pop(answer.reply_to, None)
        if found is None or not answer.data:
            return
        request, size = found[0], len(answer.data)
        most = max(request.max_bytes, 0)
        if isinstance(answer.response, FetchResponse):
            most = max(most, _first_batch(answer.data))
        if size > most:
            raise Violation(
                NO_MORE,
                f"{twin} answers {message_words(request)} with {size} bytes, {most} will do",
            )

    def look(self, twin: Twin, effects: Effects, replica: Replica, state: State) -> None:
        """At the end of a step: who leads no more lets nobody wait, and a leader wakes in time.

        Nothing is said before a new epoch is durable, and from then on a Fetch may wait anew.
        """
        waiting = self._waiting[twin.id]
        if not waiting or not state.durable.election:
            return
        leads, first = isinstance(state.role, Leader), self._first[twin.id]
        wakes = _NEVER if effects.wake_at_ms is None else effects.wake_at_ms
        if effects.stopped or effects.faulted is not None:
            return
        if leads and first > state.now and wakes <= first:
            return
        reading = {reply.reply_to for reply in replica._reads.values()}
        first = _NEVER
        for reply_to, (request, until) in waiting.items():
            if until == _NOT_YET:
                until = state.now + (
                    request.max_wait_ms if isinstance(request, FetchRequest) else 0
                )
                waiting[reply_to] = request, until
            first = min(first, until)
            late = until <= state.now or not leads or wakes > until
            if late and reply_to not in reading:
                raise Violation(
                    IN_TIME,
                    f"{twin} was asked {message_words(request)}, to be answered within "
                    f"{until - state.now} ms from now; it has not, and "
                    f"{f'does nothing for {wakes - state.now} ms' if leads else 'does not lead'}",
                )
        self._first[twin.id] = first


def _first_batch(data: bytes) -> int:
    """How many bytes it has."""
    return _SIZE_END + int.from_bytes(data[_SIZE_AT:_SIZE_END], "big")
