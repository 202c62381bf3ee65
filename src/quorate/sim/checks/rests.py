"""Who does not answer is left alone for the retry backoff (`RequestManager`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.raft.inputs import ConnectionLost, Failure, SendFailed
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.words import message_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects, Input
    from quorate.raft.state import State

ALONE: Final = "who does not answer is left alone for a while"
_NEVER: Final = -1


class Rests:
    """Of each replica: what it has asked, and who rests. Times are ms of its own clock."""

    def __init__(self) -> None:
        self._asked: dict[int, dict[int, tuple[int, int]]] = {}
        """By node and by whom it asked: the request's correlation, and when its time is up."""
        self._resting: dict[int, dict[int, int]] = {}
        """By node and by who rests: until when."""
        self._resets: dict[int, int] = {}
        """By node: how often it has forgotten all requests, as with each change of its role."""

    def began(self, twin: Twin) -> None:
        self._asked[twin.id] = {}
        self._resting.pop(twin.id, None)
        self._resets[twin.id] = _NEVER

    def look(self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
        if effects.is_over:
            return  # a last word is said to all
        resets, asked = state.requests.resets, self._asked[twin.id]
        if resets != self._resets[twin.id]:
            self._resets[twin.id] = resets
            self._resting.pop(twin.id, None)
            asked.clear()
        else:
            for item in happened:
                if isinstance(item, SendFailed):
                    self._failed(twin, item, state)
                elif isinstance(item, ConnectionLost):
                    asked.pop(item.node_id, None)  # it was told so before the request fails
        resting = self._resting.get(twin.id)
        for send in effects.sends:
            if resting and state.now < resting.pop(send.to, _NEVER) and len(happened) < 2:
                raise Violation(
                    ALONE,
                    f"{twin} got no answer of {send.to}, and asks it before the backoff of "
                    f"{state.config.retry_backoff_ms} ms is over: {message_words(send.request)}",
                )
            asked[send.to] = send.correlation, state.now + send.timeout_ms

    def _failed(self, twin: Twin, item: SendFailed, state: State) -> None:
        """Of one whose time was up before that, the replica may have thought already."""
        asked = self._asked[twin.id]
        for to, (correlation, until) in asked.items():
            if correlation != item.correlation:
                continue
            del asked[to]
            if item.failure is not Failure.UNSUPPORTED_VERSION and state.now < until:
                rests = self._resting.setdefault(twin.id, {})
                rests[to] = state.now + state.config.retry_backoff_ms
            return
