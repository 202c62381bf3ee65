"""Rates over sliding windows, and how long to wait until a rate is within its quota.

Source: `Rate`, `SampledStat`, `WindowedSum`, `Avg`, `QuotaUtils`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Final, TypeVar

_AVERAGE_WINDOWS: Final = 2
_AVERAGE_WINDOW_MS: Final = 30_000
MAX_ENTRIES: Final = 10_000
"""Clients or addresses whose use of a quota is kept."""
_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


def make_room(kept: dict[_Key, _Kept], used_at_ms: Callable[[_Kept], int], oldest_ms: int) -> None:
    """Before a new entry: beyond MAX_ENTRIES forget those that were last used before `oldest_ms`, or
    the first one where there are none."""
    if len(kept) < MAX_ENTRIES:
        return
    idle = [key for key, found in kept.items() if used_at_ms(found) < oldest_ms]
    for key in idle or [next(iter(kept))]:
        del kept[key]


@dataclass(slots=True)
class _Sample:
    start_ms: int
    last_ms: int
    value: float = 0.0

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """The sum of the values of the last windows, per second. Times are monotonic, ms."""

    def __init__(self, windows: int, window_ms: int, now_ms: int) -> None:
        """windows: `quota.window.num`; window_ms: `quota.window.size.seconds`."""
        self._windows = windows
        self._window_ms = window_ms
        self._samples = [_Sample(now_ms, now_ms)]
        self._current = 0
        self.total = 0.0
        """All values since the start."""

    @property
    def used_at_ms(self) -> int:
        """When the last value came."""
        return self._samples[self._current].last_ms

    def record(self, value: float, now_ms: int) -> None:
        """Add a value; a negative one takes an earlier one back."""
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._next_sample(now_ms)
        sample.value += value
        sample.last_ms = now_ms
        self.total += value

    def _next_sample(self, now_ms: int) -> _Sample:
        """One sample more than there are windows: the oldest overlaps the beginning of the first."""
        self._current = (self._current + 1) % (self._windows + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms, now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def per_second(self, now_ms: int) -> float:
        """The rate at this time."""
        return self._measure(now_ms)[0]

    def throttle_ms(self, bound: float, most_ms: int, now_ms: int) -> int:
        """How long, without further values, until the rate is within the bound; `most_ms` at most."""
        rate, window_ms = self._measure(now_ms)
        if rate <= bound:
            return 0
        if bound <= 0:
            return most_ms
        return int(min((rate - bound) / bound * window_ms + 0.5, most_ms))

    def _measure(self, now_ms: int) -> tuple[float, int]:
        """The rate, and the time that it is taken over."""
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._windows * self._window_ms:
                sample.reset(now_ms)
        elapsed_ms = now_ms - min(sample.start_ms for sample in self._samples)
        # Windows that have not been yet count as if they had: the first second is not the rate.
        missing = self._windows - 1 - elapsed_ms // self._window_ms
        window_ms = max(elapsed_ms + max(missing, 0) * self._window_ms, 1)
        return sum(sample.value for sample in self._samples) * 1000 / window_ms, window_ms


class Average:
    """The average of the values of the last 30 to 60 s (Kafka's defaults for metrics)."""

    def __init__(self, now_ms: int = 0) -> None:
        self._sum = Rate(_AVERAGE_WINDOWS, _AVERAGE_WINDOW_MS, now_ms)
        self._count = Rate(_AVERAGE_WINDOWS, _AVERAGE_WINDOW_MS, now_ms)

    def record(self, value: float, now_ms: int) -> None:
        """Add a value."""
        self._sum.record(value, now_ms)
        self._count.record(1, now_ms)

    def at(self, now_ms: int) -> float:
        """The average at this time; NaN without values."""
        count = self._count.per_second(now_ms)
        return self._sum.per_second(now_ms) / count if count else nan
