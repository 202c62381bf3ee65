"""When Python's garbage collector looks at all objects: not while a large request makes many of them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

NEVER: Final = 1 << 30
"""A threshold that is not reached."""
MOST_S: Final = 60.0
"""For so long a full collection is put off: large requests without an end would keep garbage for ever."""


class Collector:
    """Puts off full collections while the node is busy with large requests.

    A full collection looks at every object that is not frozen. One large request has up to a million
    items, and a collection takes 130 ms then. Without this the node would collect again and again,
    although the items have no cycles. The collections of young objects go on.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        """time: monotonic, s."""
        self._time = time
        self._usual = gc.get_threshold()
        self._since: float | None = None
        """Since when the node is busy; None: it is not."""
        self._is_put_off = False

    def set_busy(self, is_busy: bool) -> None:
        """Called when the node is busy with large requests, or no more, or still."""
        if not is_busy:
            self._since = None
        elif self._since is None:
            self._since = self._time()
        puts_off = self._since is not None and self._time() - self._since < MOST_S
        if puts_off != self._is_put_off:
            self._is_put_off = puts_off
            young, middle, old = self._usual
            gc.set_threshold(young, middle, NEVER if puts_off else old)
