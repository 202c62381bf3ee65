"""When a call gives up: one time for all its attempts, addresses and steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_ENDS: Final[ContextVar[float | None]] = ContextVar("ends", default=None)
"""When the call that runs gives up (monotonic, s)."""
_JITTER: Final = 0.2


@contextmanager
def _ending_at(*limits: float | None) -> Iterator[float]:
    """End the blocking calls inside at the first of these times, or sooner where a call runs already.

    Gives that time (monotonic, s).
    """
    ends = min(each for each in (*limits, _ENDS.get()) if each is not None)
    token = _ENDS.set(ends)
    try:
        yield ends
    finally:
        _ENDS.reset(token)


@contextmanager
def time_limit(
    most_ms: int, now: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], int]]:
    """End the blocking calls inside `most_ms` from now at the latest.

    Gives a function: what is left of that time, at most its argument and at least 1, ms. `now`: the
    clock of the client.
    """
    with _ending_at(now() + most_ms / 1000) as ends:
        yield lambda at_most: max(min(at_most, int((ends - now()) * 1000)), 1)


class Deadlines:
    """The API timeout of each call, and the end of a whole command."""

    def __init__(
        self, now: Callable[[], float], api_timeout_ms: int, give_up_at: float | None
    ) -> None:
        """`give_up_at` (monotonic, s) ends all calls; None: each call has its own API timeout."""
        self._now = now
        self._api_timeout_s = api_timeout_ms / 1000
        self._give_up_at = give_up_at

    @contextmanager
    def one_call(self) -> Iterator[tuple[float, float]]:
        """Share one API timeout; gives its begin and its end (monotonic, s)."""
        started = self._now()
        with _ending_at(started + self._api_timeout_s, self._give_up_at) as ends:
            yield started, ends

    def left_ms(self, most_ms: int, shares: int = 1) -> int:
        """Return the time for the next step: up to a share of what the call has left."""
        ends = _ENDS.get()
        if ends is None:
            return most_ms
        return max(min(most_ms, int((ends - self._now()) * 1000 / shares)), 1)

    def countdown(self, most_ms: int) -> Callable[[], int]:
        """`left_ms` of the call that runs now, to be asked later and in another thread.

        At most `most_ms` from now, at least 1.
        """
        ends = self._now() + self.left_ms(most_ms) / 1000
        return lambda: max(int((ends - self._now()) * 1000), 1)


def backoff(attempts: int, first_ms: int, most_ms: int) -> float:
    """The time until the next attempt, ms: it doubles each time and varies by a fifth.

    Source: `ExponentialBackoff`.
    """
    import random  # most calls never wait, and a tool starts faster without it

    wait = min(first_ms * 2.0 ** min(attempts, 20), max(first_ms, most_ms))
    return wait * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - keeps no secret
