"""Proposals on their way: who waits for each, and how many bytes there may be of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from quorate.base.errors import QuorateError
from quorate.embed.errors import MemberStopped, Overloaded

Done = Callable[[list[object] | QuorateError], None]
"""Takes the results of entries that were submitted, or why they were not committed."""

LIMIT: Final = 64 << 20
"""Bytes; eight of the largest batches."""


class Outstanding:
    """Room for so many bytes of entries; one that is larger goes alone."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._bytes = 0
        self._next = 0
        self._proposals: dict[int, tuple[Done, int]] = {}
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._emptied: asyncio.Future[None] | None = None

    def take(self, size: int) -> None:
        """Room for `size` bytes at once; raises Overloaded when there is none."""
        if self._waiting or not self._fits(size):
            raise Overloaded(
                f"{self._bytes} bytes of entries are on the way: wait until some are committed"
            )
        self._bytes += size

    async def wait_for(self, size: int) -> None:
        """Room for `size` bytes, in turn. Raises MemberStopped when it ends first."""
        if not self._waiting and self._fits(size):
            self._bytes += size
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            was_let_in = turn.done() and not turn.cancelled() and turn.exception() is None
            self._free(size if was_let_in else 0)
            raise

    def add(self, done: Done, size: int) -> int:
        """The token of a proposal that has its room."""
        self._next += 1
        self._proposals[self._next] = done, size
        return self._next

    def settle(self, token: int) -> Done | None:
        """Who waits for the outcome; its room is free."""
        found = self._proposals.pop(token, None)
        if found is None:
            return None
        done, size = found
        self._free(size)
        self._look_whether_empty()
        return done

    def close(self, why: str) -> asyncio.Future[None]:
        """Who waits for room is told that there will be none; done when all the others are."""
        self._refuse_waiting(why)
        self._emptied = asyncio.get_running_loop().create_future()
        self._look_whether_empty()
        return self._emptied

    def end(self, why: str) -> Sequence[Done]:
        """All that still wait for an outcome; who waits for room is told."""
        proposals = [done for done, _ in self._proposals.values()]
        self._proposals.clear()
        self._bytes = 0
        self._refuse_waiting(why)
        self._look_whether_empty()
        return proposals

    def _refuse_waiting(self, why: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, turn in waiting:
            if not turn.done():
                turn.set_exception(MemberStopped(why))

    def _look_whether_empty(self) -> None:
        if not self._proposals and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def _fits(self, size: int) -> bool:
        return not self._bytes or self._bytes + size <= self.limit

    def _free(self, size: int) -> None:
        self._bytes = max(self._bytes - size, 0)
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting:
            size, turn = self._waiting[0]
            if not turn.done():
                if not self._fits(size):
                    return
                self._bytes += size
                turn.set_result(None)
            self._waiting.popleft()
