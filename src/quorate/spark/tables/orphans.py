"""Orphaned configs: a snapshot has configs of a topic that it does not have.

Kafka 4.3.1 leaves them in the snapshots of some nodes and not of others (docs/known-bugs.md); the
log has removed them. Gold leaves them out; silver has an event for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.metadata.resource_types import TOPIC_RESOURCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ORPHANED: Final = "!orphaned-config"
"""The type of a step with an orphaned ConfigRecord."""
LEFT_OUT: Final = "config left out"
WHY: Final = "the snapshot has no topic of this name"


def mark_orphaned(steps: DataFrame) -> DataFrame:
    """The steps of snapshots, with orphaned configs marked by the type ORPHANED.

    There is at most one snapshot for a cluster and effective offset. The events of orphaned
    configs carry the last offset of the snapshot: a record's own is an offset in the snapshot.
    """
    from pyspark.sql import functions as F

    snapshot = ["cluster_id", "effective_offset", "of_topic"]
    resource = F.get_json_object("record", "$.resourceType").cast("int")
    of_topic = F.when(
        (F.col("type") == "ConfigRecord") & (resource == TOPIC_RESOURCE),
        F.get_json_object("record", "$.resourceName"),
    )
    known = steps.where("type = 'TopicRecord'").withColumnRenamed("topic_name", "of_topic")
    known = known.select(*snapshot, F.lit(True).alias("is_known")).distinct()
    steps = steps.withColumn("of_topic", of_topic)
    configs = steps.where("of_topic IS NOT NULL").join(known, snapshot, "left")
    found = configs.withColumns(
        {
            "type": F.when(F.col("is_known"), F.col("type")).otherwise(ORPHANED),
            "offset": F.when(F.col("is_known"), F.col("offset")).otherwise(
                F.col("effective_offset")
            ),
        }
    )
    return steps.where("of_topic IS NULL").unionByName(found.drop("is_known")).drop("of_topic")
