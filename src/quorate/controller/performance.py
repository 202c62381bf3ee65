"""How long the writes of the active controller take: slow ones, and a report of each period.

Source: `EventPerformanceMonitor`.
"""

from __future__ import annotations

from typing import Final

from quorate.controller.context import Context
from quorate.controller.event_durations import EventDurations
from quorate.controller.head_view import HeadView
from quorate.controller.result import Result, controller_task


def _report(head: HeadView, request: None, context: Context) -> Result[bool]:
    durations = EventDurations() if context.counts is None else context.counts.durations
    return Result((), False, notes=(durations.report(),))


REPORT_PERFORMANCE: Final = controller_task("generatePeriodicPerformanceMessage", _report)
