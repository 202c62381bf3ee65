"""Writes that wait: in order for each requester, the requesters by turns.

One decision at a time changes the head, and a large request takes hundreds of ms. Kafka has one order.
"""

from __future__ import annotations

from quorate.base.turns import Turns
from quorate.node.queued_write import QueuedWrite

OWN_WRITES = ""
"""In place of a principal: the controller's own writes."""


class WritesByRequester:
    """Writes in a queue for each principal."""

    def __init__(self) -> None:
        self._turns: Turns[QueuedWrite] = Turns()

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, write: QueuedWrite) -> None:
        """Put it behind the writes of the same requester."""
        self._turns.add(principal_of(write), write)

    def take_late(self, now_ms: int) -> list[QueuedWrite]:
        """Take the writes whose deadline has passed."""
        return self._turns.take_those(lambda write: _is_late(write, now_ms))

    def take_all(self) -> list[QueuedWrite]:
        """Take everything, in the order in which it came."""
        found = sorted(self._turns, key=added_ms)
        self._turns.clear()
        return found

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline; None: none has one."""
        deadlines = (write.deadline_ms for write in self._turns)
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
        """The oldest write of the requester whose turn it is; its next turn is the last one. Raises
        StopIteration where nothing waits."""
        return self._turns.take(self._turns.next_name(self._last))


def principal_of(write: QueuedWrite) -> str:
    """Whose write it is."""
    return OWN_WRITES if write.call is None else write.call.principal


def added_ms(write: QueuedWrite) -> int:
    """When it came, monotonic, ms."""
    return write.added_ms


def _is_late(write: QueuedWrite, now_ms: int) -> bool:
    return write.deadline_ms is not None and write.deadline_ms <= now_ms
