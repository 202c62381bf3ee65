"""The durations of a controller's events, and the texts about them (`EventPerformanceMonitor`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PERIOD_MS: Final = 60_000
"""The default of controller.performance.sample.period.ms."""
THRESHOLD_MS: Final = 2_000
"""The default of controller.performance.always.log.threshold.ms."""
_NS: Final = 1_000_000
"""Of a ms."""


@dataclass(slots=True)
class EventDurations:
    """The events of this period: how many, how long in all, and the slowest."""

    period_ms: int = PERIOD_MS
    """controller.performance.sample.period.ms"""
    threshold_ms: int = THRESHOLD_MS
    """controller.performance.always.log.threshold.ms"""
    count: int = 0
    total_ns: int = 0
    slowest: str | None = None
    slowest_ns: int = 0

    def observe(self, name: str, duration_ns: int) -> str | None:
        """Count an event that is done; returns what to log of a slow one, in Kafka's words."""
        if self.slowest is None or duration_ns > self.slowest_ns:
            self.slowest, self.slowest_ns = name, duration_ns
        self.count += 1
        self.total_ns += duration_ns
        if duration_ns < self.threshold_ms * _NS:
            return None
        return f"Exceptionally slow controller event {name} took {duration_ns // _NS} ms."

    def report(self) -> str:
        """Return Kafka's report of the period, and begin the next one."""
        begin = f"In the last {self.period_ms} ms period, "
        if not self.count:
            return begin + "there were no controller events completed."
        text = (
            f"{begin}{self.count} controller events were completed, which took an average of "
            f"{_decimal_ms(self.total_ns // self.count)} ms each. The slowest event was "
            f"{self.slowest}, which took {_decimal_ms(self.slowest_ns)} ms."
        )
        self.count = self.total_ns = self.slowest_ns = 0
        self.slowest = None
        return text


def _decimal_ms(ns: int) -> str:
    """Milliseconds with two digits, from whole microseconds as in Kafka."""
    return f"{ns // 1000 / 1000:.2f}"
