"""Pseudo-random numbers by name: each part of a world has a stream of its own, from the seed.

So dropping one fault event of a plan, or one node, leaves the numbers of all others as they were.
Only methods of `random.Random` are used whose results are the same in every version of Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Prng:
    """A stream of pseudo-random numbers; `random()` is uniform in [0, 1)."""

    __slots__ = ("_random", "random")

    def __init__(self, seed: int, *name: str | int) -> None:
        text = "/".join(map(str, (seed, *name))).encode()
        self._random = Random(int.from_bytes(blake2b(text, digest_size=8).digest(), "big"))
        self.random = self._random.random

    def happens(self, probability: float) -> bool:
        return probability > 0 and self.random() < probability

    def below(self, limit: int) -> int:
        """Draw a number from 0 to limit - 1."""
        return int(self.random() * limit)

    def between(self, least: int, most: int) -> int:
        """Both ends included."""
        return least + int(self.random() * (most - least + 1))

    def skewed(self, least: int, most: int) -> int:
        """Draw as `between`, mostly near `least`."""
        drawn = self.random()
        return least + int(drawn * drawn * drawn * (most - least + 1))

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
