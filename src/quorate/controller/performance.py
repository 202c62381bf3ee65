"""How long the writes of the active controller take: slow ones, and a report of each period.

Source: `EventPerformanceMonitor`.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.controller.context import Context
from quorate.controller.event_durations import EventDurations
from quorate.controller.head_view import HeadView
from quorate.controller.result import OnException, Result, WriteOperation


def _report(head: HeadView, request: None, context: Context) -> Result[bool]:
    durations = EventDurations() if context.counts is None else context.counts.durations
    return Result((), False, notes=(durations.report(),))


def _failed(request: None, error: ErrorCode, message: str | None) -> bool:
    return False


REPORT_PERFORMANCE: Final = WriteOperation(
    "generatePeriodicPerformanceMessage", _report, _failed, on_exception=OnException.TRY_AGAIN
)
