"""Queues of what requesters want done: each keeps its order, and the requesters take turns.

In one order for all, a client that sends long requests on many connections would hold up everybody else
for the sum of them; by turns another requester waits for one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """A queue for each requester, by name. Which of its connections an item came on is no matter."""

    def __init__(self) -> None:
        self._by_name: dict[str, deque[T]] = {}
        """In the order of their turns; no queue is empty."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        for items in self._by_name.values():
            yield from items

    def has(self, name: str) -> bool:
        """Something of this requester waits."""
        return name in self._by_name

    def add(self, name: str, item: T) -> None:
        """Put it behind what the same requester wants."""
        items = self._by_name.get(name)
        if items is None:
            items = self._by_name[name] = deque()
        items.append(item)
        self._count += 1

    def next_name(self, last: str | None = None) -> str:
        """Whose turn it is. Another requester goes before the one that had the last turn. Raises
        StopIteration where nothing waits."""
        names = iter(self._by_name)
        name = next(names)
        return next(names, name) if name == last else name

    def oldest(self, name: str) -> T:
        """What this requester has waited for longest; it has something."""
        return self._by_name[name][0]

    def take(self, name: str) -> T:
        """Take the oldest item of this requester, who has one; its next turn is the last one."""
        items = self._by_name.pop(name)
        self._count -= 1
        item = items.popleft()
        if items:
            self._by_name[name] = items
        return item

    def pass_on(self, name: str) -> None:
        """The requester has had a turn, and its oldest item stays; its next turn is the last one."""
        self._by_name[name] = self._by_name.pop(name)

    def take_those(self, wanted: Callable[[T], bool]) -> list[T]:
        """Take the items that are wanted, of all requesters."""
        found = [item for item in self if wanted(item)]
        if found:
            left = {
                name: deque(item for item in items if not wanted(item))
                for name, items in self._by_name.items()
            }
            self._by_name = {name: items for name, items in left.items() if items}
            self._count -= len(found)
        return found

    def clear(self) -> None:
        """Drop everything."""
        self._by_name.clear()
        self._count = 0
