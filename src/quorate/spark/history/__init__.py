"""Questions about the history of clusters, answered from a warehouse.

timetravel  the state of a cluster at an offset or an instant
views       SQL views for common questions
job         one question, as the command asks it
"""

from __future__ import annotations

from quorate.spark.history.job import history, json_rows
from quorate.spark.history.timetravel import state_at
from quorate.spark.history.views import register_views

__all__ = ["history", "json_rows", "register_views", "state_at"]
