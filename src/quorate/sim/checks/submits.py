"""What is said to a Submit: its own records, in their place, and nothing before its turn. Refused
is what was never appended, in doubt what was; and a leader refuses nothing without a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.formats.batch import HEADER_SIZE, read_batch
from quorate.formats.batch_records import values as values_of
from quorate.node.replica import Committed, Submit
from quorate.raft.ready import Refused
from quorate.raft.roles import NEVER
from quorate.sim.checks.history import Entry, History
from quorate.sim.checks.twin import Twin
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.proposals import Outcome
    from quorate.node.replica import Effects, Replica

CHECK = "a submission is answered"
FOR_GOOD = "refused means never done"
NEEDLESS = "a leader takes what it is given"
COMPANY = "a submission waits for company only so long"
_COMPANY_MS = 2
"""Decision 7."""
_LONG_MS = 2000
_OVERHEAD = 24
"""Most bytes that a record needs beside its value."""
_Values = tuple[bytes, ...]
_Asked = tuple[_Values, int, int]
"""The values, where the log ended when they came, and when that was."""


class Submits:
    """Of each replica, in this life: what it was asked to append, in that order."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._waiting: dict[int, dict[int, _Asked]] = {}
        """By node and token: what it waits for."""
        self._likely: dict[int, Counter[_Values]] = {}
        """By node: how often it was asked for these values, and has not said that it will not."""
        self._alone: dict[int, tuple[int, int]] = {}
        """By leader: the first that waits while nothing is on its way, and since when."""

    def began(self, twin: Twin) -> None:
        """Another life: who asked the one before has heard that the connection broke."""
        self._waiting[twin.id] = {}
        self._likely[twin.id] = Counter()
        self._alone.pop(twin.id, None)

    def asked(self, twin: Twin, submit: Submit, now_ms: int) -> None:
        values = tuple(submit.values)
        self._waiting[twin.id][submit.token] = (values, twin.tip.end, now_ms)
        self._likely[twin.id][values] += 1

    def told(
        self, twin: Twin, outcomes: Sequence[Outcome], replica: Replica, *, is_over: bool = False
    ) -> None:
        """`replica` as it is after the step that had these outcomes; `is_over`: it ended there."""
        waiting = self._waiting[twin.id]
        for outcome in outcomes:
            found = waiting.get(outcome.token)
            if found is None:
                raise Violation(CHECK, f"{twin} answers {outcome.token}, which asks nothing")
            if isinstance(outcome, Committed):
                self._committed(twin, outcome, found, replica.applied.offset)
                first = next(iter(waiting))
                if first != outcome.token:
                    raise Violation(
                        CHECK,
                        f"{twin} says that {_place(outcome)} is done, and has not answered "
                        f"{first}, which came before it",
                    )
            else:
                self._refused(twin, outcome, found)
                self._check_reason(twin, outcome, found[0], replica, is_over)
            del waiting[outcome.token]

    def _refused(self, twin: Twin, outcome: Refused, asked: _Asked) -> None:
        """In doubt is what it has appended, and nothing else."""
        values, end, _ = asked
        if not values:
            return
        likely = self._likely[twin.id]
        if not outcome.in_doubt:
            likely[values] -= 1
        done = sum(map(values.__eq__, self._made(twin, end, len(values))))
        if done > likely[values]:
            raise Violation(
                FOR_GOOD,
                f"{twin} refuses {outcome.token} for good, and has appended {_hex(values)}",
            )
        if outcome.in_doubt and not done:
            raise Violation(
                FOR_GOOD,
                f"{twin} says that {outcome.token} may be done some day, and has never appended "
                f"{_hex(values)}",
            )

    def _made(self, twin: Twin, start: int, count: int) -> Iterator[_Values]:
        """Every `count` records in a row that it has made itself from this offset on."""
        at: Entry | None = twin.tip
        while at is not None and at.end > start:
            if not at.control and self._is_own(twin, at):
                records = values_of(read_batch(at.data, 0))
                for i in range(len(records) - count + 1):
                    yield tuple(records[i : i + count])
            at = at.parent

    def _is_own(self, twin: Twin, entry: Entry) -> bool:
        reign = self._history.reigns.get(entry.epoch)
        return reign is not None and (reign.node_id, reign.life) == (twin.id, twin.life)

    def _check_reason(
        self, twin: Twin, outcome: Refused, values: _Values, replica: Replica, is_over: bool
    ) -> None:
        most = replica.config.limits.batch_bytes
        if outcome.error == ErrorCode.RECORD_LIST_TOO_LARGE:
            if _fits(values, most):
                raise Violation(
                    CHECK, f"{twin} finds {_hex(values)} too large for a batch of {most} bytes"
                )
        elif twin.leading is not None and twin.leading == replica.leading_epoch and not is_over:
            raise Violation(
                NEEDLESS,
                f"{twin} leads epoch {twin.leading}, before and after, and refuses "
                f"{outcome.token}: {outcome.error.name} {outcome.message}",
            )

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

    def look(self, twin: Twin, effects: Effects, replica: Replica, now_ms: int) -> None:
        """At the end of a step: what waits while a round is on its way is the next round, and else
        it waits for those that may come at once."""
        waiting = self._waiting[twin.id]
        if not waiting:
            return
        epoch, end = replica.leading_epoch, twin.tip.end
        is_idle = twin.high.end == end == replica.applied.offset
        if epoch is None or not is_idle or effects.is_over:
            self._alone.pop(twin.id, None)
            return
        first = next(iter(waiting))
        token, since = self._alone.get(twin.id, (first, now_ms))
        if token != first:
            since = now_ms
        self._alone[twin.id] = first, since
        wakes = NEVER if effects.wake_at_ms is None else effects.wake_at_ms
        if wakes > since + _COMPANY_MS:
            raise Violation(
                COMPANY,
                f"{twin} leads epoch {epoch}, has nothing on its way, and has let {first} wait for "
                f"{now_ms - since} ms; it does nothing for {wakes - now_ms} ms",
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
