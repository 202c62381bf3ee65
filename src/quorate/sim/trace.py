"""The running hash of everything that happened: the same for the same plan, anywhere, always."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct
from typing import Final

_ENTRY: Final = Struct(">BqBqqqi")
_MANY: Final = 512


class TraceHash:
    """BLAKE2b over one small record for each event; `add` is cheap, hashing comes in strides."""

    __slots__ = ("_hash", "_waiting")

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self._waiting: list[bytes] = []

    def add(
        self, kind: int, now_us: int, node: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0
    ) -> None:
        """`a`, `b` and `c` are of 64 bits, `d` of 32, with sign."""
        waiting = self._waiting
        waiting.append(_ENTRY.pack(kind, now_us, node, a, b, c, d))
        if len(waiting) >= _MANY:
            self._hash.update(b"".join(waiting))
            waiting.clear()

    def add_text(self, text: str) -> None:
        """Of the rare events: whatever they say of themselves."""
        self._waiting.append(text.encode())

    def hexdigest(self) -> str:
        self._hash.update(b"".join(self._waiting))
        self._waiting.clear()
        return self._hash.hexdigest()


Print = Callable[[str], None]
