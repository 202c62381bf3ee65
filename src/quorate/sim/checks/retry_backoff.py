"""A peer that fails to answer, or answers a Fetch with an error, gets no request for the retry
backoff (`RequestManager`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.raft.inputs import Answered, ConnectionLost, SendFailed, SendFailure
from quorate.raft.messages import FetchResponse
from quorate.raft.roles import Unattached
from quorate.sim.checks.messages import message_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voters import is_voter
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Effects, Input

BACKOFF: Final = "retry backoff"
_NEVER: Final = -1
_DOUBLINGS: Final = 16


class RetryBackoffCheck:
    """The requests of each replica, and the peers in backoff. Times are ms of its own clock."""

    def __init__(self) -> None:
        self._asked: dict[int, dict[int, tuple[int, int]]] = {}
        """By node and peer: (correlation id of the open request, its timeout)."""
        self._backing_off: dict[int, dict[int, int]] = {}
        """By node and peer: the end of the backoff."""
        self._resets: dict[int, int] = {}
        """By node: how often it has dropped all requests, as at each role change."""
        self._failures: dict[int, dict[int, int]] = {}
        """By node and peer: failures since then while it searched for a leader; where a longest backoff
        is configured, all since the peer last answered well."""

    def process_started(self, model: ReplicaModel) -> None:
        self._asked[model.id] = {}
        self._backing_off.pop(model.id, None)
        self._resets[model.id] = _NEVER
        self._failures[model.id] = {}

    def after_step(
        self, model: ReplicaModel, happened: Sequence[Input], effects: Effects, state: RaftState
    ) -> None:
        if effects.is_over:
            return  # a replica that stops notifies all peers
        resets, asked = state.requests.resets, self._asked[model.id]
        if resets != self._resets[model.id]:
            self._resets[model.id] = resets
            self._backing_off.pop(model.id, None)
            self._failures[model.id].clear()
            asked.clear()
        else:
            for item in happened:
                if isinstance(item, SendFailed):
                    failed = item.failure is not SendFailure.UNSUPPORTED_VERSION
                    self._response_received(model, item.correlation, failed, state)
                elif isinstance(item, Answered):
                    answer = item.response
                    failed = isinstance(answer, FetchResponse) and answer.error != ErrorCode.NONE
                    self._response_received(model, item.correlation, failed, state)
                elif isinstance(item, ConnectionLost):
                    asked.pop(item.node_id, None)  # the request fails later
        backing_off = self._backing_off.get(model.id)
        for send in effects.sends:
            until = backing_off.pop(send.to, _NEVER) if backing_off else _NEVER
            if state.now < until and len(happened) < 2:
                raise ViolationError(
                    BACKOFF,
                    f"{model} failed to reach {send.to}, and sends to it {until - state.now} ms before "
                    f"its backoff is over: {message_words(send.request)}",
                )
            asked[send.to] = send.correlation, state.now + send.timeout_ms

    def _response_received(
        self, model: ReplicaModel, correlation: int, failed: bool, state: RaftState
    ) -> None:
        """A response arrived or the request failed. Where the request had timed out before, the
        replica has dropped it already."""
        asked = self._asked[model.id]
        for to, (number, until) in asked.items():
            if number != correlation:
                continue
            del asked[to]
            if failed and state.now < until:
                backing_off = self._backing_off.setdefault(model.id, {})
                backing_off[to] = state.now + self._backoff_ms(model, to, state)
            elif not failed and state.config.retry_backoff_max_ms:
                self._failures[model.id].pop(to, None)
            return

    def _backoff_ms(self, model: ReplicaModel, to: int, state: RaftState) -> int:
        """An observer without a leader doubles the backoff, up to the longest wait of a Fetch
        (decision 7)."""
        backoff, most = state.config.retry_backoff_ms, state.config.retry_backoff_max_ms
        if most:
            return min(backoff << min(self._failed(model, to), _DOUBLINGS), most)
        if isinstance(state.role, Unattached) and not is_voter(model.voters, model.key):
            doubled = backoff << min(self._failed(model, to), _DOUBLINGS)
            backoff = max(backoff, min(doubled, state.config.fetch_max_wait_ms))
        return backoff

    def _failed(self, model: ReplicaModel, to: int) -> int:
        """How often it had failed before this failure."""
        times = self._failures[model.id].get(to, 0)
        self._failures[model.id][to] = times + 1
        return times
