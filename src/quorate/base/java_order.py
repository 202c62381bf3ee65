"""The order of Java's hash maps: it decides which of several mistakes in a request Kafka names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_DEFAULT_CAPACITY: Final = 16
_MASK: Final = 0xFFFFFFFF


def string_hash(text: str) -> int:
    """`String.hashCode()` as 32 unsigned bits."""
    data = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for position in range(0, len(data), 2):
        found = (31 * found + (data[position] << 8) + data[position + 1]) & _MASK
    return found


def hash_map_order(keys: Iterable[str], capacity: int = _DEFAULT_CAPACITY) -> list[str]:
    """The keys, once each, as a `java.util.HashMap` of strings iterates over them.

    keys: in the order of their insertion. capacity: the argument of the constructor. The order within
    eight or more keys of one slot may differ from Java's, which keeps them in a tree.
    """
    unique = list(dict.fromkeys(keys))
    if len(unique) < 2:
        return unique
    size = 1 << max(capacity - 1, 0).bit_length()
    while len(unique) > size * 3 // 4:
        size *= 2
    slots: dict[int, list[str]] = {}
    for key in unique:
        found = string_hash(key)
        slots.setdefault((found ^ found >> 16) & (size - 1), []).append(key)
    return [key for slot in sorted(slots) for key in slots[slot]]
