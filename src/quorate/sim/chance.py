"""Chance by name: each thing that needs luck has a stream of its own, derived from the seed.

So dropping one deed of a plan, or one node, leaves the luck of all others as it was. Only methods
of `random.Random` are used whose results are the same in every version of Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """A stream of luck; `random()` is uniform in [0, 1)."""

    __slots__ = ("_random", "random")

    def __init__(self, seed: int, *name: str | int) -> None:
        text = "/".join(map(str, (seed, *name))).encode()
        self._random = Random(int.from_bytes(blake2b(text, digest_size=8).digest(), "big"))
        self.random = self._random.random

    def happens(self, probability: float) -> bool:
        return probability > 0 and self.random() < probability

    def below(self, limit: int) -> int:
        """From 0 to limit - 1."""
        return int(self.random() * limit)

    def between(self, least: int, most: int) -> int:
        """Both ends included."""
        return least + int(self.random() * (most - least + 1))

    def skewed(self, least: int, most: int) -> int:
        """As `between`, mostly near `least`."""
        luck = self.random()
        return least + int(luck * luck * luck * (most - least + 1))

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random() * len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left = list(items)
        for i in range(len(left) - 1, 0, -1):
            j = int(self.random() * (i + 1))
            left[i], left[j] = left[j], left[i]
        return left

    def bytes(self, size: int) -> bytes:
        return self._random.getrandbits(8 * size).to_bytes(size, "big")
