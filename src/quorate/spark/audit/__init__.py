"""Cross-replica safety of copied metadata logs: what is sound, what is not, and what to do.

`audit` runs on Spark, `audit_here` in this process; both give the same `Report`.
"""

from quorate.spark.audit.job import audit, audit_here
from quorate.spark.audit.model import (
    ClusterVerdict,
    Finding,
    FirstDamageError,
    ReplicaVerdict,
    Report,
    Spot,
)

__all__ = [
    "ClusterVerdict",
    "Finding",
    "FirstDamageError",
    "ReplicaVerdict",
    "Report",
    "Spot",
    "audit",
    "audit_here",
]
