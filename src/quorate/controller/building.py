"""Responses with many rows, which are built in bounded steps: raft requests are answered in between.

Each step looks at ROWS items or so, some milliseconds of work.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")
Group = TypeVar("Group")
R = TypeVar("R")

Building = Generator[None, None, T]
"""Yields for a pause, and returns what it has built."""

ROWS: Final = 1_000
"""Rows that are built in one step, at most."""
LOOKED_AT: Final = 5_000
"""Names or partitions of the image that are looked at or sorted in one step, at most."""


def each(items: Sequence[Item], make: Callable[[Item], T]) -> Building[list[T]]:
    """Return what `make` gives for each of the items, in their order."""
    made: list[T] = []
    for start in range(0, len(items), ROWS):
        if start:
            yield None
        made += map(make, items[start : start + ROWS])
    return made


def each_group(
    groups: Sequence[Group],
    items: Callable[[Group], Sequence[Item]],
    make: Callable[[Item], T],
    join: Callable[[Group, list[T]], R],
) -> Building[list[R]]:
    """Build what `join` gives for each group and the rows of its items. One group may have most items."""
    made: list[R] = []
    done = 0
    for group in groups:
        found = items(group)
        if done and done + len(found) >= ROWS:
            yield None
            done = 0
        rows = (yield from each(found, make)) if len(found) > ROWS else list(map(make, found))
        made.append(join(group, rows))
        done += 1 + len(found) % ROWS
    return made


def parts(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of `size`; the last one may be shorter."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def in_order(
    items: Iterable[Item], key: Callable[[Item], Any] | None = None
) -> Building[list[Item]]:
    """What `sorted` gives."""
    found: list[list[Any]] = []
    for part in parts(items, LOOKED_AT):
        if found:
            yield None
        found.append(sorted(part, key=key))
    if len(found) < 2:
        return found[0] if found else []
    made: list[Item] = []
    for part in parts(heapq.merge(*found, key=key), LOOKED_AT):
        yield None
        made += part
    return made


def smallest(items: Iterable[Item], most: int) -> Building[list[Item]]:
    """The smallest items, `most` of them, in order."""
    found: list[Any] = []
    for part in parts(items, LOOKED_AT):
        if found:
            yield None
        found = sorted(found + part)[:most]
    return found


def at_once(steps: Building[T]) -> T:
    """What the steps build, without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            built: T = end.value
            return built
