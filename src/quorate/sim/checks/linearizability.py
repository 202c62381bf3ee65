"""Checks that a client history is linearizable: the search of Wing and Gong with Lowe's memoization.

Each key is checked separately. Every operation must take effect at one moment between its call and
its response. Two reductions keep the search small:

1. An operation without a response may take effect at any moment after its call, or never. The
   search places it only directly before an operation that needs it, which loses no solution.
2. Equivalent operations are tried once. Values that no response or expectation names count as one
   value. Of equivalent operations, the one with the earliest response (or, without one, the
   earliest call) goes next.

Sources: Wing and Gong 1993; Lowe, "Testing for linearizability", 2017.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from quorate.sim.world.client_op import ClientOp

NEVER = 1 << 62
_UNSEEN = "a value that no operation names"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A key whose operations have no valid order, and the longest valid prefix that was found."""

    key: int
    placed: tuple[ClientOp, ...]
    """The longest valid prefix of an order."""
    stuck: tuple[ClientOp, ...]
    """The operations of which one had to be next."""
    value: int | None
    """The value after `placed`."""

    def __str__(self) -> str:
        last = "; ".join(map(describe, self.placed[-6:])) or "nothing"
        return (
            f"key {self.key}: after {len(self.placed)} operations (last {last}) the value is "
            f"{self.value}, and none of these can be next: {'; '.join(map(describe, self.stuck))}"
        )


def describe(op: ClientOp) -> str:
    """An operation in one line: client, times in microseconds, call and result."""
    if op.kind == "get":
        what = f"get -> {op.result}"
    elif op.kind == "put":
        what = f"put {op.value}"
    else:
        what = f"cas {op.expected} -> {op.value}: {op.result}"
    until = op.answered_us if op.outcome == "ok" else op.outcome
    return f"client {op.client} [{op.invoked_us}, {until}] {what}"


def check(history: Iterable[ClientOp]) -> Anomaly | None:
    """The first key whose history is not linearizable; None where all are. Initial values are None.

    Refused operations have no effect. An operation that ends at the time at which another one
    begins is concurrent with it.
    """
    keys: dict[int, list[ClientOp]] = {}
    for op in history:
        if op.outcome != "refused":
            keys.setdefault(op.key, []).append(op)
    for key in sorted(keys):
        anomaly = check_key(key, keys[key])
        if anomaly is not None:
            return anomaly
    return None


def check_key(key: int, ops: Iterable[ClientOp]) -> Anomaly | None:
    """Check the operations of one key."""
    return _Search(key, ops).run()


def changes_nothing(op: ClientOp) -> bool:
    """Whether the operation is a get, or a cas that found another value."""
    return op.kind == "get" or op.result is False


def fits(op: ClientOp, value: object) -> bool:
    """Whether this answered operation would have the same result on this value."""
    if op.kind == "put":
        return True
    return value == op.result if op.kind == "get" else (value == op.expected) is op.result


@dataclass(frozen=True, slots=True)
class _Place:
    """A state of the search: the operations that took effect (bits), and the value."""

    first: int
    """All certain operations before this index took effect."""
    done: int
    """Bits of the certain operations from `first` on that took effect, shifted down by it."""
    used: int
    """Bits of the uncertain operations that took effect."""
    value: object
    """Or _UNSEEN."""


