"""Lets new connections begin their authentication a few in each turn of the event loop.

A TLS handshake or a login takes 0.1 to 1 ms of the loop. Clients whose logins fail come back all at once,
after the same delay: read together, hundreds of them would keep the loop from the quorum's own messages
for as long as an election timeout. Between two turns the loop serves whatever else has arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

ENTRIES_PER_TURN: Final = 2


class Turnstile:
    """Calls what waits in the order of arrival, ENTRIES_PER_TURN in each turn of the loop."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, enter: Callable[[], None]) -> None:
        """Call `enter` in its turn."""
        self._waiting.append(enter)
        if len(self._waiting) == 1:
            self._call_soon(self._turn)

    def _turn(self) -> None:
        for _ in range(min(ENTRIES_PER_TURN, len(self._waiting))):
            self._waiting.popleft()()
        if self._waiting:
            self._call_soon(self._turn)
