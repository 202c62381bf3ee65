"""The running hash of all events. Equal plans give equal hashes on every machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from struct import Struct
from typing import Final

_FIELDS: Final = "BqBqqqi"
_MANY: Final = 256


class TraceHash:
    """BLAKE2b over one small record for each event. `add` collects records and hashes many at once."""

    __slots__ = ("_hash", "_waiting")

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self._waiting: list[int] = []
        """The fields of the records that are not hashed yet."""

    def add(
        self, kind: int, now_us: int, node: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0
    ) -> None:
        """Add an event; `a`, `b` and `c` are signed 64-bit integers, `d` a signed 32-bit integer."""
        waiting = self._waiting
        waiting += (kind, now_us, node, a, b, c, d)
        if len(waiting) == _MANY * len(_FIELDS):
            self._flush()

    def add_text(self, text: str) -> None:
        """Add the text of a rare event."""
        self._flush()
        self._hash.update(text.encode())

    def hexdigest(self) -> str:
        self._flush()
        return self._hash.hexdigest()

    def _flush(self) -> None:
        waiting = self._waiting
        self._hash.update(_entries(len(waiting) // len(_FIELDS)).pack(*waiting))
        waiting.clear()


@cache
def _entries(count: int) -> Struct:
    """The format of this number of records."""
    return Struct(">" + _FIELDS * count)


Print = Callable[[str], None]