class _Search:
    """A depth-first search over the orders of the certain operations. It visits no state twice."""

    def __init__(self, key: int, ops: Iterable[ClientOp]) -> None:
        self.key = key
        self.certain: list[ClientOp] = []
        self.open: list[ClientOp] = []
        for op in ops:
            if op.outcome == "ok":
                insort(self.certain, op, key=lambda known: known.invoked_us)
            elif op.kind != "get":
                insort(self.open, op, key=lambda known: known.invoked_us)
        self.wanted: set[object] = {None}
        """The values that a result or an expectation names."""
        for op in (*self.certain, *self.open):
            self.wanted.add(op.result if op.kind == "get" else op.expected)
        self.seen: set[_Place] = set()

    def run(self) -> Anomaly | None:
        start = _Place(0, 0, 0, None)
        seen = self.seen
        seen.add(start)
        path: list[tuple[ClientOp, ...]] = []
        stack = [self.next_places(start)]
        longest: list[tuple[ClientOp, ...]] = []
        at = start
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
                if path:
                    path.pop()
                continue
            steps, place = found
            if place.first == len(self.certain):
                return None
            if place in seen:
                continue
            seen.add(place)
            path.append(steps)
            stack.append(self.next_places(place))
            if len(path) > len(longest):
                longest, at = list(path), place
        if not self.certain:
            return None
        placed = tuple(op for steps in longest for op in steps)
        stuck = tuple(op for _, op in self.candidates(at)[0])
        written = [op.value for op in placed if not changes_nothing(op)]
        return Anomaly(self.key, placed, stuck, written[-1] if written else None)

    def value_of(self, op: ClientOp) -> object:
        """The value that it writes, or _UNSEEN where no operation names the value."""
        return op.value if op.value in self.wanted else _UNSEEN

    def effect_of(self, op: ClientOp) -> object:
        """The effect of an operation. Of two with equal effects only one is tried."""
        return op.kind, self.value_of(op), op.expected, op.result

    def candidates(self, place: _Place) -> tuple[list[tuple[int, ClientOp]], int]:
        """The certain operations of which one must be next, by response time, and a time limit.

        Only an operation that was called before the earliest pending response can be next.
        """
        limit = NEVER
        found: list[tuple[int, ClientOp]] = []
        done = place.done
        certain = self.certain
        for index in range(place.first, len(certain)):
            op = certain[index]
            if op.invoked_us > limit:
                break
            if not done & 1:
                found.append((index, op))
                limit = min(limit, op.answered_us)
            done >>= 1
        found = [(index, op) for index, op in found if op.invoked_us <= limit]
        found.sort(key=lambda item: item[1].answered_us)
        return found, limit

    def alternatives(self, found: list[tuple[int, ClientOp]]) -> list[tuple[int, ClientOp]]:
        """These candidates without equivalents: for each effect the one with the earliest end."""
        first: dict[object, tuple[int, ClientOp]] = {}
        for item in found:
            first.setdefault(self.effect_of(item[1]), item)
        return list(first.values())

    def next_places(self, place: _Place) -> Iterator[tuple[tuple[ClientOp, ...], _Place]]:
        """The next states. An operation without an effect that fits now is placed at once."""
        found, limit = self.candidates(place)
        for index, op in found:
            if changes_nothing(op) and fits(op, place.value):
                yield (op,), self._after(place, index, place.used, place.value)
                return
        for index, op in self.alternatives(found):
            for helpers, used, value in self.ways(op, place, limit):
                after = value if changes_nothing(op) else self.value_of(op)
                yield (*helpers, op), self._after(place, index, used, after)

    def _after(self, place: _Place, index: int, used: int, value: object) -> _Place:
        first, done = place.first, place.done | 1 << (index - place.first)
        while done & 1:
            done >>= 1
            first += 1
        return _Place(first, done, used, value)

    def ways(
        self, op: ClientOp, place: _Place, limit: int
    ) -> Iterator[tuple[tuple[ClientOp, ...], int, object]]:
        """Lists of uncertain operations to place before `op`, so that its result fits."""
        value, used = place.value, place.used
        if fits(op, value):
            yield (), used, value
        elif op.kind == "get" or op.result is True:
            wanted = op.result if op.kind == "get" else op.expected
            yield from self.chains(wanted, place, used, limit)
        else:
            others = {self.value_of(other) for other in self.open} - {op.expected}
            for other in sorted(others, key=repr):
                yield from self.chains(other, place, used, limit)

    def chains(
        self, wanted: object, place: _Place, used: int, limit: int
    ) -> Iterator[tuple[tuple[ClientOp, ...], int, object]]:
        """The shortest lists of unused uncertain operations that change the value to `wanted`."""
        tried: set[object] = set()
        for index, op in enumerate(self.open):
            if op.invoked_us > limit:
                break
            bit, effect = 1 << index, self.effect_of(op)
            if used & bit or self.value_of(op) != wanted or effect in tried:
                continue
            tried.add(effect)
            if op.kind == "put" or op.expected == place.value:
                yield (op,), used | bit, wanted
            if op.kind == "cas" and op.expected != place.value:
                for before, spent, _ in self.chains(op.expected, place, used | bit, limit):
                    yield (*before, op), spent, wanted
