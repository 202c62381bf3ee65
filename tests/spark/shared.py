"""Commands on the tests' session: they take it for their own, and do not end it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSIONS = importlib.import_module("quorate.spark.session")
"""The module; `quorate.spark.session` is the function of this name."""


class Shared:
    """The tests' session, which a job may not end."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """It is of use to other tests."""
