"""The metadata logs of many clusters as Spark tables and streams: `pip install quorate[spark]`.

The layers, from the lowest: `files` finds and reads logs, `decode` decodes them to columns,
`source` and `stream` read them for Spark (`data_source`), `tables` keeps them in a warehouse.
Above these are the queries (`history`, `who`, `audit`, `report`) and the `jobs` on a warehouse.
"""

from __future__ import annotations

from quorate.spark.session import SparkMissingError, reason, register, session

__all__ = ["SparkMissingError", "reason", "register", "session"]
