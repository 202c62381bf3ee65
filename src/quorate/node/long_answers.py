"""Answers that take several steps of a node: raft requests and other calls go on in between.

They are reads of the whole image, refusals of requests with many items, and long responses.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, TypeVar

from quorate.base.turns import Turns
from quorate.controller.building import Building
from quorate.node.long_texts import shorten_error_messages
from quorate.node.node_io import encoded
from quorate.node.old_versions import in_version
from quorate.node.requests import Call
from quorate.wire.errors import EncodeError
from quorate.wire.long_messages import MessageParts, RowParts, lists_of, long_list
from quorate.wire.schema import Message, Struct

T = TypeVar("T")

ROWS_ENCODED: Final = 2_000
"""Rows of a response that are encoded in one step, at most: a millisecond of work or so."""
ROWS_DROPPED: Final = 4_000
"""Items of a request that are dropped in one step, at most."""


class LongAnswers:
    """The answers under way. `go_on` runs one step of one of them: the requesters take turns, and so do
    the answers of each."""

    def __init__(self) -> None:
        self._waiting: Turns[Generator[None, None, None]] = Turns()

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, principal: str, steps: Generator[None, None, None]) -> None:
        """Run the first step. Most answers need no other one."""
        try:
            next(steps)
        except StopIteration:
            return
        self._waiting.add(principal, steps)

    def go_on(self) -> None:
        """Run the next step of an answer."""
        if self._waiting:
            principal = self._waiting.next_name()
            self.begin(principal, self._waiting.take(principal))


def timed(steps: Building[T], clock: Callable[[], int]) -> Building[tuple[T, int]]:
    """What the steps build, and how long they took. clock: in ns."""
    work_ns = 0
    while True:
        began_ns = clock()
        try:
            next(steps)
        except StopIteration as end:
            return end.value, work_ns + clock() - began_ns
        work_ns += clock() - began_ns
        yield None


def dropped_in_steps(message: Struct | None) -> Building[None]:
    """Empty the long lists of a request that is answered: all at once that would take long, too. None: the
    request could not be decoded."""
    if message is None:
        return
    weight = 0
    for field, rows in lists_of(message):
        is_flat = not any(inner.holds_structs for inner in field.struct.schema.fields)
        while is_flat and len(rows) > ROWS_DROPPED:
            del rows[-ROWS_DROPPED:]
            yield None
        while not is_flat and rows:
            row = rows.pop()
            inner_rows = _weight(row)
            if inner_rows > ROWS_DROPPED:
                yield from dropped_in_steps(row)
            weight += inner_rows
            if weight > ROWS_DROPPED:
                yield None
                weight = 0


def _weight(row: Struct) -> int:
    """How many structs there are, with those in its lists."""
    return 1 + sum(len(rows) for _, rows in lists_of(row))


def frame_in_steps(call: Call, message: Message) -> Building[bytes]:
    """The frame that answers the call. The rows of a long message are dropped where they are encoded: to
    drop all of them at once would take long, too. Raises EncodeError."""
    version = call.request.response_version
    answer = in_version(message, version)
    name = next((field.name for field, rows in lists_of(answer) if _is_long(rows)), None)
    if name is None:
        return encoded(call, answer)
    parts = MessageParts(answer, version, name)
    short: list[Struct] = []
    weight = 0
    for part in _taken(getattr(answer, name)):
        for row in part:
            inner = long_list(row, ROWS_ENCODED)
            if inner is None:
                short.append(row)
                weight += _weight(row)
            if inner is not None or weight > ROWS_ENCODED:
                _add(parts, short)
                yield None
                short, weight = [], 0
            if inner is not None:
                row_parts = parts.begin(row, inner)
                for rows in _taken(getattr(row, inner)):
                    _add(row_parts, rows)
                    yield None
                row_parts.end()
    _add(parts, short)
    return call.frame(parts.joined())


def _is_long(rows: list[Struct]) -> bool:
    """There are many, also in the lists of them."""
    return len(rows) > ROWS_ENCODED or sum(map(_weight, rows)) > ROWS_ENCODED


def _taken(rows: list[Any]) -> Iterator[list[Struct]]:
    """The rows in parts, taken from the list."""
    for start in range(0, len(rows), ROWS_ENCODED):
        part = rows[start : start + ROWS_ENCODED]
        rows[start : start + ROWS_ENCODED] = [None] * len(part)
        yield part


def _add(parts: MessageParts | RowParts, rows: list[Struct]) -> None:
    """Encode rows. Raises EncodeError."""
    try:
        parts.add(rows)
    except EncodeError:
        for row in rows:
            shorten_error_messages(row)
        parts.add(rows)
