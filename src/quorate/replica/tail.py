"""The newest batches of the log, in memory.

A leader answers its followers' fetches from here, before its own disk has the bytes. The state
machine is fed from here too. Older batches are read from the disk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from quorate.storage.api import AppendedBatch

TAIL_BYTES: Final = 4 * 1024 * 1024


class Tail:
    """A contiguous run of batches up to the log's end, of about `limit` bytes at most.

    The disk has every batch that was dropped: it performs a read after the writes before it.
    """

    def __init__(self, end_offset: int, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._bases: list[int] = []
        self._batches: list[AppendedBatch] = []
        self.end_offset = end_offset

    @property
    def start_offset(self) -> int:
        """Offset of the first record in memory; the end offset when there is none."""
        return self._bases[0] if self._bases else self.end_offset

    def append(self, batches: Iterable[AppendedBatch]) -> None:
        for batch in batches:
            self._bases.append(batch.base_offset)
            self._batches.append(batch)
            self._size += len(batch.data)
            self.end_offset = batch.last_offset + 1
        self._trim()

    def truncate(self, end_offset: int) -> None:
        """Drop every batch that reaches to `end_offset` or beyond it."""
        while self._batches and self._batches[-1].last_offset >= end_offset:
            self._bases.pop()
            self._size -= len(self._batches.pop().data)
        self.end_offset = min(self.end_offset, end_offset)
        if self._batches:
            self.end_offset = self._batches[-1].last_offset + 1

    def restart(self, end_offset: int) -> None:
        """Drop everything; the log now begins and ends at `end_offset`."""
        self._bases.clear()
        self._batches.clear()
        self._size = 0
        self.end_offset = end_offset

    def read(self, offset: int, end: int, max_bytes: int) -> bytes | None:
        """Whole batches, by the rules of `Storage.read`; None when `offset` is not in memory."""
        if offset >= self.end_offset or offset >= end:
            return b""
        index = bisect_right(self._bases, offset) - 1
        if index < 0:
            return None
        parts: list[bytes] = []
        size = 0
        for position in range(index, len(self._batches)):
            batch = self._batches[position]
            if batch.last_offset >= end or (parts and size + len(batch.data) > max_bytes):
                break
            parts.append(batch.data)
            size += len(batch.data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _trim(self) -> None:
        """Drop the oldest batches, half the limit at once: deleting from a list's front is slow."""
        if self._size <= self._limit:
            return
        count, target = 0, self._limit // 2
        for batch in self._batches:
            if self._size <= target:
                break
            self._size -= len(batch.data)
            count += 1
        del self._batches[:count], self._bases[:count]
