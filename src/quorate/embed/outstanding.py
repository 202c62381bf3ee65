"""Outstanding proposals: their callbacks, and a limit on their bytes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from quorate.base.errors import QuorateError
from quorate.embed.errors import MemberStoppedError, OverloadedError

Done = Callable[[list[object] | QuorateError], None]
"""Gets the results of submitted entries, or the error."""

LIMIT: Final = 64 << 20
"""In bytes: eight of the largest batches."""


class Outstanding:
    """Admits entries up to `limit` bytes; a larger entry is admitted alone."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._bytes = 0
        self._next = 0
        self._proposals: dict[int, tuple[Done, int]] = {}
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._emptied: asyncio.Future[None] | None = None

    def take(self, size: int) -> None:
        """Reserve `size` bytes at once. Raises OverloadedError when they do not fit."""
        if self._waiting or not self._fits(size):
            raise OverloadedError(
                f"{self._bytes} bytes of entries are outstanding: wait until some are committed"
            )
        self._bytes += size

    async def wait_for(self, size: int) -> None:
        """Wait in turn and reserve `size` bytes. Raises MemberStoppedError when the member stops."""
        if not self._waiting and self._fits(size):
            self._bytes += size
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            # A cancelled caller may have been admitted in the same turn of the loop: free its bytes.
            was_admitted = turn.done() and not turn.cancelled() and turn.exception() is None
            self._free(size if was_admitted else 0)
            raise

    def add(self, done: Done, size: int) -> int:
        """Register a proposal whose bytes are reserved; returns its token."""
        self._next += 1
        self._proposals[self._next] = done, size
        return self._next

    def settle(self, token: int) -> Done | None:
        """Remove a proposal and free its bytes; returns its callback."""
        found = self._proposals.pop(token, None)
        if found is None:
            return None
        done, size = found
        self._free(size)
        self._signal_if_empty()
        return done

    def close(self, why: str) -> asyncio.Future[None]:
        """Fail all callers that wait for room; the result is done when no proposal is outstanding."""
        self._refuse_waiting(why)
        self._emptied = asyncio.get_running_loop().create_future()
        self._signal_if_empty()
        return self._emptied

    def end(self, why: str) -> Sequence[Done]:
        """Remove all proposals and return their callbacks; fail all callers that wait for room."""
        proposals = [done for done, _ in self._proposals.values()]
        self._proposals.clear()
        self._bytes = 0
        self._refuse_waiting(why)
        self._signal_if_empty()
        return proposals

    def _refuse_waiting(self, why: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, turn in waiting:
            if not turn.done():
                turn.set_exception(MemberStoppedError(why))

    def _signal_if_empty(self) -> None:
        if not self._proposals and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def _fits(self, size: int) -> bool:
        return not self._bytes or self._bytes + size <= self.limit

    def _free(self, size: int) -> None:
        self._bytes = max(self._bytes - size, 0)
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._waiting:
            size, turn = self._waiting[0]
            if not turn.done():
                if not self._fits(size):
                    return
                self._bytes += size
                turn.set_result(None)
            self._waiting.popleft()
