"""Questions about the past, answered from a warehouse.

timetravel  the state of a cluster at an offset or an instant
views       ready SQL views for what people ask
job         one question, asked as the command does
"""

from __future__ import annotations

from quorate.spark.history.job import history, json_rows
from quorate.spark.history.timetravel import state_at
from quorate.spark.history.views import register_views

__all__ = ["history", "json_rows", "register_views", "state_at"]
