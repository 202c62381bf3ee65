"""Writes that wait: in order for each requester, the requesters by turns.

One decision at a time changes the head, and a large request takes hundreds of ms. In one order for all, a
client that sends such requests on many connections would hold up everybody else for the sum of them; by
turns another requester waits for one. Kafka has one order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from quorate.node.queued_write import QueuedWrite

OWN_WRITES = ""
"""In place of a principal: the controller's own writes."""


class WritesByRequester:
    """A queue for each principal. Which of the connections of a principal a write came on is no matter."""

    def __init__(self) -> None:
        self._by_principal: dict[str, deque[QueuedWrite]] = {}
        """In the order of their turns; no queue is empty."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[QueuedWrite]:
        for writes in self._by_principal.values():
            yield from writes

    def add(self, write: QueuedWrite) -> None:
        """Put it behind the writes of the same requester."""
        principal = principal_of(write)
        writes = self._by_principal.get(principal)
        if writes is None:
            writes = self._by_principal[principal] = deque()
        writes.append(write)
        self._count += 1

    def take_of(self, principal: str) -> QueuedWrite:
        """The oldest write of a requester who has some; the requester's next turn is the last one."""
        writes = self._by_principal.pop(principal)
        self._count -= 1
        write = writes.popleft()
        if writes:
            self._by_principal[principal] = writes
        return write

    def take_late(self, now_ms: int) -> list[QueuedWrite]:
        """Take the writes whose deadline has passed."""
        late = [write for write in self if _is_late(write, now_ms)]
        if late:
            left = {
                principal: deque(write for write in writes if not _is_late(write, now_ms))
                for principal, writes in self._by_principal.items()
            }
            self._by_principal = {principal: writes for principal, writes in left.items() if writes}
            self._count -= len(late)
        return late

    def take_all(self) -> list[QueuedWrite]:
        """Take everything, in the order in which it came."""
        found = sorted(self, key=added_ms)
        self._by_principal.clear()
        self._count = 0
        return found

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline; None: none has one."""
        deadlines = (write.deadline_ms for write in self)
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)


class WaitingWrites(WritesByRequester):
    """The writes that wait for their decision."""

    def __init__(self) -> None:
        super().__init__()
        self._last: str | None = None
        """Whose write was decided last."""

    def begun(self, write: QueuedWrite) -> None:
        """The decision of this write begins: its requester has had a turn."""
        self._last = principal_of(write)

    def take(self) -> QueuedWrite:
        """The oldest write of the requester whose turn it is.

        Another requester goes before the one that had the last turn. Raises StopIteration where nothing
        waits.
        """
        turns = iter(self._by_principal)
        principal = next(turns)
        if principal == self._last:
            principal = next(turns, principal)
        return self.take_of(principal)


def principal_of(write: QueuedWrite) -> str:
    """Whose write it is."""
    return OWN_WRITES if write.call is None else write.call.principal


def _is_late(write: QueuedWrite, now_ms: int) -> bool:
    return write.deadline_ms is not None and write.deadline_ms <= now_ms


def added_ms(write: QueuedWrite) -> int:
    """When it came, monotonic, ms."""
    return write.added_ms
