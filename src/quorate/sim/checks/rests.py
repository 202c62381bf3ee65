"""Who does not answer, or a Fetch with an error, is left alone for the retry backoff
(`RequestManager`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.raft.inputs import Answered, ConnectionLost, Failure, SendFailed
from quorate.raft.messages import FetchResponse
from quorate.raft.roles import Unattached
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter
from quorate.sim.checks.words import message_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects, Input
    from quorate.raft.state import State

ALONE: Final = "who does not answer is left alone for a while"
_NEVER: Final = -1
_DOUBLINGS: Final = 16


class Rests:
    """Of each replica: what it has asked, and who rests. Times are ms of its own clock."""

    def __init__(self) -> None:
        self._asked: dict[int, dict[int, tuple[int, int]]] = {}
        """By node and by whom it asked: the request's correlation, and when its time is up."""
        self._resting: dict[int, dict[int, int]] = {}
        """By node and by who rests: until when."""
        self._resets: dict[int, int] = {}
        """By node: how often it has forgotten all requests, as with each change of its role."""
        self._in_vain: dict[int, dict[int, int]] = {}
        """By node and by whom it asked: how often in vain since then, as it looked for a leader."""

    def began(self, twin: Twin) -> None:
        self._asked[twin.id] = {}
        self._resting.pop(twin.id, None)
        self._resets[twin.id] = _NEVER
        self._in_vain[twin.id] = {}

    def look(self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
        if effects.is_over:
            return  # a last word is said to all
        resets, asked = state.requests.resets, self._asked[twin.id]
        if resets != self._resets[twin.id]:
            self._resets[twin.id] = resets
            self._resting.pop(twin.id, None)
            self._in_vain[twin.id].clear()
            asked.clear()
        else:
            for item in happened:
                if isinstance(item, SendFailed):
                    in_vain = item.failure is not Failure.UNSUPPORTED_VERSION
                    self._settled(twin, item.correlation, in_vain, state)
                elif isinstance(item, Answered):
                    answer = item.response
                    in_vain = isinstance(answer, FetchResponse) and answer.error != ErrorCode.NONE
                    self._settled(twin, item.correlation, in_vain, state)
                elif isinstance(item, ConnectionLost):
                    asked.pop(item.node_id, None)  # it was told so before the request fails
        resting = self._resting.get(twin.id)
        for send in effects.sends:
            until = resting.pop(send.to, _NEVER) if resting else _NEVER
            if state.now < until and len(happened) < 2:
                raise Violation(
                    ALONE,
                    f"{twin} asked {send.to} in vain, and asks it {until - state.now} ms before "
                    f"its backoff is over: {message_words(send.request)}",
                )
            asked[send.to] = send.correlation, state.now + send.timeout_ms

    def _settled(self, twin: Twin, correlation: int, in_vain: bool, state: State) -> None:
        """Of one whose time was up before that, the replica may have thought already."""
        asked = self._asked[twin.id]
        for to, (number, until) in asked.items():
            if number != correlation:
                continue
            del asked[to]
            if in_vain and state.now < until:
                resting = self._resting.setdefault(twin.id, {})
                resting[to] = state.now + self._rest_ms(twin, to, state)
            return

    def _rest_ms(self, twin: Twin, to: int, state: State) -> int:
        """An observer that finds no leader doubles it, up to how long a Fetch may wait (decision
        7)."""
        rest = state.config.retry_backoff_ms
        if isinstance(state.role, Unattached) and not is_voter(twin.voters, twin.key):
            times = self._in_vain[twin.id].get(to, 0)
            self._in_vain[twin.id][to] = times + 1
            doubled = rest << min(times, _DOUBLINGS)
            rest = max(rest, min(doubled, state.config.fetch_max_wait_ms))
        return rest
