"""The metadata logs of a fleet as Spark tables and streams; needs `pip install quorate[spark]`.

From below: `files` finds logs wherever they lie, `decode` makes columns of them, `source` and
`stream` read them for Spark (`data_source`), `tables` keep what was read. On those stand the
answers (`history`, `who`, `audit`, `report`) and the `jobs` that look after a warehouse.
"""

from __future__ import annotations

from quorate.spark.session import SparkMissing, reason, register, session

__all__ = ["SparkMissing", "reason", "register", "session"]
