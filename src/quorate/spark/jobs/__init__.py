"""Jobs that maintain a warehouse; jobs that answer questions have packages of their own.

follow       ingest committed records of clusters as a stream
checkpoints  the progress of each stream
compact      join small files, and delete unused ones
repair       restore lost commits and files, or remove what cannot be restored
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.spark.jobs.compact import CompactSummary, compact_warehouse
    from quorate.spark.jobs.follow import FollowSummary, QueryFailedError, follow_clusters
    from quorate.spark.jobs.repair import RepairSummary, repair_warehouse
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "compact": "CompactSummary compact_warehouse",
            "follow": "FollowSummary QueryFailedError follow_clusters",
            "repair": "RepairSummary repair_warehouse",
        },
    )

__all__ = [
    "CompactSummary",
    "FollowSummary",
    "QueryFailedError",
    "RepairSummary",
    "compact_warehouse",
    "follow_clusters",
    "repair_warehouse",
]
