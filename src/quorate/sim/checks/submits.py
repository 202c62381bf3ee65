"""What is said to a Submit: its own records, in their place, and nothing before its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.formats.batch import HEADER_SIZE, read_batch
from quorate.formats.batch_records import values as values_of
from quorate.node.replica import Committed, Submit
from quorate.sim.checks.history import Entry
from quorate.sim.checks.twin import Twin
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.proposals import Outcome

CHECK = "a submission is answered"
_LONG_MS = 2000
_OVERHEAD = 24
"""Most bytes that a record needs beside its value."""
_Asked = tuple[Sequence[bytes], int, int]
"""The values, where the log ended when they came, and when that was."""


class Submits:
    """Of each replica, in this life: what it was asked to append, in that order."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[int, _Asked]] = {}
        """By node and token: what it waits for."""
        self._upgrades: dict[int, set[int]] = {}
        """By node: tokens of upgrades of kraft.version that have no answer yet."""

    def began(self, twin: Twin) -> None:
        """Another life: who asked the one before has heard that the connection broke."""
        self._waiting[twin.id] = {}
        self._upgrades[twin.id] = set()

    def upgrading(self, twin: Twin, token: int) -> None:
        self._upgrades[twin.id].add(token)

    def asked(self, twin: Twin, submit: Submit, now_ms: int) -> None:
        self._waiting[twin.id][submit.token] = (submit.values, twin.tip.end, now_ms)

    def told(self, twin: Twin, outcomes: Sequence[Outcome], applied: int, most: int) -> None:
        """`applied`: the state machine has all below it. `most`: bytes of a batch."""
        waiting = self._waiting[twin.id]
        for outcome in outcomes:
            found = waiting.get(outcome.token)
            if found is None:
                if outcome.token not in self._upgrades[twin.id]:
                    raise Violation(CHECK, f"{twin} answers {outcome.token}, which asks nothing")
                self._upgrades[twin.id].remove(outcome.token)
                continue
            if isinstance(outcome, Committed):
                self._committed(twin, outcome, found, applied)
                first = next(iter(waiting))
                if first != outcome.token:
                    raise Violation(
                        CHECK,
                        f"{twin} says that {_place(outcome)} is done, and has not answered "
                        f"{first}, which came before it",
                    )
            elif outcome.error == ErrorCode.RECORD_LIST_TOO_LARGE and _fits(found[0], most):
                raise Violation(
                    CHECK, f"{twin} finds {_hex(found[0])} too large for a batch of {most} bytes"
                )
            del waiting[outcome.token]

    def _committed(self, twin: Twin, outcome: Committed, asked: _Asked, applied: int) -> None:
        values, end, _ = asked
        if outcome.end_offset > applied:
            raise Violation(
                CHECK, f"{twin} says that {_place(outcome)} is done, and has applied {applied}"
            )
        if not values:
            if outcome.base_offset < end or outcome.base_offset != outcome.end_offset:
                said = f"{twin} says {_place(outcome)} to one that waits for all up to {end}"
                raise Violation(CHECK, said)
            return
        found = _values(twin.high, outcome.base_offset, outcome.end_offset)
        if found != list(values):
            raise Violation(
                CHECK,
                f"{twin} says that {len(values)} records are {_place(outcome)}; there the log has "
                f"{'none of one batch' if found is None else _hex(found)}, they are {_hex(values)}",
            )

    def finish(self, twin: Twin, now_ms: int) -> None:
        """Nothing is uncommitted any more: what has waited for long will wait for ever."""
        for token, asked in self._waiting[twin.id].items():
            if now_ms - asked[2] > _LONG_MS:
                raise Violation(CHECK, f"{twin} never answers {token}, and has nothing left to do")


def _fits(values: Sequence[bytes], most: int) -> bool:
    """Whatever else the batch says of each of its records?"""
    return HEADER_SIZE + sum(_OVERHEAD + len(value) for value in values) <= most


def _place(outcome: Committed) -> str:
    return f"submission {outcome.token} at [{outcome.base_offset}, {outcome.end_offset})"


def _hex(values: Sequence[bytes]) -> str:
    return "[" + ", ".join(value.hex() for value in values) + "]"


def _values(entry: Entry, base: int, end: int) -> list[bytes] | None:
    """The records between these offsets, of the log that ends with `entry`; None where they are
    not in one batch."""
    at: Entry | None = entry
    while at is not None and at.base > base:
        at = at.parent
    if at is None or at.end < end:
        return None
    return values_of(read_batch(at.data, 0))[base - at.base : end - at.base]
