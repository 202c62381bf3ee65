"""Sorting in slices, so that other threads run meanwhile."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

T = TypeVar("T")
Key = Callable[[Any], Any]

SLICE: Final = 512


def in_order(items: Iterable[T], key: Key | None = None) -> Iterator[T]:
    """What `sorted` gives, one after the other.

    `sorted` holds the interpreter to its end, a second for half a million names. This never holds
    it for longer than a slice takes. Without a key names are compared in C.
    """
    rest = iter(items)
    slices: list[list[Any]] = []
    while part := sorted(islice(rest, SLICE), key=key):  # type: ignore[type-var,arg-type]
        slices.append(part)
    return heapq.merge(*slices, key=key)
