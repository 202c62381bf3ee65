"""Responses to Fetch and FetchSnapshot: on time, not larger than requested, and true (KIP-595,
KIP-630).

A leader answers as soon as there is new data, at the latest after MaxWaitMs, and without new data
not before.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.raft.messages import FetchRequest, FetchResponse, FetchSnapshotRequest
from quorate.raft.roles import Leader
from quorate.sim.checks.messages import message_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Answer, Effects, Replica

Request = FetchRequest | FetchSnapshotRequest
IN_TIME = "Fetch deadline"
NO_MORE = "Fetch size limit"
TOO_EARLY = "Fetch long poll"
AT_ONCE = "Fetch returns new data at once"
FIELDS = "Fetch response fields"
_NOT_YET, _NEVER = -1, 1 << 62
_SIZE_AT, _SIZE_END = 8, 12
"""Position of the batch length in a batch; it counts the bytes behind it."""


@dataclass(slots=True)
class LogPosition:
    """Log start, log end and high watermark of a replica at the end of a step."""

    start: int
    end: int
    high_watermark: int


@dataclass(slots=True)
class PendingFetch:
    request: Request
    at_ms: int
    """Arrival time on the clock of the receiver."""
    before: LogPosition
    until: int = _NOT_YET
    """Deadline on that clock; _NOT_YET: not computed."""
    new_at: int = _NEVER
    """When a higher high watermark was first known, without new records."""


class FetchResponseCheck:
    """Checks each replica's Fetch requests that have no response yet."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[int, PendingFetch]] = {}
        """By node and reply_to."""
        self._first: dict[int, int] = {}
        """By node: a lower bound of the earliest deadline."""
        self._positions: dict[int, LogPosition] = {}
        """By node: its position at the end of its last step."""

    def process_started(self, model: ReplicaModel, state: RaftState) -> None:
        self._waiting[model.id] = {}
        self._first[model.id] = _NEVER
        self._positions[model.id] = LogPosition(state.log.start_offset, model.tip.end, -1)

    def request_received(
        self, model: ReplicaModel, reply_to: int, request: Request, now_ms: int
    ) -> None:
        self._waiting[model.id][reply_to] = PendingFetch(request, now_ms, self._positions[model.id])
        self._first[model.id] = _NOT_YET

    # -- answers ------------------------------------------------------------------------------
    def answered(self, model: ReplicaModel, answer: Answer, state: RaftState) -> None:
        asked = self._waiting[model.id].pop(answer.reply_to, None)
        if asked is None:
            return
        response, size, most = answer.response, len(answer.data), max(asked.request.max_bytes, 0)
        if isinstance(response, FetchResponse):
            _check_truth(model, response, asked, state)
            if size:
                most = max(most, _first_batch(answer.data))
            elif response.error is ErrorCode.NONE:
                _check_patience(model, response, asked, state)
        if size > most:
            raise ViolationError(
                NO_MORE,
                f"{model} answers {message_words(asked.request)} with {size} bytes; the limit is {most}",
            )

    # -- what is owed -------------------------------------------------------------------------
    def after_step(
        self, model: ReplicaModel, effects: Effects, replica: Replica, state: RaftState
    ) -> None:
        """Check a whole step: a replica that does not lead has answered all, and a leader wakes
        before the next deadline.

        A response waits until a new epoch is durable; the wait of a Fetch starts then.
        """
        waiting, role = self._waiting[model.id], state.role
        leads = isinstance(role, Leader)
        before = self._positions[model.id]
        high_watermark = role.high_watermark if isinstance(role, Leader) else -1
        start, end = state.log.start_offset, model.tip.end
        same = before.end == end and before.high_watermark == high_watermark
        if not same or before.start != start:
            self._positions[model.id] = LogPosition(start, end, high_watermark)
        if not waiting or not state.durable.election_is_durable:
            return
        first = self._first[model.id]
        wakes = _NEVER if effects.wake_at_ms is None else effects.wake_at_ms
        if effects.is_over:
            _check_none_waits(model, waiting.keys() - _reading(replica), waiting)
            return
        if same and leads and first > state.now and wakes <= first:
            return
        reading = _reading(replica)
        first = _NEVER
        for reply_to, asked in waiting.items():
            first = min(first, _until(asked, state))
            if reply_to not in reading:
                _check_waits(model, asked, state, wakes)
        self._first[model.id] = first


