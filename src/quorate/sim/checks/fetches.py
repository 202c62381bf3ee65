"""What a leader owes to who fetches: an answer as soon as there is something to say, at the latest
when its time is up and else not before; no more bytes than were asked for; and the truth."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.raft.messages import FetchRequest, FetchResponse, FetchSnapshotRequest
from quorate.raft.roles import Leader
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.words import message_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Answer, Effects, Replica
    from quorate.raft.state import State

Request = FetchRequest | FetchSnapshotRequest
IN_TIME = "a Fetch is answered in time"
NO_MORE = "a Fetch is answered with no more than was asked for"
TOO_EARLY = "a Fetch waits for something new"
AT_ONCE = "a Fetch hears of what is new"
TRUE = "a Fetch is answered truthfully"
_NOT_YET, _NEVER = -1, 1 << 62
_SIZE_AT, _SIZE_END = 8, 12
"""Where a batch says how long it is behind that."""


@dataclass(slots=True)
class Place:
    """Where a replica stood at the end of a step: its log, and the high watermark of its reign."""

    start: int
    end: int
    high_watermark: int


@dataclass(slots=True)
class Asked:
    request: Request
    at_ms: int
    """By the clock of the node that was asked."""
    before: Place
    until: int = _NOT_YET
    """So long it may wait, by that clock."""
    new_at: int = _NEVER
    """When there was first a high watermark to tell, and nothing else."""


class Fetches:
    """Of each replica, in this life: what it was asked to send and has not answered."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[int, Asked]] = {}
        """By node and reply_to."""
        self._first: dict[int, int] = {}
        """By node: the first time at which one of these is up, or an earlier one."""
        self._places: dict[int, Place] = {}
        """By node: at the end of its last step."""

    def began(self, twin: Twin, state: State) -> None:
        self._waiting[twin.id] = {}
        self._first[twin.id] = _NEVER
        self._places[twin.id] = Place(state.log.start_offset, twin.tip.end, -1)

    def asked(self, twin: Twin, reply_to: int, request: Request, now_ms: int) -> None:
        self._waiting[twin.id][reply_to] = Asked(request, now_ms, self._places[twin.id])
        self._first[twin.id] = _NOT_YET

    # -- answers ------------------------------------------------------------------------------
    def answered(self, twin: Twin, answer: Answer, state: State) -> None:
        asked = self._waiting[twin.id].pop(answer.reply_to, None)
        if asked is None:
            return
        response, size, most = answer.response, len(answer.data), max(asked.request.max_bytes, 0)
        if isinstance(response, FetchResponse):
            _check_truth(twin, response, asked, state)
            if size:
                most = max(most, _first_batch(answer.data))
            elif response.error is ErrorCode.NONE:
                _check_patience(twin, response, asked, state)
        if size > most:
            raise Violation(
                NO_MORE,
                f"{twin} answers {message_words(asked.request)} with {size} bytes, {most} will do",
            )

    # -- what is owed -------------------------------------------------------------------------
    def look(self, twin: Twin, effects: Effects, replica: Replica, state: State) -> None:
        """At the end of a step: who leads no more lets nobody wait, and a leader wakes in time.

        Nothing is said before a new epoch is durable, and from then on a Fetch may wait anew.
        """
        waiting, role = self._waiting[twin.id], state.role
        leads = isinstance(role, Leader)
        before = self._places[twin.id]
        told = role.high_watermark if isinstance(role, Leader) else -1
        start, end = state.log.start_offset, twin.tip.end
        same = before.end == end and before.high_watermark == told
        if not same or before.start != start:
            self._places[twin.id] = Place(start, end, told)
        if not waiting or not state.durable.election:
            return
        first = self._first[twin.id]
        wakes = _NEVER if effects.wake_at_ms is None else effects.wake_at_ms
        if effects.is_over:
            _check_none_waits(twin, waiting.keys() - _reading(replica), waiting)
            return
        if same and leads and first > state.now and wakes <= first:
            return
        reading = _reading(replica)
        first = _NEVER
        for reply_to, asked in waiting.items():
            first = min(first, _until(asked, state))
            if reply_to not in reading:
                _check_waits(twin, asked, state, wakes)
        self._first[twin.id] = first


def _reading(replica: Replica) -> set[int]:
    """What the disk was asked for: by reply_to."""
    return {reply.reply_to for reply in replica._reads.replies}


def _check_none_waits(twin: Twin, left: Set[int], waiting: dict[int, Asked]) -> None:
    """Who ends, ends nobody's question with silence."""
    if left:
        asked = message_words(waiting[min(left)].request)
        raise Violation(IN_TIME, f"{twin} ends, and has not answered {asked}")


def _until(asked: Asked, state: State) -> int:
    """How long it may wait. What only tells of a high watermark may wait for company."""
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


def _check_waits(twin: Twin, asked: Asked, state: State, wakes: int) -> None:
    """May this one still have no answer, and nobody think of it before `wakes`?"""
    request, until, leads = asked.request, asked.until, isinstance(state.role, Leader)
    if leads and isinstance(request, FetchRequest) and request.offset < twin.tip.end:
        raise Violation(AT_ONCE, f"{twin} has {twin.tip}, and lets {message_words(request)} wait")
    if until > state.now and leads and wakes <= until:
        return
    raise Violation(
        IN_TIME if asked.new_at == _NEVER else AT_ONCE,
        f"{twin} was asked {message_words(request)}, to be answered within "
        f"{until - state.now} ms from now; it has not, and "
        f"{f'does nothing for {wakes - state.now} ms' if leads else 'does not lead'}",
    )


def _check_patience(twin: Twin, response: FetchResponse, asked: Asked, state: State) -> None:
    """An answer that says nothing: nothing may have happened, and the time is up."""
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
        or (before.end, before.high_watermark) != (twin.tip.end, role.high_watermark)
    ):
        return
    raise Violation(
        TOO_EARLY,
        f"{twin} says nothing to {message_words(request)} after {waited} ms, and there is nothing "
        "new since it came",
    )


def _check_truth(twin: Twin, response: FetchResponse, asked: Asked, state: State) -> None:
    """Where its log starts (what the disk was asked for may come late), and where it listens."""
    start, good = response.log_start_offset, response.error is ErrorCode.NONE
    least, most = asked.before.start, state.log.start_offset
    if (good or start != -1) and not least <= start <= most:
        raise Violation(TRUE, f"{twin} says that its log starts at {start}, it starts at {most}")
    leader, told = response.leader.leader_id, response.leader_endpoints
    own = state.config.listeners if leader == twin.id else ()
    if (good and leader != twin.id) or (leader in (twin.id, -1) and told != own):
        raise Violation(
            TRUE,
            f"{twin} listens at {state.config.listeners}, and says that node {leader} leads: "
            f"{message_words(response)}",
        )


def _first_batch(data: bytes) -> int:
    """How many bytes it has."""
    return _SIZE_END + int.from_bytes(data[_SIZE_AT:_SIZE_END], "big")
