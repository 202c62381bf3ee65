"""The clock and the event queue of a simulated world. Only the kernel advances time.

The queue is a heap of (time in microseconds, number, call, arguments). The number counts up, so
calls of one time are made in the order in which they were pushed, and callables are never compared.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from quorate.sim.plan.plan import Plan
from quorate.sim.world.interrupt import HALT


class Kernel:
    """Independent of nodes, network and observers, which push calls and read the clock."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now_us = 0
        self.in_liveness_phase = False
        """The liveness phase: no faults, every node is started, and progress is required."""
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._pushed = 0

    def push(self, at_us: int, call: Callable[..., None], *args: Any) -> None:
        """Schedule `call(*args)` for this time."""
        self._pushed += 1
        heapq.heappush(self._heap, (at_us, self._pushed, call, args))

    def run_until(self, end_us: int) -> None:
        """Run every call that is due before this time (exclusive).

        Raises KeyboardInterrupt between two calls after a signal.
        """
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] < end_us:
            if HALT.wanted:
                raise KeyboardInterrupt
            self.now_us, _, call, args = pop(heap)
            call(*args)
        self.now_us = end_us
