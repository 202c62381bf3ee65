"""Is a client history linearizable? A search by Wing and Gong with Lowe's memory, key by key.

Every operation must seem to happen at one moment between its call and its answer. One without an
answer may happen at any moment after its call, or never: the search lets it happen only directly
before an operation that needs it, which loses no solution and keeps long lists of them cheap.
What does the same is tried once: values that nobody looks for count as one, and of operations that
are alike only that goes next which was called first (or, answered, has to end first). So a wrong
history, of which every order is tried, costs little more than a right one.
Sources: Wing and Gong 1993; Lowe, "Testing for linearizability", 2017.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from quorate.sim.observe import ClientOp

NEVER = 1 << 62
_UNSEEN = "a value that nobody looks for"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A key whose operations fit no single order, and how far the best order went."""

    key: int
    placed: tuple[ClientOp, ...]
    """The longest order found; the operations that the state after it refuses come next."""
    stuck: tuple[ClientOp, ...]
    """Operations one of which had to be next."""
    value: int | None
    """The value after `placed`."""

    def __str__(self) -> str:
        last = "; ".join(map(describe, self.placed[-6:])) or "nothing"
        return (
            f"key {self.key}: after {len(self.placed)} operations (last {last}) the value is "
            f"{self.value}, and none of these can be next: {'; '.join(map(describe, self.stuck))}"
        )


def describe(op: ClientOp) -> str:
    """An operation in one line: client, times in microseconds, what it asked and got."""
    if op.kind == "get":
        what = f"get -> {op.result}"
    elif op.kind == "put":
        what = f"put {op.value}"
    else:
        what = f"cas {op.expected} -> {op.value}: {op.result}"
    until = op.answered_us if op.outcome == "ok" else op.outcome
    return f"client {op.client} [{op.invoked_us}, {until}] {what}"


def check(history: Iterable[ClientOp]) -> Anomaly | None:
    """The first key whose history is not linearizable, from values that are all None; else None.

    Operations that were refused never happened. Those that end at the moment at which another
    begins count as concurrent with it.
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
    """The same for the operations of one key."""
    return _Search(key, ops).run()


def changes_nothing(op: ClientOp) -> bool:
    """A get, or a cas that did not find what it expected."""
    return op.kind == "get" or op.result is False


def fits(op: ClientOp, value: object) -> bool:
    """Would this certain operation, on this value, answer as it did?"""
    if op.kind == "put":
        return True
    return value == op.result if op.kind == "get" else (value == op.expected) is op.result


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a search stands: what has happened (bits), and the value."""

    first: int
    """Every certain operation before this one has happened."""
    done: int
    """Bits of the certain operations from `first` on that have happened, shifted down by it."""
    used: int
    """Bits of the uncertain operations that have happened."""
    value: object
    """Or _UNSEEN."""


class _Search:
    """Depth first over the orders of the certain operations; no place is visited twice."""

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
        """What an answer or an expectation names."""
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
        """What it writes, as far as anybody can tell."""
        return op.value if op.value in self.wanted else _UNSEEN

    def effect_of(self, op: ClientOp) -> object:
        """Of two with the same effect, any one may be next."""
        return op.kind, self.value_of(op), op.expected, op.result

    def candidates(self, place: _Place) -> tuple[list[tuple[int, ClientOp]], int]:
        """Certain operations of which one must be next, soonest answered first; and until when.

        Next can only be what was called before the first answer that is still to come.
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
        """Of these candidates, of those with the same effect the one that has to end first."""
        first: dict[object, tuple[int, ClientOp]] = {}
        for item in found:
            first.setdefault(self.effect_of(item[1]), item)
        return list(first.values())

    def next_places(self, place: _Place) -> Iterator[tuple[tuple[ClientOp, ...], _Place]]:
        """What may follow. One that changes nothing and fits now can as well happen now."""
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
        """Uncertain operations to happen just before `op`, so that it answers as it did."""
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
        """Shortest lists of unused uncertain operations that turn the value into `wanted`."""
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
