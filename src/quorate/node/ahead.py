"""State ahead of the image: decisions must see what is written but not committed yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

S = TypeVar("S")
R = TypeVar("R")


class Ahead(Generic[S, R]):
    """A part of the image as it will be once everything in flight is committed.

    `replay` makes of it what a record does. Losing leadership settles every write, so nothing stays
    ahead of a log that others lead.
    """

    def __init__(self, replay: Callable[[S, R], S]) -> None:
        self._replay = replay
        self._in_flight = 0
        self._state: S | None = None

    def over(self, committed: S) -> S:
        """What to decide on, `committed` being what the image holds."""
        return committed if self._state is None else self._state

    def begin(self, committed: S, records: Iterable[R]) -> None:
        """These records are being written."""
        state = self.over(committed)
        for record in records:
            state = self._replay(state, record)
        self._state = state
        self._in_flight += 1

    def settle(self) -> None:
        """One write is committed or lost; after the last of them the image rules again."""
        self._in_flight -= 1
        if self._in_flight == 0:
            self._state = None