def _reading(replica: Replica) -> set[int]:
    """The requests whose data the disk reads, by reply_to."""
    return {reply.reply_to for reply in replica.reads.replies}


def _check_none_waits(
    model: ReplicaModel, left: Set[int], waiting: dict[int, PendingFetch]
) -> None:
    """A replica that stops answers all open requests."""
    if left:
        asked = message_words(waiting[min(left)].request)
        raise ViolationError(IN_TIME, f"{model} stops and has not answered {asked}")


def _until(asked: PendingFetch, state: RaftState) -> int:
    """The deadline of a request. A response with nothing but a new high watermark may wait for
    `high_watermark_linger_ms`."""
    request, role = asked.request, state.role
    if asked.until == _NOT_YET:
        patience = request.max_wait_ms if isinstance(request, FetchRequest) else 0
        asked.until = state.now + patience
    if (
        asked.new_at == _NEVER
        and isinstance(request, FetchRequest)
        and isinstance(role, Leader)
        and request.high_watermark < role.high_watermark
    ):
        asked.new_at = state.now
        asked.until = min(asked.until, state.now + state.config.high_watermark_linger_ms)
    return asked.until


def _check_waits(model: ReplicaModel, asked: PendingFetch, state: RaftState, wakes: int) -> None:
    """Whether the request may stay open until the replica wakes."""
    request, until, leads = asked.request, asked.until, isinstance(state.role, Leader)
    if leads and isinstance(request, FetchRequest) and request.offset < model.tip.end:
        raise ViolationError(
            AT_ONCE, f"{model} has {model.tip}, and leaves {message_words(request)} open"
        )
    if until > state.now and leads and wakes <= until:
        return
    raise ViolationError(
        IN_TIME if asked.new_at == _NEVER else AT_ONCE,
        f"{model} received {message_words(request)}, to be answered within "
        f"{until - state.now} ms from now; it has not answered, and "
        f"{f'sleeps for {wakes - state.now} ms' if leads else 'does not lead'}",
    )


def _check_patience(
    model: ReplicaModel, response: FetchResponse, asked: PendingFetch, state: RaftState
) -> None:
    """An empty response is allowed after MaxWaitMs only, or when something changed."""
    request, role, before = asked.request, state.role, asked.before
    assert isinstance(request, FetchRequest)
    waited = state.now - asked.at_ms
    if (
        waited >= request.max_wait_ms
        or not isinstance(role, Leader)
        or response.records is not None
        or response.diverging is not None
        or response.snapshot_id is not None
        or response.high_watermark > request.high_watermark
        or (before.end, before.high_watermark) != (model.tip.end, role.high_watermark)
    ):
        return
    raise ViolationError(
        TOO_EARLY,
        f"{model} sends an empty response to {message_words(request)} after {waited} ms "
        "without new data",
    )


def _check_truth(
    model: ReplicaModel, response: FetchResponse, asked: PendingFetch, state: RaftState
) -> None:
    """The log start offset and the endpoints in a response. The start may be an older one, because
    the disk read takes time."""
    start, good = response.log_start_offset, response.error is ErrorCode.NONE
    least, most = asked.before.start, state.log.start_offset
    if (good or start != -1) and not least <= start <= most:
        raise ViolationError(
            FIELDS, f"{model} sends log start offset {start}, its log starts at {most}"
        )
    leader, endpoints = response.leader.leader_id, response.leader_endpoints
    own = state.config.listeners if leader == model.id else ()
    if (good and leader != model.id) or (leader in (model.id, -1) and endpoints != own):
        raise ViolationError(
            FIELDS,
            f"{model} listens at {state.config.listeners}, and sends node {leader} as the leader: "
            f"{message_words(response)}",
        )


def _first_batch(data: bytes) -> int:
    """Size of the first batch in bytes. A Fetch returns it whole even above the limit (KIP-74)."""
    return _SIZE_END + int.from_bytes(data[_SIZE_AT:_SIZE_END], "big")
