"""The metadata logs of a fleet as Spark tables and streams; needs `pip install quorate[spark]`."""

from __future__ import annotations

from quorate.spark.session import SparkMissing, reason, register, session

__all__ = ["SparkMissing", "reason", "register", "session"]
