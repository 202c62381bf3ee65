"""How long the first proposals of a round wait for those that will come anyway.

Writers that were answered together come back together, one shortly after the other. Were the first
one replicated at once, all others would wait for its whole round of syncs before their own begins.
A lone writer never waits, nor do writers that do not come back.
"""

from __future__ import annotations

from typing import Final

PATIENCE_MS: Final = 2
MOST_ROUNDS: Final = 64


class Company:
    """Learns from each commit how many writers there are; times in ms.

    A wait in vain is not tried again for 2 rounds, then for 4, up to MOST_ROUNDS.
    """

    def __init__(self) -> None:
        self.until_ms: int | None = None
        """While those that are here wait for the others: ask again at this time at the latest."""
        self._proposals = 1
        self._records = 1
        self._lesson = 1
        self._rounds_without = 0

    def is_worth_waiting_for(self, proposals: int, records: int, now_ms: int) -> bool:
        """Nothing is on its way, and so many are here: are more to come at once?"""
        if self._rounds_without or proposals >= self._proposals or records >= self._records:
            if self.until_ms is not None:
                self.until_ms, self._lesson = None, 1
            return False
        if self.until_ms is None:
            self.until_ms = now_ms + PATIENCE_MS
        if now_ms < self.until_ms:
            return True
        self.until_ms = None
        self._lesson = min(self._lesson * 2, MOST_ROUNDS)
        self._rounds_without = self._lesson
        return False

    def met(self, proposals: int, records: int) -> None:
        """A round ended: so many were on their way, or waiting for it to end."""
        self._proposals, self._records = proposals, records
        if self._rounds_without:
            self._rounds_without -= 1
